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
  if (!s.attribute(bytes_for(format, 0) == 0, "format", "the number of a type of blocks")) return;
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

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  return op == "quantize" ? quantize_shapes : op == "dequantize" ? dequantize_shapes : product_shapes;
}

}  // namespace baracuda::quant
