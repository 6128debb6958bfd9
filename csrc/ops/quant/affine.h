// Numbers as integers or 8-bit floats times a scale: x = (q - zero) scale. Portable.
//
// One rounding after another, as ONNX and torch have it.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/f8.h"

namespace baracuda::quant {

// NaN becomes `least`.
template <class C>
BCU_FN C within(C v, C least, C most) {
  v = v > least ? v : least;
  return v < most ? v : most;
}

// The nearest code to x / scale, ties to even; NaN has that of zero.
struct Coded {
  BCU_FN float f(float x, float scale, float zero, float least, float most) {
    float v = math::rint(x / scale);
    return within(v != v ? zero : v + zero, least, most);
  }
};
// The nearest 8-bit float to x / scale, as a number from 0 to 255; zero stays, whatever its scale is.
template <int kMantissa>
struct CodedF8 {
  BCU_FN float f(float x, float scale, float saturate) {
    return float(int32_t(F8<kMantissa>::encode(x == 0.0f ? x : x / scale, saturate != 0.0f)));
  }
};

struct Decoded {
  BCU_FN float f(float code, float scale, float zero) { return (code - zero) * scale; }
};
template <int kMantissa>
struct DecodedF8 {
  BCU_FN float f(float code, float scale) { return F8<kMantissa>::decode(uint32_t(int32_t(code))) * scale; }
};

// As torch.fake_quantize_*: by the reciprocal of the scale, which is f32.
template <class C>
BCU_FN C faked_code(C x, C scale, C zero) {
  return math::rint(x * C(1.0f / float(scale))) + zero;
}
struct Faked {
  template <class C>
  BCU_FN C f(C x, C scale, C zero, C least, C most) {
    return (within(faked_code(x, scale, zero), least, most) - zero) * scale;
  }
};
// The gradient goes through where the code was within the range.
struct FakedGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C scale, C zero, C least, C most) {
    C code = faked_code(x, scale, zero);
    return code >= least && code <= most ? dy : C(0);
  }
};

// How numbers between `low` and `high` are coded, of which either is NaN where a number is. Zero always has a code.
struct Scaling {
  float scale, zero;
};
BCU_FN Scaling scaling_of(float low, float high, float least, float most, bool symmetric) {
  float top = high < 0.0f ? 0.0f : high, bottom = low > 0.0f ? 0.0f : low;
  Scaling s;
  if (symmetric) {
    s.scale = (top > -bottom ? top : 0.0f - bottom) / most, s.zero = 0.0f;
  } else {
    s.scale = (top - bottom) / (most - least);
    bool beyond = s.scale == math::infinity<float>() && top < s.scale && -bottom < s.scale;
    float halved = (0.5f * top - 0.5f * bottom) / (0.5f * (most - least));
    s.scale = beyond ? within(halved, 0.0f, math::bit_cast<float>(0x7f7fffffu)) : s.scale;
    float zero = math::rint(least - bottom / s.scale);
    s.zero = within(zero != zero ? 0.0f : zero, least, most);
  }
  return s;
}

}  // namespace baracuda::quant
