// Choosing the type that a kernel computes in from a plan's element.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/element.h"
#include "core/launch.h"

namespace baracuda {

// Calls f(C()) with float or double: half types compute in float.
template <class F>
decltype(auto) with_float_type(Element e, F&& f) {
  return e == Element::F64 ? f(double()) : f(float());
}

// The same for integers: int64_t for signed ones, uint64_t for unsigned ones and bool. Stores wrap.
template <class F>
decltype(auto) with_integer_type(Element e, F&& f) {
  return kSigned.has(e) ? f(int64_t()) : f(uint64_t());
}

template <class F>
decltype(auto) with_compute_type(Element e, F&& f) {
  return is_float(e) ? with_float_type(e, f) : with_integer_type(e, f);
}

template <class C>
inline constexpr Element element_of = Element::Any;
template <>
inline constexpr Element element_of<float> = Element::F32;
template <>
inline constexpr Element element_of<double> = Element::F64;
template <>
inline constexpr Element element_of<int64_t> = Element::I64;
template <>
inline constexpr Element element_of<uint64_t> = Element::U64;

template <class C>
C scalar_as(const Scalar& s) {
  if constexpr (std::is_floating_point_v<C>)
    return static_cast<C>(s.as_f64());
  else if constexpr (std::is_signed_v<C>)
    return s.as_i64();
  else
    return s.as_u64();
}

// What a function of elements found, as a number to be stored. A question's answer is chosen, not converted: compilers
// make vectors of the one and not of the other.
template <class C, class V>
constexpr C as_number(V v) {
  if constexpr (std::is_same_v<V, bool>)
    return v ? C(1) : C(0);
  else
    return C(v);
}

}  // namespace baracuda
