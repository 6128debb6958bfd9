// What norms and their gradients ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/norm/skus.h"
#include "ops/quant/epilogue_shapes.h"

namespace baracuda::norm {

// The sizes of what is normalised together, and of a statistic of each.
struct Parts {
  Sizes weight, statistic;
  Parts(Shapes& s, const Sizes& x) {
    const int64_t dims = s.attrs<NormAttrs>().dims;
    if (!s.attribute(dims >= 1 && dims <= x.rank, "dims", "how many of the last dimensions, at least one")) return;
    weight = x.tail(static_cast<int>(dims));
    statistic = x;
    for (int i = 0; i < weight.rank; ++i) statistic.size[x.rank - 1 - i] = 1;
  }
};

inline void no_offset(Shapes& s, const Shapes::Tensor& weight) {
  s.attribute(weight || s.attrs<NormAttrs>().weight_offset == 0, "weight_offset", "0 without a weight");
}
// The weights, beside which there may be a number that is added to each.
inline void weights(Shapes& s, int param, const Parts& parts) { no_offset(s, s.may_in(param).is(parts.weight)); }

inline void rms_shapes(Shapes& s) {
  using Args = RmsNormArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  weights(s, Args::weight, parts);
  s.out(Args::y).is(x);
  s.may_out(Args::rstd, s.wide()).is(parts.statistic);
}
inline void add_rms_shapes(Shapes& s) {
  using Args = AddRmsNormArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  s.in(Args::residual).is(x);
  weights(s, Args::weight, parts);
  s.out(Args::y).is(x);
  s.out(Args::sum).is(x);
  s.may_out(Args::rstd, s.wide()).is(parts.statistic);
}
inline void rms_add_shapes(Shapes& s) {
  using Args = RmsNormAddArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  s.in(Args::residual).is(x);
  weights(s, Args::weight, parts);
  s.out(Args::y).is(x);
  s.may_out(Args::rstd, s.wide()).is(parts.statistic);
}
inline void layer_shapes(Shapes& s) {
  using Args = LayerNormArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  const int dims = parts.weight.rank;
  const auto weight = s.may_in(Args::weight).ranks(dims, x.rank()), bias = s.may_in(Args::bias).ranks(dims, x.rank());
  weight.is(x.sizes().tail(weight.rank()));
  bias.is(x.sizes().tail(weight ? weight.rank() : bias.rank()));
  no_offset(s, weight);
  s.out(Args::y).is(x);
  const auto mean = s.may_out(Args::mean, s.wide()).is(parts.statistic);
  s.may_out(Args::rstd, s.wide()).when(bool(mean)).is(parts.statistic);
}
inline void rms_backward_shapes(Shapes& s) {
  using Args = RmsNormBackwardArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  s.in(Args::dy).is(x);
  weights(s, Args::weight, parts);
  s.in(Args::rstd, s.wide()).is(parts.statistic);
  s.out(Args::dx).is(x);
  s.may_out(Args::dweight).is(parts.weight);
}
inline void add_rms_backward_shapes(Shapes& s) {
  using Args = AddRmsNormBackwardArgs;
  const auto sum = s.in(Args::sum);
  const Parts parts(s, sum);
  s.in(Args::dy).is(sum);
  s.may_in(Args::dsum).is(sum);
  weights(s, Args::weight, parts);
  s.in(Args::rstd, s.wide()).is(parts.statistic);
  s.out(Args::dx).is(sum);
  s.may_out(Args::dweight).is(parts.weight);
}
inline void layer_backward_shapes(Shapes& s) {
  using Args = LayerNormBackwardArgs;
  const auto x = s.in(Args::x);
  const Parts parts(s, x);
  s.in(Args::dy).is(x);
  weights(s, Args::weight, parts);
  for (const int statistic : {Args::mean, Args::rstd}) s.in(statistic, s.wide()).is(parts.statistic);
  s.out(Args::dx).is(x);
  for (const int gradient : {Args::dweight, Args::dbias}) s.may_out(gradient).is(parts.weight);
}

// The sizes of a statistic, after the attributes: of each channel, or of each image's.
inline Sizes batch_statistic(Shapes& s, const Sizes& x) {
  const auto attrs = s.attrs<BatchNormAttrs>();
  s.flag(attrs.training, "training");
  if (s.flag(attrs.per_instance, "per_instance"))
    s.attribute(attrs.training || !attrs.per_instance, "per_instance", "0 without training");
  return attrs.per_instance ? Sizes{x.at(0), x.at(1)} : Sizes{x.at(1)};
}
inline void batch_shapes(Shapes& s) {
  using Args = BatchNormArgs;
  const auto x = s.in(Args::x).ranks(2, kMaxRank);
  const Sizes statistic = batch_statistic(s, x), channels{x.at(1)};
  const bool training = s.attrs<BatchNormAttrs>().training;
  const Elements either = set_of(s.element()) | set_of(s.wide());
  const auto weight = s.may_in(Args::weight, either).is(channels), bias = s.may_in(Args::bias, either).is(channels);
  if (weight && bias) s.want(weight.element() == bias.element(), Args::bias, "the weight's element");
  const auto mean = s.may_in(Args::running_mean, either).is(channels);
  const auto var = s.may_in(Args::running_var, either).is(channels).when(bool(mean));
  s.want(training || bool(mean), Args::running_mean, "running statistics, without training");
  if (mean) s.want(var.element() == mean.element(), Args::running_var, "running_mean's element");
  s.out(Args::y).is(x);
  const auto saved = s.may_out(Args::mean, s.wide()).is(statistic);
  s.may_out(Args::rstd, s.wide()).is(statistic).when(bool(saved));
  for (const int next : {Args::next_mean, Args::next_var})
    s.may_out(next, mean ? mean.element() : s.wide()).is(channels).when(training && bool(mean));
}
inline void batch_backward_shapes(Shapes& s) {
  using Args = BatchNormBackwardArgs;
  const auto x = s.in(Args::x).ranks(2, kMaxRank);
  const Sizes statistic = batch_statistic(s, x), channels{x.at(1)};
  s.in(Args::dy).is(x);
  const Elements either = set_of(s.element()) | set_of(s.wide());
  const auto weight = s.may_in(Args::weight, either).is(channels);
  for (const int given : {Args::mean, Args::rstd}) s.in(given, s.wide()).is(statistic);
  s.out(Args::dx).is(x);
  const Elements own = weight ? set_of(weight.element()) : either;
  const auto dweight = s.may_out(Args::dweight, own).is(channels);
  s.may_out(Args::dbias, dweight ? set_of(dweight.element()) : own).is(channels);
}

inline void coded_norm_shapes(Shapes& s) {
  using Args = CodedNormArgs;
  const auto attrs = s.attrs<CodedNormAttrs>();
  const auto x = s.in(Args::x);
  const Sizes last = x.sizes().tail(1);
  const auto residual = s.may_in(Args::residual).is(x);
  const auto weight = s.may_in(Args::weight).is(last);
  s.attribute(weight || attrs.weight_offset == 0, "weight_offset", "0 without a weight");
  s.may_in(Args::bias).is(last);
  quant::coded_shapes<Args>(s, x, attrs.group);
  s.may_out(Args::sum).when(bool(residual)).is(x);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (op == "rms_norm_quantize" || op == "layer_norm_quantize") return coded_norm_shapes;
  const bool back = row.direction == Direction::Backward;
  if (op == "batch_norm") return back ? batch_backward_shapes : batch_shapes;
  if (op == "layer_norm") return back ? layer_backward_shapes : layer_shapes;
  if (op == "add_rms_norm") return back ? add_rms_backward_shapes : add_rms_shapes;
  if (op == "rms_norm_add") return back ? rms_backward_shapes : rms_add_shapes;
  return op != "rms_norm" ? nullptr : back ? rms_backward_shapes : rms_shapes;
}

}  // namespace baracuda::norm
