// What optimizer steps and clipping ask of their lists.
#pragma once
#include "core/shapes.h"
#include "ops/optim/skus.h"

namespace baracuda::optim {

inline void adam_shapes(Shapes& s) {
  using Args = AdamArgs;
  s.list(Args::grads, Role::In, s.element());
  s.list(Args::params, Role::InOut, s.element());
  s.list(Args::exp_avgs, Role::InOut, s.wide());
  s.list(Args::exp_avg_sqs, Role::InOut, s.wide());
  const bool amsgrad = s.attrs<AdamAttrs>().amsgrad == 1;
  s.flag(s.attrs<AdamAttrs>().amsgrad, "amsgrad");
  s.flag(s.attrs<AdamAttrs>().maximize, "maximize");
  const bool most = s.list(Args::max_exp_avg_sqs, Role::InOut, s.wide(), true) > 0;
  s.attribute(amsgrad == most, "amsgrad", "1 with max_exp_avg_sqs, else 0");
  for (const int list : {Args::params, Args::exp_avgs, Args::exp_avg_sqs, Args::max_exp_avg_sqs})
    s.like(list, Args::grads);
}
inline void sgd_shapes(Shapes& s) {
  using Args = SgdArgs;
  s.list(Args::grads, Role::In, s.element());
  s.list(Args::params, Role::InOut, s.element());
  const bool momentum = s.list(Args::momentum_buffers, Role::InOut, s.wide(), true) > 0;
  s.flag(s.attrs<SgdAttrs>().nesterov, "nesterov");
  s.flag(s.attrs<SgdAttrs>().maximize, "maximize");
  s.attribute(momentum || s.attrs<SgdAttrs>().nesterov == 0, "nesterov", "0 without momentum_buffers");
  s.like(Args::params, Args::grads);
  s.like(Args::momentum_buffers, Args::grads);
}
// Gradients, parameters and lists of statistics up to the parameter `last`.
inline void step_shapes(Shapes& s, int last) {
  s.list(AdamArgs::grads, Role::In, s.element());
  s.list(AdamArgs::params, Role::InOut, s.element());
  for (int list = AdamArgs::params + 1; list <= last; ++list) s.list(list, Role::InOut, s.wide());
  for (int list = AdamArgs::params; list <= last; ++list) s.like(list, AdamArgs::grads);
  s.flag(s.attrs<StepAttrs>().maximize, "maximize");
}
template <int kLast>
void plain_shapes(Shapes& s) {
  step_shapes(s, kLast);
}
inline void decoupled_shapes(Shapes& s) {
  step_shapes(s, NadamArgs::exp_avg_sqs);
  s.flag(s.attrs<DecoupledAttrs>().decoupled_weight_decay, "decoupled_weight_decay");
}
inline void rmsprop_shapes(Shapes& s) {
  step_shapes(s, RmspropArgs::square_avgs);
  for (const int list : {RmspropArgs::momentum_buffers, RmspropArgs::grad_avgs}) {
    s.list(list, Role::InOut, s.wide(), true);
    s.like(list, RmspropArgs::grads);
  }
}
inline void norm_shapes(Shapes& s) {
  s.list(NormArgs::tensors, Role::In, s.element());
  s.out(NormArgs::total_norm, s.wide()).ranks(0);
  s.flag(s.attrs<NormAttrs>().error_if_nonfinite, "error_if_nonfinite");
  s.attribute(s.attrs<NormAttrs>().p > 0, "p", "a number above 0");
}
inline void clip_shapes(Shapes& s) {
  s.list(ClipWithNormArgs::grads, Role::InOut, s.element());
  s.reads(ClipWithNormArgs::total_norm).ranks(0);
}
inline void clip_value_shapes(Shapes& s) { s.list(ClipValueArgs::grads, Role::InOut, s.element()); }

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  return op == "sgd"                      ? sgd_shapes
         : op == "adagrad"                ? plain_shapes<AdagradArgs::state_sums>
         : op == "adadelta"               ? plain_shapes<AdadeltaArgs::acc_deltas>
         : op == "adamax"                 ? plain_shapes<AdamaxArgs::exp_infs>
         : op == "lion"                   ? plain_shapes<LionArgs::exp_avgs>
         : op == "nadam" || op == "radam" ? decoupled_shapes
         : op == "rmsprop"                ? rmsprop_shapes
         : op == "get_total_norm"         ? norm_shapes
         : op == "clip_grads_with_norm"   ? clip_shapes
         : op == "clip_grad_value"        ? clip_value_shapes
                                          : adam_shapes;
}

}  // namespace baracuda::optim
