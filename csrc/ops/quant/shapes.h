// What blocks ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/quant/formats.h"
#include "ops/quant/skus.h"

namespace baracuda::quant {

// The bytes along the last dimension for `values` of them; -1 where these are no whole blocks.
inline int64_t bytes_for(int64_t format, int64_t values) {
  int64_t bytes = -1;
  with_format(format, [&](auto known) {
    using Format = decltype(known);
    if (values >= 0 && values % Format::kValues == 0) bytes = values / Format::kValues * Format::kBytes;
  });
  return bytes;
}

inline void dequantize_shapes(Shapes& s) {
  const int64_t format = s.attrs<FormatAttrs>().format;
  if (!s.attribute(bytes_for(format, 0) == 0, "format", "the number of a type of blocks")) return;
  const auto y = s.out(Args::y).ranks(1, kMaxRank);
  s.in(Args::x, Element::U8).is(y.sizes().lead(1).then(bytes_for(format, y.at(-1))));
}
inline void quantize_shapes(Shapes& s) {
  const int64_t format = s.attrs<FormatAttrs>().format;
  const bool written = with_written_format(format, [](auto) {});
  if (!s.attribute(written, "format", "the number of a type of blocks that is written")) return;
  const auto x = s.in(Args::x).ranks(1, kMaxRank);
  s.out(Args::y, Element::U8).is(x.sizes().lead(1).then(bytes_for(format, x.at(-1))));
}

inline void product_shapes(Shapes& s) {
  const auto attrs = s.attrs<ProductAttrs>();
  if (!s.attribute(bytes_for(attrs.format, 0) == 0, "format", "the number of a type of blocks")) return;
  s.flag(attrs.quantize_input, "quantize_input");
  const auto x = s.in(ProductArgs::x).ranks(1, kMaxRank);
  const auto w = s.in(ProductArgs::w, Element::U8).ranks(2);
  const int64_t bytes = bytes_for(attrs.format, x.at(-1));
  s.want(bytes >= 0, ProductArgs::x, "whole blocks along the last dimension");
  w.is({w.at(0), bytes});
  s.out(ProductArgs::y).is(x.sizes().lead(1).then(w.at(0)));
}

inline void expert_shapes(Shapes& s) {
  const auto attrs = s.attrs<ProductAttrs>();
  if (!s.attribute(bytes_for(attrs.format, 0) == 0, "format", "the number of a type of blocks")) return;
  s.flag(attrs.quantize_input, "quantize_input");
  const auto x = s.in(ExpertArgs::x).ranks(1, kMaxRank);
  const auto w = s.in(ExpertArgs::w, Element::U8).ranks(3);
  const int64_t bytes = bytes_for(attrs.format, x.at(-1));
  s.want(bytes >= 0, ExpertArgs::x, "whole blocks along the last dimension");
  w.is({w.at(0), w.at(1), bytes});
  s.in(ExpertArgs::ids, s.aux()).is(x.sizes().lead(1));
  s.out(ExpertArgs::y).is(x.sizes().lead(1).then(w.at(1)));
}

// Scales for blocks of x, whose dimensions are cut at most as often as tensors have dimensions.
inline void scales_for(Shapes& s, const Sizes& x, int param, const Sizes& scale) {
  int cuts = 0;
  bool fit = scale.rank == x.rank;
  for (int i = 0; fit && i < x.rank; ++i) {
    const int64_t n = x.size[i], m = scale.size[i];
    fit = m == n || (m >= 1 && n % m == 0);
    cuts += m > 1 && m != n ? 1 : 0;
  }
  s.want(fit && x.rank + cuts <= kMaxRank, param, "sizes that divide those of x, at most 8 with the blocks");
}
inline void linear_shapes(Shapes& s) {
  using A = LinearArgs;
  const int64_t packed = s.attrs<LinearAttrs>().packed;
  s.attribute(packed >= 0 && packed <= 2, "packed", "0, or 1 for u4 and 2 for s4");
  s.attribute(packed == 0 || s.aux() == Element::U8, "packed", "0 for codes that are no bytes");
  const auto x = s.in(A::x).ranks(1, kMaxRank);
  const auto w = s.in(A::w, s.aux()).ranks(2);
  s.want(w.at(1) * (packed == 0 ? 1 : 2) == x.at(-1), A::w, "rows as long as those of x");
  const auto scale = s.in(A::scale, Element::F32).ranks(2);
  scales_for(s, Sizes{}.then(w.at(0)).then(x.at(-1)), A::scale, scale);
  const auto zero = s.may_in(A::zero_point, Element::I32).is(scale);
  if (kF8Codes.has(s.aux())) zero.when(false);
  s.may_in(A::bias).is({w.at(0)});
  s.out(A::y).is(x.sizes().lead(1).then(w.at(0)));
}
struct CodeRange {
  int64_t least, most;
};
inline CodeRange range_of(Element code) {
  switch (code) {
    case Element::I8:
      return {-128, 127};
    case Element::U8:
      return {0, 255};
    case Element::I16:
      return {-32768, 32767};
    case Element::U16:
      return {0, 65535};
    default:
      return {-32768, 65535};
  }
}
// Codes go from below to above zero, within their element.
inline void codes_within(Shapes& s, int64_t least, int64_t most, CodeRange in) {
  s.attribute(least <= 0 && least >= in.least, "least", "at most 0, and in the range of the codes");
  s.attribute(most > 0 && most <= in.most, "most", "at least 1, and in the range of the codes");
}
inline void codes_are(Shapes& s, int64_t least, int64_t most, CodeRange want) {
  s.attribute(least == want.least, "least", "what belongs to the 8-bit float");
  s.attribute(most == want.most, "most", "what belongs to the 8-bit float");
}
inline void quantize_linear_shapes(Shapes& s) {
  const auto attrs = s.attrs<CodeAttrs>();
  const auto x = s.in(CodeArgs::x);
  const auto scale = s.in(CodeArgs::scale, Element::F32);
  scales_for(s, x, CodeArgs::scale, scale);
  const auto zero = s.may_in(CodeArgs::zero_point, Element::I32).is(scale);
  s.out(CodeArgs::y, s.aux()).is(x);
  s.flag(attrs.saturate, "saturate");
  if (!kF8Codes.has(s.aux())) return codes_within(s, attrs.least, attrs.most, range_of(s.aux()));
  zero.when(false);
  codes_are(s, attrs.least, attrs.most, {-1, 1});
}
inline void dequantize_linear_shapes(Shapes& s) {
  const auto x = s.in(CodeArgs::x, s.aux());
  const auto scale = s.in(CodeArgs::scale, Element::F32);
  scales_for(s, x, CodeArgs::scale, scale);
  const auto zero = s.may_in(CodeArgs::zero_point, Element::I32).is(scale);
  if (kF8Codes.has(s.aux())) zero.when(false);
  s.out(CodeArgs::y).is(x);
}
inline void fake_quantize_shapes(Shapes& s) {
  const auto attrs = s.attrs<FakeAttrs>();
  const auto x = s.in(CodeArgs::x);
  const auto scale = s.in(CodeArgs::scale, Element::F32);
  scales_for(s, x, CodeArgs::scale, scale);
  s.may_in(CodeArgs::zero_point, Element::I32).is(scale);
  s.out(CodeArgs::y).is(x);
  codes_within(s, attrs.least, attrs.most, range_of(Element::Any));
}
inline void fake_gradient_shapes(Shapes& s) {
  const auto attrs = s.attrs<FakeAttrs>();
  const auto x = s.in(FakeGradientArgs::x);
  s.in(FakeGradientArgs::dy).is(x);
  const auto scale = s.in(FakeGradientArgs::scale, Element::F32);
  scales_for(s, x, FakeGradientArgs::scale, scale);
  s.may_in(FakeGradientArgs::zero_point, Element::I32).is(scale);
  s.out(FakeGradientArgs::dx).is(x);
  codes_within(s, attrs.least, attrs.most, range_of(Element::Any));
}
inline void dynamic_shapes(Shapes& s) {
  const auto attrs = s.attrs<DynamicAttrs>();
  const auto x = s.in(DynamicArgs::x);
  s.out(DynamicArgs::y, s.aux()).is(x);
  const auto scale = s.out(DynamicArgs::scale, Element::F32);
  scales_for(s, x, DynamicArgs::scale, scale);
  s.may_out(DynamicArgs::zero_point, Element::I32).when(attrs.symmetric == 0).is(scale);
  s.flag(attrs.symmetric, "symmetric");
  if (!kF8Codes.has(s.aux())) return codes_within(s, attrs.least, attrs.most, range_of(s.aux()));
  s.attribute(attrs.symmetric == 1, "symmetric", "1 for 8-bit floats");
  codes_are(s, attrs.least, attrs.most, {0, s.aux() == Element::F8E4M3 ? 448 : 57344});
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (op == "quantize_linear") return quantize_linear_shapes;
  if (op == "dequantize_linear") return dequantize_linear_shapes;
  if (op == "fake_quantize") return row.direction == Direction::Backward ? fake_gradient_shapes : fake_quantize_shapes;
  if (op == "dynamic_quantize") return dynamic_shapes;
  if (op == "quant_matmul_ids") return expert_shapes;
  if (op == "quant_linear") return linear_shapes;
  return op == "quantize" ? quantize_shapes : op == "dequantize" ? dequantize_shapes : product_shapes;
}

}  // namespace baracuda::quant
