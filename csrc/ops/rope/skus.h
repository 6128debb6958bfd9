// The SKU table of rotary position embeddings.
#pragma once
#include "core/row.h"
#include "core/strips.h"
#include "simt/fold_workspace.h"

namespace baracuda::rope {

// interleaved: which elements are a pair, 0 = (i, i + rotary_dim / 2), 1 = (2i, 2i + 1). Columns from rotary_dim on
// pass through.
BCU_ATTRS(RopeAttrs, (i64, interleaved), (i64, rotary_dim))

template <int kSign>
struct Rotate {};
struct Table {};

// A norm of each row in front of the rotation: rms_norm_rope.
BCU_ATTRS(NormRopeAttrs, (i64, interleaved), (i64, rotary_dim), (f64, weight_offset))
struct NormRotate {};
struct NormRotateBackward {};

// Elements of a row that the kernels of rms_norm_rope keep.
inline constexpr int64_t kMostColumns = 2048;

// The gradient of weights is summed per strip of rows.
inline constexpr int64_t kSimtStrips = 256;
constexpr int64_t simt_strips(int64_t rows) { return rows < kSimtStrips ? rows : kSimtStrips; }
template <bool kSimt>
int64_t weight_partials(const Problem& p) {
  const ParamMeta& x = p.params[1];
  if (p.params[p.n_params - 1].rank < 0) return 0;
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.shape[i];
  const int64_t columns = x.shape[x.rank - 1];
  if (!kSimt) return partial_bytes(rows, columns, 1, p.element);
  const int64_t bytes = p.element == Element::F64 ? 8 : 4, all = simt_strips(rows) * columns;
  return all * bytes + simt::fold_workspace(all, columns, bytes);
}

inline constexpr auto kRotations =
    table(row<Rotate<1>>("rope").name("rows").takes(kFloats).attrs_of<RopeAttrs>().sum(1).in_place(),
          row<Rotate<-1>>("rope").backward().name("rows").takes(kFloats).attrs_of<RopeAttrs>().sum(1).in_place());
// Angles in f64, or, on Metal, which has none, in pairs of floats.
inline constexpr auto kTables = table(row<Table>("rope_table").name("double").takes(kFloats).sum(1));

// rms_norm_rope (x, [weight], cos, sin, [positions], y, [rstd]), scalars position and eps
//   backward    (dy, x, [weight], cos, sin, [positions], rstd, dx, [dweight]), scalar position
template <bool kSimt>
constexpr auto normed() {
  const auto rope = row<NormRotate>("rms_norm_rope").name("rows").takes(kFloats).attrs_of<NormRopeAttrs>();
  const auto back = row<NormRotateBackward>("rms_norm_rope").name("rows").takes(kFloats).attrs_of<NormRopeAttrs>();
  return table(
      rope.sum(4).in_place_of(1u << 0),
      back.backward().sum(4).in_place_of(1u << 0 | 1u << 1).scratch(&weight_partials<kSimt>).not_batch_invariant());
}

inline constexpr auto kTable = join(everywhere(kRotations), everywhere(kTables), normed<false>(),
                                    on_cuda(normed<true>()), on_metal(normed<true>()));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::rope
