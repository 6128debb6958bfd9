// Stable sorts of entries by radix. Narrow keys go from their lowest digit upwards, 11 bits at a time; wide ones are
// spread once by the uppermost bits that differ, into buckets that are then sorted in the caches.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "ops/sort/entries.h"
#include "ops/sort/skus.h"

namespace baracuda::sort {

inline constexpr int kDigitBits = 11, kSpreadBits = 10;
inline constexpr int64_t kFew = 40, kReadAtOnce = 512;  // entries sorted by insertion; entries read while in L1

template <class K>
void sort_few(Entry<K>* a, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Entry<K> v = a[i];
    int64_t j = i;
    for (; j > 0 && v.key < a[j - 1].key; --j) a[j] = a[j - 1];
    a[j] = v;
  }
}

// One stable pass by 8 bits or fewer; false where all have the same digit, and nothing was moved.
template <class K>
bool pass(const Entry<K>* from, Entry<K>* to, int64_t n, int shift, uint32_t mask) {
  int64_t at[256] = {}, sum = 0;
  for (int64_t i = 0; i < n; ++i) ++at[static_cast<uint32_t>(from[i].key >> shift) & mask];
  for (int64_t& c : at) {
    if (c == n) return false;
    sum += std::exchange(c, sum);
  }
  for (int64_t i = 0; i < n; ++i) to[at[static_cast<uint32_t>(from[i].key >> shift) & mask]++] = from[i];
  return true;
}

// Sorts `a`, whose keys differ in the lowest `bits` bits only, with `b` to work in. The uppermost 8 or 16 of these come
// first; what then still ties is mostly a pair, and sorted likewise.
template <class K>
void sort_by_upper_bits(Entry<K>* a, Entry<K>* b, int64_t n, int bits) {
  if (n < kFew) return sort_few(a, n);
  if (bits <= 0) return;
  const int upper = std::min(bits, n > 2048 ? 16 : 8), shift = bits - upper;
  Entry<K>*from = a, *to = b;
  for (int done = 0; done < upper; done += 8)
    if (pass(from, to, n, shift + done, (1u << std::min(upper - done, 8)) - 1)) std::swap(from, to);
  if (from != a) std::memcpy(static_cast<void*>(a), from, static_cast<size_t>(n) * sizeof *a);
  if (shift == 0) return;
  for (int64_t i = 0, j; i < n; i = j) {
    const K top = a[i].key >> shift;
    for (j = i + 1; j < n && a[j].key >> shift == top;) ++j;
    if (j - i > 1) sort_by_upper_bits(a + i, b + i, j - i, shift);
  }
}

// How many of a key's lowest bits differ among keys from `low` to `high`.
template <class K>
int differing_bits(K low, K high) {
  return static_cast<int>(std::bit_width(static_cast<K>(low ^ high)));
}

// A line that is sorted in parts, side by side on the threads there are. Which parts there are does not show.
template <class K>
class LineSort {
 public:
  // `counts` has kDigits numbers for each part.
  LineSort(const Access<K>& access, const Line& x, uint64_t flip, int64_t parts, K* counts)
      : access_(access), x_(x), flip_(flip), parts_(parts), counts_(counts) {}

  // Sorts the line's entries in a and b; returns the one that has them then.
  Entry<K>* run(Entry<K>* a, Entry<K>* b) { return sizeof(K) == 4 ? by_digits(a, b) : by_buckets(a, b); }

 private:
  template <class Body>
  void each_part(Body&& body) {
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        body(counts_ + p * kDigits, x_.length * p / parts_, x_.length * (p + 1) / parts_);
    });
  }
  // Reads entries [begin, end) into `to` and calls seen(entry) for each.
  template <class Seen>
  void read(int64_t begin, int64_t end, Entry<K>* to, Seen&& seen) {
    for (int64_t i = begin; i < end; i += kReadAtOnce) {
      const int64_t n = std::min(kReadAtOnce, end - i);
      access_.read(x_, i, n, flip_, to + i);
      for (int64_t k = i; k < i + n; ++k) seen(to[k]);
    }
  }
  // Counts of digits become places; false where all entries have one digit.
  bool place(int64_t digits) {
    K sum = 0;
    for (int64_t d = 0; d < digits; ++d) {
      const K before = sum;
      for (int64_t p = 0; p < parts_; ++p) sum += std::exchange(counts_[p * kDigits + d], sum);
      if (sum - before == static_cast<K>(x_.length)) return false;
    }
    return true;
  }
  void move(const Entry<K>* from, Entry<K>* to, int shift, K mask) {
    each_part([&](K* at, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[at[from[i].key >> shift & mask]++] = from[i];
    });
  }

  Entry<K>* by_digits(Entry<K>* a, Entry<K>* b) {
    Entry<K>*from = a, *to = b;
    constexpr K kMask = kDigits - 1;
    for (int shift = 0; shift < access_.bits; shift += kDigitBits) {
      each_part([&](K* count, int64_t begin, int64_t end) {
        std::fill_n(count, kDigits, K(0));
        const auto seen = [&](const Entry<K>& e) { ++count[e.key >> shift & kMask]; };
        if (shift == 0) return read(begin, end, from, seen);
        for (int64_t i = begin; i < end; ++i) seen(from[i]);
      });
      if (!place(kDigits)) continue;
      move(from, to, shift, kMask);
      std::swap(from, to);
    }
    return from;
  }

  Entry<K>* by_buckets(Entry<K>* a, Entry<K>* b) {
    constexpr int64_t kBuckets = 1 << kSpreadBits;
    constexpr K kMask = kBuckets - 1;
    each_part([&](K* range, int64_t begin, int64_t end) {
      K low = ~K(0), high = 0;
      read(begin, end, a, [&](const Entry<K>& e) { low = std::min(low, e.key), high = std::max(high, e.key); });
      range[0] = low, range[1] = high;
    });
    K low = ~K(0), high = 0;
    for (int64_t p = 0; p < parts_; ++p)
      low = std::min(low, counts_[p * kDigits]), high = std::max(high, counts_[p * kDigits + 1]);
    const int bits = differing_bits(low, high), shift = std::max(bits - kSpreadBits, 0);
    each_part([&](K* count, int64_t begin, int64_t end) {
      std::fill_n(count, kBuckets, K(0));
      for (int64_t i = begin; i < end; ++i) ++count[a[i].key >> shift & kMask];
    });
    if (!place(kBuckets)) return a;
    int64_t starts[kBuckets + 1];
    for (int64_t d = 0; d < kBuckets; ++d) starts[d] = static_cast<int64_t>(counts_[d]);  // the first part's places
    starts[kBuckets] = x_.length;
    move(a, b, shift, kMask);
    parallel_for(kBuckets, 8, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d)
        sort_by_upper_bits(b + starts[d], a + starts[d], starts[d + 1] - starts[d], shift);
    });
    return b;
  }

  const Access<K>& access_;
  Line x_;
  uint64_t flip_;
  int64_t parts_;
  K* counts_;
};

// Sorts a short line on the thread that calls.
template <class K>
Entry<K>* sort_short(const Access<K>& access, const Line& x, uint64_t flip, Entry<K>* a, Entry<K>* b) {
  if (sizeof(K) == 4 && x.length > kDigits) {
    K counts[kDigits];
    return LineSort<K>(access, x, flip, 1, counts).run(a, b);
  }
  access.read(x, 0, x.length, flip, a);
  K low = ~K(0), high = 0;
  for (int64_t i = 0; i < x.length; ++i) low = std::min(low, a[i].key), high = std::max(high, a[i].key);
  sort_by_upper_bits(a, b, x.length, differing_bits(low, high));
  return a;
}

}  // namespace baracuda::sort
