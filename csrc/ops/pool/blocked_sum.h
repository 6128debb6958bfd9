// Sums of many terms, one after another, in kernels of all backends.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::pool {

// Sums of blocks of terms are added up, which bounds their error for long ones.
template <class C>
struct BlockedSum {
  enum : int { kBlock = 256 };
  C total, part;
  int32_t terms;
  BCU_METHOD void add(C v) {
    part += v;
    if (++terms == kBlock) total += part, part = C(0), terms = 0;
  }
};
template <class C>
BCU_DEVICE BlockedSum<C> no_sum() {
  BlockedSum<C> s;
  s.total = s.part = C(0), s.terms = 0;
  return s;
}

}  // namespace baracuda::pool
