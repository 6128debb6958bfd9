// The SKU table of reading and writing by index.
#pragma once
#include "core/row.h"
#include "ops/indexing/modes.h"
#include "simt/sort_workspace.h"

namespace baracuda::indexing {

// Tensors: x, index, y (dy, index, dx). wrap: negative indices count from the
// end.
BCU_ATTRS(CollectAttrs, (i64, axis), (i64, wrap))
// Tensors: x, index, source, y. mode: a Fold. Scalars: the value where there is
// no source; alpha of index_add.
BCU_ATTRS(SpreadAttrs, (i64, axis), (i64, wrap), (i64, mode), (i64, include_self))

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

// Sums of a row of the last dimension are kept on the stack, where its elements alone are indexed.
inline constexpr int64_t kRowSums = 4096;
inline bool sums_rows(By by, int64_t axis, int rank, int64_t length) {
  return by != By::Flat && axis == (rank > 0 ? rank - 1 : 0) && length <= kRowSums;
}
inline bool sums_rows(By by, const Problem& p, int param) {
  if (!p.attrs || !p.params || p.n_params <= param) return false;
  const ParamMeta& y = p.params[param];
  return sums_rows(by, p.attrs[0], y.rank, y.rank > 0 ? y.shape[y.rank - 1] : 1);
}

template <By kBy, int kTarget>
int64_t gradient_workspace(const Problem& p) {
  return sums_rows(kBy, p, kTarget) ? 0 : numel_of(p, kTarget) * accumulator_bytes(p.element, false);
}
template <By kBy, int kTarget>
int64_t reduce_workspace(const Problem& p) {
  const bool counts = !p.attrs || counts_terms(p.attrs[2], p.attrs[3] != 0);
  return sums_rows(kBy, p, kTarget) ? 0 : numel_of(p, kTarget) * accumulator_bytes(p.element, counts);
}

// Elements are counted in chunks before they are moved.
inline constexpr int64_t kChunk = 16384;
inline int64_t count_workspace(const Problem& p) { return (numel_of(p, 0) + kChunk - 1) / kChunk * 8; }
inline int64_t simt_count_workspace(const Problem& p) { return (numel_of(p, 0) + kSimtChunk - 1) / kSimtChunk * 8; }

// GPUs sort what is written by its place, and fold long lists in runs: for every column of what one index writes.
inline int64_t simt_assign_workspace(const Problem& p) { return simt::sort_workspace(numel_of(p, 1)); }
template <By kBy, int kTarget>
int64_t simt_fold_workspace(const Problem& p) {
  int64_t columns = 1;
  if (kBy == By::Axis && p.params && p.attrs && p.n_params > kTarget)
    for (int d = 0; d < p.params[kTarget].rank; ++d) columns *= d == p.attrs[0] ? 1 : p.params[kTarget].shape[d];
  const int64_t entries = numel_of(p, 1);
  return simt::sort_workspace(entries) + simt::runs_workspace(entries, columns, p.element == Element::F64 ? 16 : 8);
}
inline int64_t no_workspace(const Problem&) { return 0; }

// One set of rules for each way of working.
struct CpuRules {
  template <By kBy, int kTarget>
  static constexpr WorkspaceRule kGradient = gradient_workspace<kBy, kTarget>;
  template <By kBy, int kTarget>
  static constexpr WorkspaceRule kReduce = reduce_workspace<kBy, kTarget>;
  static constexpr WorkspaceRule kAssign = no_workspace, kCount = count_workspace;
  static constexpr ExtraCheck kFits = nullptr;
};
inline Reason sort_fits(const Problem& p) {
  if (numel_of(p, 1) < (int64_t{1} << 31)) return {};
  return {"index_shape", "fewer than 2^31 indices", "a GPU counts them in 32 bits"};
}
struct SimtRules {
  template <By kBy, int kTarget>
  static constexpr WorkspaceRule kGradient = simt_fold_workspace<kBy, kTarget>;
  template <By kBy, int kTarget>
  static constexpr WorkspaceRule kReduce = simt_fold_workspace<kBy, kTarget>;
  static constexpr WorkspaceRule kAssign = simt_assign_workspace, kCount = simt_count_workspace;
  static constexpr ExtraCheck kFits = sort_fits;
};

template <By kBy>
constexpr auto collect_row(const char* op) {
  return row<Collect<kBy>>(op).name("rows").takes(kWhole, kIndex).template attrs_of<CollectAttrs>().exact();
}
template <By kBy, class Rules>
constexpr auto gradient_row(const char* op) {
  return row<CollectBackward<kBy>>(op)
      .backward()
      .name("ordered")
      .takes(kFloats, kIndex)
      .template attrs_of<CollectAttrs>()
      .scratch(Rules::template kGradient<kBy, 2>)
      .only_if(Rules::kFits)
      .sum(1);
}
template <class Tag>
constexpr auto written_row(const char* op, Elements elements) {
  return row<Tag>(op).name("ordered").takes(elements, kIndex).template attrs_of<SpreadAttrs>().in_place_of(1u);
}
template <By kBy, class Rules>
constexpr auto assign_row(const char* op, Elements elements) {
  return written_row<Assign<kBy>>(op, elements).scratch(Rules::kAssign).only_if(Rules::kFits).exact();
}
template <By kBy, class Rules>
constexpr auto reduce_row(const char* op) {
  return written_row<Reduce<kBy>>(op, kReal).scratch(Rules::template kReduce<kBy, 3>).only_if(Rules::kFits).sum(2);
}

// Rows whose workspace differs between the CPU and GPUs.
template <class Rules>
constexpr auto ordered() {
  return table(gradient_row<By::Element, Rules>("gather"), gradient_row<By::Axis, Rules>("index_select"),
               gradient_row<By::Flat, Rules>("take"), assign_row<By::Element, Rules>("scatter", kReal),
               assign_row<By::Axis, Rules>("index_copy", kWhole), reduce_row<By::Element, Rules>("scatter_reduce"),
               reduce_row<By::Axis, Rules>("index_add"),
               written_row<Fill>("index_fill", kReal).scratch(Rules::kAssign).only_if(Rules::kFits).exact(),
               row<Nonzero>("nonzero").name("ordered").takes(kReal).scratch(Rules::kCount).exact(),
               row<MaskedSelect>("masked_select").name("ordered").takes(kWhole).scratch(Rules::kCount).exact());
}

inline constexpr auto kLocal =
    table(collect_row<By::Element>("gather"), collect_row<By::Axis>("index_select"), collect_row<By::Flat>("take"),
          row<OneHot>("one_hot").name("rows").takes(kReal, kIndex).exact());
inline constexpr auto kCpu = ordered<CpuRules>();
inline constexpr auto kSimt = ordered<SimtRules>();

inline constexpr auto kTable = join(everywhere(kLocal), kCpu, on_cuda(kSimt), on_metal(kSimt));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::indexing
