// What losses and their gradients ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {

using Tensor = Shapes::Tensor;

// Of losses of classes: the sizes of one number for each row, and what `reduction` makes of them.
struct Rows {
  Sizes each, loss;
  int64_t classes = -1;
  Rows(Shapes& s, const Tensor& scores) {
    scores.ranks(1, kMaxRank);
    const int64_t reduction = s.attrs<CrossEntropyAttrs>().reduction;
    s.attribute(reduction >= 0 && reduction <= static_cast<int64_t>(Reduction::Sum), "reduction", "one of the op's");
    each = scores.rank() > 1 ? scores.sizes().without(1) : Sizes();
    classes = scores.at(class_axis(scores.rank()));
    if (reduction == static_cast<int64_t>(Reduction::None)) loss = each;
  }
};
// Classes, or probabilities of all of them.
inline void targets(Shapes& s, int param, const Tensor& scores, const Rows& rows) {
  s.in(param, s.aux()).is(is_float(s.aux()) ? scores.sizes() : rows.each);
  s.attribute(!is_float(s.aux()) || s.attrs<CrossEntropyAttrs>().ignore_index < 0, "ignore_index",
              "a negative one: probabilities are never ignored");
}

inline void cross_entropy_shapes(Shapes& s) {
  using Args = CrossEntropyArgs;
  const auto logits = s.in(Args::logits);
  const Rows rows(s, logits);
  targets(s, Args::target, logits, rows);
  s.may_in(Args::weight).is({rows.classes});
  s.out(Args::loss, s.element() | s.wide()).is(rows.loss);
  s.may_out(Args::lse, s.wide()).is(rows.each);
}
inline void cross_entropy_backward_shapes(Shapes& s) {
  using Args = CrossEntropyBackwardArgs;
  const auto logits = s.in(Args::logits);
  const Rows rows(s, logits);
  targets(s, Args::target, logits, rows);
  s.in(Args::dloss, s.element() | s.wide()).is(rows.loss);
  s.may_in(Args::weight).is({rows.classes});
  s.in(Args::lse, s.wide()).is(rows.each);
  s.out(Args::dlogits).is(logits);
}
inline void fused_shapes(Shapes& s) {
  using Args = FusedArgs;
  const auto logits = s.in(Args::logits);
  const Rows rows(s, logits);
  targets(s, Args::target, logits, rows);
  s.out(Args::loss, s.element() | s.wide()).is(rows.loss);
  s.may_out(Args::lse, s.wide()).is(rows.each);
  s.out(Args::dlogits).is(logits);
}
inline void nll_shapes(Shapes& s) {
  using Args = NllArgs;
  const auto input = s.in(Args::input);
  const Rows rows(s, input);
  targets(s, Args::target, input, rows);
  s.may_in(Args::weight).is({rows.classes});
  s.out(Args::loss, s.element() | s.wide()).is(rows.loss);
}
inline void nll_backward_shapes(Shapes& s) {
  using Args = NllBackwardArgs;
  const auto input = s.in(Args::input);
  const Rows rows(s, input);
  targets(s, Args::target, input, rows);
  s.in(Args::dloss, s.element() | s.wide()).is(rows.loss);
  s.may_in(Args::weight).is({rows.classes});
  s.out(Args::dinput).is(input);
}

// Of a layer and the loss of what it gives.
inline Rows layer(Shapes& s, const Tensor& input, const Tensor& table, int target, int bias, int weight) {
  const Rows rows(s, input.ranks(2));
  const Sizes classes{table.at(0)};
  table.is({table.at(0), input.at(1)});
  s.in(target, s.aux()).is({input.at(0)});
  s.may_in(bias).is(classes);
  s.may_in(weight).is(classes);
  return rows;
}
inline Sizes one_each(Shapes& s, const Tensor& input) {
  const bool each = s.attrs<CrossEntropyAttrs>().reduction == static_cast<int64_t>(Reduction::None);
  return each ? Sizes{input.at(0)} : Sizes();
}
inline void linear_shapes(Shapes& s) {
  using Args = LinearArgs;
  const auto input = s.in(Args::input), table = s.in(Args::linear_weight).ranks(2);
  layer(s, input, table, Args::target, Args::linear_bias, Args::weight);
  const Sizes loss = one_each(s, input);
  s.out(Args::loss).is(loss);
  s.may_out(Args::lse, s.wide()).is({input.at(0)});
  const auto dinput = s.may_out(Args::dinput).is(input);
  s.want(!dinput || loss.rank == 0, Args::dinput, "none where losses are not added up");
  s.may_out(Args::dlinear_weight).when(bool(dinput)).is(table);
  s.may_out(Args::dlinear_bias).when(dinput && s.may_in(Args::linear_bias)).is({table.at(0)});
}
inline void linear_backward_shapes(Shapes& s) {
  using Args = LinearBackwardArgs;
  const auto input = s.in(Args::input), table = s.in(Args::linear_weight).ranks(2);
  layer(s, input, table, Args::target, Args::linear_bias, Args::weight);
  s.in(Args::dloss).is(one_each(s, input));
  s.in(Args::lse, s.wide()).is({input.at(0)});
  s.out(Args::dinput).is(input);
  s.out(Args::dlinear_weight).is(table);
  s.may_out(Args::dlinear_bias).when(bool(s.may_in(Args::linear_bias))).is({table.at(0)});
}

// Of elementwise losses: what input and target broadcast to. kWeights: how many weights there may be, which want
// targets of the input's shape.
template <int kWeights>
Sizes pointwise(Shapes& s, int input, int target, int weight, int pos_weight) {
  const auto x = s.reads(input), y = s.reads(target);
  const Sizes full = s.joined(x, y);
  if (kWeights > 0) y.is(x);
  if (kWeights > 0) s.may_read(weight).fits(full);
  if (kWeights > 1) s.may_read(pos_weight).fits(full);
  if (kWeights < 1) s.absent(weight);
  if (kWeights < 2) s.absent(pos_weight);
  return full;
}
template <bool kDivergence>
Sizes reduced(Shapes& s, const Sizes& full) {
  const auto [reduction, log_target] = s.attrs<PointwiseAttrs>();
  const auto last = kDivergence ? PointwiseReduction::BatchMean : PointwiseReduction::Sum;
  s.attribute(reduction >= 0 && reduction <= static_cast<int64_t>(last), "reduction", "one of the op's");
  s.flag(log_target, "log_target");
  s.attribute(kDivergence || log_target == 0, "log_target", "0: only kl_div takes logarithms");
  return reduction == static_cast<int64_t>(PointwiseReduction::None) ? full : Sizes();
}
template <int kWeights, bool kDivergence>
void pointwise_shapes(Shapes& s) {
  using Args = PointwiseArgs;
  const Sizes full = pointwise<kWeights>(s, Args::input, Args::target, Args::weight, Args::pos_weight);
  s.out(Args::loss).is(reduced<kDivergence>(s, full));
}
template <int kWeights, bool kDivergence>
void pointwise_backward_shapes(Shapes& s) {
  using Args = PointwiseBackwardArgs;
  const Sizes full = pointwise<kWeights>(s, Args::input, Args::target, Args::weight, Args::pos_weight);
  s.in(Args::dloss).is(reduced<kDivergence>(s, full));
  s.out(Args::dinput).is(full);
}
template <int kWeights, bool kDivergence = false>
ShapeRule pointwise_of(bool back) {
  return back ? pointwise_backward_shapes<kWeights, kDivergence> : pointwise_shapes<kWeights, kDivergence>;
}

// Scores [steps, samples, classes]; targets of all samples or one row for each; lengths.
template <class Args>
void ctc_sequences(Shapes& s, const Tensor& scores) {
  scores.ranks(3);
  const auto [blank, zero_infinity] = s.attrs<CtcAttrs>();
  s.attribute(blank >= 0 && blank < scores.at(2), "blank", "one of the classes");
  s.flag(zero_infinity, "zero_infinity");
  const auto targets = s.in(Args::targets, s.aux()).ranks(1, 2);
  if (targets.rank() == 2) targets.is({scores.at(1), targets.at(1)});
  s.in(Args::input_lengths, s.aux()).is({scores.at(1)});
  s.in(Args::target_lengths, s.aux()).is({scores.at(1)});
}
inline void ctc_shapes(Shapes& s) {
  const auto scores = s.in(CtcArgs::log_probs);
  ctc_sequences<CtcArgs>(s, scores);
  s.out(CtcArgs::loss).is({scores.at(1)});
}
inline void ctc_backward_shapes(Shapes& s) {
  using Args = CtcBackwardArgs;
  const auto scores = s.in(Args::log_probs);
  ctc_sequences<Args>(s, scores);
  s.in(Args::dloss).is({scores.at(1)});
  s.out(Args::dlog_probs).is(scores);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "cross_entropy") return back ? cross_entropy_backward_shapes : cross_entropy_shapes;
  if (op == "cross_entropy_fused") return fused_shapes;
  if (op == "nll_loss") return back ? nll_backward_shapes : nll_shapes;
  if (op == "ctc_loss") return back ? ctc_backward_shapes : ctc_shapes;
  if (op == "linear_cross_entropy") return back ? linear_backward_shapes : linear_shapes;
  if (op == "binary_cross_entropy") return pointwise_of<1>(back);
  if (op == "binary_cross_entropy_with_logits") return pointwise_of<2>(back);
  return op == "kl_div" ? pointwise_of<0, true>(back) : pointwise_of<0>(back);
}

}  // namespace baracuda::loss
