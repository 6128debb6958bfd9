// The kernels of this family that live in a file of their own.
#pragma once
#include <algorithm>

#include "backends/cpu/family.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

// Parts that `length` is cut into, each of at least `shortest`, when there are few tasks. See partials() for the
// memory.
inline int64_t strips_for(int64_t tasks, int64_t length, int64_t shortest, int64_t work) {
  if (work < kSplitFrom || tasks >= kMaxStrips) return 1;
  int64_t wanted = (kMaxStrips + tasks - 1) / tasks, possible = std::max<int64_t>(1, length / shortest);
  return std::min({wanted, possible, kMaxStrips});
}

}  // namespace baracuda::reduce

namespace baracuda {

template <bool kMax>
struct CpuKernel<reduce::ArgExtremum<kMax>> {
  static Status run(const Launch& launch);
};

template <class Op>
struct CpuKernel<reduce::Backward<Op>> {
  static Status run(const Launch& launch);
};

}  // namespace baracuda
