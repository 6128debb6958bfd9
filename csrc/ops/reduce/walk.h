// The layout side of a reduction: which dimensions are kept, which are folded, in which order memory likes them.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backends/cpu/rows.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

struct Walk {
  const char* in = nullptr;
  char* out = nullptr;
  Element in_element = Element::F32, out_element = Element::F32;
  // Kept dimensions, largest input stride first; merged where both tensors step evenly.
  int32_t kept = 0;
  int64_t shape[kMaxRank] = {}, in_strides[kMaxRank] = {}, out_strides[kMaxRank] = {};
  Steps folded;
  int64_t outputs = 1, length = 1;

  // Elements from the start to output `index`, in the input and in the output.
  void offsets(int64_t index, int64_t* from, int64_t* to) const {
    *from = *to = 0;
    for (int i = kept - 1; i >= 0; --i) {
      int64_t k = index % shape[i];
      index /= shape[i];
      *from += k * in_strides[i];
      *to += k * out_strides[i];
    }
  }
  const char* in_at(int64_t offset) const { return in + offset * size_of(in_element); }
  char* out_at(int64_t offset) const { return out + offset * size_of(out_element); }
};

struct WalkDim {
  int64_t size, in, out;
};

// Insertion sort: stable, and without the memory that std::stable_sort takes.
inline void sort_by_stride(WalkDim* dims, int n) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && std::abs(dims[j - 1].in) < std::abs(dims[j].in); --j) std::swap(dims[j - 1], dims[j]);
}

// y has the dimensions of x in order, with or without those that `axes` folds.
inline Walk make_walk(const TensorView& x, const TensorView& y, uint32_t axes) {
  Walk w;
  w.in = x.as<char>();
  w.out = y.as<char>();
  w.in_element = x.element;
  w.out_element = y.element;
  const bool keepdim = y.rank == x.rank;
  WalkDim kept[kMaxRank], folded[kMaxRank];
  int n_kept = 0, n_folded = 0, at = 0;
  for (int i = 0; i < x.rank; ++i) {
    const bool fold = (axes >> i) & 1u;
    WalkDim d{x.shape[i], x.strides[i], 0};
    if (!fold || keepdim) {
      if (!fold) d.out = y.strides[at];
      ++at;
    }
    (fold ? w.length : w.outputs) *= d.size;
    if (d.size == 1) continue;
    if (fold && d.in < 0) {  // the order of folding is ours to choose
      w.in += (d.size - 1) * d.in * size_of(x.element) * (d.size > 0);
      d.in = -d.in;
    }
    (fold ? folded[n_folded++] : kept[n_kept++]) = d;
  }
  sort_by_stride(kept, n_kept);
  sort_by_stride(folded, n_folded);
  for (int i = 0; i < n_folded; ++i) w.folded.push(folded[i].size, folded[i].in);
  for (int i = 0; i < n_kept; ++i) {
    const WalkDim& d = kept[i];
    const int last = w.kept - 1;
    if (last >= 0 && w.in_strides[last] == d.in * d.size && w.out_strides[last] == d.out * d.size) {
      w.shape[last] *= d.size;
      w.in_strides[last] = d.in;
      w.out_strides[last] = d.out;
    } else {
      w.shape[w.kept] = d.size;
      w.in_strides[w.kept] = d.in;
      w.out_strides[w.kept++] = d.out;
    }
  }
  return w;
}

}  // namespace baracuda::reduce
