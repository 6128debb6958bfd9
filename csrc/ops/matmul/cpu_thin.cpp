// Products with at most kMaxThin rows or columns (a decode step's linear layers): limited by reading the large operand
// once, so it is read where it lies, several rows at a time. Two loops, by which of its strides is the unit
// one.
#include <algorithm>

#include "core/parallel.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/cpu.h"
#include "ops/matmul/micro.h"

namespace baracuda::matmul {
namespace {

template <class C>
inline constexpr int kWide = kVectorBytes / static_cast<int>(sizeof(C));

// What a stored element is, and how kWide of them become a vector of sums' type.
template <class T>
struct Same {
  using Stored = T;
  using Sum = T;
  static Vector<T> widen(const T* p) { return *reinterpret_cast<const Vector<T>*>(p); }
};
struct FromBf16 {
  using Stored = uint16_t;
  using Sum = float;
  static Vector<float> widen(const uint16_t* p) {
    typedef uint16_t Narrow __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
    return (Vector<float>)(__builtin_convertvector(*reinterpret_cast<const Narrow*>(p), Vector<uint32_t>) << 16);
  }
};
#if BCU_LEVEL_F16
struct FromF16 {
  using Stored = uint16_t;
  using Sum = float;
  static Vector<float> widen(const uint16_t* p) { return level::load_halves(p); }
};
#endif

template <class C>
C total(Vector<C> v) {
  C lanes[kWide<C>];
  std::memcpy(lanes, &v, sizeof v);
  for (int half = kWide<C> / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// The small operand's rows in sums' type, each `stride` apart and zero padded to whole vectors.
template <class C>
struct Rows {
  const C* data;
  int64_t stride;
};

inline constexpr int kMaxSums = level::kRegisters / 2;  // vectors of sums that fit in registers
inline constexpr int kUnroll = 4;                       // vectors of a row of w that are read one after another

// Columns whose vectors of sums, for M rows of x, stay in L1 while K goes by.
template <int M>
inline constexpr int64_t kKept = 256 / M;

// The rows of w that are read together, `bytes` apart and contiguous in K, and their sums, `lanes` apart. Far apart
// they are streams of their own for the hardware, which foresees each of them: 45 GB/s, 30 to 39 by neighbours (20,
// where a row has 256 elements).
struct Streams {
  int64_t bytes, lanes;
};

// lanes[i][r] += x row i * w row r over [0, U * steps) vectors, for M rows of x and R rows of w.
template <class E, int M, int R, int U>
inline void dot_rows(Rows<typename E::Sum> x, const char* w, Streams apart, int64_t steps,
                     Vector<typename E::Sum>* lanes) {
  using C = typename E::Sum;
  using T = typename E::Stored;
  Vector<C> part[M][R] = {};
  for (int64_t at = 0; at < steps * U * kWide<C>; at += U * kWide<C>) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T* row = reinterpret_cast<const T*>(w + r * apart.bytes) + at;
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) {
        const Vector<C> v = E::widen(row + u * kWide<C>);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i)
          part[i][r] += *reinterpret_cast<const Vector<C>*>(x.data + i * x.stride + at + u * kWide<C>) * v;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) lanes[i * kKept<M> + r * apart.lanes] += part[i][r];
  }
}

// The same for any number of vectors.
template <class E, int M, int R>
inline void dot_run(Rows<typename E::Sum> x, const char* w, Streams apart, int64_t vectors,
                    Vector<typename E::Sum>* lanes) {
  constexpr int64_t kL = kWide<typename E::Sum>;
  const int64_t whole = vectors / kUnroll * kUnroll;
  dot_rows<E, M, R, kUnroll>(x, w, apart, vectors / kUnroll, lanes);
  if (whole < vectors) {
    w += whole * kL * static_cast<int64_t>(sizeof(typename E::Stored));
    dot_rows<E, M, R, 1>({x.data + whole * kL, x.stride}, w, apart, vectors - whole, lanes);
  }
}

// The last k - at elements of a row of w, fewer than a vector.
template <class E, int M>
inline void dot_tail(Rows<typename E::Sum> x, const char* w, int64_t count, Vector<typename E::Sum>* lanes) {
  using C = typename E::Sum;
  typename E::Stored tail[kWide<C>] = {};
  std::memcpy(tail, w, static_cast<size_t>(count) * sizeof(tail[0]));
  const Vector<C> v = E::widen(tail);
  for (int i = 0; i < M; ++i) lanes[i * kKept<M>] += *reinterpret_cast<const Vector<C>*>(x.data + i * x.stride) * v;
}

template <class E, int M>
void dot_columns(const Gemm& g, Rows<typename E::Sum> x, int64_t begin, int64_t end) {
  using C = typename E::Sum;
  constexpr int R = std::clamp(kMaxSums / M, 1, 8);
  // x's part of a block stays in L1, and a lane adds at most kSumBlock products in a row.
  constexpr int64_t kL = kWide<C>, kBlock = std::min<int64_t>(kSumBlock * kL, 16 * 1024 / (M * sizeof(C)));
  Vector<C> lanes[M * kKept<M>];
  C sums[M * kKept<M>];
  const int64_t whole = g.k / kL * kL;
  for (int64_t j = begin; j < end; j += kKept<M>) {
    const int64_t n = std::min(kKept<M>, end - j), group = n / R;
    for (int i = 0; i < M; ++i)
      for (int64_t c = 0; c < n; ++c) lanes[i * kKept<M> + c] = Vector<C>{};
    for (int64_t k = 0; k < whole; k += kBlock) {
      const int64_t vectors = std::min(kBlock, whole - k) / kL;
      const Rows<C> part{x.data + k, x.stride};
      for (int64_t c = 0; c < group; ++c)
        dot_run<E, M, R>(part, g.b.at(k, j + c), {group * g.b.cs, group}, vectors, lanes + c);
      for (int64_t c = group * R; c < n; ++c) dot_run<E, M, 1>(part, g.b.at(k, j + c), {}, vectors, lanes + c);
    }
    for (int64_t c = 0; c < n; ++c) {
      if (whole < g.k) dot_tail<E, M>({x.data + whole, x.stride}, g.b.at(whole, j + c), g.k - whole, lanes + c);
      for (int i = 0; i < M; ++i) sums[i * kKept<M> + c] = total<C>(lanes[i * kKept<M> + c]);
    }
    finish(g, 0, j, g.m, n, sums, kKept<M>);
  }
}

inline constexpr int64_t kShortRun = 1024;  // bytes of a row of w of which four are read before the next ones are there

// sums[i][c] += x[i][k] * w[k][c] over kDepth rows of w.
template <class E, int M, int kDepth>
inline void add_scaled(Rows<typename E::Sum> x, const char* w, int64_t w_stride, int64_t cols, typename E::Sum* sums,
                       int64_t sums_stride) {
  using C = typename E::Sum;
  using T = typename E::Stored;
  constexpr int64_t kL = kWide<C>;
  const int64_t ahead = w_stride * (cols * static_cast<int64_t>(sizeof(T)) <= kShortRun ? 8 : 4);
  int64_t c = 0;
  for (; c + kL <= cols; c += kL) {
    Vector<C> v[kDepth];
#pragma GCC unroll 4
    for (int d = 0; d < kDepth; ++d) {
      const T* row = reinterpret_cast<const T*>(w + d * w_stride) + c;
      v[d] = E::widen(row);
      // The next rows' same columns: too far apart for the hardware to foresee.
      __builtin_prefetch(reinterpret_cast<const char*>(row) + ahead);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      auto* s = reinterpret_cast<Vector<C>*>(sums + i * sums_stride + c);
      Vector<C> sum = *s;
#pragma GCC unroll 4
      for (int d = 0; d < kDepth; ++d) sum += x.data[i * x.stride + d] * v[d];
      *s = sum;
    }
  }
  if (c == cols) return;
  for (int d = 0; d < kDepth; ++d) {
    T tail[kL] = {};
    std::memcpy(tail, reinterpret_cast<const T*>(w + d * w_stride) + c, (cols - c) * sizeof(T));
    const Vector<C> v = E::widen(tail);
    for (int i = 0; i < M; ++i) {
      auto* s = reinterpret_cast<Vector<C>*>(sums + i * sums_stride + c);
      *s += x.data[i * x.stride + d] * v;
    }
  }
}

inline constexpr int64_t kColumnBytes = 16 * 1024;  // of sums, so that they and their blocks stay in L1

template <class E, int M>
void scaled_columns(const Gemm& g, Rows<typename E::Sum> x, int64_t begin, int64_t end) {
  using C = typename E::Sum;
  constexpr int64_t kColumns = kColumnBytes / (M * static_cast<int64_t>(sizeof(C)));
  alignas(64) C all[M * kColumns], part[M * kColumns];
  for (int64_t j = begin; j < end; j += kColumns) {
    const int64_t n = std::min(kColumns, end - j), width = (n + kWide<C> - 1) / kWide<C> * kWide<C>;
    std::fill_n(all, M * width, C(0));
    for (int64_t k = 0; k < g.k;) {
      const int64_t stop = std::min(g.k, k + kSumBlock);
      std::fill_n(part, M * width, C(0));
      for (; k + 4 <= stop; k += 4) add_scaled<E, M, 4>({x.data + k, x.stride}, g.b.at(k, j), g.b.rs, n, part, width);
      for (; k < stop; ++k) add_scaled<E, M, 1>({x.data + k, x.stride}, g.b.at(k, j), g.b.rs, n, part, width);
      for (int64_t at = 0; at < M * width; ++at) all[at] += part[at];
    }
    finish(g, 0, j, g.m, n, all, width);
  }
}

inline constexpr int64_t kThinWork = 16 * 1024;  // elements of the large operand that are worth a chunk of their own
inline constexpr int64_t kAloneWork = 2 * kThinWork;  // that one thread is done with before a team would have begun

template <class E, int M>
void run_columns(const Gemm& g, void* workspace) {
  using C = typename E::Sum;
  const int64_t stride = thin_stride(g.k), group = thin_group(g.batch, g.k, sizeof(C));
  const bool dots = g.k == 1 || g.b.rs == static_cast<int64_t>(sizeof(typename E::Stored));
  // Pieces: columns of one product. Enough of them to share out evenly, but wide enough for long runs of memory.
  int64_t piece = std::max<int64_t>(kThinWork / std::max<int64_t>(1, g.k), dots ? 32 : 64);
  if (!dots) piece = std::max(piece, std::min<int64_t>(512, g.n / 16));
  piece = (piece + 63) / 64 * 64;
  const int64_t pieces = (g.n + piece - 1) / piece;
  C* rows = static_cast<C*>(workspace);
  for (int64_t first = 0; first < g.batch; first += group) {
    const int64_t products = std::min(group, g.batch - first);
    parallel_for(products, std::max<int64_t>(1, kAloneWork / (M * stride)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const Gemm one = slice(g, first + p);
        for (int64_t i = 0; i < M; ++i) {
          C* row = rows + (p * M + i) * stride;
          std::fill(row + (i < g.m ? g.k : 0), row + stride, C(0));
          if (i < g.m) load<C>(one.a.element, one.a.at(i, 0), one.a.cs / size_of(one.a.element), row, g.k);
        }
      }
    });
    const bool alone = M * products * g.n * g.k <= kAloneWork;
    const int64_t grain = alone ? products * pieces : kThinWork / (piece * std::max<int64_t>(1, g.k));
    parallel_for(products * pieces, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const Gemm one = slice(g, first + p / pieces);
        const Rows<C> x{rows + p / pieces * M * stride, stride};
        const int64_t j = p % pieces * piece, stop = std::min(g.n, j + piece);
        dots ? dot_columns<E, M>(one, x, j, stop) : scaled_columns<E, M>(one, x, j, stop);
      }
    });
  }
}

template <class E>
void run_element(const Gemm& g, void* workspace) {
  if (g.m == 1) return run_columns<E, 1>(g, workspace);
  if (g.m == 2) return run_columns<E, 2>(g, workspace);
  if (g.m <= 4) return run_columns<E, 4>(g, workspace);
  run_columns<E, 8>(g, workspace);
}

}  // namespace

bool run_thin(const Gemm& problem, void* workspace) {
  Gemm g = problem;
  if (g.n < g.m) transpose(g);
  const int64_t unit = size_of(g.b.element);
  if (g.m > kMaxThin || g.parts > 1 || (g.b.rs != unit && g.b.cs != unit && g.k != 1 && g.n != 1)) return false;
  switch (g.b.element) {
    case Element::F64:
      run_element<Same<double>>(g, workspace);
      return true;
    case Element::F32:
      run_element<Same<float>>(g, workspace);
      return true;
    case Element::BF16:
      run_element<FromBf16>(g, workspace);
      return true;
#if BCU_LEVEL_F16
    case Element::F16:
      run_element<FromF16>(g, workspace);
      return true;
#endif
    default:
      return false;
  }
}

}  // namespace baracuda::matmul
