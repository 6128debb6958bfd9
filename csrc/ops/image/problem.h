// What resizing is asked for: attributes, arguments, and the tables of its axes.
#pragma once
#include <algorithm>
#include <cstddef>

#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"
#include "ops/conv/problem.h"
#include "ops/image/taps.h"

namespace baracuda::image {

using conv::kAxes;

BCU_ATTRS(NearestAttrs, (i64, start0), (i64, start1), (i64, start2), (i64, step0), (i64, step1), (i64, step2),
          (i64, den0), (i64, den1), (i64, den2), (i64, rounded))
BCU_ATTRS(ResizeAttrs, (i64, start0), (i64, start1), (i64, start2), (i64, step0), (i64, step1), (i64, step2),
          (i64, den0), (i64, den1), (i64, den2), (i64, cubic), (i64, antialias), (f64, a))
BCU_ARGS(ResizeArgs, (x, y), ())
BCU_ARGS(ResizeBackwardArgs, (dy, dx), ())
static_assert(offsetof(NearestAttrs, rounded) == 3 * kAxes * 8 && offsetof(ResizeAttrs, cubic) == 3 * kAxes * 8);

struct Resize {
  Map map[kAxes];  // axes that a shape lacks, in front, have one place
  Filter filter;
  double a = 0;  // of cubic filters
  bool back = false;
};

// `Sized` is a tensor or what is known of it.
template <class Sized>
void set_maps(Resize& r, const int64_t* slots, const Sized& image, const Sized& result) {
  const int spatial = image.rank - 2;
  for (Map& m : r.map) m = {1, 1, 0, 0, 1};
  for (int i = 0; i < spatial; ++i)
    r.map[kAxes - spatial + i] = {image.shape[2 + i], result.shape[2 + i], slots[i], slots[kAxes + i],
                                  slots[2 * kAxes + i]};
}
template <class Attrs, class Given, class Sized>
Resize resize_of(const Given& given, const Sized& image, const Sized& result, bool back) {
  const Attrs attrs = attributes<Attrs>(given);
  Resize r;
  set_maps(r, given.attrs, image, result);
  if constexpr (std::is_same_v<Attrs, NearestAttrs>)
    r.filter = {kNearest, attrs.rounded != 0, 0};
  else
    r.filter = {attrs.cubic ? kCubic : kLinear, 0, attrs.antialias != 0}, r.a = attrs.a;
  r.back = back;
  return r;
}

// The most places that a result takes of.
inline int64_t most_taps(const Map& m, const Filter& f) {
  if (f.kind == kNearest) return 1;
  return f.antialias ? std::min(m.in, 2 * f.kind * width_of(m, f) / m.den + 1) : 2 * f.kind;
}

// Results are filled in up to a multiple of this: vectors read beyond the last.
inline constexpr int64_t kPitch = 16;

// Tables in workspace from an address on; returns how many bytes they take.
template <class C>
int64_t lay_out(const Resize& r, Taps<C>* taps, uintptr_t base) {
  const uintptr_t begin = base;
  const auto room = [&](int64_t n, int64_t size) {
    const uintptr_t at = base;
    base += static_cast<uintptr_t>((n * size + 63) / 64 * 64);
    return at;
  };
  for (int i = 0; i < kAxes; ++i) {
    const Map& m = r.map[i];
    const int64_t pitch = (m.out + kPitch - 1) / kPitch * kPitch, most = most_taps(m, r.filter);
    Taps<C>& t = taps[i];
    t.in = m.in, t.out = m.out, t.pitch = pitch;
    const bool planar = !r.filter.antialias;
    t.by_result = planar ? 1 : most, t.by_tap = planar ? pitch : 1;
    t.first = reinterpret_cast<int32_t*>(room(pitch, 4)), t.count = reinterpret_cast<int32_t*>(room(pitch, 4));
    const bool weighed = r.filter.kind != kNearest;
    t.weight = weighed ? reinterpret_cast<C*>(room(pitch * most, sizeof(C))) : nullptr;
    t.begin = t.end = nullptr;
    if (!r.back) continue;
    t.begin = reinterpret_cast<int32_t*>(room(m.in, 4)), t.end = reinterpret_cast<int32_t*>(room(m.in, 4));
  }
  return static_cast<int64_t>(base - begin);
}

template <class Attrs, bool kBack>
int64_t tables(const Problem& p) {
  using Back = ResizeBackwardArgs;
  const ParamMeta& image = p.params[kBack ? int(Back::dx) : int(ResizeArgs::x)];
  const ParamMeta& result = p.params[kBack ? int(Back::dy) : int(ResizeArgs::y)];
  const Resize r = resize_of<Attrs>(p, image, result, kBack);
  if (p.element == Element::F64) {
    Taps<double> taps[kAxes];
    return lay_out(r, taps, 0);
  }
  Taps<float> taps[kAxes];
  return lay_out(r, taps, 0);
}

}  // namespace baracuda::image
