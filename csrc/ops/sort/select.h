// Some elements of a line in their order, without sorting the others.
#pragma once
#include <algorithm>

#include "ops/sort/radix.h"

namespace baracuda::sort {

inline constexpr int64_t kBlock = 64;  // elements of which the first in order is kept

// The k first of a line, by the first one of each block of it: the k-th of these is a bound that at least k elements
// reach. Worth it where there are so many blocks.
inline bool few_of(int64_t length, int64_t k) { return k <= length / (2 * kBlock); }

// Puts entries that reach the bound into `a`, sorted, and returns how many there are, k or more; `b` is worked in.
template <class K>
int64_t sort_first(const Access<K>& access, const Line& x, uint64_t flip, int64_t k, Entry<K>* a, Entry<K>* b) {
  const int64_t blocks = (x.length + kBlock - 1) / kBlock;
  K *first = reinterpret_cast<K*>(b), *copy = first + blocks;
  parallel_for(blocks, std::max<int64_t>(1, kLongLine / kBlock), [&](int64_t begin, int64_t end) {
    K keys[kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = std::min(kBlock, x.length - i * kBlock);
      access.keys(x, i * kBlock, n, flip, keys);
      K least = keys[0];
      for (int64_t j = 0; j < n; ++j) least = std::min(least, keys[j]);
      first[i] = least;
    }
  });
  std::copy_n(first, blocks, copy);
  std::nth_element(copy, copy + (k - 1), copy + blocks);
  const K bound = copy[k - 1];
  K keys[kBlock], low = bound, high = 0;
  int64_t found = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    if (first[i] > bound) continue;
    const int64_t n = std::min(kBlock, x.length - i * kBlock);
    access.keys(x, i * kBlock, n, flip, keys);
    for (int64_t j = 0; j < n; ++j) {
      if (keys[j] > bound) continue;
      low = std::min(low, keys[j]), high = std::max(high, keys[j]);
      a[found++] = {keys[j], static_cast<K>(i * kBlock + j)};
    }
  }
  sort_by_upper_bits(a, b, found, differing_bits(low, high));
  return found;
}

// The entry of one place in a line's order: digits from the upper end say which elements it is among.
template <class K>
class RankSearch {
 public:
  // `counts` has kDigits numbers for each part, `a` room for the line.
  RankSearch(const Access<K>& access, const Line& x, int64_t parts, K* counts, Entry<K>* a)
      : access_(access), x_(x), parts_(parts), counts_(counts), a_(a) {}

  // place(nans) gives the place, from 0 on, when it is known how many NaN there are; they have the last key.
  template <class Place>
  Entry<K> run(bool has_nan, Place&& place) {
    int shift = std::max(access_.bits - kDigitBits, 0);
    int64_t at = place(count(shift, has_nan)), bin = 0, n = 0;
    for (;; ++bin) {
      n = 0;
      for (int64_t p = 0; p < parts_; ++p) n += static_cast<int64_t>(counts_[p * kDigits + bin]);
      if (at < n) break;
      at -= n;
    }
    keep(shift, static_cast<K>(bin));
    while (shift > 0 && n > kBlock) {
      const int next = std::max(shift - kDigitBits, 0);
      narrow(next, static_cast<K>((K(1) << (shift - next)) - 1), at, n);
      shift = next;
    }
    if (shift > 0) sort_few(a_, n);
    return a_[at];
  }

 private:
  static constexpr int kTables = 4;  // so that neighbours with one digit do not wait for each other

  template <class Body>
  void each_part(Body&& body) {
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) body(p, x_.length * p / parts_, x_.length * (p + 1) / parts_);
    });
  }
  template <class Body>
  void each_block(int64_t begin, int64_t end, Body&& body) {
    K keys[kReadAtOnce];
    for (int64_t i = begin; i < end; i += kReadAtOnce) {
      const int64_t n = std::min(kReadAtOnce, end - i);
      access_.keys(x_, i, n, 0, keys);
      body(i, n, keys);
    }
  }
  // Counts the uppermost digits of each part; returns how many keys are the last one.
  int64_t count(int shift, bool has_nan) {
    int64_t nans[kMostParts] = {};
    const K last = access_.last();
    each_part([&](int64_t p, int64_t begin, int64_t end) {
      K tables[kTables][kDigits] = {};
      int64_t seen = 0;
      each_block(begin, end, [&](int64_t, int64_t n, const K* keys) {
        for (int64_t i = 0; i < n; ++i) ++tables[i % kTables][keys[i] >> shift];
        if (has_nan)
          for (int64_t i = 0; i < n; ++i) seen += keys[i] == last;
      });
      for (int64_t d = 0; d < kDigits; ++d)
        counts_[p * kDigits + d] = tables[0][d] + tables[1][d] + tables[2][d] + tables[3][d];
      nans[p] = seen;
    });
    int64_t all = 0;
    for (const int64_t n : nans) all += n;
    return all;
  }
  // Entries of one digit, in the order of their positions.
  void keep(int shift, K bin) {
    int64_t starts[kMostParts], sum = 0;
    for (int64_t p = 0; p < parts_; ++p) starts[p] = sum, sum += static_cast<int64_t>(counts_[p * kDigits + bin]);
    each_part([&](int64_t p, int64_t begin, int64_t end) {
      Entry<K>* to = a_ + starts[p];
      Entry<K> found[kReadAtOnce];
      each_block(begin, end, [&](int64_t first, int64_t n, const K* keys) {
        int64_t k = 0;
        for (int64_t i = 0; i < n; ++i) {
          found[k] = {keys[i], static_cast<K>(first + i)};
          k += keys[i] >> shift == bin;
        }
        to = std::copy_n(found, k, to);
      });
    });
  }
  // Of the n entries kept, those of the digit that place `at` is in.
  void narrow(int shift, K mask, int64_t& at, int64_t& n) {
    int64_t count[kDigits] = {}, bin = 0, kept = 0;
    for (int64_t i = 0; i < n; ++i) ++count[a_[i].key >> shift & mask];
    for (; at >= count[bin]; ++bin) at -= count[bin];
    for (int64_t i = 0; i < n; ++i) {
      const Entry<K> e = a_[i];
      a_[kept] = e;
      kept += (e.key >> shift & mask) == static_cast<K>(bin);
    }
    n = count[bin];
  }

  const Access<K>& access_;
  Line x_;
  int64_t parts_;
  K* counts_;
  Entry<K>* a_;
};

}  // namespace baracuda::sort
