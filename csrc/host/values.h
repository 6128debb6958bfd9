// Values moved between a tensor and a buffer of the type that a kernel works in: a compute type, to which elements are
// converted, or a narrower integer, which has them as they are.
#pragma once
#include <algorithm>
#include <type_traits>

#include "core/compute.h"
#include "host/convert.h"

namespace baracuda {

template <>
inline constexpr Element element_of<int8_t> = Element::I8;
template <>
inline constexpr Element element_of<int16_t> = Element::I16;
template <>
inline constexpr Element element_of<int32_t> = Element::I32;
template <>
inline constexpr Element element_of<uint8_t> = Element::U8;
template <>
inline constexpr Element element_of<uint16_t> = Element::U16;
template <>
inline constexpr Element element_of<uint32_t> = Element::U32;

// Calls f(V()) with the type that values are compared in: integers keep their width, a bool counts as uint8_t.
template <class F>
decltype(auto) with_stored_type(Element e, F&& f) {
  switch (e) {
    case Element::I8:
      return f(int8_t());
    case Element::I16:
      return f(int16_t());
    case Element::I32:
      return f(int32_t());
    case Element::Bool:
    case Element::U8:
      return f(uint8_t());
    case Element::U16:
      return f(uint16_t());
    case Element::U32:
      return f(uint32_t());
    default:
      return with_compute_type(e, f);
  }
}
// With the unsigned integer that has the size of an element: its bits.
template <class F>
decltype(auto) with_word_type(Element e, F&& f) {
  switch (size_of(e)) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    default:
      return f(uint64_t());
  }
}

template <class V>
inline constexpr bool kConverts =
    std::is_floating_point_v<V> || std::is_same_v<V, int64_t> || std::is_same_v<V, uint64_t>;

// dst[i * apart] = src[i * stride], for strides that compilers know how to shuffle and for others.
template <class V>
inline void move_values(const V* src, int64_t stride, V* dst, int64_t apart, int64_t n) {
  if (apart != 1) {
    for (int64_t i = 0; i < n; ++i) dst[i * apart] = src[i * stride];
  } else if (stride == 1) {
    std::copy_n(src, n, dst);
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * 2];
  } else if (stride == 3) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * 3];
  } else if (stride == 4) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * 4];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * stride];
  }
}

// Elements `from`, of a V's size where V converts nothing; a bool is 0 or 1, whatever its byte is.
template <class V>
inline void read_values(Element from, const void* src, int64_t stride, V* dst, int64_t n) {
  if constexpr (kConverts<V>) {
    load<V>(from, src, stride, dst, n);
  } else {
    move_values(static_cast<const V*>(src), stride, dst, 1, n);
    if (from == Element::Bool)
      for (int64_t i = 0; i < n; ++i) dst[i] = dst[i] != 0;
  }
}
template <class V>
inline void write_values(Element to, void* dst, int64_t stride, const V* src, int64_t n) {
  if constexpr (kConverts<V>)
    store<V>(to, dst, stride, src, n);
  else
    move_values(src, 1, static_cast<V*>(dst), stride, n);
}

}  // namespace baracuda
