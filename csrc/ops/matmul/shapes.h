// What matrix products ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/matmul/skus.h"

namespace baracuda::matmul {

using Tensor = Shapes::Tensor;

// The sizes of a product, its batch dimensions broadcast.
inline baracuda::Sizes product(Shapes& s, const Tensor& a, const Tensor& b, int param) {
  a.ranks(2, kMaxRank);
  b.ranks(2, kMaxRank);
  s.want(a.at(-1) == b.at(-2), param, "as many rows as the first factor has columns");
  const auto batch = s.joined(a.sizes().lead(2), b.sizes().lead(2), param);
  return batch.then(baracuda::Sizes{a.at(-2), b.at(-1)});
}
inline void matmul_shapes(Shapes& s) {
  using Args = MatmulArgs;
  const auto a = s.in(Args::a), b = s.in(Args::b), out = s.out(Args::out).ranks(2, kMaxRank);
  const auto full = product(s, a, b, Args::b);
  // Batch dimensions that the output does not have are summed over.
  out.fits(full);
  s.want(out.at(-2) == full.at(-2) && out.at(-1) == full.at(-1), Args::out, "the rows and columns of the product");
  s.may_in(Args::c).fits(out);
  s.may_in(Args::bias).is({b.at(-1)});
  const int64_t activation = s.attrs<MatmulAttrs>().activation;
  const int64_t last = is_float(s.element()) ? kSilu : kNoActivation;
  s.attribute(activation >= kNoActivation && activation <= last, "activation", "one of the op's, 0 for integers");
}
inline void scaled_shapes(Shapes& s) {
  using Args = ScaledArgs;
  constexpr int64_t kMostTerms = (int64_t{1} << 17) - 1;  // products of 8 bits whose sum fits 32
  const auto a = s.in(Args::a), b = s.in(Args::b);
  const auto full = product(s, a, b, Args::b);
  const bool whole = s.aux() == Element::I32;
  const auto scale_a = s.may_in(Args::scale_a, Element::F32), scale_b = s.may_in(Args::scale_b, Element::F32);
  scale_a.fits(full.with(full.rank - 1, 1));
  scale_b.fits(full.with(full.rank - 2, 1));
  s.want(!whole || (!scale_a && !scale_b), Args::scale_a, "no scales where the output is i32");
  s.want(whole || s.element() != Element::I8 || a.at(-1) <= kMostTerms, Args::a, "at most 2^17 - 1 products");
  s.may_in(Args::bias, s.aux()).is({b.at(-1)});
  s.out(Args::out, s.aux()).is(full);
  const int64_t activation = s.attrs<MatmulAttrs>().activation;
  s.attribute(activation >= kNoActivation && activation <= (whole ? kNoActivation : kSilu), "activation",
              "one of the op's, 0 where the output is i32");
}

inline void gated_shapes(Shapes& s) {
  using Args = GatedMatmulArgs;
  const auto a = s.in(Args::a), b = s.in(Args::b).ranks(2, 2);
  const auto full = product(s, a, b, Args::b);
  const auto out = s.out(Args::out).ranks(2, kMaxRank);
  out.is(full.with(full.rank - 1, out.at(-1)));
  s.want(b.at(-1) == out.at(-1) * 2, Args::b, "two columns for each of the output");
  const auto attrs = s.attrs<GatedMatmulAttrs>();
  s.attribute(attrs.gate >= kGlu && attrs.gate <= kGeGlu, "gate", "one of the op's");
  s.attribute(attrs.gate_first == 0 || attrs.gate_first == 1, "gate_first", "0 or 1");
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  return op == "scaled_matmul" ? scaled_shapes : op == "gated_matmul" ? gated_shapes : matmul_shapes;
}

}  // namespace baracuda::matmul
