// BCU_ATTRS(SoftmaxAttrs, (i64, axis), (f64, scale)) declares once how attributes travel from Python: it yields the struct
// that kernels read and the list that the Python spec is compared with.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace baracuda {

using i64 = int64_t;
using f64 = double;
// The last attribute of an op may be a text: a slot with its length in bytes, then the bytes, eight to a slot.
struct text {
  int64_t bytes;
};

struct AttrField {
  const char* type;
  const char* name;
};
using AttrList = std::span<const AttrField>;

// The attributes of a launch or a problem. They are plain structs of 8-byte members, so reading them is a copy.
template <class Attrs, class Given>
Attrs attributes(const Given& given) {
  static_assert(std::is_trivially_copyable_v<Attrs> && sizeof(Attrs) % 8 == 0);
  Attrs out;
  std::memcpy(&out, given.attrs, sizeof out);
  return out;
}

inline std::string_view text_at(const int64_t* slot) {
  return {reinterpret_cast<const char*>(slot + 1), static_cast<size_t>(*slot)};
}
inline void append_text(std::vector<int64_t>& slots, std::string_view given) {
  slots.push_back(static_cast<int64_t>(given.size()));
  const size_t at = slots.size();
  slots.resize(at + (given.size() + 7) / 8);
  if (!given.empty()) std::memcpy(&slots[at], given.data(), given.size());
}

}  // namespace baracuda

#define BCU_EXPAND(...) __VA_ARGS__
#define BCU_FE_1(m, x) m x
#define BCU_FE_2(m, x, ...) m x BCU_FE_1(m, __VA_ARGS__)
#define BCU_FE_3(m, x, ...) m x BCU_FE_2(m, __VA_ARGS__)
#define BCU_FE_4(m, x, ...) m x BCU_FE_3(m, __VA_ARGS__)
#define BCU_FE_5(m, x, ...) m x BCU_FE_4(m, __VA_ARGS__)
#define BCU_FE_6(m, x, ...) m x BCU_FE_5(m, __VA_ARGS__)
#define BCU_FE_7(m, x, ...) m x BCU_FE_6(m, __VA_ARGS__)
#define BCU_FE_8(m, x, ...) m x BCU_FE_7(m, __VA_ARGS__)
#define BCU_FE_9(m, x, ...) m x BCU_FE_8(m, __VA_ARGS__)
#define BCU_FE_10(m, x, ...) m x BCU_FE_9(m, __VA_ARGS__)
#define BCU_FE_11(m, x, ...) m x BCU_FE_10(m, __VA_ARGS__)
#define BCU_FE_12(m, x, ...) m x BCU_FE_11(m, __VA_ARGS__)
#define BCU_FE_13(m, x, ...) m x BCU_FE_12(m, __VA_ARGS__)
#define BCU_FE_14(m, x, ...) m x BCU_FE_13(m, __VA_ARGS__)
#define BCU_FE_15(m, x, ...) m x BCU_FE_14(m, __VA_ARGS__)
#define BCU_FE_16(m, x, ...) m x BCU_FE_15(m, __VA_ARGS__)
#define BCU_FE_N(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, N, ...) N
#define BCU_FOR_EACH(m, ...)                                                                                     \
  BCU_FE_N(__VA_ARGS__, BCU_FE_16, BCU_FE_15, BCU_FE_14, BCU_FE_13, BCU_FE_12, BCU_FE_11, BCU_FE_10, BCU_FE_9,   \
           BCU_FE_8, BCU_FE_7, BCU_FE_6, BCU_FE_5, BCU_FE_4, BCU_FE_3, BCU_FE_2, BCU_FE_1)                       \
  (m, __VA_ARGS__)

#define BCU_ATTR_MEMBER(type, name) ::baracuda::type name;
#define BCU_ATTR_ENTRY(type, name) ::baracuda::AttrField{#type, #name},
#define BCU_ATTRS(Name, ...)                                                                                   \
  struct Name {                                                                                                \
    BCU_FOR_EACH(BCU_ATTR_MEMBER, __VA_ARGS__)                                                                 \
    static constexpr ::baracuda::AttrField kFields[] = {BCU_FOR_EACH(BCU_ATTR_ENTRY, __VA_ARGS__)};            \
  };
