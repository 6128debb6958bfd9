// Reductions of contiguous compute-type values over a fixed set of lanes: 64 f32 or 32 f64 partial results, folded as a
// tree. The order of operations depends on the length alone, so every ISA level adds in the same order, and the error
// of a block is that of adding 64 numbers one after another at most.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "host/level.h"

namespace baracuda {

using level::kVectorBytes;

template <class C>
struct Lanes {
  typedef C Vec __attribute__((vector_size(kVectorBytes)));
  typedef std::conditional_t<sizeof(C) == 8, int64_t, int32_t> Index;
  typedef Index Mask __attribute__((vector_size(kVectorBytes)));
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
  // p[0] to p[n - 1], n < kWidth, and 0.
  static Vec load_first(const C* p, int64_t n) {
#if BCU_LEVEL_PARTS
    if constexpr (sizeof(C) >= 4) return level::load_first<Vec>(p, n);
#endif
    Vec v = {};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  // Whether any lane is set.
  static bool any(const Mask& m) {
    uint64_t words[kVectorBytes / 8], all = 0;
    std::memcpy(words, &m, sizeof m);
    for (uint64_t word : words) all |= word;
    return all != 0;
  }
  // Which lanes those are.
  static Mask first(int64_t n) { return numbers(std::make_integer_sequence<Index, kWidth>()) < static_cast<Index>(n); }
  // Lane j holds lane j + kBy, for as many as there are.
  template <int kBy>
  static Vec shift(Vec v) {
    return shift<kBy>(v, std::make_integer_sequence<int, kWidth>());
  }
  // Of every 2 kBy lanes the first (or, with kUpper, the last) kBy ones: those of a, then those of b.
  template <int kBy, bool kUpper>
  static Vec halves(Vec a, Vec b) {
    return halves<kBy, kUpper>(a, b, std::make_integer_sequence<int, kWidth>());
  }

 private:
  template <Index... I>
  static constexpr Mask numbers(std::integer_sequence<Index, I...>) {
    return Mask{I...};
  }
  template <int kBy, int... I>
  static Vec shift(Vec v, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, ((I + kBy) % kWidth)...);
  }
  template <int kBy, bool kUpper, int... I>
  static Vec halves(Vec a, Vec b, std::integer_sequence<int, I...>) {
    constexpr int kFrom = kUpper ? kBy : 0;
    return __builtin_shufflevector(a, b,
                                   (I / (2 * kBy) * (2 * kBy) + kFrom + (I / kBy % 2 ? kWidth + I % kBy : I % kBy))...);
  }
};

// All lanes as one: each joined with the one half the number of lanes further, until one is left.
template <class C, int kBy = Lanes<C>::kWidth / 2, class Join>
inline C fold_vector(typename Lanes<C>::Vec v, const Join& join) {
  v = join(v, Lanes<C>::template shift<kBy>(v));
  if constexpr (kBy > 1)
    return fold_vector<C, kBy / 2>(v, join);
  else
    return v[0];
}
// kWidth vectors at once, each folded as fold_vector does: lane r of the result is that of v[r].
template <class C, int kBy = Lanes<C>::kWidth / 2, class Join>
inline typename Lanes<C>::Vec fold_vectors(typename Lanes<C>::Vec (&v)[Lanes<C>::kWidth], const Join& join) {
  using L = Lanes<C>;
#pragma GCC unroll 16
  for (int r = 0; r < kBy; ++r)
    v[r] = join(L::template halves<kBy, false>(v[r], v[r + kBy]), L::template halves<kBy, true>(v[r], v[r + kBy]));
  if constexpr (kBy > 1)
    return fold_vectors<C, kBy / 2>(v, join);
  else
    return v[0];
}
// The first steps of fold_lanes, which are between vectors.
template <class C, class Join>
inline typename Lanes<C>::Vec join_vectors(typename Lanes<C>::Vec (&acc)[Lanes<C>::kVectors], const Join& join) {
#pragma GCC unroll 16
  for (int w = Lanes<C>::kVectors / 2; w > 0; w /= 2)
#pragma GCC unroll 16
    for (int k = 0; k < w; ++k) acc[k] = join(acc[k], acc[k + w]);
  return acc[0];
}
template <class C, class Join>
inline C fold_lanes(typename Lanes<C>::Vec (&acc)[Lanes<C>::kVectors], const Join& join) {
  return fold_vector<C>(join_vectors<C>(acc, join), join);
}

struct Add {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a + b;
  }
};
template <class C>
inline C fold_sum(typename Lanes<C>::Vec (&acc)[Lanes<C>::kVectors]) {
  return fold_lanes<C>(acc, Add());
}

// Calls some(k, at, left) for each vector k that the last n < kLanes values reach: those at `at`, of which `left`
// count.
template <class C, class Some>
inline void last_lanes(int64_t n, const Some& some) {
  using L = Lanes<C>;
#pragma GCC unroll 16
  for (int k = 0; k < L::kVectors; ++k)
    if (n > k * L::kWidth) some(k, k * L::kWidth, n - k * L::kWidth);
}

// Sum of term(p[i], q[i], ...) for n values, best at most kBlock of them, up to the lanes of one vector, which Add
// folds; term takes vectors.
template <class C, class Term, class... P>
inline typename Lanes<C>::Vec lane_sums(int64_t n, Term term, const P*... p) {
  using L = Lanes<C>;
  if (n < L::kWidth)  // what the rest would come to
    return typename L::Vec{} + (L::first(n) ? typename L::Vec(term(L::load_first(p, n)...)) : typename L::Vec{});
  typename L::Vec acc[L::kVectors] = {};
  int64_t i = 0;
  for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) acc[k] += term(L::load(p + i + k * L::kWidth)...);
  }
  last_lanes<C>(n - i, [&](int k, int64_t at, int64_t left) __attribute__((always_inline)) {
    if (left >= L::kWidth)
      acc[k] += term(L::load(p + i + at)...);
    else
      acc[k] += L::first(left) ? typename L::Vec(term(L::load_first(p + i + at, left)...)) : typename L::Vec{};
  });
  return join_vectors<C>(acc, Add());
}
template <class C, class Term, class... P>
inline C lane_sum(int64_t n, Term term, const P*... p) {
  return fold_vector<C>(lane_sums<C>(n, term, p...), Add());
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
  return fold_sum<C>(acc);
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

template <bool kMax, bool kKeepNan>
struct TakeExtreme {
  template <class V>
  V operator()(const V& m, const V& x) const {
    return Extreme<kMax, kKeepNan>::takes(x, m) ? x : m;
  }
};

// The extreme of n values but NaN, up to the lanes of one vector; see(x) is called for all vectors of values.
template <bool kMax, class C, class See>
[[gnu::always_inline]] inline typename Lanes<C>::Vec lane_extremes(const C* p, int64_t n, const See& see) {
  using L = Lanes<C>;
  using X = Extreme<kMax, false>;
  const typename L::Vec none = typename L::Vec{} + X::template start<C>();
  const auto take = [&](typename L::Vec& m, typename L::Vec x) __attribute__((always_inline)) {
    see(x);
    m = X::takes(x, m) ? x : m;
  };
  if (n < L::kWidth) {
    typename L::Vec m = none;
    take(m, L::first(n) ? L::load_first(p, n) : none);
    return m;
  }
  typename L::Vec acc[L::kVectors];
  for (auto& v : acc) v = none;
  int64_t i = 0;
  for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) take(acc[k], L::load(p + i + k * L::kWidth));
  }
  last_lanes<C>(n - i, [&](int k, int64_t at, int64_t left) __attribute__((always_inline)) {
    if (left >= L::kWidth)
      take(acc[k], L::load(p + i + at));
    else
      take(acc[k], L::first(left) ? L::load_first(p + i + at, left) : none);
  });
  return join_vectors<C>(acc, TakeExtreme<kMax, false>());
}
template <bool kMax, class C>
inline typename Lanes<C>::Vec lane_extremes(const C* p, int64_t n) {
  return lane_extremes<kMax>(p, n, [](const auto&) {});
}
// The same, and whether there were NaN: a comparison and an or per vector, which nothing waits for. Extremes that keep
// NaN themselves cost twice as much.
template <bool kMax, class C>
inline typename Lanes<C>::Vec lane_extremes(const C* p, int64_t n, typename Lanes<C>::Mask& nan) {
  if constexpr (std::is_integral_v<C>) return lane_extremes<kMax>(p, n);
  typename Lanes<C>::Mask found = {};
  const auto v = lane_extremes<kMax>(p, n, [&](const auto& x) __attribute__((always_inline)) { found |= x != x; });
  nan |= found;
  return v;
}
template <bool kMax, bool kKeepNan, class C>
inline C lane_extreme(const C* p, int64_t n) {
  typename Lanes<C>::Mask nan = {};
  const auto v = kKeepNan ? lane_extremes<kMax>(p, n, nan) : lane_extremes<kMax>(p, n);
  if constexpr (kKeepNan && std::is_floating_point_v<C>)
    if (Lanes<C>::any(nan)) return std::numeric_limits<C>::quiet_NaN();
  return fold_vector<C>(v, TakeExtreme<kMax, false>());
}
// A whole kBlock read as four streams, as block_sum does; NaN where there is one.
template <bool kMax, class C>
inline C block_extreme(const C* p) {
  using L = Lanes<C>;
  using X = Extreme<kMax, false>;
  constexpr int kStreams = 4, kPer = L::kVectors / kStreams, kSpan = L::kBlock / kStreams;
  typename L::Vec acc[L::kVectors];
  typename L::Mask nan = {};
  for (auto& v : acc) v = typename L::Vec{} + X::template start<C>();
  for (int64_t i = 0; i < kSpan; i += kPer * L::kWidth) {
#pragma GCC unroll 16
    for (int k = 0; k < L::kVectors; ++k) {
      typename L::Vec x = L::load(p + (k / kPer) * kSpan + i + (k % kPer) * L::kWidth);
      if constexpr (std::is_floating_point_v<C>) nan |= x != x;
      acc[k] = X::takes(x, acc[k]) ? x : acc[k];
    }
  }
  if constexpr (std::is_floating_point_v<C>)
    if (L::any(nan)) return std::numeric_limits<C>::quiet_NaN();
  return fold_lanes<C>(acc, TakeExtreme<kMax, false>());
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
