// Strided load and store of any plain element to and from the types that kernels compute in.
// Compiled once per CPU level; compute types are float, double, int64_t and uint64_t. Rules of conversion:
//   float -> float     round to nearest, ties to even, once (f64 -> bf16 does not round twice); NaN stays NaN and
//   becomes quiet integer -> integer wraps float -> integer   truncates; a value that the integer cannot hold (and NaN)
//   gives an unspecified integer, as in torch and C any -> bool        value != 0, so NaN is true
#pragma once
#include <cstdint>

#include "core/element.h"

namespace baracuda {

// Strides are in elements and may be zero or negative; a load with stride 0 repeats one element.
template <class C>
using LoadFn = void (*)(const void* src, int64_t stride, C* dst, int64_t n);
template <class C>
using StoreFn = void (*)(void* dst, int64_t stride, const C* src, int64_t n);

// Null for elements that have no conversion here (complex, fp8, sub-byte).
template <class C>
LoadFn<C> loader(Element from);
template <class C>
StoreFn<C> storer(Element to);

template <class C>
inline void load(Element from, const void* src, int64_t stride, C* dst, int64_t n) {
  loader<C>(from)(src, stride, dst, n);
}
template <class C>
inline void store(Element to, void* dst, int64_t stride, const C* src, int64_t n) {
  storer<C>(to)(dst, stride, src, n);
}

}  // namespace baracuda
