// Lines of numbers that are added up, each times its weight.
#pragma once
#include "ops/pool/lines.h"

namespace baracuda::image {

using pool::kLine;
using pool::LineReader;

// Sums are built in blocks of kBlock lines, which bounds their error.
template <class C>
class Blend {
 public:
  Blend(C* to, int64_t n) : to_(to), n_(n) {}
  Blend(const Blend&) = delete;

  C* slot() { return slots_[held_]; }
  void add(const C* line, C weight) {
    line_[held_] = line, weight_[held_++] = weight;
    if (held_ == kHeld) flush();
  }
  void finish() {
    flush();
    if (blocks_ > 0) join();
    if (blocks_ == 0 && lines_ == 0) std::fill_n(to_, n_, C(0));
    if (blocks_ > 0) std::memcpy(to_, total_, n_ * sizeof(C));
  }

 private:
  static constexpr int kHeld = 4, kBlock = 256;

  void flush() {
    if (held_ == 0) return;
    if (lines_ == kBlock) join();
    switch (held_) {
      case 1:
        return with<1>();
      case 2:
        return with<2>();
      case 3:
        return with<3>();
      default:
        return with<4>();
    }
  }
  template <int kLines>
  void with() {
    if (lines_ == 0)
      sum<kLines, false>();
    else
      sum<kLines, true>();
    lines_ += kLines, held_ = 0;
  }
  template <int kLines, bool kMore>
  void sum() {
    const C *a = line_[0], *b = line_[1 % kLines], *c = line_[2 % kLines], *d = line_[3 % kLines];
    const C u = weight_[0], v = weight_[1 % kLines], w = weight_[2 % kLines], z = weight_[3 % kLines];
    C* const to = to_;
#pragma GCC ivdep
    for (int64_t i = 0; i < n_; ++i) {
      C s = kMore ? to[i] + u * a[i] : u * a[i];
      if constexpr (kLines > 1) s += v * b[i];
      if constexpr (kLines > 2) s += w * c[i];
      if constexpr (kLines > 3) s += z * d[i];
      to[i] = s;
    }
  }
  // What is summed up so far belongs to the total.
  void join() {
    if (blocks_++ == 0)
      std::memcpy(total_, to_, n_ * sizeof(C));
    else
      for (int64_t i = 0; i < n_; ++i) total_[i] += to_[i];
    lines_ = 0;
  }

  C* to_;
  int64_t n_, lines_ = 0, blocks_ = 0;
  int held_ = 0;
  const C* line_[kHeld];
  C weight_[kHeld], slots_[kHeld][kLine], total_[kLine];
};

}  // namespace baracuda::image
