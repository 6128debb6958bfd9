// Casts from and to the 8-bit floats (core/f8.h): a driver carries those as numbers 0 to 255, and these functions turn
// such a number into what it stands for, or what is to be stored into one.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/f8.h"
#include "core/values.h"

namespace baracuda::cast {

// A float from which rounding to a narrower one gives what rounding v once would give: inexact ones made odd.
BCU_FN float odd(float v) { return v; }
#if BCU_HAS_F64
BCU_FN float odd(double v) {
  float f = float(v);
  double back = double(f);
  uint32_t bits = math::bit_cast<uint32_t>(f);
  bits -= math::fabs(back) > math::fabs(v) ? 1u : 0u;
  bits |= back != v ? 1u : 0u;
  return v != v ? f : math::bit_cast<float>(bits);
}
#endif
// Integers beyond 2^24 are out of range in any case.
BCU_FN float odd(int64_t v) { return float(v > 16777216 ? int64_t(16777216) : v < -16777216 ? int64_t(-16777216) : v); }
BCU_FN float odd(uint64_t v) { return float(int64_t(v > 16777216u ? uint64_t(16777216) : v)); }

template <int kMantissa>
struct Decode {
  BCU_FN float f(float code) { return F8<kMantissa>::decode(uint32_t(int32_t(code))); }
};

template <int kMantissa>
struct Encode {
  template <class C>
  BCU_FN C f(C v, C saturate) {
    return C(F8<kMantissa>::encode(odd(v), saturate != C(0)));
  }
};

template <int kFrom, int kTo>
struct Recode {
  BCU_FN float f(float code, float saturate) {
    return float(int32_t(F8<kTo>::encode(Decode<kFrom>::f(code), saturate != 0.0f)));
  }
};

// 4-bit integers, two to a byte that a driver carries as a number: the nearest one, ties to even; beyond the range its
// end; 0 for NaN.
template <bool kSigned>
struct Int4 {
  enum : int { kLeast = kSigned ? -8 : 0, kMost = kSigned ? 7 : 15 };

  BCU_FN int32_t encode(float v) {
    v = v != v ? 0.0f : v < float(kLeast) ? float(kLeast) : v > float(kMost) ? float(kMost) : v;
    return int32_t(math::rint(v)) & 15;
  }
#if BCU_HAS_F64
  BCU_FN int32_t encode(double v) {
    v = v != v ? 0.0 : v < double(kLeast) ? double(kLeast) : v > double(kMost) ? double(kMost) : v;
    return int32_t(math::rint(v)) & 15;
  }
#endif
  BCU_FN int32_t encode(int64_t v) {
    return int32_t(v < int64_t(kLeast) ? int64_t(kLeast) : v > int64_t(kMost) ? int64_t(kMost) : v) & 15;
  }
  BCU_FN int32_t encode(uint64_t v) { return int32_t(v > uint64_t(kMost) ? uint64_t(kMost) : v); }
  BCU_FN int32_t decode(int32_t code) { return kSigned ? (code ^ 8) - 8 : code; }
};

template <bool kSigned>
struct PackInt4 {
  template <class C>
  BCU_FN C f(C low, C high) {
    return C(Int4<kSigned>::encode(low) | Int4<kSigned>::encode(high) << 4);
  }
};

template <bool kSigned>
struct UnpackInt4 {
  template <class C>
  BCU_FN Values<C, 2> f(C byte) {
    int32_t code = int32_t(byte);
    return {C(Int4<kSigned>::decode(code & 15)), C(Int4<kSigned>::decode(code >> 4 & 15))};
  }
};

}  // namespace baracuda::cast
