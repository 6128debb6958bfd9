// The SKU table of the embedding lookup.
#pragma once
#include "core/row.h"
#include "simt/sort_workspace.h"

namespace baracuda::embedding {

// Tensors: ids [...], weight [V, D], y [..., D]. padding_idx (-1: none) matters to the gradient only.
BCU_ATTRS(EmbeddingAttrs, (i64, padding_idx))
// Tensors: dy [..., D], ids [...], dweight [V, D]. accumulate: add into dweight instead of overwriting it.
BCU_ATTRS(EmbeddingBackwardAttrs, (i64, padding_idx), (i64, accumulate))

struct Forward {};
struct Backward {};
struct AtomicBackward {};

// One occurrence of an id, to be sorted by id.
struct Occurrence {
  int64_t id, position;
};

// Of a gradient's problem; 0 where it is not known.
inline int64_t id_count(const Problem& p) {
  if (p.params == nullptr || p.n_params < 2) return 0;
  int64_t n = 1;
  for (int i = 0; i < p.params[1].rank; ++i) n *= p.params[1].shape[i];
  return n;
}

// The occurrences, and as many again to sort them with.
inline int64_t backward_workspace(const Problem& p) {
  return 2 * id_count(p) * static_cast<int64_t>(sizeof(Occurrence));
}

// GPUs keep sums in two compute elements per column.
inline int64_t simt_backward_workspace(const Problem& p) {
  const int64_t ids = id_count(p), columns = ids == 0 ? 0 : p.params[2].shape[1];
  return simt::sort_workspace(ids) + simt::runs_workspace(ids, columns, p.element == Element::F64 ? 16 : 8);
}
inline Reason sort_fits(const Problem& p) {
  if (id_count(p) < (int64_t{1} << 31)) return {};
  return {"ids_shape", "fewer than 2^31 ids", "a GPU counts them in 32 bits"};
}

// Atomic additions come in any order, so that K of them are off by up to K / 2 eps: at most 512 eps sqrt(K) here.
inline Reason atomic_fits(const Problem& p) {
  if (id_count(p) <= (int64_t{1} << 20)) return {};
  return {"ids_shape", "at most 2^20 ids", "the sorted row takes more"};
}

constexpr auto backward_row(WorkspaceRule workspace) {
  return row<Backward>("embedding")
      .backward()
      .name("sorted")
      .takes(kFloats, kIndex)
      .attrs_of<EmbeddingBackwardAttrs>()
      .sum(0.75)  // Kahan's bound is eps for more than one term, and there is no error for one
      .scratch(workspace);
}

inline constexpr auto kLookup =
    table(row<Forward>("embedding").name("rows").takes(kFloats, kIndex).attrs_of<EmbeddingAttrs>().exact());
inline constexpr auto kSimtBackward = table(backward_row(simt_backward_workspace).only_if(sort_fits));
// One pass without a workspace, which is faster where few ids are the same; chosen by name or for want of workspace.
inline constexpr auto kSimtAtomic = table(row<AtomicBackward>("embedding")
                                              .backward()
                                              .takes(set_of(Element::F32), kIndex)
                                              .attrs_of<EmbeddingBackwardAttrs>()
                                              .sum(512)
                                              .only_if(atomic_fits));
template <class... Tags>
constexpr auto any_order(Table<Tags...> t) {
  for (Row& r : t.rows) {
    r.variant = "simt_atomic";
    r.guarantee.deterministic = r.guarantee.bit_stable = r.guarantee.batch_invariant = false;
  }
  return t;
}
template <class... Tags>
constexpr auto preferred(Table<Tags...> t) {
  for (Row& r : t.rows) r.preference = 10;
  return t;
}

inline constexpr auto kTable =
    join(everywhere(kLookup), table(backward_row(backward_workspace)), preferred(on_cuda(kSimtBackward)),
         preferred(on_metal(kSimtBackward)), any_order(on_cuda(kSimtAtomic)), any_order(on_metal(kSimtAtomic)));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::embedding
