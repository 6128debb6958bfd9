// The SKU table of the losses.
#pragma once
#include "core/row.h"
#include "simt/fold_workspace.h"

namespace baracuda::loss {

enum class Reduction : int64_t { None, Mean, Sum };

// Targets equal to ignore_index add nothing to the loss, to its gradient or to the count that a mean divides by.
BCU_ATTRS(CrossEntropyAttrs, (i64, reduction), (i64, ignore_index))

struct CrossEntropy {};
struct CrossEntropyBackward {};
struct CrossEntropyFused {};

// The class axis: dimension 1 of [N, C, ...], or the only one of [C].
constexpr int class_axis(int rank) { return rank > 1 ? 1 : 0; }

// The fused op keeps the exponentials of a row for half types, whose output cannot hold them: a row of the compute type
// for each strip of rows, unless rows are so short that the stack holds them, or so long that they are computed again.
inline constexpr int64_t kStrips = 32;
inline constexpr int64_t kShortRow = 4096;
inline constexpr int64_t kLongRow = int64_t{1} << 18;
constexpr int64_t strips_of(int64_t rows) { return rows < kStrips ? rows : kStrips; }
// Each part of the workspace starts on a cache line.
constexpr int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

inline int64_t rows_of_logits(const ParamMeta& x) {
  int64_t rows = 1;
  for (int i = 0; i < x.rank; ++i) rows *= i == class_axis(x.rank) ? 1 : x.shape[i];
  return rows;
}
// One loss per row, added up in order afterwards.
inline int64_t row_losses(const Problem& p) {
  if (p.attrs[0] == static_cast<int64_t>(Reduction::None)) return 0;
  return whole_lines(rows_of_logits(p.params[0]) * (p.element == Element::F64 ? 8 : 4));
}
inline int64_t fused_scratch(const Problem& p) {
  const ParamMeta& x = p.params[0];
  const int64_t classes = x.rank > 0 ? x.shape[class_axis(x.rank)] : 0;
  if (!kHalves.has(p.element) || classes <= kShortRow) return row_losses(p);
  return row_losses(p) + strips_of(rows_of_logits(x)) * whole_lines((classes < kLongRow ? classes : kLongRow) * 4);
}

// On GPUs: the count of a mean's targets, and one loss per row, added up afterwards.
inline int64_t simt_count(const Problem& p) {
  return p.attrs[0] == static_cast<int64_t>(Reduction::Mean) ? whole_lines(sizeof(int64_t)) : 0;
}
inline int64_t simt_losses(const Problem& p) {
  if (p.attrs[0] == static_cast<int64_t>(Reduction::None)) return 0;
  return simt_count(p) + row_losses(p) + simt::fold_workspace(rows_of_logits(p.params[0]), 1, 8);
}

template <class Tag>
constexpr auto cross_entropy(const char* op) {
  return row<Tag>(op)
      .name("rows")
      .takes(kFloats, Element::I64 | Element::I32)
      .sum(4)
      .template attrs_of<CrossEntropyAttrs>();
}

// Signatures, all with the scalar label_smoothing; lse is f32, f64 for f64:
//   cross_entropy        (logits, target, loss, [lse])     backward (dloss, logits, target, lse, dlogits)
//   cross_entropy_fused  (logits, target, loss, [lse], dlogits): dlogits is the gradient for dloss = 1.
template <bool kSimt>
constexpr auto local() {
  const auto backward = cross_entropy<CrossEntropyBackward>("cross_entropy").backward().in_place();
  return table(cross_entropy<CrossEntropy>("cross_entropy").scratch(kSimt ? &simt_losses : &row_losses),
               kSimt ? backward.scratch(&simt_count) : backward,
               cross_entropy<CrossEntropyFused>("cross_entropy_fused")
                   .scratch(kSimt ? &simt_losses : &fused_scratch)
                   .in_place());
}

inline constexpr auto kTable = local<false>() + on_cuda(local<true>()) + on_metal(local<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::loss
