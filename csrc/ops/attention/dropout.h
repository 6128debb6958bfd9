// Dropout of attention's weights on the CPU: made anew wherever it is needed, from a seed, an offset and the place.
#pragma once
#include <algorithm>

#include "ops/attention/skus.h"
#include "ops/random/discrete.h"
#include "ops/random/words.h"

namespace baracuda::attention {

// The weight of (b, h, q, k), which is element i of [batch, heads, queries, keys], is dropped where word i % 4 of block
// i / 4 of (seed, offset) is below p 2^32, as an element of op dropout is; the others are divided by 1 - p.
class Dropout {
 public:
  Dropout() = default;
  // Of a call of scaled_dot_product_attention.
  template <class Args>
  static Dropout of(const Launch& launch) {
    Dropout d;
    if (attributes<AttentionAttrs>(launch).dropout == 0) return d;
    const double p = launch.scalars[Args::dropout_p].as_f64();
    d.used_ = true, d.valid_ = p >= 0 && p <= 1;
    if (!d.valid_) return d;
    d.dropped_ = random::heads_of(static_cast<float>(p)), d.kept_ = p < 1 ? 1 / (1 - p) : 0;
    d.seed_ = launch.scalars[Args::seed].as_u64(), d.offset_ = launch.scalars[Args::offset].as_u64();
    d.heads_ = launch[Args::q].shape[1], d.queries_ = launch[Args::q].shape[2], d.keys_ = launch[Args::k].shape[2];
    return d;
  }
  bool used() const { return used_; }
  bool valid() const { return valid_; }

  // What the weights of keys [k, k + n) of a query are multiplied by.
  template <class C>
  void read(int64_t b, int64_t h, int64_t q, int64_t k, int64_t n, C* factors) const {
    const auto first = static_cast<uint64_t>(((b * heads_ + h) * queries_ + q) * keys_ + k);
    const C kept = static_cast<C>(kept_);
    random::WordGroup words;
    for (int64_t done = 0; done < n;) {
      const uint64_t at = first + static_cast<uint64_t>(done);
      const auto skipped = static_cast<int64_t>(at % 4);
      const int64_t end = std::min<int64_t>(skipped + n - done, 4 * random::kBlocks);
      random::make_words(seed_, offset_ + at / 4, words, static_cast<int>((end + 3) / 4));
      for (int64_t i = skipped; i < end; ++i)
        factors[done++] = words.at(static_cast<int>(i % 4), static_cast<int>(i / 4)) < dropped_ ? C(0) : kept;
    }
  }

 private:
  bool used_ = false, valid_ = true;
  uint64_t dropped_ = 0;  // of 2^32 words
  double kept_ = 1;
  uint64_t seed_ = 0, offset_ = 0;
  int64_t heads_ = 0, queries_ = 0, keys_ = 0;
};

}  // namespace baracuda::attention
