// Values to the blocks of 256 that GGUF calls K, and to IQ4_NL: scales of groups from their ranges, integers for these,
// then the nearest codes. Nothing is searched, so that every backend finds the same bytes. Portable.
#pragma once
#include "ops/quant/encode.h"

namespace baracuda::quant {

// Part of the values of a block.
template <class X>
struct Part {
  X x;
  int first;
  BCU_METHOD float operator()(int at) const { return x(first + at); }
};
template <class X>
BCU_FN Part<X> part(X x, int first) {
  Part<X> p;
  p.x = x, p.first = first;
  return p;
}
struct Listed {
  BCU_THREAD const float* data;
  BCU_METHOD float operator()(int at) const { return data[at]; }
};
BCU_FN float largest_of(BCU_THREAD const float* data, int count) {
  Listed l;
  l.data = data;
  return largest(l, count);
}
BCU_FN float as_half(float x) { return half_value(half_bits(x)); }

// Scales of kGroups groups above minima: code = (x + low) / step, with step = d sc and low = m mn.
template <int kGroups, int kMostCode, int kMostScale>
struct Above {
  int scales[kGroups], lows[kGroups];
  float d, m;

  template <class X>
  BCU_FN Above of(X x) {
    Above a;
    float steps[kGroups], depths[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      Range r = range(part(x, 256 / kGroups * g), 256 / kGroups);
      float low = r.least > 0.0f ? 0.0f : r.least;
      steps[g] = (r.most - low) / float(kMostCode), depths[g] = -low;
    }
    a.d = size(largest_of(steps, kGroups)) / float(kMostScale),
    a.m = size(largest_of(depths, kGroups)) / float(kMostScale);
    float by_d = inverse(a.d), by_m = inverse(a.m);
    for (int g = 0; g < kGroups; ++g) {
      a.scales[g] = int(above(steps[g], by_d, kMostScale)), a.lows[g] = int(above(depths[g], by_m, kMostScale));
    }
    return a;
  }
  BCU_FN uint32_t code(BCU_THREAD const Above& a, float x, int g) {
    float over = x + as_half(a.m) * float(a.lows[g]), by = inverse(as_half(a.d) * float(a.scales[g]));
    return above(over < 0.0f ? 0.0f : over, by, kMostCode);
  }
};
// Scales of 16 groups around zero: code - kMiddle = x / (d sc), with sc from -kMostScale to kMostScale - 1.
template <int kMiddle, int kMostScale>
struct Around {
  int scales[16];
  float d;

  template <class X>
  BCU_FN Around of(X x) {
    Around a;
    float steps[16];
    for (int g = 0; g < 16; ++g) steps[g] = largest(part(x, 16 * g), 16) / float(-kMiddle);
    a.d = largest_of(steps, 16) / float(-kMostScale);
    float by = inverse(a.d);
    for (int g = 0; g < 16; ++g) a.scales[g] = int(around(steps[g], by, kMostScale)) - kMostScale;
    return a;
  }
  BCU_FN uint32_t code(BCU_THREAD const Around& a, float x, int g) {
    return around(x, inverse(as_half(a.d) * float(a.scales[g])), kMiddle);
  }
};
template <class S>
BCU_FN uint32_t code_of(BCU_THREAD const S& s, float x, int g) {
  return S::code(s, x, g);
}

// Codes of two bits, of four runs of 32 that share 32 bytes.
template <class S, class X, class B>
BCU_FN void put_two_bits(BCU_THREAD const S& s, X x, B b, int at) {
  for (int k = 0; k < 64; ++k) {
    uint32_t byte = 0;
    for (int run = 0; run < 4; ++run) {
      int value = 128 * (k / 32) + 32 * run + k % 32;
      byte |= (code_of(s, x(value), value / 16) & 3u) << (2 * run);
    }
    b.put(at + k, byte);
  }
}

template <>
struct Encoder<kQ2_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    Above<16, 3, 15> s = Above<16, 3, 15>::of(x);
    for (int g = 0; g < 16; ++g) b.put(g, uint32_t(s.scales[g]) | uint32_t(s.lows[g]) << 4);
    put_two_bits(s, x, b, 16);
    put_half(b, 80, s.d), put_half(b, 82, s.m);
  }
};
template <>
struct Encoder<kQ3_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    Around<4, 32> s = Around<4, 32>::of(x);
    for (int k = 0; k < 32; ++k) {
      uint32_t thirds = 0;
      for (int run = 0; run < 8; ++run) thirds |= (code_of(s, x(32 * run + k), 2 * run + k / 16) >> 2) << run;
      b.put(k, thirds);
    }
    put_two_bits(s, x, b, 32);
    for (int g = 0; g < 8; ++g)
      b.put(96 + g, (uint32_t(s.scales[g] + 32) & 15u) | (uint32_t(s.scales[g + 8] + 32) & 15u) << 4);
    for (int g = 0; g < 4; ++g) {
      uint32_t upper = 0;
      for (int k = 0; k < 4; ++k) upper |= (uint32_t(s.scales[g + 4 * k] + 32) >> 4) << (2 * k);
      b.put(104 + g, upper);
    }
    put_half(b, 108, s.d);
  }
};

// The 12 bytes of scales and minima of 6 bits, and codes of 4 bits from byte `at` on.
template <class S, class X, class B>
BCU_FN void put_above(BCU_THREAD const S& s, X x, B b, int at) {
  put_half(b, 0, s.d), put_half(b, 2, s.m);
  for (int g = 0; g < 4; ++g) {
    uint32_t scale = uint32_t(s.scales[g + 4]), low = uint32_t(s.lows[g + 4]);
    b.put(4 + g, uint32_t(s.scales[g]) | (scale >> 4) << 6);
    b.put(8 + g, uint32_t(s.lows[g]) | (low >> 4) << 6);
    b.put(12 + g, (scale & 15u) | (low & 15u) << 4);
  }
  for (int k = 0; k < 128; ++k) {
    int value = 64 * (k / 32) + k % 32;
    uint32_t low = code_of(s, x(value), value / 32), high = code_of(s, x(value + 32), value / 32 + 1);
    b.put(at + k, (low & 15u) | (high & 15u) << 4);
  }
}
template <>
struct Encoder<kQ4_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    Above<8, 15, 63> s = Above<8, 15, 63>::of(x);
    put_above(s, x, b, 16);
  }
};
template <>
struct Encoder<kQ5_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    Above<8, 31, 63> s = Above<8, 31, 63>::of(x);
    put_above(s, x, b, 48);
    for (int k = 0; k < 32; ++k) {
      uint32_t fifths = 0;
      for (int run = 0; run < 8; ++run) fifths |= (code_of(s, x(32 * run + k), run) >> 4) << run;
      b.put(16 + k, fifths);
    }
  }
};
template <>
struct Encoder<kQ6_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    Around<32, 128> s = Around<32, 128>::of(x);
    for (int k = 0; k < 128; ++k) {
      int value = 128 * (k / 64) + k % 64;
      uint32_t low = code_of(s, x(value), value / 16), high = code_of(s, x(value + 64), value / 16 + 4);
      b.put(k, (low & 15u) | (high & 15u) << 4);
    }
    for (int k = 0; k < 64; ++k) {
      uint32_t upper = 0;
      for (int run = 0; run < 4; ++run) {
        int value = 128 * (k / 32) + 32 * run + k % 32;
        upper |= (code_of(s, x(value), value / 16) >> 4) << (2 * run);
      }
      b.put(128 + k, upper);
    }
    for (int g = 0; g < 16; ++g) b.put(192 + g, uint32_t(s.scales[g]) & 255u);
    put_half(b, 208, s.d);
  }
};
// As ggml has it: the value of the largest size becomes -127, halves go to even codes, and sums of 16 follow.
template <>
struct Encoder<kQ8_K> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float most = largest(x, 256), by = most == 0.0f ? 0.0f : -127.0f / most;
    uint32_t d = math::bit_cast<uint32_t>(most == 0.0f ? 0.0f : 1.0f / by);
    for (int k = 0; k < 4; ++k) b.put(k, d >> (8 * k) & 255u);
    for (int g = 0; g < 16; ++g) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) {
        float v = math::rint(x(16 * g + i) * by);
        int code = int(v != v ? 0.0f : math::at_least(math::at_most(v, 127.0f), -127.0f));
        b.put(4 + 16 * g + i, uint32_t(code) & 255u), sum += code;
      }
      b.put(260 + 2 * g, uint32_t(sum) & 255u), b.put(261 + 2 * g, uint32_t(sum) >> 8 & 255u);
    }
  }
};
// The value of the largest size becomes -127, the first of the table.
template <>
struct Encoder<kIQ4_NL> {
  BCU_FN uint32_t code(float v) {
    uint32_t code = 0;
    for (uint32_t next = 1; next < 16u; ++next) {
      int twice = Blocks<kIQ4_NL>::entry(next - 1u) + Blocks<kIQ4_NL>::entry(next);
      code = v >= 0.5f * float(twice) ? next : code;
    }
    return code;
  }
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float d = largest(x, 32) / -127.0f, by = inverse(d);
    put_half(b, 0, d + (d - d));  // NaN where it is not finite: no code stands for zero
    for (int i = 0; i < 16; ++i) b.put(2 + i, code(x(i) * by) | code(x(i + 16) * by) << 4);
  }
};

}  // namespace baracuda::quant
