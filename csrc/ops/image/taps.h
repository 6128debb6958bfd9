// Where results of a resized axis lie, and what they take of its places: for kernels of all backends.
#pragma once
#include "ops/pool/blocked_sum.h"

namespace baracuda::image {

// Result o lies at (start + o step) / den: numbers of which no product here reaches 2^62.
struct Map {
  int64_t in, out, start, step, den;
};
enum : int32_t { kNearest = 0, kLinear = 1, kCubic = 2 };
// rounded: nearest places are found in f32. antialias: filters are as wide as steps, and only what is inside counts.
struct Filter {
  int32_t kind, rounded, antialias;
};

// What results take, by result; and the results [begin, end) that take of a place, by place. Weight k of result o is
// weight[o * by_result + k * by_tap]; those of places outside belong to the ends.
template <class C>
struct Taps {
  int64_t in, out, pitch, by_result, by_tap;
  BCU_GLOBAL int32_t* first;
  BCU_GLOBAL int32_t* count;
  BCU_GLOBAL C* weight;  // null: all are 1
  BCU_GLOBAL int32_t* begin;
  BCU_GLOBAL int32_t* end;
};

BCU_FN int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
BCU_FN int64_t clamped(int64_t v, int64_t least, int64_t most) { return v < least ? least : v > most ? most : v; }

BCU_FN int64_t width_of(Map m, Filter f) { return f.antialias != 0 && m.step > m.den ? m.step : m.den; }
// Where nothing but an end is reached, one position is as good as another.
BCU_FN int64_t position_of(Map m, Filter f, int64_t o) {
  int64_t at = m.start + o * m.step;
  if (f.kind == kNearest || f.antialias != 0) return at;
  return f.kind == kLinear ? clamped(at, 0, (m.in - 1) * m.den) : clamped(at, -2 * m.den, m.in * m.den);
}

struct Span {
  int64_t first, count;
};
BCU_FN Span span_of(Map m, Filter f, int64_t o) {
  Span s;
  int64_t at = position_of(m, f, o);
  if (f.kind == kNearest) {
    int64_t place = f.rounded != 0 ? int64_t(float(at) / float(m.den)) : floor_div(at, m.den);
    s.first = clamped(place, 0, m.in - 1), s.count = 1;
  } else if (f.antialias == 0) {
    s.first = floor_div(at, m.den) - (f.kind - 1), s.count = 2 * f.kind;
  } else {
    int64_t reach = f.kind * width_of(m, f);
    int64_t first = floor_div(at - reach, m.den) + 1, last = -floor_div(-(at + reach), m.den) - 1;
    s.first = clamped(first, 0, m.in), last = last < m.in - 1 ? last : m.in - 1;
    s.count = last >= s.first ? last - s.first + 1 : 0;
  }
  return s;
}

// The filter at a place, with factors that are small where it is, so that it is right to some ulp everywhere.
template <class C>
BCU_FN C weight_at(Map m, Filter f, C a, int64_t at, int64_t place) {
  int64_t width = width_of(m, f), d = place * m.den - at;
  d = d < 0 ? -d : d;
  if (d >= f.kind * width) return C(0);
  C whole = C(width);
  if (f.kind == kLinear) return C(width - d) / whole;
  C t = C(d) / whole;
  if (d <= width) return C(width - d) / whole * (C(1) + t - (a + C(2)) * t * t);
  C rest = C(2 * width - d) / whole;
  return a * (C(d - width) / whole) * rest * rest;
}

// What result o takes. Those behind the last one, as far as the pitch goes, are filled as it is.
template <class C>
BCU_DEVICE void fill_result(Map m, Filter f, C a, BCU_CONSTANT Taps<C>& t, int64_t o) {
  int64_t r = o < m.out ? o : m.out - 1;
  Span s = span_of(m, f, r);
  t.first[o] = int32_t(s.first), t.count[o] = int32_t(s.count);
  if (f.kind == kNearest) return;
  int64_t at = position_of(m, f, r);
  pool::BlockedSum<C> total = pool::no_sum<C>();
  for (int64_t k = 0; k < s.count; ++k) {
    C w = weight_at<C>(m, f, a, at, s.first + k);
    t.weight[o * t.by_result + k * t.by_tap] = w;
    total.add(w);
  }
  C sum = total.total + total.part;
  if (f.antialias == 0 || sum == C(0)) return;
  for (int64_t k = 0; k < s.count; ++k) t.weight[o * t.by_result + k * t.by_tap] /= sum;
}

// The ends of what a result takes, inside; both go up with results, also where they take of nothing.
BCU_FN int64_t first_inside(int64_t first, int64_t count, int64_t in) {
  return clamped(first, 0, count == 0 ? in : in - 1);
}
BCU_FN int64_t end_inside(int64_t first, int64_t count, int64_t in) {
  return count == 0 ? clamped(first, 0, in) : clamped(first + count - 1, 0, in - 1) + 1;
}

// Which results take of a place: both ends of what a result takes go up with it.
template <class C>
BCU_DEVICE void fill_place(Map m, Filter f, BCU_CONSTANT Taps<C>& t, int64_t place) {
  for (int upper = 0; upper < 2; ++upper) {
    int64_t low = 0, high = m.out;
    while (low < high) {
      int64_t o = (low + high) / 2;
      Span s = span_of(m, f, o);
      bool past =
          upper != 0 ? first_inside(s.first, s.count, m.in) > place : end_inside(s.first, s.count, m.in) > place;
      low = past ? low : o + 1, high = past ? o : high;
    }
    (upper != 0 ? t.end : t.begin)[place] = int32_t(low);
  }
}

// What result o takes of a place, one of those that it takes of.
template <class C>
BCU_DEVICE C weight_of(BCU_CONSTANT Taps<C>& t, int64_t o, int64_t place) {
  if (!t.weight) return C(1);
  int64_t k = place - t.first[o], last = t.count[o] - 1;
  if (place > 0 && place < t.in - 1) return t.weight[o * t.by_result + k * t.by_tap];
  int64_t from = place == 0 ? 0 : k, to = place == t.in - 1 ? last : k;
  to = to < last ? to : last;
  C sum = C(0);
  for (from = from > 0 ? from : 0; from <= to; ++from) sum += t.weight[o * t.by_result + from * t.by_tap];
  return sum;
}

}  // namespace baracuda::image
