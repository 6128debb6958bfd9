// The SKU table of the norms over trailing dimensions.
#pragma once
#include "core/row.h"
#include "core/strips.h"
#include "simt/fold_workspace.h"

namespace baracuda::norm {

// dims: how many trailing dimensions are normalised together. weight_offset: added to every weight.
BCU_ATTRS(NormAttrs, (i64, dims), (f64, weight_offset))

struct RmsNorm {};
struct AddRmsNorm {};
struct RmsNormAdd {};
struct LayerNorm {};
template <class Op>
struct Backward {};

template <int kX, int kGradients>
int64_t gradient_partials(const Problem& p) {
  const ParamMeta& x = p.params[kX];
  int64_t rows = 1, length = 1, gradients = 0;
  for (int i = 0; i < x.rank; ++i) (i < x.rank - p.attrs[0] ? rows : length) *= x.shape[i];
  for (int k = 0; k < kGradients; ++k) gradients += p.params[p.n_params - 1 - k].rank >= 0;
  return partial_bytes(rows, length, gradients, p.element);
}

// On GPUs a strip is the rows of one team of threads, four teams to a block where a warp does a row.
inline constexpr int64_t kWarpRow = 512, kWarpStrips = 2048, kBlockStrips = 256;
constexpr int64_t simt_strips(int64_t rows, int64_t length) {
  const int64_t wanted = length <= kWarpRow ? (rows + 3) / 4 * 4 : rows;
  const int64_t most = length <= kWarpRow ? kWarpStrips : kBlockStrips;
  return wanted < most ? wanted : most;
}
template <int kX, int kGradients>
int64_t simt_partials(const Problem& p) {
  const ParamMeta& x = p.params[kX];
  int64_t rows = 1, length = 1, gradients = 0;
  for (int i = 0; i < x.rank; ++i) (i < x.rank - p.attrs[0] ? rows : length) *= x.shape[i];
  for (int k = 0; k < kGradients; ++k) gradients += p.params[p.n_params - 1 - k].rank >= 0;
  if (gradients == 0) return 0;
  const int64_t width = length < kWarpRow ? length : kWarpRow, bytes = p.element == Element::F64 ? 8 : 4;
  int64_t most = simt_strips(rows, width) * width;  // for every size up to these
  if (length > kWarpRow && simt_strips(rows, length) * length > most) most = simt_strips(rows, length) * length;
  return most * gradients * bytes + simt::fold_workspace(most, length, bytes);
}

template <class Op>
constexpr auto forward(const char* op) {
  return row<Op>(op).name("rows").takes(kFloats).sum(4).template attrs_of<NormAttrs>().in_place();
}
template <class Op>
constexpr auto backward(const char* op, WorkspaceRule scratch) {
  return row<Backward<Op>>(op)
      .backward()
      .name("rows")
      .takes(kFloats)
      .sum(4)
      .template attrs_of<NormAttrs>()
      .scratch(scratch)
      .not_batch_invariant();
}

// Signatures, optional tensors in brackets; scalar eps in the forward direction. mean and rstd are f32, f64 for f64.
//   rms_norm      (x, [weight], y, [rstd])                     backward (dy, x, [weight], rstd, dx, [dweight])
//   add_rms_norm  (x, residual, [weight], y, sum, [rstd])      backward (dy, [dsum], sum, [weight], rstd, dx,
//   [dweight])
//   rms_norm_add  (x, residual, [weight], y, [rstd])       backward as rms_norm's: that of residual is dy
//   layer_norm    (x, [weight], [bias], y, [mean], [rstd])
//                               backward (dy, x, [weight], mean, rstd, dx, [dweight], [dbias])
template <bool kSimt>
constexpr auto local() {
  return table(forward<RmsNorm>("rms_norm"), forward<AddRmsNorm>("add_rms_norm"), forward<RmsNormAdd>("rms_norm_add"),
               forward<LayerNorm>("layer_norm"),
               backward<RmsNorm>("rms_norm", kSimt ? &simt_partials<1, 1> : &gradient_partials<1, 1>),
               backward<RmsNorm>("rms_norm_add", kSimt ? &simt_partials<1, 1> : &gradient_partials<1, 1>),
               backward<AddRmsNorm>("add_rms_norm", kSimt ? &simt_partials<2, 1> : &gradient_partials<2, 1>),
               backward<LayerNorm>("layer_norm", kSimt ? &simt_partials<1, 2> : &gradient_partials<1, 2>));
}

// GPUs compute rows that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = not_alone(local<true>());

inline constexpr auto kTable = local<false>() + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::norm
