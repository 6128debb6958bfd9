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

// The occurrences, and as many again to sort them with.
inline int64_t backward_workspace(const Problem& p) {
  if (p.params == nullptr || p.n_params < 2) return 0;
  int64_t n = 1;
  for (int i = 0; i < p.params[1].rank; ++i) n *= p.params[1].shape[i];
  return 2 * n * static_cast<int64_t>(sizeof(Occurrence));
}

inline constexpr auto kTable =
    table(row<Forward>("embedding").name("rows").takes(kFloats, kIndex).attrs_of<EmbeddingAttrs>().exact(),
          row<Backward>("embedding")
              .backward()
              .name("sorted")
              .takes(kFloats, kIndex)
              .attrs_of<EmbeddingBackwardAttrs>()
              .sum(1)
              .scratch(&backward_workspace));

inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::embedding
