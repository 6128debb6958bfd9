#include "host/convert.h"

#include <algorithm>
#include <type_traits>

#include "host/halves.h"
#include "host/round_once.h"

namespace baracuda {
namespace {

struct BoolByte {
  uint8_t byte;
};

template <class F>
uint64_t truncate_to_u64(F x) {
  // Spelt out so that every level gives the same value for negative and for huge numbers.
  constexpr F kHalf = F(9223372036854775808.0);
  return x >= kHalf ? static_cast<uint64_t>(static_cast<int64_t>(x - kHalf)) + (uint64_t{1} << 63)
                    : static_cast<uint64_t>(static_cast<int64_t>(x));
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<From, BoolByte>) {
    return static_cast<To>(x.byte != 0);
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(x != From(0))};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4)
      return static_cast<To>(static_cast<int32_t>(x));
    else if constexpr (std::is_same_v<To, uint32_t>)
      return static_cast<uint32_t>(static_cast<int64_t>(x));
    else if constexpr (std::is_same_v<To, uint64_t>)
      return truncate_to_u64(x);
    else
      return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class S, class C>
void load_plain(const void* src, int64_t stride, C* dst, int64_t n) {
  const S* s = static_cast<const S*>(src);
  if (stride == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(s[i]);
  } else if (stride == 0) {
    const C value = n > 0 ? convert<C>(*s) : C(0);
    std::fill_n(dst, n, value);
  } else if (stride == 2) {  // constants that the compiler knows how to shuffle
    for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(s[i * 2]);
  } else if (stride == -1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(s[-i]);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(s[i * stride]);
  }
}

template <class S, class C>
void store_plain(void* dst, int64_t stride, const C* src, int64_t n) {
  S* d = static_cast<S*>(dst);
  if (stride == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = convert<S>(src[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * stride] = convert<S>(src[i]);
  }
}

// Halves pass through float in blocks that stay in L1.
constexpr int64_t kBlock = 256;

struct F16 {
  static void widen(const uint16_t* s, float* d, int64_t n) { f16_to_float(s, d, n); }
  static void narrow(const float* s, uint16_t* d, int64_t n) { float_to_f16(s, d, n); }
};
struct BF16 {
  static void widen(const uint16_t* s, float* d, int64_t n) { bf16_to_float(s, d, n); }
  static void narrow(const float* s, uint16_t* d, int64_t n) { float_to_bf16(s, d, n); }
};

template <class Half, class C>
void load_half(const void* src, int64_t stride, C* dst, int64_t n) {
  const uint16_t* s = static_cast<const uint16_t*>(src);
  if (stride == 0) {
    if (n <= 0) return;
    float value;
    Half::widen(s, &value, 1);
    std::fill_n(dst, n, convert<C>(value));
    return;
  }
  if constexpr (std::is_same_v<C, float>) {
    if (stride == 1) return Half::widen(s, dst, n);
  }
  uint16_t raw[kBlock];
  float wide[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    const uint16_t* from = s + i * stride;
    if (stride != 1) {
      for (int64_t j = 0; j < m; ++j) raw[j] = from[j * stride];
      from = raw;
    }
    Half::widen(from, wide, m);
    for (int64_t j = 0; j < m; ++j) dst[i + j] = convert<C>(wide[j]);
  }
}

template <class Half, class C>
void store_half(void* dst, int64_t stride, const C* src, int64_t n) {
  uint16_t* d = static_cast<uint16_t*>(dst);
  if constexpr (std::is_same_v<C, float>) {
    if (stride == 1) return Half::narrow(src, d, n);
  }
  uint16_t raw[kBlock];
  float wide[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    for (int64_t j = 0; j < m; ++j) wide[j] = round_once(src[i + j]);
    uint16_t* to = d + i * stride;
    Half::narrow(wide, stride == 1 ? to : raw, m);
    if (stride != 1)
      for (int64_t j = 0; j < m; ++j) to[j * stride] = raw[j];
  }
}

}  // namespace

template <class C>
LoadFn<C> loader(Element from) {
  switch (from) {
    case Element::Bool:
      return &load_plain<BoolByte, C>;
    case Element::U8:
      return &load_plain<uint8_t, C>;
    case Element::U16:
      return &load_plain<uint16_t, C>;
    case Element::U32:
      return &load_plain<uint32_t, C>;
    case Element::U64:
      return &load_plain<uint64_t, C>;
    case Element::I8:
      return &load_plain<int8_t, C>;
    case Element::I16:
      return &load_plain<int16_t, C>;
    case Element::I32:
      return &load_plain<int32_t, C>;
    case Element::I64:
      return &load_plain<int64_t, C>;
    case Element::F16:
      return &load_half<F16, C>;
    case Element::BF16:
      return &load_half<BF16, C>;
    case Element::F32:
      return &load_plain<float, C>;
    case Element::F64:
      return &load_plain<double, C>;
    default:
      return nullptr;
  }
}

template <class C>
StoreFn<C> storer(Element to) {
  switch (to) {
    case Element::Bool:
      return &store_plain<BoolByte, C>;
    case Element::U8:
      return &store_plain<uint8_t, C>;
    case Element::U16:
      return &store_plain<uint16_t, C>;
    case Element::U32:
      return &store_plain<uint32_t, C>;
    case Element::U64:
      return &store_plain<uint64_t, C>;
    case Element::I8:
      return &store_plain<int8_t, C>;
    case Element::I16:
      return &store_plain<int16_t, C>;
    case Element::I32:
      return &store_plain<int32_t, C>;
    case Element::I64:
      return &store_plain<int64_t, C>;
    case Element::F16:
      return &store_half<F16, C>;
    case Element::BF16:
      return &store_half<BF16, C>;
    case Element::F32:
      return &store_plain<float, C>;
    case Element::F64:
      return &store_plain<double, C>;
    default:
      return nullptr;
  }
}

#define BCU_CONVERT(C)                \
  template LoadFn<C> loader(Element); \
  template StoreFn<C> storer(Element);
BCU_CONVERT(float)
BCU_CONVERT(double)
BCU_CONVERT(int64_t)
BCU_CONVERT(uint64_t)
#undef BCU_CONVERT

}  // namespace baracuda
