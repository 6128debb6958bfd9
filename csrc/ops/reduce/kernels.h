// The kernels of this family that live in a file of their own.
#pragma once
#include <algorithm>

#include "backends/cpu/family.h"
#include "host/values.h"
#include "ops/reduce/skus.h"
#include "ops/reduce/walk.h"

namespace baracuda::reduce {

// What is done to a tile of values before they are folded; nothing where map is null.
template <class C>
struct Terms {
  void (*map)(C* values, int64_t n, C p) = nullptr;
  C p = 0;
};

// What is done with the folded outputs [first, first + n).
template <class State>
struct Sink {
  void (*put)(const Walk& w, int64_t first, int64_t n, const State* states, const void* args);
  const void* args = nullptr;
};

// Writes result k of outputs [first, first + n).
template <class C>
void put_values(const Walk& w, int k, int64_t first, int64_t n, const C* values) {
  const int64_t even = w.even[k], stride = w.kept ? w.out_strides[k][w.kept - 1] : 1;
  while (n > 0) {
    const int64_t piece = std::min(n, even - first % even);
    write_values<C>(w.out_element[k], w.to(k, first), stride, values, piece);
    first += piece, values += piece, n -= piece;
  }
}

// The folds that several kernels share, compiled once (cpu_fold.cpp, cpu_extremes.cpp); C is float, double, and for
// sums int64_t and uint64_t, for products uint64_t.
template <class C>
void fold_sum(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink);
template <class C>
void fold_product(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink);
// V: as with_stored_type has it.
template <bool kMax, class V>
void fold_extreme(const Walk& w, const Terms<V>& terms, void* workspace, const Sink<V>& sink);
// How many words are not zero. W: as with_word_type has it, and so has the walk, see words_of().
template <class W>
void fold_count(const Walk& w, const Terms<W>& terms, void* workspace, const Sink<int64_t>& sink);

// A tensor's elements as the bits that they are.
inline TensorView words_of(const TensorView& x) {
  TensorView words = x;
  with_word_type(x.element, [&](auto w) { words.element = element_of<decltype(w)>; });
  return words;
}
// Bits of zeros only where a number is 0 or -0.
template <class W>
void drop_sign(W* v, int64_t n, W) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<W>(v[i] << 1);
}

// What is made of a row's moments beside its mean. Rest: what rounding the mean to its element leaves over.
enum class MomentResult { Variance, Deviation, Rest };
// The mean of x and one of these; results that are not present are left out.
void fold_moments(const Launch& launch, const TensorView& x, const TensorView& y, const TensorView& mean, uint32_t axes,
                  double correction, MomentResult result, void* workspace);

// Parts that `length` is cut into, each of at least `shortest`, when there are few tasks. See partials() for the
// memory.
inline int64_t strips_for(int64_t tasks, int64_t length, int64_t shortest, int64_t work) {
  if (work < kSplitFrom || tasks >= kMaxStrips) return 1;
  int64_t wanted = (kMaxStrips + tasks - 1) / tasks, possible = std::max<int64_t>(1, length / shortest);
  return std::min({wanted, possible, kMaxStrips});
}

}  // namespace baracuda::reduce

namespace baracuda {

template <bool kMax>
struct CpuKernel<reduce::ArgExtremum<kMax>> {
  static Status run(const Launch& launch);
};
template <bool kMax>
struct CpuKernel<reduce::IndexedExtremum<kMax>> {
  static Status run(const Launch& launch);
};
template <bool kRoot, bool kWithMean>
struct CpuKernel<reduce::Variance<kRoot, kWithMean>> {
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<reduce::LogSumExp> {
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<reduce::Cosine> {
  static Status run(const Launch& launch);
};

template <class Op>
struct CpuKernel<reduce::Backward<Op>> {
  static Status run(const Launch& launch);
};

}  // namespace baracuda
