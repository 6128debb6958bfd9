// The SKU table of the embedding lookup.
#pragma once
#include "core/row.h"

namespace baracuda::embedding {

// Tensors: ids [...], weight [V, D], y [..., D]. padding_idx (-1: none) matters to the gradient only.
BCU_ATTRS(EmbeddingAttrs, (i64, padding_idx))
// Tensors: dy [..., D], ids [...], dweight [V, D]. accumulate: add into dweight instead of overwriting it.
BCU_ATTRS(EmbeddingBackwardAttrs, (i64, padding_idx), (i64, accumulate))

struct Forward {};
struct Backward {};

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

// GPUs sort in tiles, and count the digits of each.
inline constexpr int64_t kSimtTile = 2048, kSimtDigits = 64;
inline int64_t simt_backward_workspace(const Problem& p) {
  return backward_workspace(p) + (id_count(p) + kSimtTile - 1) / kSimtTile * kSimtDigits * 4;
}

constexpr auto backward_row(WorkspaceRule workspace) {
  return row<Backward>("embedding")
      .backward()
      .name("sorted")
      .takes(kFloats, kIndex)
      .attrs_of<EmbeddingBackwardAttrs>()
      .sum(1)
      .scratch(workspace);
}

inline constexpr auto kLookup =
    table(row<Forward>("embedding").name("rows").takes(kFloats, kIndex).attrs_of<EmbeddingAttrs>().exact());
inline constexpr auto kSimtBackward = table(backward_row(simt_backward_workspace));

inline constexpr auto kTable =
    join(everywhere(kLookup), table(backward_row(backward_workspace)), on_cuda(kSimtBackward), on_metal(kSimtBackward));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::embedding
