// AdamW's scalars and what they come to for one step.
#pragma once
#include <cmath>

#include "core/launch.h"
#include "ops/optim/math.h"

namespace baracuda::optim {

struct AdamWScalars {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  double grad_scale;

  explicit AdamWScalars(const Scalar* s)
      : lr(s[0].as_f64()),
        beta1(s[1].as_f64()),
        beta2(s[2].as_f64()),
        eps(s[3].as_f64()),
        weight_decay(s[4].as_f64()),
        step(s[5].as_i64()),
        grad_scale(s[6].as_f64()) {}
  // The place of the first scalar that torch.optim.AdamW would not accept, or -1; the comparisons refuse NaN.
  int wrong() const {
    const bool good[] = {lr >= 0 && std::isfinite(lr),
                         beta1 >= 0 && beta1 < 1,
                         beta2 >= 0 && beta2 < 1,
                         eps >= 0,
                         weight_decay >= 0 && std::isfinite(weight_decay),
                         step >= 1,
                         std::abs(grad_scale) > 0};
    for (int k = 0; k < 7; ++k) {
      if (!good[k]) return k;
    }
    return -1;
  }
};

template <class T>
AdamWStep<T> make_step(const AdamWScalars& s, bool maximize) {
  const double step = static_cast<double>(s.step);
  AdamWStep<T> out;
  out.grad_factor = static_cast<T>((maximize ? -1.0 : 1.0) / s.grad_scale);
  out.beta1 = static_cast<T>(s.beta1), out.gain1 = static_cast<T>(1 - s.beta1);
  out.beta2 = static_cast<T>(s.beta2), out.gain2 = static_cast<T>(1 - s.beta2);
  out.decay = static_cast<T>(1 - s.lr * s.weight_decay);
  out.step_size = static_cast<T>(s.lr / (1 - std::pow(s.beta1, step)));
  out.root_factor = static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, step)));
  out.eps = static_cast<T>(s.eps);
  return out;
}

}  // namespace baracuda::optim
