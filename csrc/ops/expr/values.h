// What the functors of the elementwise families are called as in a fused expression: one value each. Portable.
#pragma once
#include "core/values.h"
#include "ops/binary/math.h"
#include "ops/ternary/math.h"
#include "ops/unary/math.h"

namespace baracuda::expr {

// One of the gradients of a function of several operands; the compiler drops the others.
template <class Op, int kPart>
struct Part {
  template <class C>
  BCU_FN C f(C dy, C a) {
    return Op::df(dy, a).v[kPart];
  }
  template <class C>
  BCU_FN C f(C dy, C a, C b) {
    return Op::df(dy, a, b).v[kPart];
  }
  template <class C>
  BCU_FN C f(C dy, C a, C b, C c) {
    return Op::df(dy, a, b, c).v[kPart];
  }
  template <class C>
  BCU_FN C f(C dy, C a, C b, C c, C d) {
    return Op::df(dy, a, b, c, d).v[kPart];
  }
};

struct Plus {
  template <class T>
  BCU_FN T f(T a, T b) {
    return binary::with_nan_of(a, binary::Wrap<T>::add(a, b));
  }
};
struct Minus {
  template <class T>
  BCU_FN T f(T a, T b) {
    return a - b;
  }
  BCU_FN int64_t f(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
};

}  // namespace baracuda::expr
