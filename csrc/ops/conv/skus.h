// The SKU table of convolutions and their gradients.
#pragma once
#include "core/row.h"
#include "ops/conv/frame.h"
#include "ops/conv/problem.h"

namespace baracuda::conv {

template <Makes kMakes>
struct Forward {};
template <Makes kMakes>
struct Backward {};
struct ConvNorm {};

// What the image is, and what the result, of conv or of conv_transpose.
template <Makes kMakes, class Params>
Conv forward_conv(const ConvAttrs& attrs, const Params& of) {
  const auto &x = of(ConvArgs::x), &y = of(ConvArgs::y);
  return kMakes == Makes::Result ? conv_of(attrs, x, of(ConvArgs::weight), y)
                                 : conv_of(attrs, y, of(ConvArgs::weight), x);
}
template <Makes kMakes, class Params>
Conv backward_conv(const ConvAttrs& attrs, const Params& of) {
  using Args = ConvBackwardArgs;
  return kMakes == Makes::Result ? conv_of(attrs, of(Args::x), of(Args::weight), of(Args::dy))
                                 : conv_of(attrs, of(Args::dy), of(Args::weight), of(Args::x));
}
inline constexpr Makes other(Makes makes) { return makes == Makes::Result ? Makes::Image : Makes::Result; }

inline int64_t unit_of(Element e) { return e == Element::F64 ? 8 : 4; }

// Where sizes are open, room for every call: less is not enough for some smaller ones.
inline bool is_open(const Problem& p) {
  return std::any_of(p.params, p.params + p.n_params, [](const ParamMeta& m) { return m.rank >= 0 && !m.fixed; });
}
inline int64_t pass_scratch(const Problem& p, const Conv& c, Makes makes) {
  const int64_t unit = unit_of(p.element);
  return (is_open(p) ? room_of_passes_up_to(c, makes, unit) : room_of_pass(c, makes, unit)).bytes();
}
template <Makes kMakes>
int64_t forward_scratch(const Problem& p) {
  const Conv c = forward_conv<kMakes>(attributes<ConvAttrs>(p), [&](int i) -> const ParamMeta& { return p.params[i]; });
  return pass_scratch(p, c, kMakes);
}
template <Makes kMakes>
int64_t backward_scratch(const Problem& p) {
  using Args = ConvBackwardArgs;
  const Conv c =
      backward_conv<kMakes>(attributes<ConvAttrs>(p), [&](int i) -> const ParamMeta& { return p.params[i]; });
  int64_t most = 0;
  if (p.params[Args::dx].rank >= 0) most = pass_scratch(p, c, other(kMakes));
  if (p.params[Args::dweight].rank >= 0)
    most = std::max(most, room_of_filter(c, unit_of(p.element), is_open(p)).bytes());
  return most;
}

// The lines of an Epilogue lie behind what the convolution takes, and room for a vector behind them.
inline constexpr int kEpilogueLines = 5;
inline int64_t norm_scratch(const Problem& p) {
  using Args = ConvNormArgs;
  const auto of = [&](int i) -> const ParamMeta& { return p.params[i]; };
  const Conv c = conv_of(attributes<ConvAttrs>(p), of(Args::x), of(Args::weight), of(Args::y));
  const int64_t unit = unit_of(p.element);
  return pass_scratch(p, c, Makes::Result) + kEpilogueLines * padded_bytes(c.groups * c.outs * unit) + 64;
}

template <Makes kMakes>
constexpr auto both(const char* op) {
  const auto forward = row<Forward<kMakes>>(op).template args_of<ConvArgs>();
  const auto backward = row<Backward<kMakes>>(op).backward().template args_of<ConvBackwardArgs>();
  const auto finish = [](auto r) {
    return r.name("framed").template attrs_of<ConvAttrs>().takes(kFloats).rank(kAxes + 2).sum(8);
  };
  return table(finish(forward), finish(backward).not_batch_invariant());
}
// Sums are built in blocks of 256 products, which bounds their error by 8 eps sqrt(K) for every K up to 2^24.
inline constexpr auto kLocal = both<Makes::Result>("conv") + both<Makes::Image>("conv_transpose");

constexpr auto with_scratch() {
  auto t = kLocal;
  t.rows[0].workspace = forward_scratch<Makes::Result>, t.rows[1].workspace = backward_scratch<Makes::Result>;
  t.rows[2].workspace = forward_scratch<Makes::Image>, t.rows[3].workspace = backward_scratch<Makes::Image>;
  return t;
}
// GPUs add a place's products in an order that its column's place in a tile may change.
inline constexpr auto kOnGpus = not_alone(kLocal);
// The norm's own few roundings count as its channel's sum does.
inline constexpr auto kNorm = table(row<ConvNorm>("conv_norm")
                                        .name("framed")
                                        .args_of<ConvNormArgs>()
                                        .attrs_of<ConvNormAttrs>()
                                        .takes(Element::F32 | Element::F64)
                                        .rank(kAxes + 2)
                                        .sum(12)
                                        .scratch(norm_scratch));
inline constexpr auto kTable = with_scratch() + kNorm + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::conv
