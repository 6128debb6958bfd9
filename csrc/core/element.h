// Element kinds, sets of them as bitmasks, and what each is called in every system that hands us tensors.
#pragma once
#include <cstdint>

namespace baracuda {

enum class Element : uint8_t {
  Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128, F8E4M3, F8E5M2, S4, U4, Bin, Count,
  Any = 255  // a wildcard in a capability question
};
inline constexpr int kElementCount = static_cast<int>(Element::Count);

// DLPack's type codes, named here because the engine's headers must not need dlpack.h.
struct ElementInfo {
  const char* name;
  uint8_t bits;
  uint8_t dl_code;
  uint8_t dl_bits;
};

inline constexpr ElementInfo kElementInfo[kElementCount] = {
    {"bool", 8, 6, 8},   {"u8", 8, 1, 8},    {"u16", 16, 1, 16},  {"u32", 32, 1, 32},   {"u64", 64, 1, 64},
    {"i8", 8, 0, 8},     {"i16", 16, 0, 16}, {"i32", 32, 0, 32},  {"i64", 64, 0, 64},   {"f16", 16, 2, 16},
    {"bf16", 16, 4, 16}, {"f32", 32, 2, 32}, {"f64", 64, 2, 64},  {"c64", 64, 5, 64},   {"c128", 128, 5, 128},
    {"f8e4m3", 8, 10, 8}, {"f8e5m2", 8, 12, 8}, {"s4", 4, 0, 4},  {"u4", 4, 1, 4},      {"bin", 1, 1, 1},
};

constexpr const ElementInfo& info(Element e) { return kElementInfo[static_cast<int>(e)]; }
constexpr const char* name(Element e) { return e == Element::Any ? "any" : info(e).name; }
// Bytes of one stored element; sub-byte elements travel as u8 storage.
constexpr int64_t size_of(Element e) { return info(e).bits < 8 ? 1 : info(e).bits / 8; }

struct Elements {
  uint32_t bits = 0;
  constexpr bool has(Element e) const { return (bits >> static_cast<int>(e)) & 1u; }
  constexpr bool empty() const { return bits == 0; }
  constexpr Elements operator|(Elements o) const { return {bits | o.bits}; }
  constexpr Elements operator&(Elements o) const { return {bits & o.bits}; }
  constexpr Elements operator-(Elements o) const { return {bits & ~o.bits}; }
  constexpr bool operator==(const Elements&) const = default;
};
constexpr Elements set_of(Element e) { return {1u << static_cast<int>(e)}; }
constexpr Elements operator|(Element a, Element b) { return set_of(a) | set_of(b); }
constexpr Elements operator|(Elements a, Element b) { return a | set_of(b); }

inline constexpr Elements kNoElements{};
inline constexpr Elements kHalves = Element::F16 | Element::BF16;
inline constexpr Elements kFloats = kHalves | Element::F32 | Element::F64;
inline constexpr Elements kSigned = Element::I8 | Element::I16 | Element::I32 | set_of(Element::I64);
inline constexpr Elements kUnsigned = Element::U8 | Element::U16 | Element::U32 | set_of(Element::U64);
inline constexpr Elements kInts = kSigned | kUnsigned;
inline constexpr Elements kBool = set_of(Element::Bool);
inline constexpr Elements kIndex = Element::I32 | Element::I64 | set_of(Element::U32);
inline constexpr Elements kNumeric = kFloats | kInts;
inline constexpr Elements kNoMetal = Element::F64 | Element::C128;
inline constexpr Elements kReal = kNumeric | kBool;

constexpr bool is_float(Element e) { return kFloats.has(e); }

// The element of a complex number's parts; of others, itself.
constexpr Element part_of(Element e) {
  return e == Element::C64 ? Element::F32 : e == Element::C128 ? Element::F64 : e;
}

// The element that arithmetic on `e` is carried out in: f32 for half types, f64 for f64, exact for integers.
constexpr Element compute_element(Element e) { return kHalves.has(e) ? Element::F32 : e; }

}  // namespace baracuda
