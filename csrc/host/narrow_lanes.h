// lanes.h for integers of one and two bytes, whose results must not depend on the order of folding: lane 0 of what
// fold_vector makes is right, whatever the others hold.
#pragma once
#include "host/lanes.h"
#include "host/level_bytes.h"

namespace baracuda {

template <class C>
  requires(sizeof(C) < 4)
struct Lanes<C> {
  typedef C Vec __attribute__((vector_size(kVectorBytes)));
  typedef std::conditional_t<sizeof(C) == 1, int8_t, int16_t> Index;
  typedef Index Mask __attribute__((vector_size(kVectorBytes)));
  static constexpr int kWidth = kVectorBytes / sizeof(C);
  static constexpr int kVectors = 256 / kVectorBytes;
  static constexpr int kLanes = kWidth * kVectors;
  static constexpr int kBlock = 64 * kLanes;

  static Vec load(const C* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Vec load_first(const C* p, int64_t n) { return n > 0 ? level::load_first_narrow<Vec>(p, n) : Vec{}; }
  static bool any(const Mask& m) {
    uint64_t words[kVectorBytes / 8], all = 0;
    std::memcpy(words, &m, sizeof m);
    for (uint64_t word : words) all |= word;
    return all != 0;
  }
  static Mask first(int64_t n) {
    return [n]<Index... I>(std::integer_sequence<Index, I...>) {
      return Mask{I...} < static_cast<Index>(n);
    }(std::make_integer_sequence<Index, kWidth>());
  }
  // By whole words, and within them, for which there are instructions everywhere.
  template <int kBy>
  static Vec shift(Vec v) {
    using Words = Lanes<uint32_t>;
    constexpr int kBytes = kBy * static_cast<int>(sizeof(C));
    if constexpr (kBytes >= 4)
      return Vec(Words::shift<kBytes / 4>(typename Words::Vec(v)));
    else
      return Vec(typename Words::Vec(v) >> (8 * kBytes));
  }
};

}  // namespace baracuda
