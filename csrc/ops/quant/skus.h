// The SKU table of GGUF's blocks of quantized values.
#pragma once
#include "core/row.h"

namespace baracuda::quant {

// format: ggml's number of the type (blocks.h).
BCU_ATTRS(FormatAttrs, (i64, format))
BCU_ARGS(Args, (x, y), ())

struct Dequantize {};
struct Quantize {};

template <class Tag>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("blocks").template args_of<Args>().template attrs_of<FormatAttrs>().takes(kFloats).exact();
}

// The element is that of the values; blocks are bytes.
inline constexpr auto kLocal = table(base<Dequantize>("dequantize"), base<Quantize>("quantize"));

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::quant
