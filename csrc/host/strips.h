// Gradients of weights that every row shares, on the CPU.
#pragma once
#include <cstdint>

#include "core/element.h"

namespace baracuda {

// Rows are cut into strips that each sum their share of the weight's gradient; the cut depends on the row count
// alone.
inline constexpr int64_t kMaxStrips = 32;
inline constexpr int64_t kStripRows = 16;
constexpr int64_t strips_of(int64_t rows) {
  int64_t n = (rows + kStripRows - 1) / kStripRows;
  return n > kMaxStrips ? kMaxStrips : n;
}
// Two running sums (of a block of rows, and of the blocks) per strip, normalised element and gradient.
constexpr int64_t partial_bytes(int64_t rows, int64_t length, int64_t gradients, Element element) {
  return strips_of(rows) * 2 * length * gradients * (element == Element::F64 ? 8 : 4);
}

}  // namespace baracuda
