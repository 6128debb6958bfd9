// Coin tosses, integers, permutations and dropout on GPUs, by the elementwise driver: every element makes its own
// Philox block.
#pragma once
#include "ops/random/discrete.h"
#include "simt/map.h"

namespace baracuda::random {

struct DrawExtra {
  simt::Number seed, offset, a, b;  // a and b: low and high, or dropout's p and what is kept is multiplied by
  BCU_GLOBAL simt::Fault* fault;
  int64_t row, n;  // n: of a permutation
  int32_t tensor;  // of probabilities; -1: they are a number
  int32_t scalar;  // of the call, that a fault names
  int32_t known;   // a and b were looked at by the host
};

template <class C>
struct Coin;
template <>
struct Coin<float> {
  BCU_DEVICE bool toss(float p, uint64_t seed, uint64_t offset, int64_t at) {
    return heads(p, word_of(block_of(seed, offset + uint64_t(at) / 4), at));
  }
};
#if BCU_HAS_F64
template <>
struct Coin<double> {
  BCU_DEVICE bool toss(double p, uint64_t seed, uint64_t offset, int64_t at) {
    return heads(p, wide_word(block_of(seed, offset + uint64_t(at) / 2), (at & 1) != 0));
  }
};
#endif

struct TossDraw {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT DrawExtra& x, int64_t at) {
    if (!(in[0] >= C(0) && in[0] <= C(1))) simt::raise_value(x.fault, x.row, x.tensor, at, in[0], simt::kUnit);
    out[0] = C(Coin<C>::toss(in[0], simt::number<uint64_t>(x.seed), simt::number<uint64_t>(x.offset), at) ? 1 : 0);
  }
};

struct IntegerDraw {
  BCU_DEVICE void apply(BCU_THREAD const int64_t*, BCU_THREAD int64_t* out, BCU_CONSTANT DrawExtra& x, int64_t at) {
    int64_t low = simt::number<int64_t>(x.a), high = simt::number<int64_t>(x.b);
    if (low >= high) simt::raise_number(x.fault, x.row, x.scalar);
    uint64_t n = low < high ? uint64_t(high) - uint64_t(low) : 1u;
    uint64_t found = below(simt::number<uint64_t>(x.seed), simt::number<uint64_t>(x.offset), uint64_t(at), n);
    out[0] = int64_t(uint64_t(low) + found);
  }
};

struct ShuffleDraw {
  BCU_DEVICE void apply(BCU_THREAD const int64_t*, BCU_THREAD int64_t* out, BCU_CONSTANT DrawExtra& x, int64_t at) {
    Shuffle s;
    make_shuffle(simt::number<uint64_t>(x.seed), simt::number<uint64_t>(x.offset), uint64_t(x.n), s);
    out[0] = int64_t(shuffled(s, uint64_t(at)));
  }
};

struct DropoutDraw {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT DrawExtra& x, int64_t at) {
    float p = simt::number<float>(x.a);
    C scale = simt::number<C>(x.b);
    if (!x.known) {
      if (!(p >= 0.0f && p <= 1.0f)) simt::raise_value(x.fault, x.row, -1, x.scalar, p, simt::kUnit);
      scale = p < 1.0f ? C(1) / (C(1) - simt::number<C>(x.a)) : C(0);
    }
    Words w = block_of(simt::number<uint64_t>(x.seed), simt::number<uint64_t>(x.offset) + uint64_t(at) / 4);
    out[0] = uint64_t(word_of(w, at)) < heads_of(p) ? C(0) : in[0] * scale;
  }
};

}  // namespace baracuda::random
