// Logits as integers, so that what is kept and drawn is the same on every backend: no product here is added to anything
// unless it is exact, so that it does not matter whether a compiler contracts the two.
#pragma once
#include "ops/random/discrete.h"
#include "ops/sort/order.h"

namespace baracuda::sampling {

// What a row is drawn with.
struct Controls {
  float temperature, top_p, min_p, typical_p, repetition, presence, frequency;
  int64_t top_k;  // 0: all
};
BCU_FN int64_t whole_k(float v) { return v >= 1.0f ? (v < 1073741824.0f ? int64_t(v) : int64_t(1) << 30) : 0; }

// A logit of a token that was seen `count` times: divided by the repetition penalty, or, below 0, by its inverse; less
// frequency count, less presence. The product is one of halves of both numbers, each of 12 bits.
struct Penalty {
  float repetition, inverse, presence, frequency_upper, frequency_lower;
};
BCU_FN Penalty penalty_of(BCU_THREAD const Controls& c) {
  Penalty p;
  p.repetition = c.repetition, p.inverse = 1.0f / c.repetition, p.presence = c.presence;
  p.frequency_upper = random::upper_bits(c.frequency), p.frequency_lower = c.frequency - p.frequency_upper;
  return p;
}
BCU_FN float penalised(float v, int32_t count, BCU_THREAD const Penalty& p) {
  int32_t n = count < 0xFFFFFF ? count : 0xFFFFFF;
  float upper = float(n & 0xFFF000), lower = float(n & 0xFFF);
  float rest = p.frequency_lower * upper + p.frequency_lower * lower;
  float often = p.frequency_upper * upper + (p.frequency_upper * lower + rest);
  float divided = v / (v > 0.0f ? p.repetition : p.inverse);
  return count > 0 ? (divided - often) - p.presence : v;
}
BCU_FN bool is_logit(float v) { return v < math::infinity<float>(); }  // not NaN, and -inf is one

// How far a logit lies below the largest, in steps of 2^-24 octaves of its weight: at kNever it has none.
enum : uint32_t { kOctave = 1u << 24, kNever = 62u << 24 };
BCU_FN float octaves_per(float temperature) { return 24204406.0f / temperature; }
// Whether a temperature leaves nothing but the largest.
BCU_FN bool is_greedy(float temperature) { return !(octaves_per(temperature) < math::infinity<float>()); }
BCU_FN uint32_t distance(float v, float top, float octaves) {
  float d = (top - v) * octaves;
  return d < 1040187392.0f ? uint32_t(int32_t(d)) : uint32_t(kNever);
}

// 2^y - 1 in units of 2^-32, y = u 2^-32, to 2^-28.
enum : int { kExp2Terms = 6 };
#define BCU_SAMPLING_EXP2 0x000E2A0Au, 0x0051B598u, 0x027A171Fu, 0x0E34488Du, 0x3D7FAAF2u, 0xB17215AFu
BCU_FN uint32_t exp2_fraction(uint32_t u) {
  const uint32_t c[kExp2Terms] = {BCU_SAMPLING_EXP2};
  uint64_t p = c[0];
  for (int k = 1; k < kExp2Terms; ++k) p = c[k] + (p * u >> 32);
  return uint32_t(p * u >> 32);
}
// 2^-q in a row whose largest weight has 33 + up bits; q in steps of kOctave.
BCU_FN uint64_t weight_of(uint32_t q, int32_t up) {
  uint64_t w = (uint64_t(1) << 32) + exp2_fraction(~(q << 8));
  return (w << up) >> (q >> 24);
}
BCU_FN int32_t raised_by(int64_t tokens) { return random::weight_bits(tokens) - 33; }

// Ascending where logits descend.
BCU_FN uint32_t key_of(float v) { return ~sort::key_of(math::bit_cast<uint32_t>(v), 0x80000000u, 0x7F800000u); }
BCU_FN float logit_of(uint32_t key) { return math::bit_cast<float>(sort::bits_of_key(~key, 0x80000000u, 0x7F800000u)); }

// The share p of a sum, rounded up, and at least 1; p lies in [0, 1].
BCU_FN uint64_t share_of(uint64_t sum, float p) {
  uint64_t unit = random::heads_of(p);
  if (unit >> 32 != 0u) return sum;
  uint64_t share = random::high_product(sum, unit << 32) + (sum * (unit << 32) != 0u ? 1u : 0u);
  return share > 0u ? share : 1u;
}

// A place in an order of tokens: by key, then by position.
struct Cut {
  uint32_t key;
  int64_t position;
};
BCU_FN bool upto(BCU_THREAD const Cut& cut, uint32_t key, int64_t position) {
  return key < cut.key || (key == cut.key && position <= cut.position);
}
BCU_FN Cut no_cut() {
  Cut c;
  c.key = 0xFFFFFFFFu, c.position = int64_t(1) << 62;
  return c;
}

// What is kept of a row: tokens up to `cut` in the order of their logits, whose weight is `least` or more; with `mean`
// set, of those the ones up to `band` in the order of how far their surprise is from the row's.
struct Rule {
  float top, octaves;
  int32_t up;
  bool banded;
  uint32_t mean;
  uint64_t least;
  Cut cut, band;
};
BCU_FN Rule rule_of(float top, float temperature, int64_t tokens) {
  Rule r;
  // A greedy row keeps its first token; that its weights are finite is enough.
  r.top = top, r.octaves = octaves_per(is_greedy(temperature) ? 1.0f : temperature);
  r.up = raised_by(tokens), r.banded = false, r.mean = 0u, r.least = 0u;
  r.cut = no_cut(), r.band = no_cut();
  return r;
}
BCU_FN uint32_t band_key(uint32_t q, uint32_t mean) { return q > mean ? 2u * (q - mean) + 1u : 2u * (mean - q); }
BCU_FN uint32_t band_distance(uint32_t key, uint32_t mean) {
  return (key & 1u) != 0u ? mean + key / 2u : mean - key / 2u;
}

// A token under a rule: its key in the rule's order, whether it is kept, and its weight, 0 where it is not.
struct Entry {
  uint32_t key;
  bool kept;
  uint64_t weight;
};
BCU_FN Entry entry_of(float v, int64_t position, BCU_THREAD const Rule& r) {
  Entry e;
  uint32_t q = distance(v, r.top, r.octaves), key = key_of(v);
  uint64_t w = weight_of(q, r.up);
  e.key = r.banded ? band_key(q, r.mean) : key;
  e.kept = upto(r.cut, key, position) && w >= r.least && (!r.banded || upto(r.band, e.key, position));
  e.weight = e.kept ? w : uint64_t(0);
  return e;
}
// The weight that all tokens with a key of the rule's order have.
BCU_FN uint64_t weight_at(uint32_t key, BCU_THREAD const Rule& r) {
  return weight_of(r.banded ? band_distance(key, r.mean) : distance(logit_of(key), r.top, r.octaves), r.up);
}
// The least weight that min_p leaves.
BCU_FN uint64_t least_of(float min_p, int32_t up) { return min_p > 0.0f ? share_of(weight_of(0u, up), min_p) : 0u; }

// A sum of products of 64 bits each.
struct Wide {
  uint64_t upper, lower;
};
BCU_FN Wide wide_sum(Wide a, Wide b) {
  Wide s;
  s.lower = a.lower + b.lower;
  s.upper = a.upper + b.upper + (s.lower < a.lower ? 1u : 0u);
  return s;
}
BCU_FN Wide wide_product(uint64_t a, uint64_t b) {
  Wide p;
  p.upper = random::high_product(a, b), p.lower = a * b;
  return p;
}
// floor(a / b), which is below 2^32.
BCU_FN uint32_t wide_quotient(Wide a, uint64_t b) {
  uint32_t found = 0u;
  for (int bit = 31; bit >= 0; --bit) {
    Wide p = wide_product(b, uint64_t(found | 1u << bit));
    bool fits = p.upper < a.upper || (p.upper == a.upper && p.lower <= a.lower);
    found |= fits ? 1u << bit : 0u;
  }
  return found;
}

}  // namespace baracuda::sampling
