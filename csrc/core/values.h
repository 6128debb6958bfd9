// What a function of one element returns when it has several results: F::f(a, b, ...) -> Values<C, 2>. Portable.
#pragma once

namespace baracuda {

template <class C, int N>
struct Values {
  C v[N];
};

}  // namespace baracuda
