// The packed matmul: blocks of A and B are copied into panels, then tiles of D are computed from them on all threads.
// One driver for every element; a policy (micro.h) says what panels hold and how they are multiplied.
#pragma once
#include "backends/cpu/parallel.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/pack.h"

namespace baracuda::matmul {
namespace {

inline constexpr int64_t kPackWork = 32 * 1024;          // elements that are worth a thread's while
inline constexpr int64_t kLeastWork = 64 * 1024;         // the same in multiply-adds
inline constexpr int64_t kPieceWork = int64_t{1} << 20;  // multiply-adds in a piece of a large product
inline constexpr int64_t kPieces = 16;                   // pieces wanted of a small one
inline constexpr int64_t kDirectElements = 8192;         // A up to this size is read where it lies

template <class P>
using TileKernel = void (*)(const typename P::Unit*, int64_t, int64_t, const typename P::Unit*, int64_t,
                            typename P::Sum*, bool);

template <class P, bool kPacked>
TileKernel<P> tile_kernel(int64_t cols) {
  if (cols <= kLanes<P>) return multiply_tile<P, 1, kPacked>;
  if (cols <= 2 * kLanes<P>) return multiply_tile<P, 2, kPacked>;
  return multiply_tile<P, 3, kPacked>;
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class P>
class Packed {
  using Unit = typename P::Unit;
  using Sum = typename P::Sum;
  static constexpr int64_t kRows = kTileRows, kCols = kTileCols<P>;

 public:
  Packed(const Gemm& g, void* workspace)
      : g_(g),
        blocks_(blocking(g.batch, g.parts, g.m, g.n, g.k, unit_bytes(), sizeof(Sum))),
        workspace_(static_cast<char*>(workspace)) {
    direct_a_ = P::kPerUnit == 1 && size_of(g.a.element) == sizeof(Unit) && g.m * g.k <= kDirectElements;
    shared_b_ = true;
    for (int i = 0; i < g.batch_rank; ++i) shared_b_ &= g.b.batch[i] == 0 || g.batch_shape[i] == 1;
  }

  void run() {
    for (first_ = 0; first_ < g_.batch; first_ += blocks_.group) {
      products_ = std::min(blocks_.group, g_.batch - first_);
      Block a, b;
      for (int64_t j = 0; j < g_.n; j += kBlockCols) {
        for (int64_t i = 0; i < g_.m; i += kBlockRows) {
          for (int64_t part = 0; part < g_.parts; ++part) {
            int64_t s = 0;
            do {
              const Block next_a{i, part, s}, next_b{j, part, s};
              part_ = part;
              block(i, j, s, !(a == next_a), !(b == next_b));
              a = next_a, b = next_b;
              s += kBlockDepth;
            } while (s < g_.k);
          }
        }
      }
    }
  }

 private:
  struct Block {
    int64_t at = -1, part = -1, depth = -1;
    bool operator==(const Block&) const = default;
  };

  static constexpr int64_t unit_bytes() { return static_cast<int64_t>(sizeof(Unit)) / P::kPerUnit; }
  Unit* a_panels(int64_t product) const { return reinterpret_cast<Unit*>(workspace_ + product * blocks_.a_bytes); }
  Unit* b_panels(int64_t product) const {
    const int64_t at = blocks_.group * blocks_.a_bytes + (shared_b_ ? 0 : product * blocks_.b_bytes);
    return reinterpret_cast<Unit*>(workspace_ + at);
  }
  Sum* sums(int64_t product) const {
    const int64_t at = blocks_.group * (blocks_.a_bytes + blocks_.b_bytes) + product * blocks_.sum_bytes;
    return reinterpret_cast<Sum*>(workspace_ + at);
  }

  // The matrices of a product in the group, at the part that is being added.
  Gemm product_at(int64_t product) const {
    Gemm one = slice(g_, first_ + product);
    move_to_part(one, part_);
    return one;
  }

  // D's block at (i, j), products [s, s + kBlockDepth) of each sum.
  void block(int64_t i, int64_t j, int64_t s, bool pack_a, bool pack_b) {
    const int64_t rows = std::min(kBlockRows, g_.m - i), cols = std::min(kBlockCols, g_.n - j);
    const int64_t depth = std::min(kBlockDepth, g_.k - s), steps = ceil_div(depth, P::kPerUnit);
    pack_blocks(i, j, s, pack_a, pack_b);
    // Pieces of work: one panel of B against a run of A's panels.
    const int64_t row_panels = ceil_div(rows, kRows), col_panels = ceil_div(cols, kCols);
    const int64_t tile_work = std::max<int64_t>(1, kRows * kCols * depth);
    int64_t run = std::clamp(kPieceWork / tile_work, int64_t{1}, row_panels);
    while (products_ * col_panels * ceil_div(row_panels, run) < kPieces && run / 2 * tile_work >= kLeastWork) run /= 2;
    const int64_t runs = ceil_div(row_panels, run), pieces = products_ * col_panels * runs;
    const int64_t grain = std::max<int64_t>(1, kLeastWork / (run * tile_work));
    parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t at = p % runs * run;
        tiles(p / runs / col_panels, i, j, s, p / runs % col_panels, at, std::min(at + run, row_panels), steps);
      }
    });
  }

  void pack_blocks(int64_t i, int64_t j, int64_t s, bool pack_a, bool pack_b) {
    const int64_t rows = std::min(kBlockRows, g_.m - i), cols = std::min(kBlockCols, g_.n - j);
    const int64_t depth = std::min(kBlockDepth, g_.k - s), steps = ceil_div(depth, P::kPerUnit);
    // Of an A that is read where it lies, only an incomplete last panel is packed.
    const int64_t a_first = direct_a_ ? rows / kRows : 0, a_count = pack_a ? ceil_div(rows, kRows) - a_first : 0;
    const int64_t b_count = pack_b ? ceil_div(cols, kCols) : 0;
    const int64_t b_all = b_count * (shared_b_ ? 1 : products_), all = b_all + a_count * products_;
    const int64_t grain = std::max<int64_t>(1, kPackWork / (std::max<int64_t>(1, depth) * kRows));
    parallel_for(all, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (p < b_all) {
          const Gemm one = product_at(p / b_count);
          const int64_t at = p % b_count * kCols, n = std::min(kCols, cols - at);
          pack(P{}, {one.b.at(s, j + at), one.b.element, one.b.cs, one.b.rs}, n, depth,
               b_panels(p / b_count) + at * steps, ceil_div(n, kLanes<P>) * kLanes<P>);
        } else {
          const int64_t q = p - b_all, at = (a_first + q % a_count) * kRows;
          const Gemm one = product_at(q / a_count);
          pack(P{}, {one.a.at(i + at, s), one.a.element, one.a.rs, one.a.cs}, std::min(kRows, rows - at), depth,
               a_panels(q / a_count) + at * steps, kRows);
        }
      }
    });
  }

  // Tiles of one panel of B with A's panels [begin, end).
  void tiles(int64_t product, int64_t i, int64_t j, int64_t s, int64_t col_panel, int64_t begin, int64_t end,
             int64_t steps) const {
    const Gemm one = product_at(product);
    const int64_t rows = std::min(kBlockRows, g_.m - i), cols = std::min(kBlockCols, g_.n - j);
    const int64_t col = col_panel * kCols, n = std::min(kCols, cols - col);
    const int64_t width = ceil_div(n, kLanes<P>) * kLanes<P>;
    const Unit* b = b_panels(product) + col * steps;
    const bool first = s == 0 && part_ == 0, last = s + kBlockDepth >= g_.k && part_ + 1 == g_.parts;
    alignas(64) Sum local[kRows * kCols];
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t row = panel * kRows, m = std::min(kRows, rows - row);
      Sum* tile = first && last ? local : sums(product) + (col_panel * ceil_div(rows, kRows) + panel) * kRows * kCols;
      if (g_.k == 0) {
        std::fill(local, local + kRows * kCols, Sum(0));
      } else if (direct_a_ && m == kRows) {
        const int64_t unit = sizeof(Unit);
        tile_kernel<P, false>(n)(reinterpret_cast<const Unit*>(one.a.at(i + row, s)), one.a.rs / unit, one.a.cs / unit,
                                 b, steps, tile, !first);
      } else {
        tile_kernel<P, true>(n)(a_panels(product) + row * steps, 1, kRows, b, steps, tile, !first);
      }
      if (last) finish(one, i + row, j + col, m, n, tile, width);
    }
  }

  const Gemm& g_;
  const Blocking blocks_;
  char* const workspace_;
  bool direct_a_, shared_b_;
  int64_t first_ = 0, products_ = 0, part_ = 0;
};

}  // namespace
}  // namespace baracuda::matmul
