// The inner kernel of the packed matmul: a tile of kTileRows x (NV vectors) sums kept in registers while K goes by.
// Every sum is built in one fixed order (blocks of kSumBlock products, then the blocks), whatever tile or thread it
// falls to.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "host/level.h"
#include "ops/matmul/blocking.h"

namespace baracuda::matmul {
namespace {

using level::kVectorBytes;
inline constexpr int kTileRows = level::kRegisters / 4, kTileVectors = 3;
inline constexpr int kSumBlock = 256;  // products added in a row: keeps the error of long sums near sqrt(K)

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;

// How operands are stored in panels and multiplied. Unit: what lies at one (row, step) of a panel.
template <class T>
struct Plain {
  using Unit = T;
  using Sum = T;
  static constexpr int kPerUnit = 1;
  static inline Vector<T> madd(Vector<T> sum, T a, Vector<T> b) { return sum + a * b; }
};

#if BCU_LEVEL_BF16
// Two neighbours in K per unit. Subnormals count as zero there, so operands that have some use Plain<float>.
struct Bf16Pairs {
  using Unit = uint32_t;
  using Sum = float;
  static constexpr int kPerUnit = 2;
  static inline Vector<float> madd(Vector<float> sum, uint32_t a, Vector<uint32_t> b) {
    return level::dot_bf16(sum, a, b);
  }
};
#endif

#if BCU_LEVEL_PAIRS
// Two 8-bit neighbours in K per unit, widened to 16 bits, whose products cannot overflow.
struct S16Pairs {
  using Unit = uint32_t;
  using Sum = uint32_t;
  static constexpr int kPerUnit = 2;
  static inline Vector<uint32_t> madd(Vector<uint32_t> sum, uint32_t a, Vector<uint32_t> b) {
    return level::dot_pairs(sum, a, b);
  }
};
#endif

#if BCU_LEVEL_QUADS
// Four 8-bit neighbours in K per unit. Where left factors are unsigned, A is stored 128 higher than it is, and every
// sum is too large by 128 times the sum of its column of B.
struct S8Quads {
  using Unit = uint32_t;
  using Sum = uint32_t;
  static constexpr int kPerUnit = 4;
  static constexpr uint32_t kOffset = level::kQuadsSigned ? 0 : 0x80808080u;
  static inline Vector<uint32_t> madd(Vector<uint32_t> sum, uint32_t a, Vector<uint32_t> b) {
    return level::dot_quads(sum, a, b);
  }
};
#endif

template <class P>
inline constexpr bool kHasOffset = false;
#if BCU_LEVEL_QUADS
template <>
inline constexpr bool kHasOffset<S8Quads> = S8Quads::kOffset != 0;
#endif
template <class P>
inline constexpr bool kIsFloat = std::is_floating_point_v<typename P::Sum>;
// Steps whose products are added in a row. Integers are exact in any order.
template <class P>
inline constexpr int64_t kBlockSteps = (kIsFloat<P> ? kSumBlock : kBlockDepth) / P::kPerUnit;

template <class P>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(typename P::Sum));
template <class P>
inline constexpr int kTileCols = kTileVectors * kLanes<P>;

// Where the operands of a tile lie, in units and sums: rows of A and steps in K, steps of B, rows of the tile. `next`
// is the A of the tile that is likely to follow, for prefetching; `excess` what every column's sums come out too large
// by, for policies with an offset.
struct TileSteps {
  int64_t a_row, a_step, b_step, tile_row;
  const void *next, *excess;
};
inline constexpr int64_t kPrefetchSteps = 8;  // steps between prefetches, which are spread over a block
inline constexpr int64_t kLine = 64;

// What prefetch `turn` of a block of steps fetches: a line of the tile, and some of the next rows of A that are
// contiguous in K.
template <class P, int NV, bool kPacked>
[[gnu::always_inline]] inline void prefetch_turn(int64_t turn, const typename P::Sum* tile, const TileSteps& at) {
  if constexpr (!kIsFloat<P>) return;
  constexpr int64_t kTurns = kSumBlock / P::kPerUnit / kPrefetchSteps, kTurnsPerRow = kTurns / kTileRows;
  constexpr int64_t kRowBytes = kSumBlock / P::kPerUnit * sizeof(typename P::Unit);
  constexpr int64_t kBytes = kRowBytes / kTurnsPerRow;
  const int64_t row = turn / kTurnsPerRow, part = turn % kTurnsPerRow;
  __builtin_prefetch(tile + row * at.tile_row + part * kLanes<P>, 1);
  if constexpr (!kPacked) {
    const char* from = static_cast<const char*>(at.next) + row * at.a_row * sizeof(typename P::Unit) + part * kBytes;
#pragma GCC unroll 8
    for (int64_t byte = 0; byte < kBytes; byte += kLine) __builtin_prefetch(from + byte);
  }
}

// tile[kTileRows][NV * lanes] (+)= A * B. Of `kPacked` operands only tile_row is looked at: their steps are those of
// panels.
template <class P, int NV, bool kPacked>
[[gnu::noinline]] void multiply_tile(const typename P::Unit* a, const typename P::Unit* b, int64_t steps,
                                     typename P::Sum* tile, const TileSteps& at, bool add) {
  using Sum = typename P::Sum;
  using Unit = typename P::Unit;
  constexpr int kL = kLanes<P>;
  constexpr int64_t kBlock = kBlockSteps<P>;
  const int64_t a_row = kPacked ? 1 : at.a_row, a_step = kPacked ? kTileRows : at.a_step;
  const int64_t b_step = kPacked ? NV * kL : at.b_step, tile_row = at.tile_row;
  for (int64_t begin = 0; begin < steps; begin += kBlock) {
    const int64_t count = steps - begin < kBlock ? steps - begin : kBlock;
    Vector<Sum> sums[kTileRows][NV] = {};
    if constexpr (kHasOffset<P>) {
#pragma GCC unroll 4
      for (int j = 0; j < NV && begin == 0; ++j) {
        const Vector<Sum> start = -static_cast<const Vector<Sum>*>(at.excess)[j];
#pragma GCC unroll 8
        for (int i = 0; i < kTileRows; ++i) sums[i][j] = start;
      }
    }
    for (int64_t s = 0; s < count;) {
      prefetch_turn<P, NV, kPacked>(s / kPrefetchSteps, tile, at);
      for (const int64_t stop = s + kPrefetchSteps < count ? s + kPrefetchSteps : count; s < stop; ++s) {
        Vector<Unit> bv[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) bv[j] = *reinterpret_cast<const Vector<Unit>*>(b + j * kL);
#pragma GCC unroll 8
        for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
          for (int j = 0; j < NV; ++j) sums[i][j] = P::madd(sums[i][j], a[i * a_row], bv[j]);
        }
        a += a_step;
        b += b_step;
      }
    }
    const bool onto = add || begin > 0;
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) {
        auto* t = reinterpret_cast<Vector<Sum>*>(tile + i * tile_row + j * kL);
        *t = onto ? *t + sums[i][j] : sums[i][j];
      }
    }
  }
}

}  // namespace
}  // namespace baracuda::matmul
