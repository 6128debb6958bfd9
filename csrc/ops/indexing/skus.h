// The SKU table of reading and writing by index.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "core/row.h"
#include "ops/indexing/modes.h"
#include "simt/sort_workspace.h"

namespace baracuda::indexing {

BCU_ARGS(CollectArgs, (x, index, y), ())
BCU_ARGS(CollectBackwardArgs, (dy, index, dx), ())
// wrap: negative indices count from the end.
BCU_ATTRS(CollectAttrs, (i64, axis), (i64, wrap))
// The value is given where there is no source.
BCU_ARGS(ScatterArgs, (x, index, source, y), (value))
BCU_ARGS(SpreadArgs, (x, index, source, y), ())
BCU_ARGS(IndexAddArgs, (x, index, source, y), (alpha))
BCU_ARGS(FillArgs, (x, index, y), (value))
// mode: a Fold.
BCU_ATTRS(SpreadAttrs, (i64, axis), (i64, wrap), (i64, mode), (i64, include_self))
BCU_ARGS(NonzeroArgs, (x, y, count), ())
BCU_ARGS(MaskedSelectArgs, (mask, x, y, count), ())
BCU_ARGS(OneHotArgs, (index, y), ())
BCU_ARGS(BincountArgs, (index, y, size), ())
BCU_ARGS(HistcArgs, (x, y), (low, high))

// How an index tensor belongs to the tensors: an index per element, one per
// place of an axis, or one into the flat tensor.
enum class By { Element, Axis, Flat };

template <By kBy>
struct Collect {};
template <By kBy>
struct CollectBackward {};
template <By kBy>
struct Assign {};
struct Fill {};
template <By kBy>
struct Reduce {};
struct Nonzero {};
struct MaskedSelect {};
struct OneHot {};
struct Bincount {};
struct Histc {};

inline constexpr Elements kWhole = kReal | Element::C64 | Element::C128 | Element::F8E4M3 | Element::F8E5M2;

inline int64_t numel_of(const Problem& p, int param) {
  if (p.params == nullptr || p.n_params <= param) return 0;
  int64_t n = 1;
  for (int i = 0; i < p.params[param].rank; ++i) n *= p.params[param].shape[i];
  return n;
}

// Bytes of the accumulators of one element: a wide sum, what was lost of it
// (f64), and how many terms it has.
inline constexpr int64_t kWide = 8, kTerms = 4;
inline int64_t accumulator_bytes(Element e, bool counts) {
  return kWide + (e == Element::F64 ? kWide : 0) + (counts ? kTerms : 0);
}
inline bool counts_terms(int64_t mode, bool include_self) { return mode == kMean || !include_self; }
// Extremes are elements, and need no accumulators where the result holds the first one of each.
inline bool folds_in_place(const SpreadAttrs& attrs) {
  return (attrs.mode == kMax || attrs.mode == kMin) && attrs.include_self != 0;
}

// Sums of a row of the last dimension are kept on the stack, where its elements alone are indexed.
inline constexpr int64_t kRowSums = 4096;
inline bool sums_rows(By by, int64_t axis, int rank, int64_t length) {
  return by != By::Flat && axis == (rank > 0 ? rank - 1 : 0) && length <= kRowSums;
}
inline bool sums_rows(By by, int64_t axis, const Problem& p, int param) {
  if (!p.attrs || !p.params || p.n_params <= param) return false;
  const ParamMeta& y = p.params[param];
  return sums_rows(by, axis, y.rank, y.rank > 0 ? y.shape[y.rank - 1] : 1);
}

template <By kBy>
int64_t gradient_workspace(const Problem& p) {
  const int dx = CollectBackwardArgs::dx;
  const int64_t axis = p.attrs ? attributes<CollectAttrs>(p).axis : 0;
  return sums_rows(kBy, axis, p, dx) ? 0 : numel_of(p, dx) * accumulator_bytes(p.element, false);
}
template <By kBy, class Args>
int64_t reduce_workspace(const Problem& p) {
  const SpreadAttrs attrs = p.attrs ? attributes<SpreadAttrs>(p) : SpreadAttrs{};
  const bool counts = !p.attrs || counts_terms(attrs.mode, attrs.include_self != 0);
  if (p.attrs && folds_in_place(attrs)) return 0;
  return sums_rows(kBy, attrs.axis, p, Args::y) ? 0 : numel_of(p, Args::y) * accumulator_bytes(p.element, counts);
}

// Elements are counted in chunks before they are moved.
inline constexpr int64_t kChunk = 16384;
template <int kTested>
int64_t count_workspace(const Problem& p) {
  return (numel_of(p, kTested) + kChunk - 1) / kChunk * 8;
}
template <int kTested>
int64_t simt_count_workspace(const Problem& p) {
  return (numel_of(p, kTested) + kSimtChunk - 1) / kSimtChunk * 8;
}

// Where there are few bins threads count in tables of their own, and what lies in the first bins in several side by
// side.
struct BinTables {
  static constexpr int64_t kFewBins = int64_t{1} << 20, kVeryFewBins = 4096, kAside = 4;
  static constexpr int64_t kApart =
      24;  // counters between tables: what is a power of two apart shares its place in caches

  int64_t first, all;  // counters of a table of the first bins, and of all; one is for what lies in no bin
  bool shared;         // by all threads

  explicit BinTables(int64_t bins)
      : first(bins < kVeryFewBins ? bins + 1 : kVeryFewBins), all(bins + 1), shared(bins > kFewBins) {}
  int64_t of_thread() const { return kAside * (first + kApart) + (all > first ? all + kApart : 0); }
  // Beside them is noted which of them threads have in use.
  int64_t bytes() const { return (shared ? all : max_threads() * (of_thread() + 1)) * 8; }
};
template <class Args>
int64_t bins_workspace(const Problem& p) {
  return BinTables(numel_of(p, Args::y)).bytes();
}

// GPUs sort what is written by its place, and fold long lists in runs: for every column of what one index writes.
template <class Args>
int64_t simt_assign_workspace(const Problem& p) {
  return simt::sort_workspace(numel_of(p, Args::index));
}
template <By kBy, class Args, class Attrs, int kTarget>
int64_t simt_fold_workspace(const Problem& p) {
  int64_t columns = 1;
  if (kBy == By::Axis && p.params && p.attrs && p.n_params > kTarget) {
    const int64_t axis = attributes<Attrs>(p).axis;
    for (int d = 0; d < p.params[kTarget].rank; ++d) columns *= d == axis ? 1 : p.params[kTarget].shape[d];
  }
  const int64_t entries = numel_of(p, Args::index);
  return simt::sort_workspace(entries) + simt::runs_workspace(entries, columns, p.element == Element::F64 ? 16 : 8);
}
inline int64_t no_workspace(const Problem&) { return 0; }

// One set of rules for each way of working.
struct CpuRules {
  template <By kBy>
  static constexpr WorkspaceRule kGradient = gradient_workspace<kBy>;
  template <By kBy, class Args>
  static constexpr WorkspaceRule kReduce = reduce_workspace<kBy, Args>;
  template <class Args>
  static constexpr WorkspaceRule kAssign = no_workspace;
  template <int kTested>
  static constexpr WorkspaceRule kCount = count_workspace<kTested>;
  template <class Args, int>
  static constexpr WorkspaceRule kBins = bins_workspace<Args>;
  template <class Args>
  static constexpr ExtraCheck kFits = nullptr;
  template <int kCounted>
  static constexpr ExtraCheck kCounts = nullptr;
};
template <int kCounted>
int64_t simt_bins_workspace(const Problem& p) {
  return simt::sort_workspace(numel_of(p, kCounted)) + kLargest * 8;
}
template <int kSorted>
Reason sort_fits(const Problem& p) {
  if (numel_of(p, kSorted) < (int64_t{1} << 31)) return {};
  return {"index_shape", "fewer than 2^31 indices", "a GPU counts them in 32 bits"};
}
struct SimtRules {
  template <By kBy>
  static constexpr WorkspaceRule kGradient =
      simt_fold_workspace<kBy, CollectBackwardArgs, CollectAttrs, CollectBackwardArgs::dx>;
  template <By kBy, class Args>
  static constexpr WorkspaceRule kReduce = simt_fold_workspace<kBy, Args, SpreadAttrs, Args::y>;
  template <class Args>
  static constexpr WorkspaceRule kAssign = simt_assign_workspace<Args>;
  template <int kTested>
  static constexpr WorkspaceRule kCount = simt_count_workspace<kTested>;
  template <class Args, int kCounted>
  static constexpr WorkspaceRule kBins = simt_bins_workspace<kCounted>;
  template <class Args>
  static constexpr ExtraCheck kFits = sort_fits<Args::index>;
  template <int kCounted>
  static constexpr ExtraCheck kCounts = sort_fits<kCounted>;
};

template <By kBy>
constexpr auto collect_row(const char* op) {
  return row<Collect<kBy>>(op)
      .name("rows")
      .takes(kWhole, kIndex)
      .template args_of<CollectArgs>()
      .template attrs_of<CollectAttrs>()
      .exact();
}
template <By kBy, class Rules>
constexpr auto gradient_row(const char* op) {
  return row<CollectBackward<kBy>>(op)
      .backward()
      .name("ordered")
      .takes(kFloats, kIndex)
      .template args_of<CollectBackwardArgs>()
      .template attrs_of<CollectAttrs>()
      .scratch(Rules::template kGradient<kBy>)
      .only_if(Rules::template kFits<CollectBackwardArgs>)
      .sum(1);
}
template <class Tag, class Args, class Rules>
constexpr auto written_row(const char* op, Elements elements) {
  return row<Tag>(op)
      .name("ordered")
      .takes(elements, kIndex)
      .template args_of<Args>()
      .template attrs_of<SpreadAttrs>()
      .in_place_of(1u << Args::x)
      .only_if(Rules::template kFits<Args>);
}
template <class Tag, class Args, class Rules>
constexpr auto assign_row(const char* op, Elements elements) {
  return written_row<Tag, Args, Rules>(op, elements).scratch(Rules::template kAssign<Args>).exact();
}
template <By kBy, class Args, class Rules>
constexpr auto reduce_row(const char* op) {
  return written_row<Reduce<kBy>, Args, Rules>(op, kReal).scratch(Rules::template kReduce<kBy, Args>).sum(2);
}
template <class Tag, class Args, int kTested, class Rules>
constexpr auto kept_row(const char* op, Elements elements) {
  return row<Tag>(op)
      .name("ordered")
      .takes(elements)
      .template args_of<Args>()
      .scratch(Rules::template kCount<kTested>)
      .exact();
}

template <class Tag, class Args, int kCounted, class Rules>
constexpr auto counting_row(const char* op, Elements elements, Elements index = {}) {
  return row<Tag>(op)
      .name("tables")
      .takes(elements, index)
      .template args_of<Args>()
      .scratch(Rules::template kBins<Args, kCounted>)
      .only_if(Rules::template kCounts<kCounted>)
      .exact();
}

// Rows whose workspace differs between the CPU and GPUs.
template <class Rules>
constexpr auto ordered() {
  return table(
      gradient_row<By::Element, Rules>("gather"), gradient_row<By::Axis, Rules>("index_select"),
      gradient_row<By::Flat, Rules>("take"), assign_row<Assign<By::Element>, ScatterArgs, Rules>("scatter", kReal),
      assign_row<Assign<By::Axis>, SpreadArgs, Rules>("index_copy", kWhole),
      reduce_row<By::Element, SpreadArgs, Rules>("scatter_reduce"),
      reduce_row<By::Axis, IndexAddArgs, Rules>("index_add"), assign_row<Fill, FillArgs, Rules>("index_fill", kReal),
      kept_row<Nonzero, NonzeroArgs, NonzeroArgs::x, Rules>("nonzero", kReal),
      kept_row<MaskedSelect, MaskedSelectArgs, MaskedSelectArgs::mask, Rules>("masked_select", kWhole),
      counting_row<Bincount, BincountArgs, BincountArgs::index, Rules>("bincount", set_of(Element::I64), kInts),
      counting_row<Histc, HistcArgs, HistcArgs::x, Rules>("histc", kFloats));
}

inline constexpr auto kLocal =
    table(collect_row<By::Element>("gather"), collect_row<By::Axis>("index_select"), collect_row<By::Flat>("take"),
          row<OneHot>("one_hot").name("rows").takes(kReal, kIndex).args_of<OneHotArgs>().exact());
inline constexpr auto kCpu = ordered<CpuRules>();
inline constexpr auto kSimt = ordered<SimtRules>();

inline constexpr auto kTable = join(everywhere(kLocal), kCpu, on_cuda(kSimt), on_metal(kSimt));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::indexing
