// Where values belong in sorted sequences: many searches in step, so that their cache misses overlap.
#include <type_traits>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sort/entries.h"
#include "ops/sort/kernels.h"
#include "ops/sort/skus.h"

namespace baracuda::sort {
namespace {

inline constexpr int64_t kInStep = 32, kSearchGrain = 2048;

// Elements whose own comparison is the order, but for NaN.
template <class T>
struct Numbers {
  static T read(const char* x, int64_t at) { return reinterpret_cast<const T*>(x)[at]; }
  // Whether a comes before the place of v, which is behind what ties with it where kRight.
  template <bool kRight>
  static bool before(T a, T v) {
    return kRight ? (a <= v) | (v != v) : (a < v) | ((v != v) & (a == a));
  }
};
template <class Order>
struct Keys {
  static auto read(const char* x, int64_t at) { return Order::key(x, at); }
  template <bool kRight, class U>
  static bool before(U a, U v) {
    return kRight ? a <= v : a < v;
  }
};

// The place of each of n values. I has as many bytes as what is compared, where positions fit: loads are then gathered.
// kDense: the sequence's elements lie side by side.
template <class Read, class I, bool kRight, bool kDense>
void search_line(const Line& sequence, const Line& values, int64_t n, int64_t* found) {
  using T = decltype(Read::read(nullptr, 0));
  const auto at = [&](I i) __attribute__((always_inline)) {
    return Read::read(sequence.data, static_cast<int64_t>(i) * (kDense ? 1 : sequence.stride));
  };
  for (int64_t i = 0; i < n; i += kInStep) {
    const int64_t w = std::min(kInStep, n - i);
    I low[kInStep] = {};
    T v[kInStep] = {};
    for (int64_t l = 0; l < w; ++l) v[l] = Read::read(values.data, (i + l) * values.stride);
    for (I left = static_cast<I>(sequence.length); left > 1;) {
      const I half = left / 2;
      for (int64_t l = 0; l < kInStep; ++l)
        low[l] += half & (I(0) - I(Read::template before<kRight>(at(low[l] + (half - 1)), v[l])));  // no branch
      left -= half;
    }
    for (int64_t l = 0; l < w; ++l)
      found[i + l] =
          static_cast<int64_t>(low[l]) + (sequence.length > 0 && Read::template before<kRight>(at(low[l]), v[l]));
  }
}

using Searcher = void (*)(const Line&, const Line&, int64_t, int64_t*);
template <class Read>
Searcher searcher(bool right, bool simple) {
  using I = std::conditional_t<sizeof(decltype(Read::read(nullptr, 0))) == 8, uint64_t, uint32_t>;
  if (right) return simple ? search_line<Read, I, true, true> : search_line<Read, uint64_t, true, false>;
  return simple ? search_line<Read, I, false, true> : search_line<Read, uint64_t, false, false>;
}
// `simple`: side by side, and fewer than 2^32.
Searcher searcher_of(Element e, bool right, bool simple) {
  if (e == Element::F32) return searcher<Numbers<float>>(right, simple);
  if (e == Element::F64) return searcher<Numbers<double>>(right, simple);
  return with_order(e, [&](auto order) { return searcher<Keys<decltype(order)>>(right, simple); });
}

}  // namespace

Status search(const Launch& launch) {
  const TensorView &sequence = launch[SearchArgs::sequence], &values = launch[SearchArgs::values];
  const int last = sequence.rank - 1;
  const bool one = sequence.rank == 1;  // for all values
  const RowMap from = row_map(sequence, 1u << last);
  const auto lines = [&](const TensorView& t) {
    return row_map(t, one ? (1u << t.rank) - 1 : t.rank == 0 ? 0 : 1u << (t.rank - 1));
  };
  const RowMap v = lines(values), y = lines(launch[SearchArgs::y]);
  const int64_t length = v.length(), pieces = (length + kSearchGrain - 1) / kSearchGrain;
  if (length == 0 || v.rows() == 0) return Status::Ok;
  const bool simple = sequence.strides[last] == 1 && sequence.shape[last] < (int64_t{1} << 32);
  const Searcher find = searcher_of(values.element, attributes<SearchAttrs>(launch).right != 0, simple);
  parallel_for(v.rows() * pieces, row_grain(std::min(length, kSearchGrain) * 16), [&](int64_t begin, int64_t end) {
    int64_t found[kSearchGrain];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t r = piece / pieces, first = piece % pieces * kSearchGrain;
      const int64_t n = std::min(kSearchGrain, length - first), size = size_of(values.element);
      const Line all{one ? from.data : from.row(r), sequence.strides[last], sequence.shape[last]};
      int64_t at = 0;
      v.inner.runs(first, n, [&](int64_t offset, int64_t stride, int64_t count) {
        find(all, {v.row(r) + offset * size, stride, count}, count, found + at);
        at += count;
      });
      char* to = y.row(r);
      if (int64_t* direct = target(y, to, first, found); direct != found) std::copy_n(found, n, direct);
      write(y, to, first, n, found);
    }
  });
  return Status::Ok;
}

}  // namespace baracuda::sort
