// Where the samples of a region's bins lie along an axis: for kernels of all backends.
#pragma once
#include "ops/image/sample.h"

namespace baracuda::image {

// An axis of an image, and how many bins a region has along it. samples: of a bin; 0: as many as it has places.
struct RegionSide {
  int64_t size, bins, samples;
  int32_t aligned;
};

// A region along an axis: bin b has samples at start + b width + (i + 1/2) width / samples.
template <class C>
struct Region {
  C start, width;
  int64_t samples;
};
template <class C>
BCU_FN Region<C> region_of(RegionSide s, C low, C high, C scale) {
  C shift = s.aligned != 0 ? C(0.5) : C(0), length = high * scale - low * scale;
  Region<C> r;
  r.start = low * scale - shift;
  r.width = (s.aligned != 0 || length > C(1) ? length : C(1)) / C(s.bins);
  C places = -below(-r.width);
  r.samples = s.samples > 0 ? s.samples : int64_t(held(places, C(0), C(1 << 30)));
  return r;
}
template <class C>
BCU_FN C sample_at(Region<C> r, int64_t bin, int64_t i) {
  return r.start + C(bin) * r.width + (C(i) + C(0.5)) * r.width / C(r.samples);
}

// Samples [begin, end) of a bin that may lie inside, and perhaps some that do not: of large regions most do not.
struct SampleRange {
  int64_t begin, end;
};
template <class C>
BCU_FN SampleRange samples_inside(RegionSide s, Region<C> r, int64_t bin) {
  SampleRange range;
  range.begin = 0, range.end = r.samples;
  C step = r.width / C(r.samples), from = r.start + C(bin) * r.width, most = C(r.samples);
  if (r.samples < 8 || !(step > C(0))) return range;
  range.begin = int64_t(held((C(-1) - from) / step - C(2), C(0), most));
  range.end = int64_t(held((C(s.size) - from) / step + C(2), C(0), most));
  return range;
}

// The two places beside a sample, and what they count for; low is -1 outside of -1 to size, where it counts nothing.
template <class C>
struct Beside {
  int64_t low, high;
  C of_low, of_high;
};
template <class C>
BCU_FN Beside<C> beside(RegionSide s, C at) {
  C last = C(s.size - 1);
  bool inside = at >= C(-1) && at <= C(s.size);
  C held_at = held(at, C(0), last), whole = below(held_at);
  Beside<C> b;
  b.low = int64_t(whole), b.high = b.low < s.size - 1 ? b.low + 1 : b.low;
  b.of_high = held_at - whole, b.of_low = C(1) - b.of_high;
  b.low = inside ? b.low : -1;
  return b;
}
template <class C>
BCU_FN C samples_of(Region<C> h, Region<C> w) {
  C count = C(h.samples) * C(w.samples);
  return count > C(1) ? count : C(1);
}

}  // namespace baracuda::image
