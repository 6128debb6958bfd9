// Attention on the CPU: what of a call goes to the kernels.
#include "ops/attention/cpu.h"
#include "backends/cpu/family.h"

namespace baracuda::attention {
namespace {

Extent extent_of(const Sizes& s) { return {s.batch, s.heads, s.kv_heads, s.q_len, s.k_len, s.d, s.dv}; }

// The sizes of a call that has been checked.
Sizes checked_sizes(const Launch& launch, int q_arg) {
  Sizes sizes;
  sizes_of(launch, q_arg, &sizes);
  return sizes;
}

Status dense_forward(const Launch& launch) {
  using namespace forward_args;
  Sizes sizes;
  if (const Status status = sizes_of(launch, kQ, &sizes); status != Status::Ok) return status;
  const auto problem = [](const Launch& call, int64_t) {
    return ForwardProblem{checked_sizes(call, kQ), Rows4(call[kQ]),   Rows4(call[kK]),     Rows4(call[kV]),
                          Rows4(call[kOut]),       Mask(call[kMask]), Alibi(call[kAlibi]), Lse(call[kLse])};
  };
  forward(Problems<ForwardProblem>{launch, 1, problem, extent_of(sizes)});
  return Status::Ok;
}

Status dense_backward(const Launch& launch) {
  using namespace backward_args;
  Sizes sizes;
  if (const Status status = sizes_of(launch, kQ, &sizes); status != Status::Ok) return status;
  const auto problem = [](const Launch& call, int64_t) {
    return BackwardProblem{checked_sizes(call, kQ), Rows4(call[kDout]), Rows4(call[kQ]),     Rows4(call[kK]),
                           Rows4(call[kV]),         Rows4(call[kOut]),  Rows4(call[kDq]),    Rows4(call[kDk]),
                           Rows4(call[kDv]),        Mask(call[kMask]),  Alibi(call[kAlibi]), Lse(call[kLse])};
  };
  backward(Problems<BackwardProblem>{launch, 1, problem, extent_of(sizes)});
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
