// Lines of numbers that are folded into one, position by position.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include "host/convert.h"
#include "host/lanes.h"

namespace baracuda::pool {

struct MaxFold {
  template <class C>
  static constexpr C neutral() {
    return Extreme<true, true>::start<C>();
  }
  template <class C>
  static C of(C a, C b) {
    return b > a || b != b ? b : a;
  }
};
struct SumFold {
  template <class C>
  static constexpr C neutral() {
    return 0;
  }
  template <class C>
  static C of(C a, C b) {
    return a + b;
  }
};

// to = the fold of some lines, one after another.
template <class F, class C>
inline void fold_lines(C* to, const C* const* line, int64_t lines, int64_t n) {
  if (lines == 1) {
    std::memcpy(to, line[0], n * sizeof(C));
  } else if (lines == 2) {
    const C *a = line[0], *b = line[1];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = F::of(a[i], b[i]);
  } else {
    const C *a = line[0], *b = line[1], *c = line[2];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = F::of(F::of(a[i], b[i]), c[i]);
  }
  int64_t k = 3;
  for (; k + 2 <= lines; k += 2) {
    const C *a = line[k], *b = line[k + 1];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = F::of(F::of(to[i], a[i]), b[i]);
  }
  for (; k < lines; ++k) {
    const C* a = line[k];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = F::of(to[i], a[i]);
  }
}

inline constexpr int64_t kLine = 1024;  // the longest line
// Loops over buffers run on to a multiple of this, so that compilers' vectors leave nothing over; buffers have the
// room.
inline constexpr int64_t kPad = 16;
constexpr int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// One line after another: blocks of lines, whose folds are folded in blocks again, which bounds the error of sums.
template <class F, class C>
class Folded {
 public:
  // direct: lines are memory that stays; else they are in slots, which are used again.
  Folded(C* to, int64_t n, bool direct) : to_(to), n_(n), most_(direct ? kBlock : kSlots) {}
  Folded(const Folded&) = delete;

  C* slot() { return slots_[held_]; }
  void add(const C* line) {
    line_[held_++] = line;
    if (held_ == most_) flush();
  }
  // Whether there was a line; without one all is neutral.
  bool finish() {
    if (held_ > 0) flush();
    if (blocks_ == 0) std::fill_n(to_, n_, F::template neutral<C>());
    if (blocks_ > kBlock) join(to_, total_);
    return blocks_ > 0;
  }

 private:
  static constexpr int64_t kBlock = 256, kSlots = 8;

  void flush() {
    if (blocks_ > 0 && blocks_ % kBlock == 0) {
      if (blocks_ == kBlock)
        std::memcpy(total_, to_, n_ * sizeof(C));
      else
        join(total_, to_);
      fold_lines<F>(to_, line_, held_, n_);
    } else if (blocks_ == 0) {
      fold_lines<F>(to_, line_, held_, n_);
    } else {
      fold_lines<F>(part_, line_, held_, n_);
      join(to_, part_);
    }
    ++blocks_, held_ = 0;
  }
  void join(C* into, const C* from) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n_; ++i) into[i] = F::of(into[i], from[i]);
  }

  C* to_;
  int64_t n_, most_, held_ = 0, blocks_ = 0;
  const C* line_[kBlock];
  C slots_[kSlots][kLine], part_[kLine + kPad], total_[kLine + kPad];
};

// Elements of a tensor along one direction as numbers to compute with.
template <class C>
class LineReader {
 public:
  LineReader(Element element, int64_t stride, int64_t n)
      : stride_(stride), direct_(element == element_of<C> && (stride == 1 || n == 1)), load_(loader<C>(element)) {}
  bool direct() const { return direct_; }
  const C* get(const char* at, int64_t n, C* slot) const {
    if (direct_) return reinterpret_cast<const C*>(at);
    load_(at, stride_, slot, n);
    return slot;
  }

 private:
  int64_t stride_;
  bool direct_;
  LoadFn<C> load_;
};

}  // namespace baracuda::pool
