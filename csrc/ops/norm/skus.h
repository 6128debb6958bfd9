// The SKU table of the norms: over trailing dimensions, and of channels over a batch.
#pragma once
#include "core/row.h"
#include "host/strips.h"
#include "ops/quant/epilogue.h"
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

// Of (images, channels, ...). training: statistics are the batch's own, not the running ones; per_instance: each
// image's.
BCU_ATTRS(BatchNormAttrs, (i64, training), (i64, per_instance))
BCU_ARGS(BatchNormArgs, (x, weight, bias, running_mean, running_var, y, mean, rstd, next_mean, next_var),
         (eps, momentum))
BCU_ARGS(BatchNormBackwardArgs, (dy, x, weight, mean, rstd, dx, dweight, dbias), ())

// Over the last dimension, as codes (quant/epilogue.h). With a residual there is the sum, which is what is normalised.
BCU_ATTRS(CodedNormAttrs, (i64, group), (f64, weight_offset))
BCU_ARGS(CodedNormArgs, (x, residual, weight, bias, given, y, scale, sum), (eps))

struct RmsNorm {};
struct AddRmsNorm {};
struct RmsNormAdd {};
struct LayerNorm {};
struct BatchNorm {};
template <class Op>
struct Backward {};
template <bool kCenter>
struct CodedNorm {};

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

// What a batch norm needs at most of any size up to these: rows have statistics of their own, and are cut into strips,
// alone or side by side, whose sums are kept.
struct BatchSizes {
  int64_t groups, channels, rows;
  BatchSizes(const Problem& p, int x)
      : groups(attributes<BatchNormAttrs>(p).per_instance ? p.params[x].shape[0] : 1),
        channels(p.params[x].shape[1]),
        rows(groups * channels) {}
};
inline constexpr int64_t kRowNumbers = 4;  // of each row, besides its strips' two sums
template <int kX>
int64_t batch_partials(const Problem& p) {
  const BatchSizes n(p, kX);
  return 8 * (kRowNumbers * n.rows + 2 * (n.rows + (n.groups + kMaxStrips) * n.channels));
}
inline constexpr int64_t kBatchStrips = 64, kBatchTeams = 4096;  // on GPUs, of a row, and of all rows
template <int kX>
int64_t simt_batch_partials(const Problem& p) {
  const int64_t rows = BatchSizes(p, kX).rows, teams = rows > kBatchTeams ? rows : kBatchTeams;
  return (p.element == Element::F64 ? 8 : 4) * (2 * rows + 2 * teams);
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
constexpr auto batch_norm() {
  using Args = BatchNormArgs;
  return row<BatchNorm>("batch_norm")
      .name("channels")
      .takes(kFloats)
      .sum(4)
      .args_of<Args>()
      .attrs_of<BatchNormAttrs>()
      .scratch(kSimt ? &simt_batch_partials<Args::x> : &batch_partials<Args::x>)
      .in_place_of(1u << Args::x | 1u << Args::running_mean | 1u << Args::running_var)
      .not_batch_invariant();
}
template <bool kSimt>
constexpr auto batch_norm_backward() {
  using Args = BatchNormBackwardArgs;
  return row<Backward<BatchNorm>>("batch_norm")
      .backward()
      .name("channels")
      .takes(kFloats)
      .sum(4)
      .args_of<Args>()
      .attrs_of<BatchNormAttrs>()
      .scratch(kSimt ? &simt_batch_partials<Args::x> : &batch_partials<Args::x>)
      .in_place_of(1u << Args::dy | 1u << Args::x)
      .not_batch_invariant();
}
template <bool kSimt>
constexpr auto local() {
  return table(forward<RmsNorm, RmsNormArgs>("rms_norm"), forward<AddRmsNorm, AddRmsNormArgs>("add_rms_norm"),
               forward<RmsNormAdd, RmsNormAddArgs>("rms_norm_add"),
               forward<LayerNorm, LayerNormArgs>("layer_norm").only_if(kSimt ? &same_weights : nullptr),
               rms_norm_backward<kSimt>("rms_norm"), rms_norm_backward<kSimt>("rms_norm_add"),
               add_rms_norm_backward<kSimt>("add_rms_norm"), layer_norm_backward<kSimt>("layer_norm"),
               batch_norm<kSimt>(), batch_norm_backward<kSimt>());
}

// GPUs compute rows that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = not_alone(local<true>());

template <bool kCenter>
constexpr auto coded(const char* op) {
  using Args = CodedNormArgs;
  return row<CodedNorm<kCenter>>(op)
      .name("codes")
      .takes(quant::kRowValues, quant::kRowCodes)
      .sum(4)
      .template args_of<Args>()
      .template attrs_of<CodedNormAttrs>()
      .in_place_of(1u << Args::x | 1u << Args::residual);
}
inline constexpr auto kCoded = table(coded<false>("rms_norm_quantize"), coded<true>("layer_norm_quantize"));

inline constexpr auto kTable = local<false>() + on_cuda(kOnGpus) + on_metal(kOnGpus) + everywhere(kCoded);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::norm
