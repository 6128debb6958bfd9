// Attention on the CPU: which kernel a call goes to.
#include "ops/attention/cpu.h"
#include "backends/cpu/family.h"

namespace baracuda::attention {
namespace {

template <class C>
Status forward(const Launch& launch) {
  using namespace forward_args;
  Sizes sizes;
  if (const Status status = sizes_of(launch, kQ, &sizes); status != Status::Ok) return status;
  if (sizes.batch == 0 || sizes.rows == 0) return Status::Ok;
  const ForwardProblem problem{sizes,
                               Rows4(launch[kQ]),
                               Rows4(launch[kK]),
                               Rows4(launch[kV]),
                               Rows4(launch[kOut]),
                               Mask(launch[kMask]),
                               Alibi(launch[kAlibi]),
                               launch[kLse].present() ? &launch[kLse] : nullptr,
                               static_cast<char*>(launch.workspace)};
  is_decode(sizes.rows, sizes.q_len) ? forward_decode<C>(problem) : forward_blocked<C>(problem);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::attention

namespace baracuda {

template <>
struct CpuKernel<attention::Forward> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? attention::forward<double>(launch) : attention::forward<float>(launch);
  }
};

template <>
struct CpuKernel<attention::Backward> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? attention::backward<double>(launch) : attention::backward<float>(launch);
  }
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
struct CpuKernel<attention::CacheAppend> {
  static Status run(const Launch& launch) { return attention::cache_append(launch); }
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
