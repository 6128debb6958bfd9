// The layout side of a reduction: which dimensions are kept, which are folded, in which order memory likes them.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/collapse.h"
#include "host/rows.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

// A reduction has one result, or two of the same shape.
inline constexpr int kResults = 2;

struct WalkDim {
  int64_t size, in, out[kResults];
};

// Insertion sort: stable, and without the memory that std::stable_sort takes.
inline void sort_by_stride(WalkDim* dims, int n) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && std::abs(dims[j - 1].in) < std::abs(dims[j].in); --j) std::swap(dims[j - 1], dims[j]);
}

struct Walk {
  const char* in = nullptr;
  char* out[kResults] = {};  // null: a result that nobody wants
  Element in_element = Element::F32, out_element[kResults] = {};
  // Kept dimensions, largest input stride first; merged where all tensors step evenly.
  int32_t kept = 0;
  int64_t shape[kMaxRank] = {}, in_strides[kMaxRank] = {}, out_strides[kResults][kMaxRank] = {};
  Steps folded;
  int64_t outputs = 1, length = 1;
  bool alone;  // a row's bits must not depend on the rows beside it
  // How many outputs, counted from a multiple of that, result k has one even step apart.
  int64_t even[kResults] = {1, 1};

  // The results have the dimensions of x in order, with or without those that `axes` folds. in_order: folded ones are
  // walked as they are counted, not as memory likes them.
  Walk(const TensorView& x, const TensorView& y, uint32_t axes, bool row_alone, const TensorView* second = nullptr,
       bool in_order = false);
  Walk(const Walk&) = delete;

  // Where the values of output `index` start, and where its result k goes.
  const char* from(int64_t index) const { return in + offset(in_strides, index) * size_of(in_element); }
  char* to(int k, int64_t index) const { return out[k] + offset(out_strides[k], index) * size_of(out_element[k]); }

 private:
  int64_t offset(const int64_t* strides, int64_t index) const {
    int64_t at = 0;
    for (int i = kept - 1; i > 0; --i) {
      at += index % shape[i] * strides[i];
      index /= shape[i];
    }
    return kept ? at + index * strides[0] : 0;
  }
};

inline Walk::Walk(const TensorView& x, const TensorView& y, uint32_t axes, bool row_alone, const TensorView* second,
                  bool in_order)
    : alone(row_alone) {
  const TensorView* results[kResults] = {&y, second};
  in = x.as<char>();
  in_element = x.element;
  for (int k = 0; k < kResults; ++k) {
    if (!results[k] || !results[k]->present()) continue;
    out[k] = results[k]->as<char>();
    out_element[k] = results[k]->element;
  }
  const int rank = (y.present() ? y : *second).rank;
  WalkDim stays[kMaxRank], goes[kMaxRank];
  int n_stays = 0, n_goes = 0, at = 0;
  for (int i = 0; i < x.rank; ++i) {
    const bool fold = (axes >> i) & 1u;
    WalkDim d{x.shape[i], x.strides[i], {}};
    if (!fold || rank == x.rank) {
      for (int k = 0; k < kResults && !fold; ++k) d.out[k] = out[k] ? results[k]->strides[at] : 0;
      ++at;
    }
    (fold ? length : outputs) *= d.size;
    if (d.size == 1) continue;
    if (fold && d.in < 0 && !in_order) {  // the order of folding is ours to choose
      in += (d.size - 1) * d.in * size_of(x.element) * (d.size > 0);
      d.in = -d.in;
    }
    (fold ? goes[n_goes++] : stays[n_stays++]) = d;
  }
  sort_by_stride(stays, n_stays);
  if (!in_order) sort_by_stride(goes, n_goes);
  for (int i = 0; i < n_goes; ++i) folded.push(goes[i].size, goes[i].in);
  for (int i = 0; i < n_stays; ++i) {
    const WalkDim& d = stays[i];
    collapse(
        kept, shape, kResults + 1, d.size,
        [this](int k, int at) -> int64_t& { return k < kResults ? out_strides[k][at] : in_strides[at]; },
        [&](int k) { return k < kResults ? d.out[k] : d.in; });
  }
  for (int k = 0; k < kResults; ++k)
    for (int i = kept - 1; i >= 0 && (i == kept - 1 || out_strides[k][i] == out_strides[k][kept - 1] * even[k]); --i)
      even[k] *= shape[i];
}

}  // namespace baracuda::reduce
