// A sum of many terms in twice the precision of C, rounded once.
#pragma once
#include "baracuda/math/pair.h"
#include "simt/simt.h"

namespace baracuda::simt {

template <class C>
struct PairSum {
  using Sum = math::detail::Pair<C>;
  BCU_DEVICE Sum start(C first) {
    Sum s;
    s.hi = first, s.lo = C(0);
    return s;
  }
  BCU_DEVICE void add(BCU_THREAD Sum& sum, C x) {
    Sum s = math::detail::two_sum(sum.hi, x);
    sum.hi = s.hi;
    C lost = sum.lo + s.lo;
    sum.lo = lost - lost == C(0) ? lost : C(0);  // an infinite sum has lost nothing
  }
  BCU_DEVICE void merge(BCU_THREAD Sum& sum, BCU_THREAD const Sum& other) {
    add(sum, other.hi);
    add(sum, other.lo);
  }
  BCU_DEVICE C value(BCU_THREAD const Sum& s) { return s.lo == C(0) ? s.hi : s.hi + s.lo; }  // -0 stays
};
template <>
struct PairSum<int64_t> {
  using Sum = uint64_t;
  BCU_DEVICE Sum start(int64_t first) { return uint64_t(first); }
  BCU_DEVICE void add(BCU_THREAD Sum& sum, int64_t x) { sum += uint64_t(x); }
  BCU_DEVICE int64_t value(BCU_THREAD const Sum& s) { return int64_t(s); }
};

}  // namespace baracuda::simt
