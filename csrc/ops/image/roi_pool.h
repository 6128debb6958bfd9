// Which places a region's bins hold along an axis, where regions are pooled by their maxima: for kernels of all
// backends.
#pragma once
#include "ops/image/sample.h"

namespace baracuda::image {

// To the nearest whole number, halves away from zero; NaN is 0.
template <class C>
BCU_FN C to_whole(C x) {
  C size = x < C(0) ? -x : x, whole = below(size);
  whole += size - whole >= C(0.5) ? C(1) : C(0);
  return x == x ? (x < C(0) ? -whole : whole) : C(0);
}

// Places [begin, end) of bin `bin` of a region from `low` to `high`, both included, in an axis of `size` places.
struct Places {
  int64_t begin, end;
};
template <class C>
BCU_FN Places places_of(C low, C high, C scale, int64_t bins, int64_t size, int64_t bin) {
  C start = held(to_whole(low * scale), C(-1e9), C(1e9)), last = held(to_whole(high * scale), C(-1e9), C(1e9));
  C length = last - start + C(1), each = (length > C(1) ? length : C(1)) / C(bins);
  Places p;
  p.begin = int64_t(held(below(C(bin) * each) + start, C(0), C(size)));
  p.end = int64_t(held(start - below(-(C(bin + 1) * each)), C(0), C(size)));
  return p;
}

// Whether a place wins over what is largest so far: the first of equals stays, and the first NaN.
template <class C>
BCU_FN bool wins(C v, C best, bool none) {
  return none || (best == best && (v > best || v != v));
}

}  // namespace baracuda::image
