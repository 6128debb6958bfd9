// Sums of squares of rows whose squares leave the range of the compute type. Kernels sum as always; where the result
// says that squares were lost, this row, and only it, is done again scaled by a power of two.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/compute.h"

namespace baracuda {

// Whether squares of a row overflowed or lost bits that count, seen by their mean. Constant rows are not told apart
// from those whose squares all underflow.
template <class C>
bool squares_lost(C mean_square) {
  return !(mean_square >= std::numeric_limits<C>::min() && mean_square <= std::numeric_limits<C>::max());
}
// Whether any of the sums of n squares each did, which costs a vector loop next to nothing.
template <class C>
bool any_lost(const C* squares, int64_t rows, int64_t n) {
  const C least = std::numeric_limits<C>::min() * static_cast<C>(n);
  int32_t lost = 0;
#pragma GCC ivdep
  for (int64_t j = 0; j < rows; ++j) lost |= !((squares[j] >= least) & (squares[j] <= std::numeric_limits<C>::max()));
  return lost;
}
// The same seen by 1 / sqrt(mean square).
template <class C>
bool squares_lost_by(C rstd) {  // of one row
  constexpr C kMost = sizeof(C) == 4 ? C(0x1p63) : C(0x1p511);
  return !(rstd > C(0) && rstd <= kMost);
}

// The larger of `most` and the |values|; NaN where there is an infinity or NaN.
template <class C>
C largest_size(C most, const C* v, int64_t n) {
  C sum = 0;  // of zeros, or NaN
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C size = std::fabs(v[i]);
    most = size > most ? size : most;
    sum += size - size;
  }
  return most + sum;
}
// A power of two that brings `most` near 1, both normal numbers; 1 where nothing is to be scaled.
template <class C>
C scale_of(C most) {
  constexpr int kLeast = std::numeric_limits<C>::min_exponent - 1;
  return most > 0 && std::isfinite(most) ? std::ldexp(C(1), -std::clamp(std::ilogb(most), kLeast, -kLeast)) : C(1);
}

}  // namespace baracuda
