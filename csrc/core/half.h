// f16 and bf16 to and from float, in integer code that the compiler vectorises. Arrays of them: host/halves.h.
#pragma once
#include <cstdint>
#include <cstring>

namespace baracuda {

inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// A float from which rounding again to a half type gives what rounding `x` once would have given (round to odd).
inline float round_to_odd(double x) {
  const float f = static_cast<float>(x);
  const double back = static_cast<double>(f);
  uint32_t u = bits_of(f);
  u -= __builtin_fabs(back) > __builtin_fabs(x) ? 1u : 0u;
  u |= back != x ? 1u : 0u;
  return float_of(u);
}
inline float round_to_odd(float x) { return x; }
// Integers past 2^53 lose their last 11 bits to a sticky bit, so that the double is exact.
inline float round_to_odd(int64_t x) {
  const bool big = static_cast<uint64_t>(x) + (uint64_t{1} << 53) > (uint64_t{1} << 54);
  const int64_t kept = big ? (x >> 11) | ((x & 0x7ff) != 0) : x;
  return round_to_odd(static_cast<double>(kept) * (big ? 2048.0 : 1.0));
}
inline float round_to_odd(uint64_t x) {
  const bool big = x > (uint64_t{1} << 53);
  const uint64_t kept = big ? (x >> 11) | ((x & 0x7ff) != 0) : x;
  return round_to_odd(static_cast<double>(static_cast<int64_t>(kept)) * (big ? 2048.0 : 1.0));
}

inline float bf16_to_float(uint16_t h) { return float_of(static_cast<uint32_t>(h) << 16); }

// The bf16 in the upper half of a word; what is below it is not cleared.
inline uint32_t rounded_to_bf16(float x) {
  uint32_t u = bits_of(x);
  // Rounding a NaN's payload could carry it into the sign.
  return (u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u);
}
inline uint16_t float_to_bf16(float x) { return static_cast<uint16_t>(rounded_to_bf16(x) >> 16); }

inline float f16_to_float(uint16_t h) {
  uint32_t magnitude = static_cast<uint32_t>(h & 0x7fffu) << 13;
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t normal = magnitude + ((127u - 15u) << 23);
  uint32_t special = (magnitude + ((255u - 31u) << 23)) | (magnitude > (31u << 23) ? 0x400000u : 0u);
  // 2^-14 with the subnormal's fraction bits, less 2^-14: exact, and it needs no count of leading zeros.
  uint32_t subnormal = bits_of(float_of(magnitude + (113u << 23)) - float_of(113u << 23));
  uint32_t u = magnitude < (1u << 23) ? subnormal : magnitude >= (31u << 23) ? special : normal;
  return float_of(u | sign);
}

inline uint16_t float_to_f16(float x) {
  uint32_t u = bits_of(x);
  uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  uint32_t normal = (u - ((127u - 15u) << 23) + 0xfffu + ((u >> 13) & 1u)) >> 13;
  // Adding 0.5 puts the last f16 subnormal bit at the float's last bit, so the addition itself rounds to nearest even.
  uint32_t subnormal = bits_of(float_of(u) + 0.5f) - bits_of(0.5f);
  uint32_t special = u > 0x7f800000u ? 0x7e00u | ((u >> 13) & 0x3ffu) : 0x7c00u;
  uint32_t h = u < (113u << 23) ? subnormal : u >= (143u << 23) ? special : normal;
  return static_cast<uint16_t>(h | sign);
}

}  // namespace baracuda
