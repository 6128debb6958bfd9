// The scalars of a step as the host reads them, and what they come to. simt.h does the same on a device.
#pragma once
#include <cmath>

#include "core/launch.h"
#include "ops/optim/math.h"
#include "ops/optim/skus.h"

namespace baracuda::optim {

inline bool is_size(double v) { return v >= 0 && std::isfinite(v); }
template <size_t kCount>
int first_wrong(const bool (&good)[kCount]) {
  for (size_t k = 0; k < kCount; ++k) {
    if (!good[k]) return static_cast<int>(k);
  }
  return -1;
}

// make_step() fills a step from a call's scalars and attributes. It returns the place of the first scalar that torch's
// optimizer would not accept, or -1; the comparisons refuse NaN.

// lr, beta1, beta2, eps, weight_decay, step, grad_scale
template <bool kDecoupled, bool kAmsgrad, class T>
int make_step(const Launch& launch, AdamRule<kDecoupled, kAmsgrad>, AdamStep<T>& out) {
  const Scalar* s = launch.scalars;
  const double lr = s[0].as_f64(), beta1 = s[1].as_f64(), beta2 = s[2].as_f64(), eps = s[3].as_f64();
  const double decay = s[4].as_f64(), step = static_cast<double>(s[5].as_i64()), grad_scale = s[6].as_f64();
  const double sign = attributes<AdamAttrs>(launch).maximize ? -1 : 1;
  out.grad_factor = static_cast<T>(sign / grad_scale);
  out.beta1 = static_cast<T>(beta1), out.gain1 = static_cast<T>(1 - beta1);
  out.beta2 = static_cast<T>(beta2), out.gain2 = static_cast<T>(1 - beta2);
  out.decay = static_cast<T>(kDecoupled ? 1 - lr * decay : decay);
  out.step_size = static_cast<T>(lr / (1 - std::pow(beta1, step)));
  out.root_factor = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
  out.eps = static_cast<T>(eps);
  return first_wrong({is_size(lr), beta1 >= 0 && beta1 < 1, beta2 >= 0 && beta2 < 1, eps >= 0, is_size(decay),
                      step >= 1, std::abs(grad_scale) > 0});
}

// lr, momentum, dampening, weight_decay, step, grad_scale
template <bool kMomentum, class T>
int make_step(const Launch& launch, SgdRule<kMomentum>, SgdStep<T>& out) {
  const Scalar* s = launch.scalars;
  const double lr = s[0].as_f64(), momentum = s[1].as_f64(), dampening = s[2].as_f64(), decay = s[3].as_f64();
  const int64_t step = s[4].as_i64();
  const double grad_scale = s[5].as_f64();
  const SgdAttrs attrs = attributes<SgdAttrs>(launch);
  out.grad_factor = static_cast<T>((attrs.maximize ? -1 : 1) / grad_scale);
  out.weight_decay = static_cast<T>(decay);
  out.momentum = static_cast<T>(momentum), out.gain = static_cast<T>(1 - dampening);
  out.lr = static_cast<T>(lr);
  out.first = step == 1, out.nesterov = attrs.nesterov != 0;
  const bool moves = kMomentum ? is_size(momentum) && !(attrs.nesterov && momentum == 0) : momentum == 0;
  return first_wrong({is_size(lr), moves, std::isfinite(dampening) && !(attrs.nesterov && dampening != 0),
                      is_size(decay), step >= 1, std::abs(grad_scale) > 0});
}

// max_norm; the norm is a tensor.
template <class T>
int make_step(const Launch& launch, ScaleRule, ScaleStep<T>& out, double norm) {
  const double share = launch.scalars[0].as_f64() / (norm + norm_margin<double>());
  out.factor = static_cast<T>(share > 1 ? 1 : share);
  return -1;
}

// clip_value
template <class T>
int make_step(const Launch& launch, BoundRule, BoundStep<T>& out) {
  const double most = launch.scalars[0].as_f64();
  out.most = static_cast<T>(most);
  return first_wrong({most == most});
}

}  // namespace baracuda::optim
