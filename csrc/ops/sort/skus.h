// The SKU table of sorting.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "core/row.h"
#include "simt/sort_workspace.h"

namespace baracuda::sort {

BCU_ATTRS(SortAttrs, (i64, axis), (i64, descending))
BCU_ARGS(SortArgs, (x, values, indices), ())

struct Sort {};

// Lines of at least so many elements are sorted one after another, by all threads; shorter ones side by side.
inline constexpr int64_t kLongLine = 65536;
// What the threads that sort a long line count: digits of 11 bits, in parts of the line.
inline constexpr int64_t kDigits = 2048, kMostParts = 32;
// A key and a position have 4 bytes each, or 8 where the elements have or positions need them.
constexpr bool wide_entries(Element e, int64_t length) { return size_of(e) == 8 || length >= (int64_t{1} << 32); }

constexpr int64_t length_of(const Problem& p, int param, int64_t axis) {
  return p.params[param].rank == 0 ? 1 : p.params[param].shape[axis];
}
// Two lists of entries for each thread, or for the line that all are at. Grows with the length, as rules have to.
inline int64_t line_scratch(Element e, int64_t length) {
  const int64_t entries = wide_entries(e, length) ? 32 : 16;
  const int64_t beside = max_threads() * std::min(length, kLongLine) * entries;
  return std::max(beside, length < kLongLine ? 0 : length * entries + kMostParts * kDigits * 8);
}
inline int64_t cpu_scratch(const Problem& p) {
  return line_scratch(p.element, length_of(p, SortArgs::x, attributes<SortAttrs>(p).axis));
}
constexpr int64_t count_of(const Problem& p, int param) {
  int64_t n = 1;
  for (int i = 0; i < p.params[param].rank; ++i) n *= p.params[param].shape[i];
  return n;
}
inline int64_t simt_scratch(const Problem& p) { return simt::sort_workspace(count_of(p, SortArgs::x)); }
inline Reason simt_fits(const Problem& p) {
  if (count_of(p, SortArgs::x) < (int64_t{1} << 31)) return {};
  return {"shape", "fewer than 2^31 elements", "a GPU counts them in 32 bits"};
}

// `kSimt`: the rows of GPUs.
template <bool kSimt>
constexpr auto lines() {
  const auto sorted = row<Sort>("sort").name("radix").takes(kReal).exact().args_of<SortArgs>().attrs_of<SortAttrs>();
  return table(kSimt ? sorted.scratch(&simt_scratch).only_if(&simt_fits) : sorted.scratch(&cpu_scratch));
}

inline constexpr auto kTable = lines<false>() + on_cuda(lines<true>()) + on_metal(lines<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::sort
