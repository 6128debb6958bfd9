// Reductions of contiguous compute-type values over a fixed set of lanes: 64 f32 or 32 f64 partial results, folded as a
// tree. The order of operations depends on the length alone, so every ISA level adds in the same order, and the error
// of a block is that of adding 64 numbers one after another at most.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace baracuda {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class C>
struct Lanes {
  typedef C Vec __attribute__((vector_size(kVectorBytes)));
  static constexpr int kWidth = kVectorBytes / sizeof(C);
  static constexpr int kVectors = 256 / kVectorBytes;
  static constexpr int kLanes = kWidth * kVectors;
  // Values after which sums are folded, so that no lane adds more than 64 of them.
  static constexpr int kBlock = 64 * kLanes;

  static Vec load(const C* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
};

template <class C>
inline C fold_sum(C (&lane)[Lanes<C>::kLanes]) {
  for (int w = Lanes<C>::kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] += lane[j + w];
  return lane[0];
}

// Sum of term(p[i], q[i], ...) for n values, best at most kBlock of them; term takes vectors and scalars alike.
template <class C, class Term, class... P>
inline C lane_sum(int64_t n, Term term, const P*... p) {
  using L = Lanes<C>;
  typename L::Vec acc[L::kVectors] = {};
  int64_t i = 0;
  for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) acc[k] += term(L::load(p + i + k * L::kWidth)...);
  }
  C lane[L::kLanes];
  std::memcpy(lane, acc, sizeof lane);
  for (int64_t j = 0; i + j < n; ++j) lane[j] += term(p[i + j]...);
  return fold_sum(lane);
}

// A whole kBlock read as four streams, which memory serves faster than one.
template <class C, class Term>
inline C block_sum(const C* p, Term term) {
  using L = Lanes<C>;
  constexpr int kStreams = 4, kPer = L::kVectors / kStreams, kSpan = L::kBlock / kStreams;
  typename L::Vec acc[L::kVectors] = {};
  for (int64_t i = 0; i < kSpan; i += kPer * L::kWidth) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) acc[k] += term(L::load(p + (k / kPer) * kSpan + i + (k % kPer) * L::kWidth));
  }
  C lane[L::kLanes];
  std::memcpy(lane, acc, sizeof lane);
  return fold_sum(lane);
}
template <class C>
inline C block_sum(const C* p) {
  return block_sum(p, [](auto v) { return v; });
}

// Larger keeps NaN: once a lane is NaN it stays NaN. Without it a NaN is passed over where the other value is a number.
template <bool kMax, bool kKeepNan>
struct Extreme {
  template <class V>
  static auto takes(const V& x, const V& m) {
    auto better = kMax ? x > m : x < m;
    if constexpr (kKeepNan && std::is_floating_point_v<std::remove_cvref_t<decltype(x)>>)
      return better || x != x;
    else if constexpr (kKeepNan && !std::is_integral_v<V>)
      return better | (x != x);
    else
      return better;
  }
  template <class C>
  static constexpr C start() {
    if constexpr (std::is_floating_point_v<C>)
      return kMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
    else
      return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  }
};

template <bool kMax, bool kKeepNan, class C>
inline C lane_extreme(const C* p, int64_t n) {
  using L = Lanes<C>;
  using X = Extreme<kMax, kKeepNan>;
  C lane[L::kLanes];
  for (C& v : lane) v = X::template start<C>();
  int64_t i = 0;
  if (n >= L::kLanes) {
    typename L::Vec acc[L::kVectors];
    std::memcpy(acc, lane, sizeof lane);
    for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < L::kVectors; ++k) {
        typename L::Vec x = L::load(p + i + k * L::kWidth);
        acc[k] = X::takes(x, acc[k]) ? x : acc[k];
      }
    }
    std::memcpy(lane, acc, sizeof lane);
  }
  for (int64_t j = 0; i + j < n; ++j) lane[j] = X::takes(p[i + j], lane[j]) ? p[i + j] : lane[j];
  for (int w = L::kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] = X::takes(lane[j + w], lane[j]) ? lane[j + w] : lane[j];
  return lane[0];
}
// A whole kBlock read as four streams, as block_sum does.
template <bool kMax, bool kKeepNan, class C>
inline C block_extreme(const C* p) {
  using L = Lanes<C>;
  using X = Extreme<kMax, kKeepNan>;
  constexpr int kStreams = 4, kPer = L::kVectors / kStreams, kSpan = L::kBlock / kStreams;
  C lane[L::kLanes];
  for (C& v : lane) v = X::template start<C>();
  typename L::Vec acc[L::kVectors];
  std::memcpy(acc, lane, sizeof acc);
  for (int64_t i = 0; i < kSpan; i += kPer * L::kWidth) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) {
      typename L::Vec x = L::load(p + (k / kPer) * kSpan + i + (k % kPer) * L::kWidth);
      acc[k] = X::takes(x, acc[k]) ? x : acc[k];
    }
  }
  // The tree that lane_extreme folds lanes in, its first steps by vectors.
  for (int w = L::kVectors / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) acc[k] = X::takes(acc[k + w], acc[k]) ? acc[k + w] : acc[k];
  std::memcpy(lane, acc, sizeof acc[0]);
  for (int w = L::kWidth / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] = X::takes(lane[j + w], lane[j]) ? lane[j + w] : lane[j];
  return lane[0];
}
template <class C>
inline C lane_max(const C* p, int64_t n) {
  return lane_extreme<true, false>(p, n);
}

// A running sum with its rounding error kept beside it (two-sum), for adding many block sums.
template <class C>
struct CompensatedSum {
  C sum = 0, error = 0;
  void add(C x) {
    C s = sum + x;
    C back = s - sum;
    error += (sum - (s - back)) + (x - back);
    sum = s;
  }
  // An infinite sum leaves NaN in the error term, which says nothing.
  C value() const { return error == error ? sum + error : sum; }
};

}  // namespace baracuda
