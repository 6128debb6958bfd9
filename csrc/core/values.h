// Functions of one element, as every backend's elementwise driver takes them: F::f(a, b, ...) returns a C, a bool or,
// where it has several results, Values<C, 2>. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda {

template <class C, int N>
struct Values {
  C v[N];
};

struct Same {
  template <class C>
  BCU_FN C f(C x) {
    return x;
  }
};

// An op's derivative as a function of its own: Op::df(dy, what was saved, numbers that Op takes besides).
template <class Op>
struct Gradient {
  template <class C>
  BCU_FN auto f(C dy, C a) {
    return Op::df(dy, a);
  }
  template <class C>
  BCU_FN auto f(C dy, C a, C b) {
    return Op::df(dy, a, b);
  }
  template <class C>
  BCU_FN auto f(C dy, C a, C b, C c) {
    return Op::df(dy, a, b, c);
  }
  template <class C>
  BCU_FN auto f(C dy, C a, C b, C c, C d) {
    return Op::df(dy, a, b, c, d);
  }
};

}  // namespace baracuda
