// The update rules of the optimizers, one element at a time.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::optim {

// What AdamW's scalars come to for one step; worked out once in double, then rounded to the compute type.
template <class T>
struct AdamWStep {
  T grad_factor;   // +-1 / grad_scale
  T beta1, gain1;  // gain = 1 - beta
  T beta2, gain2;
  T decay;        // 1 - lr * weight_decay
  T step_size;    // lr / (1 - beta1^step)
  T root_factor;  // 1 / sqrt(1 - beta2^step)
  T eps;
};

template <class T>
BCU_FN void adamw(BCU_THREAD const AdamWStep<T>& s, T g, BCU_THREAD T& p, BCU_THREAD T& m, BCU_THREAD T& v) {
  g = g * s.grad_factor;
  m = s.beta1 * m + s.gain1 * g;
  v = s.beta2 * v + s.gain2 * g * g;
  p = s.decay * p - s.step_size * m / (math::sqrt(v) * s.root_factor + s.eps);
}

}  // namespace baracuda::optim
