// What a call of an elementwise loss asks for, on every backend.
#pragma once
#include <type_traits>

#include "host/tile.h"
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

// Where a loss's operands stand in its call, in its order.
template <class Args>
inline constexpr int kOperands[] = {Args::input, Args::target, Args::weight, Args::pos_weight};
// Where its number does; -1: it has none.
template <class Args>
constexpr int number_of() {
  if constexpr (requires { Args::beta; })
    return Args::beta;
  else if constexpr (requires { Args::delta; })
    return Args::delta;
  else
    return -1;
}

// A number that no loss is defined for, where the host knows it.
template <class Args>
bool wrong_number(const Launch& launch) {
  constexpr int kNumber = number_of<Args>();
  if (kNumber < 0 || launch.scalars[kNumber].data) return false;
  const double v = launch.scalars[kNumber].as_f64();
  if constexpr (requires { Args::delta; }) {
    if (v > 0) return false;
  } else if (v >= 0) {
    return false;
  }
  if (launch.failure) *launch.failure = {-1, kNumber, 0, 0};
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
