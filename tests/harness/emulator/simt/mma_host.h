// The vocabulary of simt/mma.h in host C++: lanes hand each other what they hold by shuffles.
#pragma once
#include <cmath>

namespace baracuda::simt {

inline float half_of(f16, uint32_t word, int index) { return widen(f16{uint16_t(word >> 16 * index)}); }
inline float half_of(bf16, uint32_t word, int index) { return widen(bf16{uint16_t(word >> 16 * index)}); }

// PTX leaves the accumulation's rounding open, and tensor cores cut off: the result is not further from zero.
inline float cut_off(double x) {
  auto y = static_cast<float>(x);
  return std::isfinite(y) && std::fabs(double(y)) > std::fabs(x) ? std::nextafter(y, 0.0f) : y;
}

template <class T>
struct Mma {
  static void add(const Context& ctx, const uint32_t* a, const uint32_t* b, float* c,
                  const emulator::Site& here = emulator::Site::current()) {
    const uint32_t group = ctx.lane() / 4, pair = ctx.lane() % 4;
    const auto both = [](const uint32_t* words) { return uint64_t{words[1]} << 32 | words[0]; };
    const auto from = [&](uint64_t v, uint32_t lane) { return shuffle_value(v, lane, emulator::Shuffle::From, here); };
    // Lanes 4 group + i have columns 2 i, 2 i + 1, 8 + 2 i and 9 + 2 i of two rows of A, lanes 4 n + i those rows of
    // column n of B.
    double sum[4] = {c[0], c[1], c[2], c[3]};
    for (uint32_t i = 0; i < 4; ++i) {
      const uint64_t near = from(both(a), 4 * group + i), far = from(both(a + 2), 4 * group + i);
      for (uint32_t n = 0; n < 2; ++n) {
        const uint64_t column = from(both(b), 4 * (2 * pair + n) + i);
        for (int k = 0; k < 4; ++k) {
          const uint64_t rows = k < 2 ? near : far;
          const double y = half_of(T{}, uint32_t(column >> 32 * (k / 2)), k % 2);
          sum[n] += half_of(T{}, uint32_t(rows), k % 2) * y;
          sum[n + 2] += half_of(T{}, uint32_t(rows >> 32), k % 2) * y;
        }
      }
    }
    for (int i = 0; i < 4; ++i) c[i] = cut_off(sum[i]);
  }
};

template <bool kTransposed>
void load_matrices(const Context& ctx, const void* row, uint32_t* out,
                   const emulator::Site& here = emulator::Site::current()) {
  const uint32_t group = ctx.lane() / 4, pair = ctx.lane() % 4;
  const auto row_of = [&](uint32_t lane) {
    const uint64_t at = shuffle_value(reinterpret_cast<uint64_t>(row), lane, emulator::Shuffle::From, here);
    if (at % 16 != 0) emulator::fail("MISALIGNED: a matrix's row is no multiple of 16 bytes");
    return reinterpret_cast<const uint16_t*>(at);
  };
  for (uint32_t i = 0; i < 4; ++i) {
    uint16_t low, high;
    if (kTransposed) {
      low = row_of(8 * i + 2 * pair)[group], high = row_of(8 * i + 2 * pair + 1)[group];
    } else {
      const uint16_t* at = row_of(8 * i + group);
      low = at[2 * pair], high = at[2 * pair + 1];
    }
    out[i] = uint32_t{high} << 16 | low;
  }
}

// What is on its way may be written at any time: something when the copy is started, and what was copied when it is
// waited for.
class CopyQueue {
 public:
  void copy(void* to, const void* from, int bytes) {
    if (reinterpret_cast<uint64_t>(to) % 16 != 0 || (bytes > 0 && reinterpret_cast<uint64_t>(from) % 16 != 0))
      emulator::fail("MISALIGNED: a copy of 16 bytes");
    if (bytes < 0 || bytes > 16 || bytes % 2 != 0) emulator::fail("a copy of %d bytes", bytes);
    if (count_ == kMost) emulator::fail("more than %d copies are under way", int(kMost));
    items_[count_++] = {static_cast<uint16_t*>(to), static_cast<const uint16_t*>(from), bytes / 2, groups_};
    for (int i = 0; i < 8; ++i) static_cast<uint16_t*>(to)[i] = 0xffff;  // NaN, whatever it is read as
  }
  void commit() { ++groups_; }
  template <int kGroups>
  void wait() {
    int kept = 0;
    for (int i = 0; i < count_; ++i) {
      const Item item = items_[i];
      if (item.group + kGroups >= groups_) {
        items_[kept++] = item;
        continue;
      }
      for (int k = 0; k < 8; ++k) item.to[k] = k < item.elements ? item.from[k] : uint16_t{0};
    }
    count_ = kept;
  }

 private:
  enum : int { kMost = 64 };
  struct Item {
    uint16_t* to;
    const uint16_t* from;
    int elements, group;
  };
  Item items_[kMost];
  int count_ = 0, groups_ = 0;
};

}  // namespace baracuda::simt
