// Two partial results of attention over different keys as one: each weighs what its sum of exponentials is of both.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/values.h"

namespace baracuda::attention {

// The smaller sum over the larger one, 1 where they are equal, also where both are infinite or nothing.
template <class C>
BCU_FN C smaller_share(C la, C lb) {
  return la == lb ? C(1) : math::exp(la < lb ? la - lb : lb - la);
}

template <class C>
struct MergeWeights {
  C a, b;
};
template <class C>
BCU_FN MergeWeights<C> merge_weights(C la, C lb) {
  C small = smaller_share(la, lb), large = C(1) / (C(1) + small);
  small *= large;
  return {la < lb ? small : large, la < lb ? large : small};
}

// A part over no keys (lse = -inf) is left out, whatever it holds.
struct MergedOut {
  template <class C>
  BCU_FN Values<C, 1> f(C a, C b, C la, C lb) {
    MergeWeights<C> w = merge_weights(la, lb);
    C none = -math::infinity<C>();
    C from_a = la == none ? C(0) : a * w.a, from_b = lb == none ? C(0) : b * w.b;
    return {from_a + from_b};
  }
};

struct MergedLse {
  template <class C>
  BCU_FN Values<C, 1> f(C la, C lb) {
    return {(la < lb ? lb : la) + math::log1p(smaller_share(la, lb))};
  }
};

// What a row of the gradient needs: the weights of the parts that saw keys, and of what either part's lse gets of
// dlse and of the sum over dout (out_a - out_b).
template <class C>
struct MergeSlopes {
  bool use_a, use_b;
  C a, b, cross;
};
template <class C>
BCU_FN MergeSlopes<C> merge_slopes(C la, C lb) {
  C none = -math::infinity<C>();
  MergeWeights<C> w = merge_weights(la, lb);
  bool use_a = la != none, use_b = lb != none;
  return {use_a, use_b, use_a ? w.a : C(0), use_b ? w.b : C(0), use_a && use_b ? w.a * w.b : C(0)};
}

}  // namespace baracuda::attention
