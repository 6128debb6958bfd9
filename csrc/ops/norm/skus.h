// The SKU table of the norms over trailing dimensions.
#pragma once
#include "core/row.h"
#include "host/strips.h"
#include "simt/fold_workspace.h"

namespace baracuda::norm {

// dims: how many trailing dimensions are normalised together. weight_offset: added to every weight.
BCU_ATTRS(NormAttrs, (i64, dims), (f64, weight_offset))
// mean and rstd are f32, f64 for f64.
BCU_ARGS(RmsNormArgs, (x, weight, y, rstd), (eps))
BCU_ARGS(AddRmsNormArgs, (x, residual, weight, y, sum, rstd), (eps))
BCU_ARGS(RmsNormAddArgs, (x, residual, weight, y, rstd), (eps))
BCU_ARGS(LayerNormArgs, (x, weight, bias, y, mean, rstd), (eps))
BCU_ARGS(RmsNormBackwardArgs, (dy, x, weight, rstd, dx, dweight), ())  // of rms_norm_add, too: that of residual is dy
BCU_ARGS(AddRmsNormBackwardArgs, (dy, dsum, sum, weight, rstd, dx, dweight), ())
BCU_ARGS(LayerNormBackwardArgs, (dy, x, weight, mean, rstd, dx, dweight, dbias), ())

struct RmsNorm {};
struct AddRmsNorm {};
struct RmsNormAdd {};
struct LayerNorm {};
template <class Op>
struct Backward {};

// kX: what was normalised, kGradients: those of weights and biases.
template <int kX, int... kGradients>
int64_t gradient_partials(const Problem& p) {
  const ParamMeta& x = p.params[kX];
  int64_t rows = 1, length = 1;
  for (int i = 0; i < x.rank; ++i) (i < x.rank - attributes<NormAttrs>(p).dims ? rows : length) *= x.shape[i];
  const int64_t gradients = (0 + ... + (p.params[kGradients].rank >= 0));
  return partial_bytes(rows, length, gradients, p.element);
}

// On GPUs a strip is the rows of one team of threads, four teams to a block where a warp does a row.
inline constexpr int64_t kWarpRow = 512, kWarpStrips = 2048, kBlockStrips = 256;
constexpr int64_t simt_strips(int64_t rows, int64_t length) {
  const int64_t wanted = length <= kWarpRow ? (rows + 3) / 4 * 4 : rows;
  const int64_t most = length <= kWarpRow ? kWarpStrips : kBlockStrips;
  return wanted < most ? wanted : most;
}
template <int kX, int... kGradients>
int64_t simt_partials(const Problem& p) {
  const ParamMeta& x = p.params[kX];
  int64_t rows = 1, length = 1;
  for (int i = 0; i < x.rank; ++i) (i < x.rank - attributes<NormAttrs>(p).dims ? rows : length) *= x.shape[i];
  const int64_t gradients = (0 + ... + (p.params[kGradients].rank >= 0));
  if (gradients == 0) return 0;
  const int64_t width = length < kWarpRow ? length : kWarpRow, bytes = p.element == Element::F64 ? 8 : 4;
  int64_t most = simt_strips(rows, width) * width;  // for every size up to these
  if (length > kWarpRow && simt_strips(rows, length) * length > most) most = simt_strips(rows, length) * length;
  return most * gradients * bytes + simt::fold_workspace(most, length, bytes);
}

// On GPUs all rows have the same weights.
inline Reason same_weights(const Problem& p) {
  using Args = LayerNormArgs;
  for (int k : {int{Args::weight}, int{Args::bias}})
    if (p.params[k].rank > attributes<NormAttrs>(p).dims)
      return {"weight_rows", "0 on a GPU", "multiply and add behind the norm"};
  return {};
}

template <class Op, class Args>
constexpr auto forward(const char* op) {
  const auto r = row<Op>(op).name("rows").takes(kFloats).sum(4).in_place();
  return r.template args_of<Args>().template attrs_of<NormAttrs>();
}
template <class Op, bool kSimt, class Args, int kX, int... kGradients>
constexpr auto backward(const char* op) {
  return row<Backward<Op>>(op)
      .backward()
      .name("rows")
      .takes(kFloats)
      .sum(4)
      .template args_of<Args>()
      .template attrs_of<NormAttrs>()
      .scratch(kSimt ? &simt_partials<kX, kGradients...> : &gradient_partials<kX, kGradients...>)
      .not_batch_invariant();
}

template <bool kSimt>
constexpr auto rms_norm_backward(const char* op) {
  using Args = RmsNormBackwardArgs;
  return backward<RmsNorm, kSimt, Args, Args::x, Args::dweight>(op);
}
template <bool kSimt>
constexpr auto add_rms_norm_backward(const char* op) {
  using Args = AddRmsNormBackwardArgs;
  return backward<AddRmsNorm, kSimt, Args, Args::sum, Args::dweight>(op);
}
template <bool kSimt>
constexpr auto layer_norm_backward(const char* op) {
  using Args = LayerNormBackwardArgs;
  return backward<LayerNorm, kSimt, Args, Args::x, Args::dweight, Args::dbias>(op);
}
template <bool kSimt>
constexpr auto local() {
  return table(forward<RmsNorm, RmsNormArgs>("rms_norm"), forward<AddRmsNorm, AddRmsNormArgs>("add_rms_norm"),
               forward<RmsNormAdd, RmsNormAddArgs>("rms_norm_add"),
               forward<LayerNorm, LayerNormArgs>("layer_norm").only_if(kSimt ? &same_weights : nullptr),
               rms_norm_backward<kSimt>("rms_norm"), rms_norm_backward<kSimt>("rms_norm_add"),
               add_rms_norm_backward<kSimt>("add_rms_norm"), layer_norm_backward<kSimt>("layer_norm"));
}

// GPUs compute rows that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = not_alone(local<true>());

inline constexpr auto kTable = local<false>() + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::norm
