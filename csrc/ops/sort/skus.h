// The SKU table of sorting.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "core/row.h"
#include "ops/sort/places.h"
#include "simt/sort_workspace.h"

namespace baracuda::sort {

BCU_ATTRS(SortAttrs, (i64, axis), (i64, descending))
BCU_ATTRS(TopkAttrs, (i64, axis), (i64, largest))
// k counts from 1; medians have none.
BCU_ATTRS(RankAttrs, (i64, axis), (i64, keepdim), (i64, k))
BCU_ATTRS(SearchAttrs, (i64, right))
BCU_ARGS(SortArgs, (x, values, indices), ())  // of topk and of ranks, too
BCU_ARGS(SearchArgs, (sequence, values, y), ())
BCU_ARGS(UniqueArgs, (x, values, indices, inverse, counts, count), ())

struct Sort {};
struct Topk {};
template <Which kWhich>
struct Rank {};
struct Search {};
// kSorted: all that are equal are one, not only neighbours.
template <bool kSorted>
struct Unique {};

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
template <class Attrs>
int64_t cpu_scratch(const Problem& p) {
  return line_scratch(p.element, length_of(p, SortArgs::x, attributes<Attrs>(p).axis));
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

// Entries among which a chunk's thread counts those that begin a run of equal ones; it keeps two numbers of each chunk.
inline constexpr int64_t kRunChunk = 16384;
inline int64_t run_chunks(int64_t n) { return (n + kRunChunk - 1) / kRunChunk; }
inline int64_t unique_scratch(const Problem& p) {
  const int64_t n = count_of(p, UniqueArgs::x);
  return run_chunks(n) * 16 + line_scratch(p.element, n);
}
// On GPUs the places of chunks, and where runs begin.
inline int64_t simt_unique_scratch(const Problem& p) {
  const int64_t n = count_of(p, UniqueArgs::x);
  return simt::sort_workspace(n) + ((n + kSimtRunChunk - 1) / kSimtRunChunk + n) * 8;
}

inline Reason not_empty(const Problem& p) {
  if (length_of(p, SortArgs::x, attributes<RankAttrs>(p).axis) > 0) return {};
  return {"x", "at least one element along the axis", "an empty line has no median and no k-th value"};
}
inline Reason simt_not_empty(const Problem& p) {
  const Reason empty = not_empty(p);
  return empty ? empty : simt_fits(p);
}

// `kSimt`: the rows of GPUs.
template <class Tag, class Attrs, bool kSimt>
constexpr auto of_lines(const char* op, const char* name) {
  const auto r = row<Tag>(op).name(name).takes(kReal).exact().template args_of<SortArgs>().template attrs_of<Attrs>();
  return kSimt ? r.scratch(&simt_scratch).only_if(&simt_fits) : r.scratch(&cpu_scratch<Attrs>);
}
template <Which kWhich, bool kSimt>
constexpr auto rank(const char* op) {
  return of_lines<Rank<kWhich>, RankAttrs, kSimt>(op, "digits").only_if(kSimt ? &simt_not_empty : &not_empty);
}
template <bool kSorted, bool kSimt>
constexpr auto unique(const char* op, const char* name) {
  const auto r = row<Unique<kSorted>>(op).name(name).takes(kReal).exact().template args_of<UniqueArgs>();
  return kSimt ? r.scratch(&simt_unique_scratch).only_if(&simt_fits) : r.scratch(&unique_scratch);
}
template <bool kSimt>
constexpr auto lines() {
  return table(of_lines<Sort, SortAttrs, kSimt>("sort", "radix"), of_lines<Topk, TopkAttrs, kSimt>("topk", "bounds"),
               rank<Which::Kth, kSimt>("kthvalue"), rank<Which::Median, kSimt>("median"),
               rank<Which::NanMedian, kSimt>("nanmedian"), unique<true, kSimt>("unique", "radix"),
               unique<false, kSimt>("unique_consecutive", "runs"));
}
inline constexpr auto kSearches = table(row<Search>("searchsorted")
                                            .name("steps")
                                            .takes(kReal, Element::I64 | Element::I32)
                                            .exact()
                                            .args_of<SearchArgs>()
                                            .attrs_of<SearchAttrs>());

inline constexpr auto kTable =
    join(lines<false>(), on_cuda(lines<true>()), on_metal(lines<true>()), everywhere(kSearches));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::sort
