// Stored elements in kernel bodies: what each is computed in, and reading and writing one whose kind is known at run
// time only.
#pragma once

namespace baracuda::simt {

// The values of baracuda::Element, which launch.h compares.
enum ElementCode : int32_t { kBool, kU8, kU16, kU32, kU64, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

// The type that arithmetic on a stored T is carried out in, and both conversions.
template <class T>
struct Stored {  // integers
  using Compute = int64_t;
  BCU_DEVICE Compute load(T v) { return Compute(v); }
  BCU_DEVICE T store(Compute v) { return T(v); }
};
#define BCU_STORED_FLOAT(T)                         \
  template <>                                       \
  struct Stored<T> {                                \
    using Compute = float;                          \
    BCU_DEVICE float load(T v) { return widen(v); } \
    BCU_DEVICE T store(float v) {                   \
      T out;                                        \
      narrow(v, out);                               \
      return out;                                   \
    }                                               \
  };
BCU_STORED_FLOAT(float)
BCU_STORED_FLOAT(f16)
BCU_STORED_FLOAT(bf16)
#undef BCU_STORED_FLOAT
#define BCU_STORED_AS(T, C)                  \
  template <>                                \
  struct Stored<T> {                         \
    using Compute = C;                       \
    BCU_DEVICE C load(T v) { return C(v); }  \
    BCU_DEVICE T store(C v) { return T(v); } \
  };
BCU_STORED_AS(uint8_t, uint64_t)
BCU_STORED_AS(uint16_t, uint64_t)
BCU_STORED_AS(uint32_t, uint64_t)
BCU_STORED_AS(uint64_t, uint64_t)
#if BCU_HAS_F64
BCU_STORED_AS(double, double)
#endif
#undef BCU_STORED_AS

template <class T>
using ComputeOf = typename Stored<T>::Compute;

// The most that a thread reads or writes at once; addresses of packs are multiples of it.
enum : int { kPackBytes = 16 };
// What a kernel's parameters may take: CUDA and Metal both have 4 KiB, of which the target may use some.
enum : int { kParameterBytes = 4000 };
template <class T>
struct alignas(kPackBytes) Pack {
  enum : int { kCount = kPackBytes / int(sizeof(T)) };
  T v[kCount];
};

// A float from which rounding again to a half type gives what rounding v once would have given (round to odd).
BCU_FN float round_to_odd(float v) { return v; }
#if BCU_HAS_F64
BCU_FN float round_to_odd(double v) {
  float f = float(v);
  double back = double(f);
  uint32_t bits = math::bit_cast<uint32_t>(f);
  bits -= math::fabs(back) > math::fabs(v) ? 1u : 0u;
  bits |= back != v ? 1u : 0u;
  return math::bit_cast<float>(bits);
}
#endif
BCU_FN float round_to_odd(uint64_t v) {
  float f = float(v);
  bool past = f >= 18446744073709551616.0f;
  uint64_t back = past ? v : uint64_t(f);
  uint32_t bits = math::bit_cast<uint32_t>(f);
  bits -= past || back > v ? 1u : 0u;
  bits |= past || back != v ? 1u : 0u;
  return math::bit_cast<float>(bits);
}
BCU_FN float round_to_odd(int64_t v) {
  float f = round_to_odd(v < 0 ? uint64_t(0) - uint64_t(v) : uint64_t(v));
  return v < 0 ? -f : f;
}

// A computed value as it is stored in a T: integers wrap, floats round to nearest even once.
template <class T>
struct Convert {
  template <class C>
  BCU_DEVICE T to(C v) {
    return T(v);
  }
  BCU_DEVICE T to(float v) { return T(int64_t(v)); }
#if BCU_HAS_F64
  BCU_DEVICE T to(double v) { return T(int64_t(v)); }
#endif
};
template <>
struct Convert<uint64_t> {
  template <class C>
  BCU_DEVICE uint64_t to(C v) {
    return v < C(0) ? uint64_t(int64_t(v)) : uint64_t(v);
  }
  BCU_DEVICE uint64_t to(uint64_t v) { return v; }
};
template <>
struct Convert<bool> {
  template <class C>
  BCU_DEVICE uint8_t to(C v) {
    return v != C(0) ? 1 : 0;
  }
};
#define BCU_CONVERT_FLOAT(T, arithmetic) \
  template <>                            \
  struct Convert<T> {                    \
    template <class C>                   \
    BCU_DEVICE T to(C v) {               \
      return arithmetic;                 \
    }                                    \
  };
BCU_CONVERT_FLOAT(float, float(v))
BCU_CONVERT_FLOAT(f16, Stored<f16>::store(round_to_odd(v)))
BCU_CONVERT_FLOAT(bf16, Stored<bf16>::store(round_to_odd(v)))
#if BCU_HAS_F64
BCU_CONVERT_FLOAT(double, double(v))
#endif
#undef BCU_CONVERT_FLOAT

#if !BCU_HAS_F64
// What an f64 has, to nearest even in f32, where there is no arithmetic of f64: numbers on the device may be stored so.
BCU_DEVICE float narrowed(uint64_t bits) {
  const uint32_t sign = uint32_t(bits >> 32) & 0x80000000u;
  const int exponent = int(bits >> 52 & 0x7ffu) - 1023;
  const uint64_t fraction = bits & 0xfffffffffffffu;
  if (exponent == 1024) return math::bit_cast<float>(sign | 0x7f800000u | (fraction != 0 ? 0x400000u : 0u));
  if (exponent < -150) return math::bit_cast<float>(sign);
  // So many bits go; those below f32's normal range keep fewer.
  const int drop = exponent < -126 ? 29 - 126 - exponent : 29;
  const uint64_t whole = fraction | 0x10000000000000u, tie = uint64_t(1) << (drop - 1);
  uint64_t kept = whole >> drop;
  const uint64_t rest = whole & (2 * tie - 1);
  if (rest > tie || (rest == tie && (kept & 1u) != 0u)) kept += 1;
  // A carry goes into the exponent, and to infinity where there is none higher.
  const uint32_t base = exponent < -126 ? 0u : uint32_t(exponent + 126) << 23;
  return exponent > 127 ? math::bit_cast<float>(sign | 0x7f800000u)
                        : math::bit_cast<float>(sign | (base + uint32_t(kept)));
}
#endif

// Element `at` of memory that holds elements of the given code, as a C.
template <class C>
BCU_DEVICE C load_element(BCU_GLOBAL const void* data, int32_t code, int64_t at) {
  switch (code) {
    case kBool:
      return C(((BCU_GLOBAL const uint8_t*)data)[at] != 0);
    case kU8:
      return C(((BCU_GLOBAL const uint8_t*)data)[at]);
    case kU16:
      return C(((BCU_GLOBAL const uint16_t*)data)[at]);
    case kU32:
      return C(((BCU_GLOBAL const uint32_t*)data)[at]);
    case kU64:
      return C(((BCU_GLOBAL const uint64_t*)data)[at]);
    case kI8:
      return C(((BCU_GLOBAL const int8_t*)data)[at]);
    case kI16:
      return C(((BCU_GLOBAL const int16_t*)data)[at]);
    case kI32:
      return C(((BCU_GLOBAL const int32_t*)data)[at]);
    case kI64:
      return C(((BCU_GLOBAL const int64_t*)data)[at]);
    case kF16:
      return C(widen(((BCU_GLOBAL const f16*)data)[at]));
    case kBF16:
      return C(widen(((BCU_GLOBAL const bf16*)data)[at]));
    case kF32:
      return C(((BCU_GLOBAL const float*)data)[at]);
#if BCU_HAS_F64
    case kF64:
      return C(((BCU_GLOBAL const double*)data)[at]);
#else
    case kF64:
      return C(narrowed(((BCU_GLOBAL const uint64_t*)data)[at]));
#endif
  }
  return C(0);
}

// The conversions of a cast: bool is v != 0, integers wrap, floats round to nearest even.
template <class C>
BCU_DEVICE void store_element(BCU_GLOBAL void* data, int32_t code, int64_t at, C v) {
  switch (code) {
    case kBool:
      ((BCU_GLOBAL uint8_t*)data)[at] = Convert<bool>::to(v);
      break;
    case kU8:
      ((BCU_GLOBAL uint8_t*)data)[at] = Convert<uint8_t>::to(v);
      break;
    case kU16:
      ((BCU_GLOBAL uint16_t*)data)[at] = Convert<uint16_t>::to(v);
      break;
    case kU32:
      ((BCU_GLOBAL uint32_t*)data)[at] = Convert<uint32_t>::to(v);
      break;
    case kU64:
      ((BCU_GLOBAL uint64_t*)data)[at] = Convert<uint64_t>::to(v);
      break;
    case kI8:
      ((BCU_GLOBAL int8_t*)data)[at] = Convert<int8_t>::to(v);
      break;
    case kI16:
      ((BCU_GLOBAL int16_t*)data)[at] = Convert<int16_t>::to(v);
      break;
    case kI32:
      ((BCU_GLOBAL int32_t*)data)[at] = Convert<int32_t>::to(v);
      break;
    case kI64:
      ((BCU_GLOBAL int64_t*)data)[at] = Convert<int64_t>::to(v);
      break;
    case kF16:
      ((BCU_GLOBAL f16*)data)[at] = Convert<f16>::to(v);
      break;
    case kBF16:
      ((BCU_GLOBAL bf16*)data)[at] = Convert<bf16>::to(v);
      break;
    case kF32:
      ((BCU_GLOBAL float*)data)[at] = Convert<float>::to(v);
      break;
#if BCU_HAS_F64
    case kF64:
      ((BCU_GLOBAL double*)data)[at] = Convert<double>::to(v);
      break;
#endif
  }
}

// A number given to run: a value, or a 0-d tensor on the device that is read when the kernel runs.
struct Number {
  int64_t whole;  // as an integer
  int64_t real;   // the bits of a double
  float f;
  int32_t element;
  BCU_GLOBAL const void* data;  // null: a value
};
template <class C>
struct NumberOf {
  BCU_DEVICE C value(BCU_CONSTANT Number& n) { return C(n.whole); }
};
template <>
struct NumberOf<float> {
  BCU_DEVICE float value(BCU_CONSTANT Number& n) { return n.f; }
};
#if BCU_HAS_F64
template <>
struct NumberOf<double> {
  BCU_DEVICE double value(BCU_CONSTANT Number& n) { return math::bit_cast<double>(n.real); }
};
#endif
template <class C>
BCU_DEVICE C number(BCU_CONSTANT Number& n) {
  return n.data ? load_element<C>(n.data, n.element, 0) : NumberOf<C>::value(n);
}

// A value from the 8 bytes that carry it in a kernel's parameters.
template <class C>
struct Bits {
  BCU_DEVICE C value(int64_t bits) { return C(bits); }
};
template <>
struct Bits<float> {
  BCU_DEVICE float value(int64_t bits) { return math::bit_cast<float>(uint32_t(bits)); }
};
#if BCU_HAS_F64
template <>
struct Bits<double> {
  BCU_DEVICE double value(int64_t bits) { return math::bit_cast<double>(bits); }
};
#endif
template <class C>
BCU_DEVICE C from_bits(int64_t bits) {
  return Bits<C>::value(bits);
}

// What a kernel found wrong in the data: the first finder fills it, the host raises it (Device.check).
struct Fault {
  AtomicU32 raised;
  int32_t tensor;  // position in the signature's tensors
  // limit -1: an integer divisor of zero; -2 - range: a number out of a ValueRange; core/wanted.h what an index is to
  // be
  int64_t position, value, limit;
  int64_t row;  // which kernel: what the launch was told, core/sites.h
};
BCU_DEVICE void raise(BCU_GLOBAL Fault* fault, int64_t row, int32_t tensor, int64_t position, int64_t value,
                      int64_t limit) {
  if (atomic_exchange(&fault->raised, 1u) != 0u) return;
  fault->tensor = tensor, fault->position = position, fault->value = value, fault->limit = limit, fault->row = row;
}

// A limit with one of core/wanted.h's Wanted.
enum WantedCode : int32_t { kWantIndex, kWantLength, kWantSlot, kWantPlace, kWantEnd, kWantSum, kWantNumber };
BCU_FN int64_t limit_of(int32_t wanted, int64_t limit) { return limit | int64_t(wanted) << 60; }
// A number of the call that the op does not take.
BCU_DEVICE void raise_number(BCU_GLOBAL Fault* fault, int64_t row, int32_t scalar) {
  raise(fault, row, -1, scalar, 0, limit_of(kWantNumber, 0));
}

// An integer divisor of zero: a fault without a limit.
BCU_DEVICE void raise_division(BCU_GLOBAL Fault* fault, int64_t row, int32_t tensor, int64_t position) {
  raise(fault, row, tensor, position, 0, -1);
}

// A number out of its range, one of core/launch.h's ValueRange.
enum RangeCode : int32_t { kFinite, kUnit, kNotNegative, kPositiveSum };
BCU_FN int64_t bits_of_real(float v) {
  // The bits of the double that v is: Metal has none. Subnormal numbers count as zero.
  uint32_t u = math::bit_cast<uint32_t>(v), exponent = u >> 23 & 0xffu;
  uint64_t sign = uint64_t(u >> 31) << 63, fraction = uint64_t(u & 0x7fffffu) << 29;
  uint64_t wide = exponent == 0xffu ? uint64_t(0x7ffu) : uint64_t(exponent) + uint64_t(1023 - 127);
  return int64_t(exponent == 0u ? sign : (sign | wide << 52 | fraction));
}
#if BCU_HAS_F64
BCU_FN int64_t bits_of_real(double v) { return math::bit_cast<int64_t>(v); }
#endif
template <class C>
BCU_DEVICE void raise_value(BCU_GLOBAL Fault* fault, int64_t row, int32_t tensor, int64_t position, C value,
                            int32_t range) {
  raise(fault, row, tensor, position, bits_of_real(value), int64_t(-2) - range);
}

// Division by a number that is the same for all threads: q = (x * magic) >> 32 >> shift, exact for x < 2^31.
struct Divider {
  uint32_t divisor, magic, shift;
};
BCU_DEVICE uint32_t quotient(BCU_CONSTANT Divider& d, uint32_t x) {
  return d.divisor == 1u ? x : mul_hi(x, d.magic) >> d.shift;
}

}  // namespace baracuda::simt
