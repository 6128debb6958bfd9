// The inner kernel of the packed matmul: a tile of kTileRows x (NV vectors) sums kept in registers while K goes by.
// Every sum is built in one fixed order (blocks of kSumBlock products, then the blocks), whatever tile or thread it
// falls to.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace baracuda::matmul {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kTileRows = 8;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32, kTileRows = 4;
#else
inline constexpr int kVectorBytes = 16, kTileRows = 4;
#endif
inline constexpr int kTileVectors = 3;
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

#if defined(__AVX512BF16__)
// Two neighbours in K per unit, for vdpbf16ps. It takes subnormals for zero, so operands that have some use
// Plain<float>.
struct Bf16Pairs {
  using Unit = uint32_t;
  using Sum = float;
  static constexpr int kPerUnit = 2;
  static inline Vector<float> madd(Vector<float> sum, uint32_t a, Vector<uint32_t> b) {
    return (Vector<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
  }
};
#endif

template <class P>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(typename P::Sum));
template <class P>
inline constexpr int kTileCols = kTileVectors * kLanes<P>;

// tile[kTileRows][NV * lanes] (+)= A panel * B panel. `a_row` and `a_step` are the strides of A in units: 1 and
// kTileRows when packed, the caller's own when `kPacked` is false.
template <class P, int NV, bool kPacked>
[[gnu::noinline]] void multiply_tile(const typename P::Unit* a, int64_t a_row, int64_t a_step,
                                     const typename P::Unit* b, int64_t steps, typename P::Sum* tile, bool add) {
  using Sum = typename P::Sum;
  using Unit = typename P::Unit;
  constexpr int kL = kLanes<P>;
  constexpr int64_t kBlock = kSumBlock / P::kPerUnit;
  if constexpr (kPacked) a_row = 1, a_step = kTileRows;
  for (int64_t begin = 0; begin < steps; begin += kBlock) {
    const int64_t count = steps - begin < kBlock ? steps - begin : kBlock;
    Vector<Sum> sums[kTileRows][NV] = {};
    for (int64_t s = 0; s < count; ++s) {
      Vector<Unit> bv[NV];
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) bv[j] = *reinterpret_cast<const Vector<Unit>*>(b + j * kL);
#pragma GCC unroll 8
      for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) sums[i][j] = P::madd(sums[i][j], a[i * a_row], bv[j]);
      }
      a += a_step;
      b += NV * kL;
    }
    const bool onto = add || begin > 0;
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) {
        auto* t = reinterpret_cast<Vector<Sum>*>(tile + (i * NV + j) * kL);
        *t = onto ? *t + sums[i][j] : sums[i][j];
      }
    }
  }
}

}  // namespace
}  // namespace baracuda::matmul
