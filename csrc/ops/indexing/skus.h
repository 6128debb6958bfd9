// The SKU table of reading and writing by index.
#pragma once
#include "core/row.h"

namespace baracuda::indexing {

// Tensors: x, index, y (dy, index, dx). wrap: negative indices count from the end.
BCU_ATTRS(CollectAttrs, (i64, axis), (i64, wrap))
// Tensors: x, index, source, y. mode: a Fold. Scalars: the value where there is no source; alpha of index_add.
BCU_ATTRS(SpreadAttrs, (i64, axis), (i64, wrap), (i64, mode), (i64, include_self))

enum Fold : int32_t { kAssign, kSum, kProd, kMean, kMax, kMin };

// How an index tensor belongs to the tensors: an index per element, one per place of an axis, or one into the flat
// tensor.
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

// Bytes of the accumulators of one element: a wide sum, what was lost of it (f64), and how many terms it has.
inline constexpr int64_t kWide = 8, kTerms = 4;
inline int64_t accumulator_bytes(Element e, bool counts) {
  return kWide + (e == Element::F64 ? kWide : 0) + (counts ? kTerms : 0);
}
inline bool counts_terms(int64_t mode, bool include_self) { return mode == kMean || !include_self; }

inline int64_t gradient_workspace(const Problem& p) { return numel_of(p, 2) * accumulator_bytes(p.element, false); }
inline int64_t reduce_workspace(const Problem& p) {
  const bool counts = !p.attrs || counts_terms(p.attrs[2], p.attrs[3] != 0);
  return numel_of(p, 3) * accumulator_bytes(p.element, counts);
}

// Elements are counted in chunks before they are moved.
inline constexpr int64_t kChunk = 16384;
inline int64_t count_workspace(const Problem& p) { return (numel_of(p, 0) + kChunk - 1) / kChunk * 8; }

template <By kBy>
constexpr auto collect(const char* op) {
  return row<Collect<kBy>>(op).name("rows").takes(kWhole, kIndex).template attrs_of<CollectAttrs>().exact();
}
template <By kBy>
constexpr auto collect_backward(const char* op) {
  return row<CollectBackward<kBy>>(op)
      .backward()
      .name("ordered")
      .takes(kFloats, kIndex)
      .template attrs_of<CollectAttrs>()
      .scratch(gradient_workspace)
      .sum(1);
}
template <By kBy>
constexpr auto reduce(const char* op) {
  return row<Reduce<kBy>>(op)
      .name("ordered")
      .takes(kReal, kIndex)
      .template attrs_of<SpreadAttrs>()
      .scratch(reduce_workspace)
      .in_place_of(1u)
      .sum(2);
}
template <class Tag>
constexpr auto assign(const char* op, Elements elements) {
  return row<Tag>(op).name("ordered").takes(elements, kIndex).template attrs_of<SpreadAttrs>().in_place_of(1u).exact();
}

inline constexpr auto kTable =
    table(collect<By::Element>("gather"), collect<By::Axis>("index_select"), collect<By::Flat>("take"),
          collect_backward<By::Element>("gather"), collect_backward<By::Axis>("index_select"),
          collect_backward<By::Flat>("take"), assign<Assign<By::Element>>("scatter", kReal),
          assign<Assign<By::Axis>>("index_copy", kWhole), assign<Fill>("index_fill", kReal),
          reduce<By::Element>("scatter_reduce"), reduce<By::Axis>("index_add"),
          row<Nonzero>("nonzero").name("ordered").takes(kReal).scratch(count_workspace).exact(),
          row<MaskedSelect>("masked_select").name("ordered").takes(kWhole).scratch(count_workspace).exact(),
          row<OneHot>("one_hot").name("rows").takes(kReal, kIndex).exact());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::indexing
