// Questions, bits and whole numbers of two numbers: exact, most of them for integers. See math.h.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::binary {

// A result r of a and b, with the NaN of the first operand that is one: which of two a sum or a product passes on is
// the compiler's choice, another one in each loop, and signbit sees it.
template <class T>
BCU_FN T with_nan_of(T a, T r) {
  return a != a ? a : r;
}
template <class T>
BCU_FN T with_nan_of(T a, T b, T r) {
  return a != a ? a : b != b ? b : r;
}

struct Eq {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return a >= b;
  }
};

struct LogicalAnd {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  BCU_FN bool f(T a, T b) {
    return (a != T(0)) != (b != T(0));
  }
};

struct BitwiseAnd {
  template <class T>
  BCU_FN T f(T a, T b) {
    return a & b;
  }
};
struct BitwiseOr {
  template <class T>
  BCU_FN T f(T a, T b) {
    return a | b;
  }
};
struct BitwiseXor {
  template <class T>
  BCU_FN T f(T a, T b) {
    return a ^ b;
  }
};

// By less than zero or by all bits and more: what a shift by one bit after the other leaves.
struct LeftShift {
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return b < 64u ? a << b : 0u; }
  BCU_FN int64_t f(int64_t a, int64_t b) { return int64_t(f(uint64_t(a), uint64_t(b))); }
};
struct RightShift {
  BCU_FN uint64_t f(uint64_t a, uint64_t b) { return b < 64u ? a >> b : 0u; }
  BCU_FN int64_t f(int64_t a, int64_t b) { return a >> (uint64_t(b) < 64u ? b : 63); }
};

struct Gcd {
  BCU_FN uint64_t f(uint64_t a, uint64_t b) {
    while (b != 0u) {
      uint64_t r = a % b;
      a = b;
      b = r;
    }
    return a;
  }
  BCU_FN int64_t f(int64_t a, int64_t b) { return int64_t(f(size(a), size(b))); }
  BCU_FN uint64_t size(int64_t a) { return a < 0 ? uint64_t(0) - uint64_t(a) : uint64_t(a); }
};

struct Lcm {
  BCU_FN uint64_t f(uint64_t a, uint64_t b) {
    uint64_t g = Gcd::f(a, b);
    return g == 0u ? 0u : a / g * b;
  }
  BCU_FN int64_t f(int64_t a, int64_t b) { return int64_t(f(Gcd::size(a), Gcd::size(b))); }
};

struct Heaviside {  // b where a is 0; 0 for NaN, as torch
  template <class T>
  BCU_FN T f(T a, T b) {
    return a == T(0) ? b : T(a > T(0));
  }
};

struct IsClose {
  template <class T>
  BCU_FN bool f(T a, T b, T rtol, T atol, T equal_nan) {
    T error = math::fabs(a - b);
    bool near = (error - error == T(0)) & (error <= atol + math::fabs(rtol * b));
    bool both = (a != a) & (b != b) & (equal_nan != T(0));
    return (a == b) | both | (near & ((rtol != T(0)) | (atol != T(0))));
  }
};

// The neighbour of a on the way to b, in the element of which a number of the compute type is told: 0 this type itself,
// 1 bf16, 2 f16.
struct Nextafter {
  template <class T>
  BCU_FN T f(T a, T b, T element) {
    using Uint = typename math::FloatTraits<T>::Uint;
    bool half_type = element == T(2), brain = element == T(1);
    Uint step = Uint(1) << (half_type ? 13 : brain ? 16 : 0);
    T size = math::fabs(a), least = half_type ? T(0x1p-24) : math::bit_cast<T>(step);
    bool grows = (a < b) == (a > T(0));
    Uint bits = math::bit_cast<Uint>(size);
    T next = math::bit_cast<T>(grows ? bits + step : bits - step);
    // f16 has fewer exponents than the type in which it is carried.
    bool low = half_type & (size <= T(0x1p-14));
    next = low ? (grows ? size + least : size - least) : next;
    T inf = math::infinity<T>();
    next = half_type & (size == inf) ? T(65504) : next;
    T y = size == T(0) ? math::copysign(least, b) : math::copysign(next, a);
    return with_nan_of(a, b, a == b ? b : y);
  }
};

}  // namespace baracuda::binary
