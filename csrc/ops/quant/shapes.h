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
  if (!s.attribute(with_encoder(format, [](auto) {}), "format", "the number of a type that values are written in"))
    return;
  const auto x = s.in(Args::x).ranks(1, kMaxRank);
  s.out(Args::y, Element::U8).is(x.sizes().lead(1).then(bytes_for(format, x.at(-1))));
}

inline ShapeRule shapes_of(const Row& row) {
  return std::string_view(row.op) == "quantize" ? quantize_shapes : dequantize_shapes;
}

}  // namespace baracuda::quant
