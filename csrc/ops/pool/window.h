// Which places of an axis a result of pooling is made of, and which results a place is in: for kernels of all backends.
// Sizes are below 2^31, so that products of two of them fit.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::pool {

// One axis. Without taps it is cut into `out` parts of about one size (adaptive), which may share their ends.
struct Axis {
  int64_t in, out, taps, stride, low, high, dilation;
};

// Places begin, begin + step ... of a result, `count` of them, all of them inside. `size` counts padding, too.
struct Window {
  int64_t begin, count, step, size;
};

// How many steps of a dilation reach over a distance.
BCU_FN int64_t steps_over(Axis a, int64_t distance) {
  return a.dilation == 1 ? distance : (distance + a.dilation - 1) / a.dilation;
}
BCU_FN Window window_of(Axis a, int64_t o) {
  Window w;
  w.step = 1;
  if (a.taps == 0) {
    w.begin = o * a.in / a.out;
    w.count = w.size = ((o + 1) * a.in + a.out - 1) / a.out - w.begin;
    return w;
  }
  int64_t from = o * a.stride - a.low, last = from + a.taps, past = a.in + a.high;
  int64_t skipped = from < 0 ? steps_over(a, -from) : 0, taps = from < a.in ? steps_over(a, a.in - from) : 0;
  taps = taps < a.taps ? taps : a.taps;
  w.begin = from + skipped * a.dilation, w.count = taps > skipped ? taps - skipped : 0, w.step = a.dilation;
  w.size = (last < past ? last : past) - from;
  return w;
}
// Whether a place is one of a window's.
BCU_FN bool holds(Window w, int64_t place) {
  int64_t from = place - w.begin;
  return from >= 0 && from < w.count * w.step && (w.step == 1 || from % w.step == 0);
}

// The first and the last result whose window may hold a place.
struct Range {
  int64_t first, last;
};
BCU_FN Range results_of(Axis a, int64_t place) {
  Range r;
  if (a.taps == 0) {
    r.first = place * a.out / a.in, r.last = ((place + 1) * a.out + a.in - 1) / a.in - 1;
    return r;
  }
  int64_t reach = (a.taps - 1) * a.dilation, at = place + a.low;
  r.first = at <= reach ? 0 : (at - reach + a.stride - 1) / a.stride;
  r.last = at / a.stride < a.out ? at / a.stride : a.out - 1;
  return r;
}

}  // namespace baracuda::pool
