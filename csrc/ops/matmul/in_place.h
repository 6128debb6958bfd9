// bf16 products that read one operand where it lies: its rows are contiguous in K, so that a pair of neighbours is a
// unit of the dot products already, and only the other operand, which is small, is packed. Where that is B, D^T =
// B^T A^T is computed.
#pragma once
#include <atomic>
#include <cstdlib>

#include "core/parallel.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/cpu.h"
#include "ops/matmul/pack.h"

#if BCU_LEVEL_BF16
namespace baracuda::matmul {
namespace {

// Dot products of bf16 take subnormal operands for zero and make sums below 2^-126 zero. Where the smallest operands'
// exponents add up to this (both biased by 127, so products are above 2^-90), that is far below the row's error bound.
constexpr int kLeastExponents = 2 * 127 - 90;
constexpr bool keeps_subnormals(int a, int b) { return a > 0 && b > 0 && a + b >= kLeastExponents; }

// The least magnitude but zero of what it was shown. Zero itself wraps round to the largest.
class Least {
  using Halves = Vector<uint16_t>;
  static constexpr int64_t kHalves = kVectorBytes / 2;

 public:
  // `n` elements next to each other.
  void see(const char* data, int64_t n) {
    int64_t i = 0;
    for (; i + kHalves <= n; i += kHalves) add(*reinterpret_cast<const Halves*>(data + 2 * i));
    if (i == n) return;
    uint16_t tail[kHalves] = {};
    std::memcpy(tail, data + 2 * i, static_cast<size_t>(n - i) * 2);
    add(*reinterpret_cast<const Halves*>(tail));
  }
  // Its biased exponent; 0 for a subnormal one, 255 where there is none.
  int exponent() const {
    uint16_t least = 0xffff;
    for (int64_t i = 0; i < kHalves; ++i) least = std::min<uint16_t>(least, least_[i]);
    return least == 0xffff ? 255 : (least + 1) >> 8;
  }

 private:
  [[gnu::always_inline]] void add(Halves x) {
    const Halves magnitude = x + x - 1;  // doubled: without its sign
    least_ = magnitude < least_ ? magnitude : least_;
  }
  Halves least_ = ~Halves{};
};

// What a tile reads: R rows of units `a_row` bytes apart, panels of B, and, where K is odd, the units of the last one.
struct RowSteps {
  const char* a;
  int64_t a_row;
  const uint32_t *b, *odd;
  int64_t steps;  // whole ones, of one block of sums at most
  int64_t ahead;  // bytes to the block of these rows' that is to be fetched
  char* out;      // null, or where the finished tile's bf16 go, rows `out_row` bytes apart
  int64_t out_row;
};

template <int NV>
[[gnu::always_inline]] inline void store_sums(const Vector<float> (&row)[NV], uint16_t* to) {
  constexpr int kL = kLanes<Bf16Pairs>;
  if constexpr (NV > 1) level::store_bf16(to, row[0], row[1]);
  if constexpr (NV % 2) {
    uint16_t both[2 * kL];
    level::store_bf16(both, row[NV - 1], row[NV - 1]);
    std::memcpy(to + (NV - 1) * kL, both, sizeof both / 2);
  }
}

// sums[R][NV * lanes] (+)= A * B, products of one block in a row.
template <int R, int NV>
[[gnu::noinline]] void multiply_rows(const RowSteps& x, float* sums, int64_t stride, bool add) {
  constexpr int kL = kLanes<Bf16Pairs>;
  constexpr int64_t kTurn = kLine / 4;  // steps that use up a line of each row
  Vector<float> part[R][NV] = {};
  const uint32_t* b = x.b;
  const char* a = x.a;
  const int64_t a_row = x.a_row;
  auto step = [&](const char* from, int64_t row) __attribute__((always_inline)) {
    Vector<uint32_t> bv[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) bv[j] = *reinterpret_cast<const Vector<uint32_t>*>(b + j * kL);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) part[i][j] = Bf16Pairs::madd(part[i][j], read<uint32_t>(from + i * row), bv[j]);
    }
    b += NV * kL;
  };
  for (int64_t s = 0; s < x.steps;) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) __builtin_prefetch(a + x.ahead + i * a_row);
    for (const int64_t stop = std::min<int64_t>(s + kTurn, x.steps); s < stop; ++s, a += 4) step(a, a_row);
  }
  if (x.odd) step(reinterpret_cast<const char*>(x.odd), 4);
  auto at = [&](int i, int j)
                __attribute__((always_inline)) { return reinterpret_cast<Vector<float>*>(sums + i * stride + j * kL); };
  if (add) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) part[i][j] += *at(i, j);
    }
  }
  if (x.out) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) store_sums<NV>(part[i], reinterpret_cast<uint16_t*>(x.out + i * x.out_row));
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) *at(i, j) = part[i][j];
  }
}

template <int R>
void multiply_panel(int64_t vectors, const RowSteps& x, float* sums, int64_t stride, bool add) {
  if (vectors == 1) return multiply_rows<R, 1>(x, sums, stride, add);
  if (vectors == 2) return multiply_rows<R, 2>(x, sums, stride, add);
  multiply_rows<R, 3>(x, sums, stride, add);
}

// `rows` of sums as bf16, while they are in L1: what is stored far away goes out beside the next tile's products.
[[gnu::noinline]] inline void lay_down(const float* sums, int64_t stride, int64_t rows, int64_t cols, char* to,
                                       int64_t to_stride) {
  constexpr int64_t kL = kLanes<Bf16Pairs>;
  using Sums = Vector<float>;
  const int64_t whole = cols / (2 * kL) * (2 * kL), high = cols - whole > kL ? kL : 0;
  for (int64_t r = 0; r < rows; ++r, sums += stride, to += to_stride) {
    auto at = [&](int64_t c) { return *reinterpret_cast<const Sums*>(sums + c); };
    auto* row = reinterpret_cast<uint16_t*>(to);
    for (int64_t c = 0; c < whole; c += 2 * kL) level::store_bf16(row + c, at(c), at(c + kL));
    if (whole == cols) continue;
    uint16_t tail[2 * kL];
    level::store_bf16(tail, at(whole), at(whole + high));
    if (cols - whole == kL) {
      std::memcpy(row + whole, tail, kL * 2);
    } else {
#pragma GCC ivdep
      for (int64_t c = whole; c < cols; ++c) row[c] = tail[c - whole];
    }
  }
}

// Fetches the matrix that is packed next, a part beside each of `tiles` tiles.
class Ahead {
 public:
  Ahead(const Strip& x, int64_t n, int64_t k, int64_t tiles) : at_(x.data), stride_(x.rs), rows_(n), bytes_(2 * k) {
    if (std::abs(x.rs) < std::abs(x.ks)) stride_ = x.ks, rows_ = k, bytes_ = 2 * n;
    each_ = (rows_ + tiles - 1) / tiles;
  }
  void fetch() {
    for (int64_t i = 0; i < each_ && rows_ > 0; ++i, --rows_, at_ += stride_) {
      for (int64_t byte = 0; byte < bytes_; byte += kLine) __builtin_prefetch(at_ + byte, 0, 2);
    }
  }

 private:
  const char* at_;
  int64_t stride_, rows_, bytes_, each_;
};

class InPlace {
  static constexpr int64_t kL = kLanes<Bf16Pairs>, kWide = kTileVectors;
  static constexpr int64_t kGroup = 4 * kTileRows;     // rows whose sums are finished together
  static constexpr int64_t kChunk = 4 * kWide;         // vectors of such sums
  static constexpr int64_t kMostPacked = 1024 * 1024;  // elements: they stay in the L2 cache
  static constexpr int64_t kLeastWork = 256 * 1024;    // multiply-adds that are worth a thread's while
  static constexpr int64_t kPerThread = 12;            // pieces wanted for each thread

 public:
  // False where no operand is contiguous in K, or the other one is large.
  static bool takes(const Gemm& g) { return suits(g.a.cs, g, g.n) || suits(g.b.rs, g, g.m); }

  InPlace(const Gemm& g, void* workspace) : g_(g), workspace_(static_cast<char*>(workspace)) {
    // Packing B, or A and turning the sums round.
    const int64_t straight = g.n * g.k, turned = g.m * g.k + 2 * g.m * g.n;
    turned_ = suits(g.b.rs, g, g.m) && !(suits(g.a.cs, g, g.n) && straight <= turned);
    m_ = turned_ ? g.n : g.m, n_ = turned_ ? g.m : g.n;
    steps_ = (g.k + 1) / 2, vectors_ = (n_ + kL - 1) / kL;
    direct_ = !turned_ && g.is_plain() && g.d.cs == 2;
    panels_ = (vectors_ + kWide - 1) / kWide, groups_ = (m_ + kGroup - 1) / kGroup;
    slot_ = slot_bytes(n_, g.k);
    slots_ = workspace_bytes(g.batch, 1, g.m, g.n, g.k, 4, 4) / slot_;
  }

  void run() {
    const int64_t threads = num_threads(), work = m_ * n_ * g_.k;
    if (threads <= slots_ && (g_.batch >= 4 * threads || g_.batch * work <= kLeastWork)) {
      parallel_for(g_.batch, std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t p = begin; p < end; ++p) whole_product(p, thread_index());
                   });
    } else {
      for (int64_t first = 0; first < g_.batch; first += slots_) shared_products(first, threads);
    }
    if (bad_) repair();
  }

 private:
  // The operand that is read in place, and the one that is packed.
  struct Operands {
    const char* a;
    int64_t a_row;
    Strip b;
  };
  struct Panel {
    int64_t first, vectors;
  };

  static bool suits(int64_t stride, const Gemm& g, int64_t packed) {
    return stride == 2 && g.k > 0 && g.parts == 1 && packed <= kMostPacked / g.k &&
           slot_bytes(packed, g.k) <= workspace_bytes(g.batch, 1, g.m, g.n, g.k, 4, 4);
  }
  // Panels of B, and behind them the least exponent of each.
  static int64_t slot_bytes(int64_t n, int64_t k) {
    const int64_t vectors = (n + kL - 1) / kL;
    return vectors * kVectorBytes * ((k + 1) / 2) + (vectors * 4 + 63) / 64 * 64;
  }
  uint32_t* panel_at(int64_t slot, int64_t first) const {
    return reinterpret_cast<uint32_t*>(workspace_ + slot * slot_) + first * kL * steps_;
  }
  int32_t* exponents(int64_t slot) const { return reinterpret_cast<int32_t*>(panel_at(slot, vectors_)); }

  // One vector alone would wait for its sums: the last two panels share what they have.
  Panel panel(int64_t p) const {
    const bool shared = vectors_ % kWide == 1 && panels_ > 1;
    const int64_t first = kWide * p - (shared && p + 1 == panels_),
                  last = kWide * (p + 1) - (shared && p + 2 == panels_);
    return {first, std::min(last, vectors_) - first};
  }

  Operands operands(const Gemm& one) const {
    if (turned_) return {one.b.data, one.b.cs, {one.a.data, one.a.element, one.a.rs, one.a.cs}};
    return {one.a.data, one.a.rs, {one.b.data, one.b.element, one.b.cs, one.b.rs}};
  }

  [[gnu::noinline]] void pack_panel(const Operands& x, int64_t p, int64_t slot) const {
    const Panel at = panel(p);
    Strip from = x.b;
    from.data += at.first * kL * from.rs;
    uint32_t* to = panel_at(slot, at.first);
    pack(Bf16Pairs{}, from, std::min(at.vectors * kL, n_ - at.first * kL), g_.k, to, at.vectors * kL);
    Least least;
    least.see(reinterpret_cast<const char*>(to), 2 * at.vectors * kL * steps_);
    exponents(slot)[p] = least.exponent();
  }
  int packed_exponent(int64_t slot) const { return *std::min_element(exponents(slot), exponents(slot) + panels_); }

  void whole_product(int64_t product, int64_t slot) {
    const Gemm one = slice(g_, product);
    const Operands x = operands(one);
    for (int64_t p = 0; p < panels_; ++p) pack_panel(x, p, slot);
    Ahead ahead(operands(slice(g_, std::min(product + 1, g_.batch - 1))).b, n_, g_.k,
                panels_ * ((m_ + kTileRows - 1) / kTileRows) * ((g_.k + kSumBlock - 1) / kSumBlock));
    for (int64_t row = 0; row < m_; row += kGroup) {
      for (int64_t p = 0; p < panels_; p += kChunk / kWide) {
        if (!piece(one, x, row, p, std::min(p + kChunk / kWide, panels_), slot, &ahead)) break;
      }
    }
  }

  // Products from `first`, as many as there are slots.
  void shared_products(int64_t first, int64_t threads) {
    const int64_t products = std::min(slots_, g_.batch - first), packed = products * panels_;
    parallel_for(packed, std::max<int64_t>(1, kLeastWork / 8 / (kWide * kL * g_.k)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        pack_panel(operands(slice(g_, first + p / panels_)), p % panels_, p / panels_);
    });
    // The share of a thread may depend on how many there are: the bits of a tile do not.
    int64_t across = kChunk / kWide;
    auto chunks = [&] { return (panels_ + across - 1) / across; };
    while (across > 1 && products * groups_ * chunks() < kPerThread * threads) across /= 2;
    const int64_t each = chunks(), work = std::min(m_, kGroup) * std::min(across * kWide * kL, n_) * g_.k;
    parallel_for(products * groups_ * each, std::max<int64_t>(1, kLeastWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t slot = t / each / groups_, p = t % each * across;
        const Gemm one = slice(g_, first + slot);
        piece(one, operands(one), t / each % groups_ * kGroup, p, std::min(p + across, panels_), slot);
      }
    });
  }

  // D's rows from `row`, of panels [begin, end) of B. False where a subnormal number matters: nothing is written.
  bool piece(const Gemm& one, const Operands& x, int64_t row, int64_t begin, int64_t end, int64_t slot,
             Ahead* ahead = nullptr) {
    alignas(64) float sums[kGroup * kChunk * kL];
    const int64_t rows = std::min(kGroup, m_ - row);
    const int64_t first = panel(begin).first, stride = (panel(end - 1).first + panel(end - 1).vectors - first) * kL;
    const char* a = x.a + row * x.a_row;
    uint32_t odd[kGroup];
    if (g_.k % 2) {
      for (int64_t i = 0; i < rows; ++i) odd[i] = read<uint16_t>(a + i * x.a_row + 2 * (g_.k - 1));
    }
    Least least;
    // One for all tiles: a copy of what has just been written would wait for every store before it.
    RowSteps at{};
    at.a_row = x.a_row, at.out_row = one.d.rs;
    for (int64_t k = 0; k < g_.k; k += kSumBlock) {
      const int64_t depth = std::min<int64_t>(kSumBlock, g_.k - k);
      for (int64_t i = 0; i < rows; ++i) least.see(a + i * x.a_row + 2 * k, depth);
      const bool last = k + depth == g_.k;
      if (last && !keeps_subnormals(least.exponent(), packed_exponent(slot))) {
        bad_.store(true, std::memory_order_relaxed);
        return false;
      }
      // What follows a row's last block is its first one, kGroup rows on.
      at.steps = depth / 2, at.ahead = last ? kGroup * x.a_row - 2 * k : 2 * kSumBlock;
      for (int64_t p = begin; p < end; ++p) {
        const Panel to = panel(p);
        at.a = a + 2 * k, at.b = panel_at(slot, to.first) + k / 2 * to.vectors * kL;
        at.odd = last && g_.k % 2 ? odd : nullptr;
        add_rows(at, rows, to.vectors, [&](int64_t r, int64_t count, auto multiply) {
          float* tile = sums + r * stride + (to.first - first) * kL;
          if (ahead) ahead->fetch();
          if (!direct_ || !last) return multiply(tile, stride, k > 0);
          char* d = one.d.at(row + r, to.first * kL);
          const int64_t cols = std::min(to.vectors * kL, n_ - to.first * kL);
          for (int64_t i = 0; i < count; ++i) {
            __builtin_prefetch(d + i * one.d.rs, 1);
            __builtin_prefetch(d + i * one.d.rs + 2 * cols - 1, 1);
          }
          at.out = cols == to.vectors * kL ? d : nullptr;
          multiply(tile, stride, k > 0);
          if (!at.out) lay_down(tile, stride, count, cols, d, one.d.rs);
        });
      }
    }
    good_.store(true, std::memory_order_relaxed);
    if (!direct_) finish_rows(one, row, first * kL, rows, sums, stride);
    return true;
  }

  // `rows` of a group against one panel, as tile(row, rows of the tile, its products) wants it.
  template <class Tile>
  static void add_rows(RowSteps& at, int64_t rows, int64_t vectors, Tile tile) {
    int64_t r = 0;
    auto run = [&](auto count) {
      constexpr int R = decltype(count)::value;
      for (; r + R <= rows; r += R) {
        tile(r, R, [&](float* sums, int64_t stride, bool add) { multiply_panel<R>(vectors, at, sums, stride, add); });
        at.a += R * at.a_row;
        if (at.odd) at.odd += R;
      }
    };
    run(std::integral_constant<int, kTileRows>{});
    run(std::integral_constant<int, 4>{});
    run(std::integral_constant<int, 2>{});
    run(std::integral_constant<int, 1>{});
  }

  void finish_rows(const Gemm& one, int64_t row, int64_t col, int64_t rows, float* sums, int64_t stride) const {
    const int64_t cols = std::min(stride, n_ - col);
    if (!turned_) return finish(one, row, col, rows, cols, sums, stride);
    alignas(64) float turned[kChunk * kL * kGroup];
    for (int64_t i = 0; i < rows; i += kL) {
      for (int64_t j = 0; j < stride; j += kL) {
        transpose_square(reinterpret_cast<const char*>(sums + i * stride + j), stride * int64_t{sizeof(float)},
                         turned + j * kGroup + i, kGroup);
      }
    }
    finish(one, col, row, cols, rows, turned, kGroup);
  }

  // The groups that were left out, through f32: all at once if that is all of them, else those that follow each other.
  void repair() {
    if (!good_) return run_packed(g_, workspace_);
    for (int64_t product = 0; product < g_.batch; ++product) {
      const Gemm one = slice(g_, product);
      const Operands x = operands(one);
      for (int64_t p = 0; p < panels_; ++p) pack_panel(x, p, 0);
      const int packed = packed_exponent(0);
      for (int64_t row = 0, end; row < m_; row = end) {
        end = row;
        while (end < m_ && !keeps_subnormals(rows_exponent(x, end), packed)) end = std::min(end + kGroup, m_);
        if (end == row) {
          end = std::min(row + kGroup, m_);
        } else {
          repair_rows(one, row, end);
        }
      }
    }
  }
  int rows_exponent(const Operands& x, int64_t row) const {
    Least least;
    for (int64_t i = row; i < std::min(row + kGroup, m_); ++i) least.see(x.a + i * x.a_row, g_.k);
    return least.exponent();
  }
  void repair_rows(Gemm one, int64_t begin, int64_t end) const {
    (turned_ ? one.n : one.m) = end - begin;
    for (Matrix* x : {turned_ ? &one.b : &one.a, &one.c, &one.d, &one.bias}) {
      if (x->data) x->data += begin * (turned_ ? x->cs : x->rs);
    }
    run_packed(one, workspace_);
  }

  const Gemm& g_;
  char* const workspace_;
  bool turned_, direct_;
  int64_t m_, n_;  // rows of what is read in place, and of what is packed
  int64_t steps_, vectors_, panels_, groups_, slot_, slots_;
  std::atomic<bool> bad_{false}, good_{false};
};

}  // namespace
}  // namespace baracuda::matmul
#endif
