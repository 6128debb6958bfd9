// What is sorted on the CPU: keys with the positions that they came from.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/element.h"
#include "ops/sort/order.h"

namespace baracuda::sort {

// Of 4-byte parts, or of 8-byte ones where keys or positions need them.
template <class K>
struct Entry {
  K key, position;
};

template <class U, U kSign, U kInfinity, bool kTruth = false>
struct OrderOf {
  using Bits = U;
  static U read(const char* x, int64_t at) {
    U bits;
    std::memcpy(&bits, x + at * int64_t{sizeof(U)}, sizeof bits);
    return kTruth ? U(bits != 0) : bits;
  }
  static U key(const char* x, int64_t at) { return key_of<U>(read(x, at), kSign, kInfinity); }
  static bool shared(U key) { return is_shared<U>(key, kSign, kInfinity); }
  static U bits(U key) { return bits_of_key<U>(key, kSign, kInfinity); }
};

// Calls f with the OrderOf an element.
template <class F>
auto with_order(Element e, F&& f) {
  switch (e) {
    case Element::Bool:
      return f(OrderOf<uint8_t, 0, 0, true>());
    case Element::U8:
      return f(OrderOf<uint8_t, 0, 0>());
    case Element::U16:
      return f(OrderOf<uint16_t, 0, 0>());
    case Element::U32:
      return f(OrderOf<uint32_t, 0, 0>());
    case Element::U64:
      return f(OrderOf<uint64_t, 0, 0>());
    case Element::I8:
      return f(OrderOf<uint8_t, 0x80, 0>());
    case Element::I16:
      return f(OrderOf<uint16_t, 0x8000, 0>());
    case Element::I32:
      return f(OrderOf<uint32_t, 0x80000000, 0>());
    case Element::I64:
      return f(OrderOf<uint64_t, uint64_t{1} << 63, 0>());
    case Element::F16:
      return f(OrderOf<uint16_t, 0x8000, 0x7c00>());
    case Element::BF16:
      return f(OrderOf<uint16_t, 0x8000, 0x7f80>());
    case Element::F64:
      return f(OrderOf<uint64_t, uint64_t{1} << 63, uint64_t{0x7ff} << 52>());
    default:
      return f(OrderOf<uint32_t, 0x80000000, 0x7f800000>());
  }
}

// A line of a tensor: elements `stride` apart.
struct Line {
  const char* data;
  int64_t stride, length;
};

// Elements [first, first + n) as entries; `flip` has all bits where the largest come first.
template <class K>
using ReadEntries = void (*)(const Line& x, int64_t first, int64_t n, uint64_t flip, Entry<K>* to);
// The values of n entries of a line, to memory `stride` apart.
template <class K>
using WriteValues = void (*)(const Line& x, const Entry<K>* from, int64_t n, uint64_t flip, char* to, int64_t stride);

// Keys alone.
template <class K>
using ReadKeys = void (*)(const Line& x, int64_t first, int64_t n, uint64_t flip, K* to);

template <class K>
struct Access {
  ReadEntries<K> read;
  ReadKeys<K> keys;
  WriteValues<K> write;
  int bits;  // of a key

  K last() const { return static_cast<K>(~K(0) >> (8 * static_cast<int>(sizeof(K)) - bits)); }  // the largest key
};

template <class K, class Order>
void read_entries(const Line& x, int64_t first, int64_t n, uint64_t flip, Entry<K>* to) {
  using U = typename Order::Bits;
  const auto each = [&](int64_t stride) __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; ++i)
      to[i] = {static_cast<U>(Order::key(x.data, (first + i) * stride) ^ flip), static_cast<K>(first + i)};
  };
  x.stride == 1 ? each(1) : each(x.stride);
}
template <class K, class Order>
void read_keys(const Line& x, int64_t first, int64_t n, uint64_t flip, K* to) {
  using U = typename Order::Bits;
  const auto each = [&](int64_t stride) __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<U>(Order::key(x.data, (first + i) * stride) ^ flip);
  };
  x.stride == 1 ? each(1) : each(x.stride);
}
template <class K, class Order>
void write_values(const Line& x, const Entry<K>* from, int64_t n, uint64_t flip, char* to, int64_t stride) {
  using U = typename Order::Bits;
  for (int64_t i = 0; i < n; ++i) {
    const U key = static_cast<U>(from[i].key ^ flip);
    const U bits =
        Order::shared(key) ? Order::read(x.data, static_cast<int64_t>(from[i].position) * x.stride) : Order::bits(key);
    std::memcpy(to + i * stride * int64_t{sizeof(U)}, &bits, sizeof bits);
  }
}

template <class K>
Access<K> access_of(Element e) {
  return with_order(e, [](auto order) -> Access<K> {
    using Order = decltype(order);
    if constexpr (sizeof(typename Order::Bits) > sizeof(K))
      return {};
    else
      return {read_entries<K, Order>, read_keys<K, Order>, write_values<K, Order>,
              8 * int{sizeof(typename Order::Bits)}};
  });
}

}  // namespace baracuda::sort
