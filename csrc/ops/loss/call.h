// What a call of an elementwise loss asks for, on every backend.
#pragma once
#include <type_traits>

#include "core/tile.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {

// What the sum of `count` losses is divided by.
inline double divisor_of(PointwiseReduction reduction, int64_t count, const TensorView& input) {
  if (reduction == PointwiseReduction::Mean) return static_cast<double>(count);
  if (reduction == PointwiseReduction::BatchMean && input.rank > 0) return static_cast<double>(input.shape[0]);
  return 1;
}

// The shape that both broadcast to.
inline IterationSpace together(const TensorView& a, const TensorView& b) {
  IterationSpace space = space_of(a.rank >= b.rank ? a : b);
  const TensorView& less = a.rank >= b.rank ? b : a;
  for (int i = 0; i < less.rank; ++i) {
    int64_t& size = space.shape[space.rank - less.rank + i];
    if (size == 1) size = less.shape[i];
  }
  return space;
}

// A number that no loss is defined for, where the host knows it.
template <class Loss>
bool wrong_number(const Launch& launch) {
  if (Loss::kNumbers == 0 || launch.scalars[0].data) return false;
  const double v = launch.scalars[0].as_f64();
  if (std::is_same_v<Loss, Huber> ? v > 0 : v >= 0) return false;
  if (launch.failure) *launch.failure = {-1, 0, 0, 0};
  return true;
}

// Calls f(Loss()) with the loss that the call's attributes choose.
template <class Loss, class F>
Status with_loss(const Launch& launch, F&& f) {
  if constexpr (requires { typename Loss::OfLogs; }) {
    if (attributes<PointwiseAttrs>(launch).log_target) return f(typename Loss::OfLogs());
  }
  return f(Loss());
}

}  // namespace baracuda::loss
