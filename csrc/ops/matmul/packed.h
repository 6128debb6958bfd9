// The packed matmul: blocks of A and B are copied into panels, then tiles of D are computed from them on all threads.
// One driver for every element; a policy (micro.h) says what panels hold and how they are multiplied.
#pragma once
#include "core/parallel.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/pack.h"

namespace baracuda::matmul {
namespace {

inline constexpr int64_t kPackWork = 32 * 1024;   // elements that are worth a thread's while
inline constexpr int64_t kLeastWork = 64 * 1024;  // the same in multiply-adds of one unit
inline constexpr int64_t kPieces = 12;            // pieces wanted for each thread
inline constexpr int64_t kPieceRows = 256;        // rows of A that stay in the L2 cache, kSumBlock deep
inline constexpr int64_t kLeastRows = 32;         // rows of a piece that is cut further along B's columns
inline constexpr int64_t kDirectElements = 8192;  // an operand up to this size is read where it lies
// A result up to this size stays in the caches while K goes by in shorter blocks, and so do the panels of those (weight
// gradients of a training step: 5 % faster).
inline constexpr int64_t kResidentSums = 512 * 1024, kResidentDepth = 512;

template <class P>
using TileKernel = void (*)(const typename P::Unit*, const typename P::Unit*, int64_t, typename P::Sum*,
                            const TileSteps&, bool);

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
    constexpr int64_t kUnit = sizeof(Unit);
    // Rows that are contiguous in K are read as fast as panels.
    direct_a_ = P::kPerUnit == 1 && size_of(g.a.element) == kUnit && (g.a.cs == kUnit || g.m * g.k <= kDirectElements);
    direct_b_ = P::kPerUnit == 1 && size_of(g.b.element) == kUnit && g.b.cs == kUnit && g.n % kLanes<P> == 0 &&
                g.n * g.k <= kDirectElements;
    onto_d_ = g.is_plain() && g.k > 0 && is_float(g.d.element) == kIsFloat<P> &&
              size_of(g.d.element) == static_cast<int64_t>(sizeof(Sum)) && g.d.cs == size_of(g.d.element);
    shared_b_ = true;
    for (int i = 0; i < g.batch_rank; ++i) shared_b_ &= g.b.batch[i] == 0 || g.batch_shape[i] == 1;
    // In shorter blocks of K, but nothing may have to be packed twice.
    const bool once = direct_a_ || (g.m <= kBlockRows && g.n <= kBlockCols);
    depth_ = kIsFloat<P> && onto_d_ && once && g.m * g.n <= kResidentSums ? kResidentDepth : kBlockDepth;
    // Rows bound what is packed of A and what is kept of sums.
    block_rows_ = direct_a_ && (onto_d_ || (g.parts == 1 && g.k <= depth_)) ? g.m : kBlockRows;
  }

  void run() {
    for (first_ = 0; first_ < g_.batch; first_ += blocks_.group) {
      products_ = std::min(blocks_.group, g_.batch - first_);
      Block a, b;
      for (int64_t j = 0; j < g_.n; j += kBlockCols) {
        for (int64_t i = 0; i < g_.m; i += block_rows_) {
          for (int64_t part = 0; part < g_.parts; ++part) {
            int64_t s = 0;
            do {
              const Block next_a{i, part, s}, next_b{j, part, s};
              part_ = part;
              block(i, j, s, !(a == next_a), !(b == next_b));
              a = next_a, b = next_b;
              s += depth_;
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
  // What is packed or multiplied at once: D's rows from i, columns from j, products from s of each sum.
  struct Extent {
    int64_t i, j, s, rows, cols, depth, steps, row_panels, col_panels;
    int64_t a_first;  // panels of A before this one are read where they lie
  };

  // Dot products of pairs and quads are so fast that 64 x 64 x 64 takes one thread less time than it takes two to meet.
  static constexpr int64_t least_work() { return P::kPerUnit > 1 ? 4 * kLeastWork : kLeastWork; }
  static constexpr int64_t unit_bytes() { return static_cast<int64_t>(sizeof(Unit)) / P::kPerUnit; }
  Unit* a_panels(int64_t product) const { return reinterpret_cast<Unit*>(workspace_ + product * blocks_.a_bytes); }
  Unit* b_panels(int64_t product) const {
    const int64_t at = blocks_.group * blocks_.a_bytes + (shared_b_ ? 0 : product * blocks_.b_bytes);
    return reinterpret_cast<Unit*>(workspace_ + at);
  }
  // How much too large the sums of B's packed columns are, for policies with an offset.
  Sum* excess(int64_t product) const {
    return reinterpret_cast<Sum*>(reinterpret_cast<char*>(b_panels(product)) + blocks_.excess_at);
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

  // D's block at (i, j), products [s, s + depth_) of each sum.
  void block(int64_t i, int64_t j, int64_t s, bool pack_a, bool pack_b) {
    Extent x{i, j, s, std::min(block_rows_, g_.m - i), std::min(kBlockCols, g_.n - j), std::min(depth_, g_.k - s), 0,
             0, 0, 0};
    x.steps = ceil_div(x.depth, P::kPerUnit);
    x.row_panels = ceil_div(x.rows, kRows), x.col_panels = ceil_div(x.cols, kCols);
    x.a_first = direct_a_ ? x.rows / kRows : 0;
    pack_blocks(x, pack_a, pack_b);
    if constexpr (kHasOffset<P>) {
      if (pack_b) find_excess(x);
    }
    // Pieces of work: runs of A's panels against runs of B's.
    const int64_t tile_work = std::max<int64_t>(1, kRows * kCols * x.depth);
    int64_t down = std::min(x.row_panels, kPieceRows / kRows), across = x.col_panels;
    auto pieces = [&] { return products_ * ceil_div(x.row_panels, down) * ceil_div(x.col_panels, across); };
    // The share of a thread may depend on how many there are: the bits of a tile do not.
    const int64_t wanted = kPieces * num_threads();
    while (pieces() < wanted && down * across / 2 * tile_work >= least_work()) {
      // Rows of A come from far away and are best read by one thread; B's panels are in the caches.
      int64_t& longer = down * kRows > kLeastRows || across == 1 ? down : across;
      longer = (longer + 1) / 2;
    }
    const int64_t row_runs = ceil_div(x.row_panels, down), col_runs = ceil_div(x.col_panels, across);
    const int64_t grain = std::max<int64_t>(1, least_work() / (down * across * tile_work));
    parallel_for(pieces(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t row = p / col_runs % row_runs * down, col = p % col_runs * across;
        piece(p / col_runs / row_runs, x, row, std::min(row + down, x.row_panels), col,
              std::min(col + across, x.col_panels));
      }
    });
  }

  // What packing one operand takes: tasks over all its products, each a panel, or some steps of all panels where
  // memory runs along the panels.
  struct Packing {
    int64_t first, last;  // panels
    int64_t chunk;        // steps of a task; 0: tasks are panels
    int64_t products, tasks;
  };
  Packing packing(const Extent& x, const Matrix& m, int64_t width_stride, int64_t first, int64_t last, int64_t width,
                  int64_t products) const {
    Packing p{first, last, 0, products, last - first};
    if (last > first && width_stride == size_of(m.element)) {
      p.chunk = std::clamp(kPackWork / ((last - first) * width) / 16 * 16, int64_t{16}, int64_t{256});
      p.tasks = ceil_div(x.depth, p.chunk);
    }
    return p;
  }

  void pack_blocks(const Extent& x, bool pack_a, bool pack_b) {
    const bool some_b = pack_b && !direct_b_;
    const Packing b = packing(x, g_.b, g_.b.cs, 0, some_b ? x.col_panels : 0, kCols, shared_b_ ? 1 : products_);
    const Packing a = packing(x, g_.a, g_.a.rs, pack_a ? x.a_first : x.row_panels, x.row_panels, kRows, products_);
    const int64_t b_all = b.tasks * b.products, all = b_all + a.tasks * a.products;
    const int64_t depth = std::max<int64_t>(1, x.depth);
    const int64_t grain = a.chunk > 0 || b.chunk > 0 ? 1 : std::max<int64_t>(1, kPackWork / (depth * kRows));
    if (all == 0) return;
    const bool serial =
        x.depth * ((b.last - b.first) * kCols * b.products + (a.last - a.first) * kRows * a.products) < 2 * kPackWork;
    parallel_for(all, serial ? all : grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (p < b_all) {
          const Gemm one = product_at(p / b.tasks);
          const Strip strip{one.b.at(x.s, x.j), one.b.element, one.b.cs, one.b.rs};
          pack_task<kCols, kLanes<P>>(strip, x.cols, x, b, p % b.tasks, b_panels(p / b.tasks));
        } else {
          const Gemm one = product_at((p - b_all) / a.tasks);
          const Strip strip{one.a.at(x.i, x.s), one.a.element, one.a.rs, one.a.cs};
          pack_task<kRows, kRows>(strip, x.rows, x, a, (p - b_all) % a.tasks, a_panels((p - b_all) / a.tasks));
        }
      }
    });
  }

  void find_excess(const Extent& x) {
    const int64_t all = (shared_b_ ? 1 : products_) * x.col_panels;
    const int64_t grain = std::max<int64_t>(1, kPackWork / std::max<int64_t>(1, x.steps * kCols));
    parallel_for(all, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t product = p / x.col_panels, j = p % x.col_panels * kCols;
        const int64_t width = ceil_div(std::min(kCols, x.cols - j), kLanes<P>) * kLanes<P>;
        excess_of(P{}, b_panels(product) + j * x.steps, x.steps, width, excess(product) + j);
      }
    });
  }

  // Packs `rows` of a panel, and raises A's for policies with an offset.
  template <int kWidth>
  static void pack_panel(const Strip& from, int64_t rows, int64_t depth, Unit* to, int64_t width) {
    pack(P{}, from, rows, depth, to, width);
    if constexpr (kHasOffset<P> && kWidth == kRows) raise(P{}, to, ceil_div(depth, P::kPerUnit) * width);
  }

  // One task of packing `count` rows (of A) or columns (of B), kWidth to a panel; `to` is the first packed panel.
  template <int kWidth, int kMultiple>
  void pack_task(Strip from, int64_t count, const Extent& x, const Packing& p, int64_t task, Unit* to) const {
    const int64_t skipped = p.first * kWidth;
    auto width = [&](int64_t n) { return ceil_div(n, kMultiple) * kMultiple; };
    from.data += skipped * from.rs;
    count -= skipped;
    if (p.chunk == 0) {
      const int64_t at = task * kWidth, n = std::min<int64_t>(kWidth, count - at);
      from.data += at * from.rs;
      return pack_panel<kWidth>(from, n, x.depth, to + at * x.steps, width(n));
    }
    const int64_t begin = task * p.chunk, end = std::min(begin + p.chunk, x.depth);
    if constexpr (P::kPerUnit == 1) {
      if (size_of(from.element) == static_cast<int64_t>(sizeof(Unit)))
        return deal<Unit, kWidth>(from, count, begin, end, x.steps, to, width(count % kWidth));
    }
    from.data += begin * from.ks;
    for (int64_t at = 0; at < count; at += kWidth) {
      const int64_t n = std::min<int64_t>(kWidth, count - at);
      Strip panel = from;
      panel.data += at * from.rs;
      pack_panel<kWidth>(panel, n, end - begin, to + at * x.steps + begin / P::kPerUnit * width(n), width(n));
    }
  }

  // Tiles of A's panels [row, row_end) with B's panels [col, col_end).
  void piece(int64_t product, const Extent& x, int64_t row, int64_t row_end, int64_t col, int64_t col_end) const {
    const Gemm one = product_at(product);
    // Sums that grow in D itself leave time for other tiles: the blocks of A and B that are in use stay in the caches.
    const int64_t sweep = onto_d_ ? kBlockSteps<P> : std::max<int64_t>(1, x.steps);
    for (int64_t step = 0; step < std::max<int64_t>(1, x.steps); step += sweep) {
      for (int64_t j = col; j < col_end; ++j) {
        for (int64_t i = row; i < row_end; ++i) tile(one, product, x, i, j, step, std::min(sweep, x.steps - step));
      }
    }
  }

  // The tile of A's panel `row` and B's panel `col`: steps [step, step + steps) of the block.
  void tile(const Gemm& one, int64_t product, const Extent& x, int64_t row, int64_t col, int64_t step,
            int64_t steps) const {
    constexpr int64_t kUnit = sizeof(Unit);
    const int64_t i = row * kRows, j = col * kCols;
    const int64_t m = std::min(kRows, x.rows - i), n = std::min(kCols, x.cols - j);
    const int64_t width = ceil_div(n, kLanes<P>) * kLanes<P>;
    const bool first = x.s + step == 0 && part_ == 0;
    const bool last = x.s + depth_ >= g_.k && part_ + 1 == g_.parts;
    const bool direct_a = direct_a_ && m == kRows;
    alignas(64) Sum local[kRows * kCols];
    Sum* to = local;
    TileSteps at{1, kRows, width, width, nullptr, excess(product) + j};
    const Unit* a = a_panels(product) + (row - x.a_first) * kRows * x.steps + step * kRows;
    const Unit* b = b_panels(product) + j * x.steps + step * width;
    if (direct_a) {
      a = reinterpret_cast<const Unit*>(one.a.at(x.i + i, x.s + step));
      at.a_row = one.a.rs / kUnit, at.a_step = one.a.cs / kUnit;
      at.next = a + kRows * at.a_row;
    }
    if (direct_b_) {
      b = reinterpret_cast<const Unit*>(one.b.at(x.s + step, x.j + j));
      at.b_step = one.b.rs / kUnit;
    }
    const bool whole = onto_d_ && m == kRows && n == width;
    if (whole) {
      to = reinterpret_cast<Sum*>(one.d.at(x.i + i, x.j + j));
      at.tile_row = one.d.rs / static_cast<int64_t>(sizeof(Sum));
    } else if (!onto_d_ && !(first && last)) {
      to = sums(product) + (col * x.row_panels + row) * kRows * kCols;
    }
    if (g_.k == 0) {
      std::fill(to, to + kRows * kCols, Sum(0));
    } else {
      const auto kernel = direct_a || direct_b_ ? tile_kernel<P, false>(n) : tile_kernel<P, true>(n);
      kernel(a, b, steps, to, at, !first && to != local);
    }
    if (onto_d_ && !whole) {
      add_tile(one, x.i + i, x.j + j, m, n, local, width, !first);
    } else if (!onto_d_ && last) {
      finish(one, x.i + i, x.j + j, m, n, to, width);
    }
  }

  // D's part of an incomplete tile, whose block of sums is `from`.
  static void add_tile(const Gemm& one, int64_t i, int64_t j, int64_t m, int64_t n, const Sum* from, int64_t width,
                       bool add) {
    for (int64_t r = 0; r < m; ++r, from += width) {
      Sum* to = reinterpret_cast<Sum*>(one.d.at(i + r, j));
      for (int64_t c = 0; c < n; ++c) to[c] = add ? to[c] + from[c] : from[c];
    }
  }

  const Gemm& g_;
  const Blocking blocks_;
  char* const workspace_;
  bool direct_a_, direct_b_, onto_d_, shared_b_;
  int64_t block_rows_, depth_;
  int64_t first_ = 0, products_ = 0, part_ = 0;
};

}  // namespace
}  // namespace baracuda::matmul
