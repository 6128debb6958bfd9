// Thirty-two bytes of a compute type at once, read from and written to any stored element in words of up to 16 bytes.
#pragma once
#include "simt/simt.h"

namespace baracuda::simt {

// Words that are read and written at once, whatever is stored there; addresses are multiples of their size.
struct BCU_WORDS(16) Words4 {
  uint32_t w[4];
};
struct BCU_WORDS(8) Words2 {
  uint32_t w[2];
};
struct BCU_WORDS(4) Word {
  uint32_t w[1];
};

// The base-2 logarithm of an element's bytes, two bits per code.
BCU_DEVICE uint32_t size_shift(int32_t code) { return 0x3979390u >> (2 * code) & 3u; }

BCU_DEVICE uint16_t half_word(BCU_THREAD const uint32_t* w, int j) { return uint16_t(w[j / 2] >> (16 * (j % 2))); }
BCU_DEVICE uint8_t byte_of(BCU_THREAD const uint32_t* w, int j) { return uint8_t(w[j / 4] >> (8 * (j % 4))); }
BCU_DEVICE uint64_t two_words(BCU_THREAD const uint32_t* w, int j) { return uint64_t(w[2 * j + 1]) << 32 | w[2 * j]; }

// Sets of element codes.
enum PackSets : uint32_t {
  kPackFloat = 1u << kF32 | 1u << kF16 | 1u << kBF16 | 1u << kBool,
  kPackDouble = 1u << kF64 | 1u << kBool,
  kPackSigned = 1u << kI8 | 1u << kI16 | 1u << kI32 | 1u << kI64 | 1u << kBool,
  kPackUnsigned = 1u << kU8 | 1u << kU16 | 1u << kU32 | 1u << kU64 | 1u << kBool,
};

// kElements: what is read, and written by functions that are no conversions.
template <class C>
struct Unpack;
#define BCU_UNPACK_CASE(code, value)                             \
  case code:                                                     \
    BCU_UNROLL for (int j = 0; j < kCount; ++j) v[j] = C(value); \
    break;
template <>
struct Unpack<float> {
  enum : uint32_t { kElements = kPackFloat };
  enum : int { kCount = 8 };
  BCU_DEVICE void convert(int32_t code, BCU_THREAD const uint32_t* w, BCU_THREAD float* v) {
    using C = float;
    switch (code) {
      BCU_UNPACK_CASE(kF32, math::bit_cast<float>(w[j]))
      BCU_UNPACK_CASE(kF16, widen(math::bit_cast<f16>(half_word(w, j))))
      BCU_UNPACK_CASE(kBF16, widen(math::bit_cast<bf16>(half_word(w, j))))
      BCU_UNPACK_CASE(kBool, byte_of(w, j) != 0)
    }
  }
};
#if BCU_HAS_F64
template <>
struct Unpack<double> {
  enum : uint32_t { kElements = kPackDouble };
  enum : int { kCount = 4 };
  BCU_DEVICE void convert(int32_t code, BCU_THREAD const uint32_t* w, BCU_THREAD double* v) {
    using C = double;
    switch (code) {
      BCU_UNPACK_CASE(kF64, math::bit_cast<double>(two_words(w, j)))
      BCU_UNPACK_CASE(kBool, byte_of(w, j) != 0)
    }
  }
};
#endif
template <>
struct Unpack<int64_t> {
  enum : uint32_t { kElements = kPackSigned };
  enum : int { kCount = 4 };
  BCU_DEVICE void convert(int32_t code, BCU_THREAD const uint32_t* w, BCU_THREAD int64_t* v) {
    using C = int64_t;
    switch (code) {
      BCU_UNPACK_CASE(kI8, int8_t(byte_of(w, j)))
      BCU_UNPACK_CASE(kI16, int16_t(half_word(w, j)))
      BCU_UNPACK_CASE(kI32, int32_t(w[j]))
      BCU_UNPACK_CASE(kI64, two_words(w, j))
      BCU_UNPACK_CASE(kBool, byte_of(w, j) != 0)
    }
  }
};
template <>
struct Unpack<uint64_t> {
  enum : uint32_t { kElements = kPackUnsigned };
  enum : int { kCount = 4 };
  BCU_DEVICE void convert(int32_t code, BCU_THREAD const uint32_t* w, BCU_THREAD uint64_t* v) {
    using C = uint64_t;
    switch (code) {
      BCU_UNPACK_CASE(kU8, byte_of(w, j))
      BCU_UNPACK_CASE(kU16, half_word(w, j))
      BCU_UNPACK_CASE(kU32, w[j])
      BCU_UNPACK_CASE(kU64, two_words(w, j))
      BCU_UNPACK_CASE(kBool, byte_of(w, j) != 0)
    }
  }
};
#undef BCU_UNPACK_CASE

template <class C>
struct PackOf {
  enum : int { kCount = Unpack<C>::kCount };
  uint32_t w[8];  // as stored
  C v[kCount];

  BCU_DEVICE void read(BCU_THREAD PackOf& p, BCU_GLOBAL const void* data, int32_t code, int32_t offset) {
    BCU_THREAD uint32_t* w = p.w;
    uint32_t shift = size_shift(code);
    BCU_GLOBAL const uint8_t* from = (BCU_GLOBAL const uint8_t*)data + (int64_t(offset) << shift);
    uint32_t bytes = uint32_t(kCount) << shift;
    if (bytes >= 16u) {
      Words4 a = *(BCU_GLOBAL const Words4*)from;
      w[0] = a.w[0], w[1] = a.w[1], w[2] = a.w[2], w[3] = a.w[3];
      if (bytes == 16u) return;
      a = *(BCU_GLOBAL const Words4*)(from + 16);
      w[4] = a.w[0], w[5] = a.w[1], w[6] = a.w[2], w[7] = a.w[3];
    } else if (bytes == 8u) {
      Words2 a = *(BCU_GLOBAL const Words2*)from;
      w[0] = a.w[0], w[1] = a.w[1];
    } else {
      w[0] = (*(BCU_GLOBAL const Word*)from).w[0];
    }
  }
  BCU_DEVICE void convert(BCU_THREAD PackOf& p, int32_t code) { Unpack<C>::convert(code, p.w, p.v); }
  BCU_DEVICE void fill(BCU_THREAD PackOf& p, C value) { BCU_UNROLL for (int j = 0; j < kCount; ++j) p.v[j] = value; }
};

template <class T, int N>
struct alignas(N * sizeof(T)) Run {
  T v[N];
};

// N values as T, in words of at most 16 bytes. As: T, or bool.
template <class T, class As, class C>
BCU_DEVICE void store_run(BCU_GLOBAL void* data, int32_t offset, BCU_THREAD const C* v) {
  enum : int { kCount = PackOf<C>::kCount, kWord = 16 / int(sizeof(T)), kRun = kCount < kWord ? kCount : kWord };
  BCU_GLOBAL T* to = (BCU_GLOBAL T*)data + offset;
  BCU_UNROLL for (int i = 0; i < kCount; i += kRun) {
    Run<T, kRun> run;
    BCU_UNROLL for (int j = 0; j < kRun; ++j) run.v[j] = Convert<As>::to(v[i + j]);
    *(BCU_GLOBAL Run<T, kRun>*)(to + i) = run;
  }
}

#define BCU_STORE_CASE(code, T, As) \
  case code:                        \
    return store_run<T, As>(data, offset, v);
template <class C, int kAny>
struct PackStore {  // any element
  BCU_DEVICE void store(BCU_GLOBAL void* data, int32_t code, int32_t offset, BCU_THREAD const C* v) {
    switch (code) {
      BCU_STORE_CASE(kBool, uint8_t, bool)
      BCU_STORE_CASE(kU8, uint8_t, uint8_t)
      BCU_STORE_CASE(kU16, uint16_t, uint16_t)
      BCU_STORE_CASE(kU32, uint32_t, uint32_t)
      BCU_STORE_CASE(kU64, uint64_t, uint64_t)
      BCU_STORE_CASE(kI8, int8_t, int8_t)
      BCU_STORE_CASE(kI16, int16_t, int16_t)
      BCU_STORE_CASE(kI32, int32_t, int32_t)
      BCU_STORE_CASE(kI64, int64_t, int64_t)
      BCU_STORE_CASE(kF16, f16, f16)
      BCU_STORE_CASE(kBF16, bf16, bf16)
      BCU_STORE_CASE(kF32, float, float)
#if BCU_HAS_F64
      BCU_STORE_CASE(kF64, double, double)
#endif
    }
  }
};
template <>
struct PackStore<float, 0> {
  BCU_DEVICE void store(BCU_GLOBAL void* data, int32_t code, int32_t offset, BCU_THREAD const float* v) {
    switch (code) {
      BCU_STORE_CASE(kF32, float, float)
      BCU_STORE_CASE(kF16, f16, f16)
      BCU_STORE_CASE(kBF16, bf16, bf16)
      BCU_STORE_CASE(kBool, uint8_t, bool)
    }
  }
};
#if BCU_HAS_F64
template <>
struct PackStore<double, 0> {
  BCU_DEVICE void store(BCU_GLOBAL void* data, int32_t code, int32_t offset, BCU_THREAD const double* v) {
    switch (code) {
      BCU_STORE_CASE(kF64, double, double)
      BCU_STORE_CASE(kBool, uint8_t, bool)
    }
  }
};
#endif
template <>
struct PackStore<int64_t, 0> {
  BCU_DEVICE void store(BCU_GLOBAL void* data, int32_t code, int32_t offset, BCU_THREAD const int64_t* v) {
    switch (code) {
      BCU_STORE_CASE(kI8, int8_t, int8_t)
      BCU_STORE_CASE(kI16, int16_t, int16_t)
      BCU_STORE_CASE(kI32, int32_t, int32_t)
      BCU_STORE_CASE(kI64, int64_t, int64_t)
      BCU_STORE_CASE(kBool, uint8_t, bool)
    }
  }
};
template <>
struct PackStore<uint64_t, 0> {
  BCU_DEVICE void store(BCU_GLOBAL void* data, int32_t code, int32_t offset, BCU_THREAD const uint64_t* v) {
    switch (code) {
      BCU_STORE_CASE(kU8, uint8_t, uint8_t)
      BCU_STORE_CASE(kU16, uint16_t, uint16_t)
      BCU_STORE_CASE(kU32, uint32_t, uint32_t)
      BCU_STORE_CASE(kU64, uint64_t, uint64_t)
      BCU_STORE_CASE(kBool, uint8_t, bool)
    }
  }
};
#undef BCU_STORE_CASE

}  // namespace baracuda::simt
