// The scalars of a step as the host reads them, and what they come to. simt.h does the same on a device.
#pragma once
#include <cmath>

#include "core/launch.h"
#include "ops/optim/math.h"
#include "ops/optim/skus.h"

namespace baracuda::optim {

inline bool is_size(double v) { return v >= 0 && std::isfinite(v); }
struct Tested {
  int scalar;
  bool good;
};
template <size_t kCount>
int first_wrong(const Tested (&all)[kCount]) {
  for (const Tested& t : all) {
    if (!t.good) return t.scalar;
  }
  return -1;
}

// make_step() fills a step from a call's scalars and attributes. It returns the place of the first scalar that torch's
// optimizer would not accept, or -1; the comparisons refuse NaN.

template <bool kDecoupled, bool kAmsgrad, class T>
int make_step(const Launch& launch, AdamRule<kDecoupled, kAmsgrad>, AdamStep<T>& out) {
  const Scalar* s = launch.scalars;
  using Args = AdamArgs;
  const double lr = s[Args::lr].as_f64(), beta1 = s[Args::beta1].as_f64(), beta2 = s[Args::beta2].as_f64();
  const double eps = s[Args::eps].as_f64(), decay = s[Args::weight_decay].as_f64();
  const double step = static_cast<double>(s[Args::step].as_i64()), grad_scale = s[Args::grad_scale].as_f64();
  const double sign = attributes<AdamAttrs>(launch).maximize ? -1 : 1;
  out.grad_factor = static_cast<T>(sign / grad_scale);
  out.beta1 = static_cast<T>(beta1), out.gain1 = static_cast<T>(1 - beta1);
  out.beta2 = static_cast<T>(beta2), out.gain2 = static_cast<T>(1 - beta2);
  out.decay = static_cast<T>(kDecoupled ? 1 - lr * decay : decay);
  out.step_size = static_cast<T>(lr / (1 - std::pow(beta1, step)));
  out.root_factor = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
  out.eps = static_cast<T>(eps);
  return first_wrong({{Args::lr, is_size(lr)},
                      {Args::beta1, beta1 >= 0 && beta1 < 1},
                      {Args::beta2, beta2 >= 0 && beta2 < 1},
                      {Args::eps, eps >= 0},
                      {Args::weight_decay, is_size(decay)},
                      {Args::step, step >= 1},
                      {Args::grad_scale, std::abs(grad_scale) > 0}});
}

template <bool kMomentum, class T>
int make_step(const Launch& launch, SgdRule<kMomentum>, SgdStep<T>& out) {
  const Scalar* s = launch.scalars;
  using Args = SgdArgs;
  const double lr = s[Args::lr].as_f64(), momentum = s[Args::momentum].as_f64();
  const double dampening = s[Args::dampening].as_f64(), decay = s[Args::weight_decay].as_f64();
  const int64_t step = s[Args::step].as_i64();
  const double grad_scale = s[Args::grad_scale].as_f64();
  const SgdAttrs attrs = attributes<SgdAttrs>(launch);
  out.grad_factor = static_cast<T>((attrs.maximize ? -1 : 1) / grad_scale);
  out.weight_decay = static_cast<T>(decay);
  out.momentum = static_cast<T>(momentum), out.gain = static_cast<T>(1 - dampening);
  out.lr = static_cast<T>(lr);
  out.first = step == 1, out.nesterov = attrs.nesterov != 0;
  const bool moves = kMomentum ? is_size(momentum) && !(attrs.nesterov && momentum == 0) : momentum == 0;
  return first_wrong({{Args::lr, is_size(lr)},
                      {Args::momentum, moves},
                      {Args::dampening, std::isfinite(dampening) && !(attrs.nesterov && dampening != 0)},
                      {Args::weight_decay, is_size(decay)},
                      {Args::step, step >= 1},
                      {Args::grad_scale, std::abs(grad_scale) > 0}});
}

// The norm is a tensor.
template <class T>
int make_step(const Launch& launch, ScaleRule, ScaleStep<T>& out, double norm) {
  const double share = launch.scalars[ScaleRule::Args::max_norm].as_f64() / (norm + norm_margin<double>());
  out.factor = static_cast<T>(share > 1 ? 1 : share);
  return -1;
}

template <class T>
int make_step(const Launch& launch, BoundRule, BoundStep<T>& out) {
  using Args = BoundRule::Args;
  const double most = launch.scalars[Args::clip_value].as_f64();
  out.most = static_cast<T>(most);
  return first_wrong({{Args::clip_value, most == most}});
}

}  // namespace baracuda::optim
