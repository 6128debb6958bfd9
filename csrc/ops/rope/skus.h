// The SKU table of rotary position embeddings.
#pragma once
#include "core/row.h"
#include "host/strips.h"
#include "simt/fold_workspace.h"

namespace baracuda::rope {

// interleaved: which elements are a pair, 0 = (i, i + rotary_dim / 2), 1 = (2i, 2i + 1). Columns from rotary_dim on
// pass through.
BCU_ATTRS(RopeAttrs, (i64, interleaved), (i64, rotary_dim))
BCU_ARGS(RopeArgs, (x, cos, sin, positions, y), (position))
BCU_ARGS(RopeBackwardArgs, (dy, cos, sin, positions, dx), (position))
BCU_ARGS(RopeTableArgs, (cos, sin), (base))

template <int kSign>
struct Rotate {};
struct Table {};

// What the calls of a rotation are given.
template <int kSign>
struct RotateCall {
  using Args = RopeArgs;
  enum : int { kFrom = Args::x, kTo = Args::y };
};
template <>
struct RotateCall<-1> {
  using Args = RopeBackwardArgs;
  enum : int { kFrom = Args::dy, kTo = Args::dx };
};

// A norm of each row in front of the rotation: rms_norm_rope.
BCU_ATTRS(NormRopeAttrs, (i64, interleaved), (i64, rotary_dim), (f64, weight_offset))
BCU_ARGS(NormRopeArgs, (x, weight, cos, sin, positions, y, rstd), (position, eps))
BCU_ARGS(NormRopeBackwardArgs, (dy, x, weight, cos, sin, positions, rstd, dx, dweight), (position))
struct NormRotate {};
struct NormRotateBackward {};

// Queries rotated where they lie, keys rotated into their cache, values copied into theirs.
BCU_ARGS(RopeAppendArgs, (q, k, v, cos, sin, positions, k_cache, v_cache), (position))
struct RotateAppend {};

// Elements of a row that the kernels of rms_norm_rope keep.
inline constexpr int64_t kMostColumns = 2048;

// The gradient of weights is summed per strip of rows.
inline constexpr int64_t kSimtStrips = 256;
constexpr int64_t simt_strips(int64_t rows) { return rows < kSimtStrips ? rows : kSimtStrips; }
template <bool kSimt>
int64_t weight_partials(const Problem& p) {
  using Args = NormRopeBackwardArgs;
  const ParamMeta& x = p.params[Args::x];
  if (p.params[Args::dweight].rank < 0) return 0;
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.shape[i];
  const int64_t columns = x.shape[x.rank - 1];
  if (!kSimt) return partial_bytes(rows, columns, 1, p.element);
  const int64_t bytes = p.element == Element::F64 ? 8 : 4, all = simt_strips(rows) * columns;
  return all * bytes + simt::fold_workspace(all, columns, bytes);
}

template <int kSign>
constexpr auto rotation() {
  const auto r = row<Rotate<kSign>>("rope").name("rows").takes(kFloats).sum(1).in_place();
  return r.template args_of<typename RotateCall<kSign>::Args>().template attrs_of<RopeAttrs>();
}
inline constexpr auto kRotations = table(rotation<1>(), rotation<-1>().backward());
// Angles in f64, or, on Metal, which has none, in pairs of floats.
inline constexpr auto kTables =
    table(row<Table>("rope_table").name("double").takes(kFloats).args_of<RopeTableArgs>().sum(1));

template <class Op, class Args>
constexpr auto norm_rope() {
  const auto r = row<Op>("rms_norm_rope").name("rows").takes(kFloats).sum(4);
  return r.template args_of<Args>().template attrs_of<NormRopeAttrs>();
}
template <bool kSimt>
constexpr auto normed() {
  using Args = NormRopeArgs;
  using Back = NormRopeBackwardArgs;
  const auto rope = norm_rope<NormRotate, Args>().in_place_of(1u << Args::x);
  const auto back = norm_rope<NormRotateBackward, Back>().backward().in_place_of(1u << Back::dy | 1u << Back::x);
  return table(rope, back.scratch(&weight_partials<kSimt>).not_batch_invariant());
}

inline constexpr auto kAppend = table(row<RotateAppend>("rope_append")
                                          .name("rows")
                                          .takes(kFloats)
                                          .args_of<RopeAppendArgs>()
                                          .attrs_of<RopeAttrs>()
                                          .sum(1));

inline constexpr auto kTable = join(everywhere(kRotations), everywhere(kTables), kAppend, normed<false>(),
                                    on_cuda(normed<true>()), on_metal(normed<true>()));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::rope
