// Softmax's maximum and sum over values as they come.
#pragma once
#include "baracuda/math/exp.h"
#include "simt/rows.h"

namespace baracuda::simt {

// The larger number; NaN loses.
struct LargerNumber {
  template <class T>
  BCU_DEVICE T of(T a, T b) {
    return b > a ? b : a;
  }
};

// The largest value so far, NaN passed over, and sum(exp(x - largest)), to which a NaN does count.
template <class C>
struct OnlineSum {
  C max;
  LongSum<C> terms;
};
template <class C>
BCU_DEVICE OnlineSum<C> empty_online_sum() {
  OnlineSum<C> s;
  s.max = -math::infinity<C>();
  s.terms = empty_sum<C>();
  return s;
}
template <int kCount, class C>
BCU_DEVICE void accumulate(BCU_THREAD OnlineSum<C>& s, BCU_THREAD const C* v) {
  C top = s.max, e[kCount];
  BCU_UNROLL for (int j = 0; j < kCount; ++j) top = v[j] > top ? v[j] : top;
  if (top > s.max) {
    C shrink = math::exp(s.max - top);
    s.terms.sum *= shrink, s.terms.error *= shrink;
    s.max = top;
  }
  C shift = top > -math::infinity<C>() ? top : C(0);  // -inf - -inf is NaN, which no value was
  BCU_UNROLL for (int j = 0; j < kCount; ++j) e[j] = math::exp(v[j] - shift);
  accumulate(s.terms, pack_sum<kCount>(e));
}
// Every thread of the team gets the team's largest value and sum.
template <class C>
BCU_DEVICE OnlineSum<C> team_total(BCU_THREAD const Context& ctx, BCU_THREAD const Team& team,
                                   BCU_THREAD const OnlineSum<C>& s, BCU_SHARED float* shared) {
  OnlineSum<C> all;
  all.max = team_reduce<LargerNumber>(ctx, team, s.max, -math::infinity<C>(), shared);
  C own = value_of(s.terms);
  own = s.max == all.max ? own : own * math::exp(s.max - all.max);
  all.terms.sum = team_reduce<Add>(ctx, team, own, C(0), shared);
  all.terms.error = C(0);
  return all;
}

}  // namespace baracuda::simt
