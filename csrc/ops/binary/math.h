// Functions of two numbers: the value f, and under it the gradients (da, db) for an incoming dy.
// Integers arrive as int64_t or uint64_t (bool too) and wrap when they are stored.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/values.h"
#include "ops/binary/exact.h"

namespace baracuda::binary {

template <class T>
using Grads = Values<T, 2>;

// Signed overflow wraps; done in unsigned, where that is defined.
template <class T>
struct Wrap {
  BCU_FN T add(T a, T b) { return a + b; }
  BCU_FN T mul(T a, T b) { return a * b; }
};
template <>
struct Wrap<int64_t> {
  BCU_FN int64_t add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
  BCU_FN int64_t mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
};

// a + alpha b; subtraction is alpha = -1.
struct AddScaled {
  template <class T>
  BCU_FN T f(T a, T b, T alpha) {
    return with_nan_of(a, Wrap<T>::add(a, Wrap<T>::mul(alpha, b)));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T alpha) {
    return {dy, alpha * dy};
  }
};

// The same with alpha's sign turned where kSign is -1, for callers that cannot turn it themselves.
template <int kSign>
struct AddSigned {
  template <class T>
  BCU_FN T f(T a, T b, T alpha) {
    return AddScaled::f(a, b, kSign > 0 ? alpha : Wrap<T>::mul(alpha, T(-1)));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T alpha) {
    return AddScaled::df(dy, kSign > 0 ? alpha : -alpha);
  }
};

using Add = AddSigned<1>;
using Sub = AddSigned<-1>;

struct Mul {
  template <class T>
  BCU_FN T f(T a, T b) {
    return with_nan_of(a, Wrap<T>::mul(a, b));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {dy * b, dy * a};
  }
};

struct Div {
  template <class T>
  BCU_FN T f(T a, T b) {
    return a / b;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {dy / b, -dy * ((a / b) / b)};
  }
};

struct Pow {
  template <class T>
  BCU_FN T f(T a, T b) {
    T r = b == T(2) ? a * a : math::pow(a, b);
    return r == r ? r : with_nan_of(a, b, r);  // 1 and x to the 0 are 1 with NaN, too
  }
  BCU_FN uint64_t f(uint64_t a, uint64_t b) {
    uint64_t y = 1;
    for (; b; b >>= 1, a *= a) y *= b & 1 ? a : 1;
    return y;
  }
  BCU_FN int64_t f(int64_t a, int64_t b) {  // a negative exponent leaves 0, unless the base is 1 or -1
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return int64_t(f(uint64_t(a), uint64_t(b)));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T below = math::pow(a, b - T(1)), y = math::pow(a, b);
    T da = b == T(0) ? T(0) : dy * (b * below);
    T db = a == T(0) && b >= T(0) ? T(0) : dy * (y * math::log(a));
    // A power of 0 is one also times an infinite exponent or logarithm.
    T left = a > T(0) ? y : T(1);
    return {below == T(0) ? T(0) : da, left == T(0) ? T(0) : db};
  }
};

struct Maximum {  // NaN wins; a tie halves the gradient
  template <class T>
  BCU_FN T f(T a, T b) {
    return (a >= b) | (a != a) ? a : b;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T share = a == b ? T(0.5) * dy : dy;
    return {a < b ? T(0) : share, a > b ? T(0) : share};
  }
};

struct Minimum {
  template <class T>
  BCU_FN T f(T a, T b) {
    return (a <= b) | (a != a) ? a : b;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T share = a == b ? T(0.5) * dy : dy;
    return {a > b ? T(0) : share, a < b ? T(0) : share};
  }
};

// The exact remainder with the sign of x, by long division of the significands.
template <class T>
BCU_FN T exact_fmod(T x, T y) {
  using Traits = math::FloatTraits<T>;
  using Uint = typename Traits::Uint;
  constexpr int kBits = Traits::kMantissaBits;
  const Uint hidden = Uint(1) << kBits, infinity = math::bit_cast<Uint>(math::infinity<T>());
  Uint ix = math::bit_cast<Uint>(math::fabs(x)), iy = math::bit_cast<Uint>(math::fabs(y));
  if (iy == 0 || iy > infinity || ix >= infinity) return math::quiet_nan<T>();
  if (ix < iy) return x;
  int ex = int(ix >> kBits), ey = int(iy >> kBits);
  uint64_t mx = ex ? (ix & (hidden - 1)) | hidden : ix, my = ey ? (iy & (hidden - 1)) | hidden : iy;
  ex = ex ? ex : 1;
  ey = ey ? ey : 1;
  mx %= my;
  for (int left = ex - ey; left > 0 && mx;) {
    int shift = left < 63 - kBits ? left : 63 - kBits;
    mx = (mx << shift) % my;
    left -= shift;
  }
  return math::copysign(math::detail::scale_pow2(T(mx), typename Traits::Int(ey - Traits::kBias - kBits)), x);
}

// Integer division by zero is found by the loops, which pass a divisor of 1 instead.
struct Fmod {  // the sign of a
  template <class T>
  BCU_FN T f(T a, T b) {
    return exact_fmod(a, b);
  }
  BCU_FN int64_t f(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return a % b; }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T quotient = b == T(0) ? a / b : math::rint((a - exact_fmod(a, b)) / b);
    return {dy, -dy * quotient};
  }
};

struct FloorDivide {
  template <class T>
  BCU_FN T f(T a, T b) {
    if (b == T(0)) return a / b;
    T r = exact_fmod(a, b), q = (a - r) / b;
    if (r != T(0) && (r < T(0)) != (b < T(0))) q -= T(1);
    return q == T(0) ? math::copysign(q, a / b) : math::rint(q);
  }
  BCU_FN int64_t f(int64_t a, int64_t b) {
    if (b == -1) return int64_t(0 - uint64_t(a));
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  }
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return a / b; }
};

struct Remainder {  // the sign of b, as Python's %
  template <class T>
  BCU_FN T f(T a, T b) {
    T r = exact_fmod(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
  }
  BCU_FN int64_t f(int64_t a, int64_t b) {
    int64_t r = Fmod::f(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return a % b; }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {dy, -dy * FloorDivide::f(a, b)};
  }
};

struct TruncDivide {  // the quotient without its fraction
  template <class T>
  BCU_FN T f(T a, T b) {
    T q = a / b, n = math::rint(math::fabs(q));
    return math::copysign(n > math::fabs(q) ? n - T(1) : n, q);
  }
  BCU_FN int64_t f(int64_t a, int64_t b) { return b == -1 ? int64_t(0 - uint64_t(a)) : a / b; }
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return a / b; }
};

struct Fmax {  // NaN loses; a tie leaves the gradient to a
  template <class T>
  BCU_FN T f(T a, T b) {
    return (a >= b) | (b != b) ? a : b;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    bool first = (a >= b) | (b != b);
    return {first ? dy : T(0), first ? T(0) : dy};
  }
};

struct Fmin {
  template <class T>
  BCU_FN T f(T a, T b) {
    return (a <= b) | (b != b) ? a : b;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    bool first = (a <= b) | (b != b);
    return {first ? dy : T(0), first ? T(0) : dy};
  }
};

struct Atan2 {
  template <class T>
  BCU_FN T f(T a, T b) {
    return with_nan_of(a, b, math::atan2(a, b));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {  // 0 at the origin, and infinitely far from it
    T h = math::hypot(a, b);
    bool none = (h == T(0)) | (h == math::infinity<T>());
    return {none ? T(0) : dy * (b / h / h), none ? T(0) : -dy * (a / h / h)};
  }
};

struct Hypot {
  template <class T>
  BCU_FN T f(T a, T b) {
    T r = math::hypot(a, b);
    return r == r ? r : with_nan_of(a, b, r);  // of infinity and NaN it is infinity
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    // A subnormal length has too few bits to divide by.
    T up = math::fabs(a) + math::fabs(b) < T(1e-30) ? T(1.2676506002282294e30) : T(1), h = math::hypot(a * up, b * up);
    return {dy * share(a, up, h), dy * share(b, up, h)};
  }
  template <class T>
  BCU_FN T share(T a, T up, T h) {  // an infinity is all of the length
    return math::fabs(a) == math::infinity<T>() ? math::copysign(T(1), a) : a * up / h;
  }
};

struct Copysign {
  template <class T>
  BCU_FN T f(T a, T b) {
    return math::copysign(a, b);
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {a == T(0) ? T(0) : dy * math::copysign(T(1), a) * math::copysign(T(1), b), T(0)};
  }
};

struct Xlogy {  // a ln(b), and 0 where a is 0 and b a number
  template <class T>
  BCU_FN T f(T a, T b) {
    return (a == T(0)) & (b == b) ? T(0) : with_nan_of(a, b, a * math::log(b));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {(a == T(0)) & (b <= T(0)) ? T(0) : f(dy, b), dy * (a / b)};
  }
};

struct Logaddexp {  // ln(e^a + e^b)
  template <class T>
  BCU_FN T f(T a, T b) {
    T most = a < b ? b : a;
    T r = a == b ? a + T(0.69314718055994530942) : most + math::log1p(math::exp(-math::fabs(a - b)));
    return with_nan_of(a, b, r);
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T d = a == b ? T(0) : a - b;  // equal infinities share evenly, as equal numbers do
    return {dy * math::sigmoid(d), dy * math::sigmoid(-d)};
  }
};

struct Logaddexp2 {  // log2(2^a + 2^b)
  template <class T>
  BCU_FN T f(T a, T b) {
    T most = a < b ? b : a, more = math::log1p(math::exp2(-math::fabs(a - b)));
    return with_nan_of(a, b, a == b ? a + T(1) : most + more * T(1.44269504088896340736));
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    T d = a == b ? T(0) : (a - b) * T(0.69314718055994530942);
    return {dy * math::sigmoid(d), dy * math::sigmoid(-d)};
  }
};

struct Ldexp {  // a 2^b, in steps that keep the product in range as long as the result is
  template <class T>
  BCU_FN T f(T a, T b) {
    constexpr int kBias = math::FloatTraits<T>::kBias;
    T infinite = math::infinity<T>();
    bool endless = !(math::fabs(b) < infinite);
    // Large numbers are made smaller first, small ones larger.
    bool small = math::fabs(a) < T(1);
    T whole = math::rint(b);
    whole += small & (whole > b) ? T(-1) : !small & (whole < b) ? T(1) : T(0);
    T n = math::at_most(math::at_least(endless ? T(0) : whole, T(3 - 3 * kBias)), T(3 * kBias));
    // A third of the way twice, then what is left.
    T third = math::rint(n * T(0.33333333333333333333));
    T step = math::detail::pow2<T>(math::detail::to_int(third));
    T last = math::detail::pow2<T>(math::detail::to_int(n - T(2) * third));
    T part = whole == b ? T(1) : math::exp2(b - whole), y = (small ? a : a * part) * step * step * last;
    // 2^b itself where that is infinite, zero or NaN.
    y = endless ? a * (b > T(0) ? infinite : b < T(0) ? T(0) : b) : small ? y * part : y;
    return with_nan_of(a, b, y);
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {f(dy, b), dy * f(a * T(0.69314718055994530942), b)};
  }
};

struct Prelu {  // b the slope below zero
  template <class T>
  BCU_FN T f(T a, T b) {
    return a > T(0) ? a : b * a;
  }
  template <class T>
  BCU_FN Grads<T> df(T dy, T a, T b) {
    return {a > T(0) ? dy : dy * b, a > T(0) ? T(0) : dy * a};
  }
};

}  // namespace baracuda::binary
