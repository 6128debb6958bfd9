// What the numbers of a launch are drawn from, checked and worked out once for every backend.
#pragma once
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "core/launch.h"
#include "ops/random/math.h"
#include "ops/random/skus.h"

namespace baracuda::random {

// How each element stores numbers. A half may be rounded twice: it is one of the two next to x all the same.
struct F16Bits {
  using Bits = uint16_t;
  static Bits of(double x) { return float_to_f16(static_cast<float>(x)); }
  static double value(Bits v) { return f16_to_float(v); }
};
struct BF16Bits {
  using Bits = uint16_t;
  static Bits of(double x) { return float_to_bf16(static_cast<float>(x)); }
  static double value(Bits v) { return bf16_to_float(v); }
};
struct F32Bits {
  using Bits = uint32_t;
  static Bits of(double x) { return bits_of(static_cast<float>(x)); }
  static double value(Bits v) { return float_of(v); }
};
struct F64Bits {
  using Bits = uint64_t;
  static Bits of(double x) { return __builtin_bit_cast(Bits, x); }
  static double value(Bits v) { return __builtin_bit_cast(double, v); }
};

template <class Stored>
double neighbour(double x, bool below) {
  const typename Stored::Bits near = Stored::of(x);
  const double v = Stored::value(near);
  return (below ? v < x : v >= x) ? v : Stored::value(step(near, !below));
}

// The greatest value of `element` below x (below = true) or the least that is not below it.
inline double stored_neighbour(Element element, double x, bool below) {
  switch (element) {
    case Element::F16:
      return neighbour<F16Bits>(x, below);
    case Element::BF16:
      return neighbour<BF16Bits>(x, below);
    case Element::F32:
      return neighbour<F32Bits>(x, below);
    default:
      return neighbour<F64Bits>(x, below);
  }
}

// Refuses the value of a scalar, which is to lie in a range, where that has a name.
inline Status wrong_scalar(const Launch& launch, int scalar) {
  if (launch.failure) *launch.failure = {-1, scalar, 0, 0};
  return Status::InvalidProblem;
}
inline Status wrong_scalar(const Launch& launch, int scalar, ValueRange range) {
  if (launch.failure) *launch.failure = {-1, scalar, 0, -2 - static_cast<int64_t>(range)};
  return Status::InvalidProblem;
}

// The integers that an element holds exactly, for those that hold not all of i64.
inline bool holds(Element e, int64_t low, int64_t last) {
  if (is_float(e)) {
    const int64_t most = int64_t{1} << (e == Element::F64 ? 53 : e == Element::F32 ? 24 : e == Element::F16 ? 11 : 8);
    return low >= -most && last <= most;
  }
  if (e == Element::Bool) return low >= 0 && last <= 1;
  const int bits = info(e).bits;
  if (kUnsigned.has(e)) return low >= 0 && (bits == 64 || last < int64_t{1} << bits);
  return bits == 64 || (low >= -(int64_t{1} << (bits - 1)) && last < int64_t{1} << (bits - 1));
}

template <class T>
Status interval_of(const Launch& launch, double low, double high, Interval<T>& to) {
  const T span = static_cast<T>(high - low);
  const T upper = upper_bits(span);
  if (!std::isfinite(static_cast<T>(low))) return wrong_scalar(launch, UniformArgs::low, ValueRange::Finite);
  if (!(low <= high) || !std::isfinite(upper)) return wrong_scalar(launch, UniformArgs::high);
  const double bottom = stored_neighbour(launch.element, low, false);
  const double top = stored_neighbour(launch.element, high, true);
  // No stored value in [low, high): all become the one nearest to low.
  const bool none = top < bottom;
  to = {static_cast<T>(low), upper, span - upper, static_cast<T>(none ? low : bottom),
        static_cast<T>(none ? low : top)};
  return Status::Ok;
}

template <class T>
Status moments_of(const Launch& launch, double mean, double std, Moments<T>& to) {
  if (!std::isfinite(static_cast<T>(mean))) return wrong_scalar(launch, NormalArgs::mean, ValueRange::Finite);
  if (!(std >= 0) || !std::isfinite(static_cast<T>(std)))
    return wrong_scalar(launch, NormalArgs::std, ValueRange::NotNegative);
  to = {static_cast<T>(mean), static_cast<T>(std)};
  return Status::Ok;
}

}  // namespace baracuda::random
