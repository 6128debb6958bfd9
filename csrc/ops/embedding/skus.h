// The SKU table of the embedding lookup.
#pragma once
#include "core/row.h"
#include "ops/embedding/bag.h"
#include "simt/sort_workspace.h"

namespace baracuda::embedding {

// ids [...], weight [V, D], y [..., D].
BCU_ARGS(EmbeddingArgs, (ids, weight, y), ())
// padding_idx (-1: none) matters to the gradient only.
BCU_ATTRS(EmbeddingAttrs, (i64, padding_idx))
BCU_ARGS(EmbeddingBackwardArgs, (dy, ids, dweight), ())
// accumulate: add into dweight instead of overwriting it.
BCU_ATTRS(EmbeddingBackwardAttrs, (i64, padding_idx), (i64, accumulate))

// ids [n] or [bags, size], weight [V, D], offsets (absent where ids are [bags, size]), per_sample_weights (absent: 1),
// y [bags, D], max_indices [bags, D] of the maxima.
BCU_ARGS(BagArgs, (ids, weight, offsets, per_sample_weights, y, max_indices), ())
// weight and per_sample_weights are absent where these are 1.
BCU_ARGS(BagBackwardArgs, (dy, ids, offsets, weight, per_sample_weights, max_indices, dweight, dper_sample_weights), ())
// mode: a BagMode.
BCU_ATTRS(BagAttrs, (i64, mode), (i64, padding_idx), (i64, include_last_offset))

struct Forward {};
struct BagForward {};
struct BagBackward {};
struct Backward {};
struct AtomicBackward {};

// One occurrence of an id, to be sorted by id.
struct Occurrence {
  int64_t id, position;
};

// Of a gradient's problem; 0 where it is not known.
template <class Args>
int64_t id_count(const Problem& p) {
  if (p.params == nullptr || p.n_params <= Args::ids) return 0;
  const ParamMeta& ids = p.params[Args::ids];
  int64_t n = 1;
  for (int i = 0; i < ids.rank; ++i) n *= ids.shape[i];
  return n;
}

// The occurrences, and as many again to sort them with.
template <class Args>
int64_t backward_workspace(const Problem& p) {
  return 2 * id_count<Args>(p) * static_cast<int64_t>(sizeof(Occurrence));
}

// GPUs keep sums in two compute elements per column.
inline int64_t simt_backward_workspace(const Problem& p) {
  using Args = EmbeddingBackwardArgs;
  const int64_t ids = id_count<Args>(p), columns = ids == 0 ? 0 : p.params[Args::dweight].shape[1];
  return simt::sort_workspace(ids) + simt::runs_workspace(ids, columns, p.element == Element::F64 ? 16 : 8);
}
template <class Args>
Reason sort_fits(const Problem& p) {
  if (id_count<Args>(p) < (int64_t{1} << 31)) return {};
  return {"ids_shape", "fewer than 2^31 ids", "a GPU counts them in 32 bits"};
}

// Beside what sorting takes: the bag of each id, and how many ids of a bag count.
inline int64_t bag_count(const Problem& p) {
  using Args = BagBackwardArgs;
  return id_count<Args>(p) ? p.params[Args::dy].shape[0] : 0;
}
inline int64_t bag_workspace(const Problem& p) {
  using Args = BagBackwardArgs;
  return backward_workspace<Args>(p) + 8 * (id_count<Args>(p) + bag_count(p));
}
inline int64_t simt_bag_workspace(const Problem& p) {
  using Args = BagBackwardArgs;
  const int64_t ids = id_count<Args>(p), columns = ids == 0 ? 0 : p.params[Args::dy].shape[1];
  return simt::sort_workspace(ids) + simt::runs_workspace(ids, columns, p.element == Element::F64 ? 16 : 8) +
         4 * (ids + bag_count(p));
}
inline Reason bags_fit(const Problem& p) {
  if (const Reason no = sort_fits<BagBackwardArgs>(p)) return no;
  if (bag_count(p) < (int64_t{1} << 31)) return {};
  return {"offsets_shape", "fewer than 2^31 bags", "a GPU counts them in 32 bits"};
}

// Atomic additions come in any order, so that K of them are off by up to K / 2 eps: at most 512 eps sqrt(K) here.
inline Reason atomic_fits(const Problem& p) {
  if (id_count<EmbeddingBackwardArgs>(p) <= (int64_t{1} << 20)) return {};
  return {"ids_shape", "at most 2^20 ids", "the sorted row takes more"};
}

constexpr auto backward_row(WorkspaceRule workspace) {
  return row<Backward>("embedding")
      .backward()
      .name("sorted")
      .takes(kFloats, kIndex)
      .args_of<EmbeddingBackwardArgs>()
      .attrs_of<EmbeddingBackwardAttrs>()
      .sum(0.75)  // Kahan's bound is eps for more than one term, and there is no error for one
      .scratch(workspace);
}

inline constexpr auto kLookup = table(row<Forward>("embedding")
                                          .name("rows")
                                          .takes(kFloats, kIndex)
                                          .args_of<EmbeddingArgs>()
                                          .attrs_of<EmbeddingAttrs>()
                                          .exact());
inline constexpr auto kSimtBackward =
    table(backward_row(simt_backward_workspace).only_if(sort_fits<EmbeddingBackwardArgs>));
// One pass without a workspace, which is faster where few ids are the same; chosen by name or for want of workspace.
inline constexpr auto kSimtAtomic = table(row<AtomicBackward>("embedding")
                                              .backward()
                                              .takes(set_of(Element::F32), kIndex)
                                              .args_of<EmbeddingBackwardArgs>()
                                              .attrs_of<EmbeddingBackwardAttrs>()
                                              .sum(512)
                                              .only_if(atomic_fits));
// Products are rounded, by half an eps of each term; sums then as embedding's.
inline constexpr double kBagBound = 1.1;
constexpr auto bag_row() {
  return row<BagForward>("embedding_bag")
      .name("bags")
      .takes(kFloats, kIndex)
      .args_of<BagArgs>()
      .attrs_of<BagAttrs>()
      .sum(kBagBound);
}
constexpr auto bag_backward_row(WorkspaceRule workspace, ExtraCheck check) {
  return row<BagBackward>("embedding_bag")
      .backward()
      .name("sorted")
      .takes(kFloats, kIndex)
      .args_of<BagBackwardArgs>()
      .attrs_of<BagAttrs>()
      .sum(kBagBound)
      .scratch(workspace)
      .only_if(check);
}
inline constexpr auto kBags = table(bag_row());
inline constexpr auto kSimtBagBackward = table(bag_backward_row(simt_bag_workspace, bags_fit));

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
    join(everywhere(kLookup), table(backward_row(backward_workspace<EmbeddingBackwardArgs>)),
         preferred(on_cuda(kSimtBackward)), preferred(on_metal(kSimtBackward)), any_order(on_cuda(kSimtAtomic)),
         any_order(on_metal(kSimtAtomic)), everywhere(kBags), table(bag_backward_row(bag_workspace, nullptr)),
         on_cuda(kSimtBagBackward), on_metal(kSimtBagBackward));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::embedding
