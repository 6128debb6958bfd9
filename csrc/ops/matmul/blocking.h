// How a product is cut so that its packed blocks fit a bounded workspace. Used at select with the largest sizes and at
// run with the actual ones, so every formula grows with each size.
#pragma once
#include <algorithm>
#include <cstdint>

namespace baracuda::matmul {

// Multiples of every level's kTileRows and kTileCols, so that blocks but the last hold whole panels.
inline constexpr int64_t kBlockRows = 960, kBlockCols = 1920;
inline constexpr int64_t kBlockDepth = 2048;              // a panel of B of this depth stays in the L2 cache
inline constexpr int64_t kGroupBytes = int64_t{8} << 20;  // products of a batch are packed together up to this size
// What the last panel may be wider than the matrix; at least the widest panel of any level.
inline constexpr int64_t kPanelSlack = 64;

struct Blocking {
  int64_t rows, cols, depth;
  int64_t a_bytes, b_bytes, sum_bytes;  // of one product's blocks; multiples of 64
  int64_t group;                        // products packed together
  int64_t excess_at;                    // in B's block: what comes behind its panels, a sum's bytes per column

  int64_t product_bytes() const { return a_bytes + b_bytes + sum_bytes; }
};

// `parts` products of depth `k` per result; `unit` bytes per packed element, `sum` per accumulator.
inline Blocking blocking(int64_t batch, int64_t parts, int64_t m, int64_t n, int64_t k, int64_t unit, int64_t sum) {
  constexpr int64_t kUnits = 4;  // elements of one step at most
  auto padded = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  Blocking b{std::min(m, kBlockRows), std::min(n, kBlockCols), std::min(k, kBlockDepth), 0, 0, 0, 1, 0};
  const int64_t depth = (b.depth / kUnits + 1) * kUnits;
  b.a_bytes = padded((b.rows + kPanelSlack) * depth * unit);
  b.excess_at = padded((b.cols + kPanelSlack) * depth * unit);
  b.b_bytes = b.excess_at + (unit == 1 ? padded((b.cols + kPanelSlack) * sum) : 0);
  if (k > kBlockDepth || parts > 1) b.sum_bytes = padded((b.rows + kPanelSlack) * (b.cols + kPanelSlack) * sum);
  b.group = std::clamp(kGroupBytes / b.product_bytes(), int64_t{1}, batch);
  return b;
}

inline int64_t workspace_bytes(int64_t batch, int64_t parts, int64_t m, int64_t n, int64_t k, int64_t unit,
                               int64_t sum) {
  if (batch == 0 || m == 0 || n == 0) return 0;
  const int64_t one = blocking(batch, parts, m, n, k, unit, sum).product_bytes();
  return std::max(one, std::min(kGroupBytes, batch * one));
}

// The thin loops keep the small operand's rows converted: at most kMaxThin rows of `k` sums' elements per product.
inline constexpr int64_t kMaxThin = 8;
inline constexpr int64_t kFewRows = 4;  // up to these they are faster than dot products of pairs of bf16
inline int64_t thin_stride(int64_t k) { return (k / 16 + 1) * 16; }
inline int64_t thin_group(int64_t batch, int64_t k, int64_t sum) {
  return std::clamp(kGroupBytes / (kMaxThin * thin_stride(k) * sum), int64_t{1}, batch);
}
inline int64_t thin_bytes(int64_t batch, int64_t k, int64_t sum) {
  const int64_t one = kMaxThin * thin_stride(k) * sum;
  return std::max(one, std::min(kGroupBytes, batch * one));
}

}  // namespace baracuda::matmul
