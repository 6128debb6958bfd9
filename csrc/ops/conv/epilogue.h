// What may come behind a convolution's sums before they are stored: a batch norm by running statistics, relu. Bit for
// bit what the kernels of those do one after the other.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#include "host/lanes.h"

namespace baracuda::conv {

template <class C>
class Epilogue {
 public:
  Epilogue(C* mean, C* factor, C* shift, C* rstd, C* scale)
      : mean(mean), factor(factor), shift(shift), rstd(rstd), scale(scale) {}

  // Of y's channels: y = (sum - mean) factor + shift; with `apart`, where the product of rstd and scale has left the
  // normal numbers, (sum - mean) rstd scale + shift.
  C *mean, *factor, *shift, *rstd, *scale;
  bool apart = false, relu = false;

  bool joined(int64_t c) const {
    const bool normal = std::isfinite(factor[c]) && std::fabs(factor[c]) >= std::numeric_limits<C>::min();
    return normal || scale[c] == C(0);
  }
  void find_apart(int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) apart |= !joined(c);
  }
  // Sums of a channel, whole vectors: of single numbers GCC does not always make the fma that the norm's kernel has.
  [[gnu::always_inline]] void norm(int64_t c, C* v, int64_t n) const {
    if (apart && !joined(c)) {
      for (int64_t i = 0; i < n; ++i) v[i] = far(v[i], c);
      return;
    }
    for (int64_t i = 0; i < n; i += L::kWidth) put(v + i, (L::load(v + i) - mean[c]) * factor[c] + shift[c]);
  }
  // A sum each of channels [c, c + n), with room for whole vectors.
  void norm_each(int64_t c, C* v, int64_t n) const {
    for (int64_t i = 0; i < n; i += L::kWidth) {
      const int64_t here = n - i < L::kWidth ? n - i : L::kWidth;
      C given[L::kWidth];
      for (int64_t k = 0; apart && k < here; ++k) given[k] = v[i + k];
      const int64_t at = c + i;
      put(v + i, (L::load(v + i) - L::load(mean + at)) * L::load(factor + at) + L::load(shift + at));
      for (int64_t k = 0; apart && k < here; ++k)
        if (!joined(at + k)) v[i + k] = far(given[k], at + k);
    }
  }

 private:
  using L = Lanes<C>;
  using Vec = typename L::Vec;

  [[gnu::noinline]] C far(C v, int64_t c) const {
    const C sum = (v - mean[c]) * rstd[c] * scale[c] + shift[c];
    return relu && sum <= C(0) ? C(0) : sum;  // NaN stays
  }
  [[gnu::always_inline]] void put(C* to, Vec v) const {
    if (relu) v = v <= 0 ? Vec{} : v;
    std::memcpy(to, &v, sizeof v);
  }
};

}  // namespace baracuda::conv
