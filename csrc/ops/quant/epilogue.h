// What rows with a quantizing epilogue share, in whichever family they are: attributes and codes.
//
// Codes of f32 values that were not rounded to the element before, as dynamic_quantize (symmetric) and quantize_linear
// make them. `group`: values along the last dimension that share a scale; 0: all of them, or, with `given`, one scale.
#pragma once
#include "core/row.h"

namespace baracuda::quant {

inline constexpr Elements kRowValues = kHalves | Element::F32;
inline constexpr Elements kF8Codes = Element::F8E4M3 | Element::F8E5M2;
inline constexpr Elements kRowCodes = kF8Codes | Element::I8;

// The least and the largest code of integers; what the largest number of 8-bit floats is.
struct CodeLimits {
  float least, most;
};
inline CodeLimits limits_of(Element code) {
  if (code == Element::F8E4M3) return {0.0f, 448.0f};
  if (code == Element::F8E5M2) return {0.0f, 57344.0f};
  return {-128.0f, 127.0f};
}

}  // namespace baracuda::quant
