// Elements that are read one by one, from anywhere.
#pragma once
#include "core/element.h"
#include "core/half.h"

namespace baracuda::image {

// Elements as they are stored, and as numbers.
template <class C>
struct Plain {
  using Stored = C;
  using Number = C;
  static C load(C v) { return v; }
};
struct F16 {
  using Stored = uint16_t;
  using Number = float;
  static float load(uint16_t v) { return f16_to_float(v); }
};
struct Bf16 {
  using Stored = uint16_t;
  using Number = float;
  static float load(uint16_t v) { return bf16_to_float(v); }
};
// Calls f with one of these.
template <class F>
void with_stored(Element e, const F& f) {
  if (e == Element::F64) return f(Plain<double>());
  if (e == Element::F16) return f(F16());
  if (e == Element::BF16) return f(Bf16());
  f(Plain<float>());
}

}  // namespace baracuda::image
