// Places in a row's order on the CPU, without sorting it: weights that lie close together are added up in bins, and
// only those of the bin that a place falls into are put in order.
#pragma once
#include <algorithm>
#include <cstring>

#include "host/lanes.h"
#include "ops/sampling/math.h"
#include "ops/sampling/skus.h"

namespace baracuda::sampling {

class RowSearch {
 public:
  // `z`: the row's n logits. `entries` has room for n, `bins` for two tables of kBins.
  RowSearch(const float* z, int64_t n, uint64_t* entries, uint64_t* bins)
      : z_(z), n_(n), entries_(entries), bins_(bins) {}

  Rule rule;

  // Where in the order a sum is reached, and what the sum is then.
  struct Crossing {
    Cut at;
    uint64_t sum;
  };

  // Adds up the weights of the rule.
  uint64_t weigh() { return fill<false>(); }
  // The first place at which the weights add up to `target`, at most what weigh() gave.
  Crossing find(uint64_t target) { return cross<false>(target); }
  // The place of the k-th token, k <= n. Bins are then to be filled again.
  Cut find_kth(int64_t k) {
    if (k == 1) return {key_of(rule.top), std::find(z_, z_ + n_, rule.top) - z_};
    fill<true>();
    return cross<true>(static_cast<uint64_t>(k)).at;
  }
  // The mean distance of what is kept, whose weights add up to `sum`.
  uint32_t mean_distance(uint64_t sum) const {
    Wide total{0, 0};
    for (int64_t i = 0; i < n_; ++i) {
      const uint64_t w = entry_of(z_[i], i, rule).weight;
      if (w != 0) total = wide_sum(total, wide_product(w, distance(z_[i], rule.top, rule.octaves)));
    }
    return wide_quotient(total, sum);
  }

  // What is kept of logits [at, at + n): themselves and -inf, or their share of `sum` and 0.
  void filter(int64_t at, int64_t n, bool shares, uint64_t sum, float* to) const {
    const float all = static_cast<float>(sum);
    for (int64_t j = 0; j < n; ++j) {
      const Entry e = entry_of(z_[at + j], at + j, rule);
      to[j] = shares ? static_cast<float>(e.weight) / all : e.kept ? z_[at + j] : -math::infinity<float>();
    }
  }

 private:
  static constexpr int64_t kTile = 512;
  static constexpr uint64_t kExp2[] = {BCU_SAMPLING_EXP2};
  static constexpr int64_t kWide = level::kVectorBytes / 8;
  static constexpr int kBinShift = 17;  // 128 bins for an octave
  static_assert((int64_t{kNever} >> kBinShift) < kBins);

  struct Tile {
    alignas(64) uint32_t q[kTile];
    alignas(64) uint64_t w[kTile];
  };

  // In banded order bins are of whole keys, which are twice as large.
  uint32_t bin_of(uint32_t q) const { return (rule.banded ? band_key(q, rule.mean) >> 1 : q) >> kBinShift; }

  void distances(int64_t at, int64_t n, uint32_t* q) const {
    const float *z = z_ + at, top = rule.top, octaves = rule.octaves;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) q[j] = distance(z[j], top, octaves);
  }
  void weights(int64_t at, int64_t n, Tile& t) const {
    std::fill(t.q + n, t.q + (n + kWide - 1) / kWide * kWide, uint32_t{kNever});
    for (int64_t j = 0; j < n; j += kWide) plain_weights(t.q + j, t.w + j);
    if (rule.banded) {
      for (int64_t j = 0; j < n; ++j) t.w[j] = entry_of(z_[at + j], at + j, rule).weight;
    } else if (rule.least != 0 || rule.cut.key != no_cut().key) {
      const float *z = z_ + at, cut = rule.cut.key == no_cut().key ? -math::infinity<float>() : logit_of(rule.cut.key);
      const int64_t ties = rule.cut.position - at;
      const uint64_t least = rule.least;
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) {
        const bool kept = (z[j] > cut) | ((z[j] == cut) & (j <= ties));
        t.w[j] = kept & (t.w[j] >= least) ? t.w[j] : 0;
      }
    }
  }
  // weight_of() for a vector of distances; by 32 bits of lanes, which compilers do not multiply so by themselves.
  void plain_weights(const uint32_t* from, uint64_t* to) const {
    typedef uint32_t Narrow __attribute__((vector_size(level::kVectorBytes / 2)));
    Narrow given;
    std::memcpy(&given, from, sizeof given);
    const level::Wides q = __builtin_convertvector(given, level::Wides), u = ~(q << 8) & 0xFFFFFFFFu;
    level::Wides p = level::Wides{} + kExp2[0];
#pragma GCC unroll 8
    for (int k = 1; k < kExp2Terms; ++k) p = kExp2[k] + (level::multiply_low(p, u) >> 32);
    const level::Wides w = ((level::multiply_low(p, u) >> 32) + (uint64_t{1} << 32)) << rule.up >> (q >> 24);
    std::memcpy(to, &w, sizeof w);
  }

  // Two tables, so that neighbours in one bin do not wait for each other.
  template <bool kCounts>
  uint64_t fill() {
    std::fill_n(bins_, 2 * kBins, uint64_t{0});
    Tile t;
    for (int64_t at = 0; at < n_; at += kTile) {
      const int64_t n = std::min(kTile, n_ - at);
      distances(at, n, t.q);
      if constexpr (!kCounts) weights(at, n, t);
      int64_t j = 0;
      for (; j + 2 <= n; j += 2) {
        bins_[bin_of(t.q[j])] += kCounts ? 1 : t.w[j];
        bins_[kBins + bin_of(t.q[j + 1])] += kCounts ? 1 : t.w[j + 1];
      }
      if (j < n) bins_[bin_of(t.q[j])] += kCounts ? 1 : t.w[j];
    }
    uint64_t sum = 0;
    for (int64_t b = 0; b < kBins; ++b) sum += bins_[b] += bins_[kBins + b];
    return sum;
  }

  template <bool kCounts>
  Crossing cross(uint64_t target) {
    uint64_t before = 0;
    uint32_t bin = 0;
    for (; before + bins_[bin] < target; ++bin) before += bins_[bin];
    const int64_t n = gather(bin);
    for (int64_t k = 0; k < n; ++k) {
      const Cut at{static_cast<uint32_t>(entries_[k] >> 32), static_cast<int64_t>(entries_[k] & 0xFFFFFFFFu)};
      before += kCounts ? 1 : entry_of(z_[at.position], at.position, rule).weight;
      if (before >= target) return {at, before};
    }
    return {no_cut(), before};  // not reached: the bin's sum is larger
  }

  // Entries of a bin in their order.
  int64_t gather(uint32_t bin) {
    alignas(64) uint32_t q[kTile];
    int64_t found = 0;
    uint32_t low = 0xFFFFFFFFu, high = 0;
    for (int64_t at = 0; at < n_; at += kTile) {
      const int64_t n = std::min(kTile, n_ - at);
      distances(at, n, q);
      for (int64_t i = 0; i < n; i += kFew) {
        const int64_t end = std::min(n, i + kFew);
        uint32_t any = 0;
        for (int64_t j = i; j < end; ++j) any |= bin_of(q[j]) == bin;
        if (!any) continue;
        for (int64_t j = i; j < end; ++j) {
          if (bin_of(q[j]) != bin) continue;
          const uint32_t key = rule.banded ? band_key(q[j], rule.mean) : key_of(z_[at + j]);
          low = std::min(low, key), high = std::max(high, key);
          entries_[found++] = uint64_t{key} << 32 | static_cast<uint64_t>(at + j);
        }
      }
    }
    if (low < high) std::sort(entries_, entries_ + found);
    return found;
  }

  static constexpr int64_t kFew = 64;
  const float* z_;
  int64_t n_;
  uint64_t *entries_, *bins_;
};

}  // namespace baracuda::sampling
