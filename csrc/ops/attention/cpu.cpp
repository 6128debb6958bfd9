// Attention on the CPU: what of a call goes to the kernels.
#include "ops/attention/cpu.h"
#include "backends/cpu/family.h"
#include "ops/random/targets.h"

namespace baracuda::attention {
namespace {

Extent extent_of(const Sizes& s) { return {s.batch, s.heads, s.kv_heads, s.q_len, s.k_len, s.d, s.dv}; }

// The sizes of a call that has been checked.
template <class Args>
Sizes checked_sizes(const Launch& launch) {
  Sizes sizes;
  sizes_of<Args>(launch, &sizes);
  return sizes;
}

// The sizes of a call, and whether its numbers are what they may be.
template <class Args>
Status check(const Launch& launch, Sizes* sizes) {
  if (!Dropout::of<Args>(launch).valid()) return random::wrong_scalar(launch, Args::dropout_p, ValueRange::Unit);
  return sizes_of<Args>(launch, sizes);
}

Status dense_forward(const Launch& launch) {
  using Args = ForwardArgs;
  Sizes sizes;
  if (const Status status = check<Args>(launch, &sizes); status != Status::Ok) return status;
  const auto problem = [](const Launch& call, int64_t) {
    return ForwardProblem{checked_sizes<Args>(call), Rows4(call[Args::q]),
                          Rows4(call[Args::k]),      Rows4(call[Args::v]),
                          Rows4(call[Args::out]),    Mask(call[Args::mask]),
                          Alibi(call[Args::alibi]),  Sinks(call[Args::sinks]),
                          Lse(call[Args::lse]),      Pages(),
                          Dropout::of<Args>(call)};
  };
  forward(Problems<ForwardProblem>{launch, 1, problem, extent_of(sizes)});
  return Status::Ok;
}

Status dense_backward(const Launch& launch) {
  using Args = BackwardArgs;
  Sizes sizes;
  if (const Status status = check<Args>(launch, &sizes); status != Status::Ok) return status;
  const auto problem = [](const Launch& call, int64_t) {
    return BackwardProblem{checked_sizes<Args>(call), Rows4(call[Args::dout]),  Rows4(call[Args::q]),
                           Rows4(call[Args::k]),      Rows4(call[Args::v]),     Rows4(call[Args::out]),
                           Rows4(call[Args::dq]),     Rows4(call[Args::dk]),    Rows4(call[Args::dv]),
                           Mask(call[Args::mask]),    Alibi(call[Args::alibi]), Lse(call[Args::lse]),
                           Dropout::of<Args>(call)};
  };
  backward(Problems<BackwardProblem>{launch, 1, problem, extent_of(sizes)});
  if (launch[Args::dsinks].present())
    sink_gradients({Rows4(launch[Args::dout]), Rows4(launch[Args::out]), Lse(launch[Args::lse]),
                    Sinks(launch[Args::sinks]), launch[Args::dsinks], sizes.batch, sizes.heads, sizes.q_len, sizes.dv});
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::attention

namespace baracuda {

template <>
struct CpuKernel<attention::Forward> {
  static Status run(const Launch& launch) { return attention::dense_forward(launch); }
};

template <>
struct CpuKernel<attention::Backward> {
  static Status run(const Launch& launch) { return attention::dense_backward(launch); }
};

template <>
struct CpuKernel<attention::AttendPacked<Direction::Forward>> {
  static Status run(const Launch& launch) { return attention::packed_forward(launch); }
};

template <>
struct CpuKernel<attention::AttendPacked<Direction::Backward>> {
  static Status run(const Launch& launch) { return attention::packed_backward(launch); }
};

template <>
struct CpuKernel<attention::AttendPaged> {
  static Status run(const Launch& launch) { return attention::paged_forward(launch); }
};

template <>
struct CpuKernel<attention::PagedAppend> {
  static Status run(const Launch& launch) { return attention::paged_append(launch); }
};

template <>
struct CpuKernel<attention::SlotAppend> {
  static Status run(const Launch& launch) { return attention::slot_append(launch); }
};

template <>
struct CpuKernel<attention::CacheAppend> {
  static Status run(const Launch& launch) { return attention::cache_append(launch); }
};

template <>
struct CpuKernel<attention::MergeBackward> {
  static Status run(const Launch& launch) {
    attention::merge_backward(launch);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<attention::Merge> {
  static Status run(const Launch& launch) {
    attention::merge(launch);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(attention)
