// The SKU table of the losses.
#pragma once
#include "core/row.h"
#include "ops/loss/args.h"
#include "ops/loss/ctc_memory.h"
#include "ops/loss/linear.h"
#include "ops/loss/math.h"
#include "simt/fold_workspace.h"
#include "simt/map_sum_workspace.h"

namespace baracuda::loss {

// lse is f32, f64 for f64; weight: of each class. dlogits of the fused op is the gradient for dloss = 1.
BCU_ARGS(CrossEntropyArgs, (logits, target, weight, loss, lse), (label_smoothing))
BCU_ARGS(CrossEntropyBackwardArgs, (dloss, logits, target, weight, lse, dlogits), (label_smoothing))
BCU_ARGS(FusedArgs, (logits, target, loss, lse, dlogits), (label_smoothing))
BCU_ARGS(NllArgs, (input, target, weight, loss), ())
BCU_ARGS(NllBackwardArgs, (dloss, input, target, weight, dinput), ())

// What becomes of elementwise losses; BatchMean divides their sum by the input's first size.
enum class PointwiseReduction : int64_t { None, Mean, Sum, BatchMean };
BCU_ATTRS(PointwiseAttrs, (i64, reduction), (i64, log_target))
// All but loss and dloss broadcast to the input; dinput has the shape that all have together.
BCU_ARGS(PointwiseArgs, (input, target, weight, pos_weight, loss), ())
BCU_ARGS(PointwiseBackwardArgs, (dloss, input, target, weight, pos_weight, dinput), ())
BCU_ARGS(SmoothL1Args, (input, target, weight, pos_weight, loss), (beta))
BCU_ARGS(SmoothL1BackwardArgs, (dloss, input, target, weight, pos_weight, dinput), (beta))
BCU_ARGS(HuberArgs, (input, target, weight, pos_weight, loss), (delta))
BCU_ARGS(HuberBackwardArgs, (dloss, input, target, weight, pos_weight, dinput), (delta))

BCU_ATTRS(CtcAttrs, (i64, blank), (i64, zero_infinity))
BCU_ARGS(CtcArgs, (log_probs, targets, input_lengths, target_lengths, loss), ())
BCU_ARGS(CtcBackwardArgs, (dloss, log_probs, targets, input_lengths, target_lengths, dlog_probs), ())

// The arguments of a loss and of its gradient.
template <class Loss>
struct ArgsOf {
  using Forward = PointwiseArgs;
  using Backward = PointwiseBackwardArgs;
};
template <>
struct ArgsOf<SmoothL1> {
  using Forward = SmoothL1Args;
  using Backward = SmoothL1BackwardArgs;
};
template <>
struct ArgsOf<Huber> {
  using Forward = HuberArgs;
  using Backward = HuberBackwardArgs;
};

template <class Loss>
struct Pointwise {};
template <class Loss>
struct PointwiseBackward {};

struct CrossEntropy {};
struct CrossEntropyBackward {};
struct CrossEntropyFused {};
struct Probabilities {};  // cross_entropy with a probability for every class as target
struct ProbabilitiesBackward {};
struct Nll {};
struct NllBackward {};
struct Ctc {};
struct CtcBackward {};
struct LinearCrossEntropy {};
struct LinearCrossEntropyBackward {};
// The gradients of logits are rounded to the tensors' element, as cross_entropy's are.
struct LinearCrossEntropyRounded {};
struct LinearCrossEntropyRoundedBackward {};

// Where the losses of classes have their tensors, and the number label_smoothing; -1: nowhere.
struct Places {
  int input, target, weight = -1, loss = -1, lse = -1, dloss = -1, dinput = -1, smoothing = -1;
};
inline constexpr Places kForward{.input = CrossEntropyArgs::logits,
                                 .target = CrossEntropyArgs::target,
                                 .weight = CrossEntropyArgs::weight,
                                 .loss = CrossEntropyArgs::loss,
                                 .lse = CrossEntropyArgs::lse,
                                 .smoothing = CrossEntropyArgs::label_smoothing};
inline constexpr Places kBackward{.input = CrossEntropyBackwardArgs::logits,
                                  .target = CrossEntropyBackwardArgs::target,
                                  .weight = CrossEntropyBackwardArgs::weight,
                                  .lse = CrossEntropyBackwardArgs::lse,
                                  .dloss = CrossEntropyBackwardArgs::dloss,
                                  .dinput = CrossEntropyBackwardArgs::dlogits,
                                  .smoothing = CrossEntropyBackwardArgs::label_smoothing};
inline constexpr Places kFused{.input = FusedArgs::logits,
                               .target = FusedArgs::target,
                               .loss = FusedArgs::loss,
                               .lse = FusedArgs::lse,
                               .dinput = FusedArgs::dlogits,
                               .smoothing = FusedArgs::label_smoothing};
inline constexpr Places kNll{
    .input = NllArgs::input, .target = NllArgs::target, .weight = NllArgs::weight, .loss = NllArgs::loss};
inline constexpr Places kNllBackward{.input = NllBackwardArgs::input,
                                     .target = NllBackwardArgs::target,
                                     .weight = NllBackwardArgs::weight,
                                     .dloss = NllBackwardArgs::dloss,
                                     .dinput = NllBackwardArgs::dinput};

// The class axis: dimension 1 of [N, C, ...], or the only one of [C].
constexpr int class_axis(int rank) { return rank > 1 ? 1 : 0; }

// The fused op keeps the exponentials of a row for half types, whose output cannot hold them: a row of the compute type
// for each strip of rows, unless rows are so short that the stack holds them, or so long that they are computed again.
inline constexpr int64_t kStrips = 32;
inline constexpr int64_t kShortRow = 4096;
inline constexpr int64_t kLongRow = int64_t{1} << 18;
constexpr int64_t strips_of(int64_t rows) { return rows < kStrips ? rows : kStrips; }
inline int64_t rows_of_logits(const ParamMeta& x) {
  int64_t rows = 1;
  for (int i = 0; i < x.rank; ++i) rows *= i == class_axis(x.rank) ? 1 : x.shape[i];
  return rows;
}
// One loss per row, added up in order afterwards.
template <const Places& kAt>
int64_t row_losses(const Problem& p) {
  if (attributes<CrossEntropyAttrs>(p).reduction == static_cast<int64_t>(Reduction::None)) return 0;
  return whole_lines(rows_of_logits(p.params[kAt.input]) * (p.element == Element::F64 ? 8 : 4));
}
inline int64_t fused_scratch(const Problem& p) {
  const ParamMeta& x = p.params[FusedArgs::logits];
  const int64_t classes = x.rank > 0 ? x.shape[class_axis(x.rank)] : 0;
  if (!kHalves.has(p.element) || classes <= kShortRow) return row_losses<kFused>(p);
  return row_losses<kFused>(p) +
         strips_of(rows_of_logits(x)) * whole_lines((classes < kLongRow ? classes : kLongRow) * 4);
}

inline Reason same_element(const Problem& p) {
  if (p.element == p.aux) return {};
  return {"target", "the element of the logits, or class indices", "cast the target"};
}

// On GPUs: what a mean's targets count for and what classes weigh, and one loss per row, added up afterwards.
template <const Places& kAt>
int64_t simt_totals(const Problem& p) {
  bool weighted = false;
  if constexpr (kAt.weight >= 0) weighted = p.params[kAt.weight].rank >= 0;
  return weighted || attributes<CrossEntropyAttrs>(p).reduction == static_cast<int64_t>(Reduction::Mean)
             ? whole_lines(2 * sizeof(double))
             : 0;
}
template <const Places& kAt>
int64_t simt_losses(const Problem& p) {
  if (attributes<CrossEntropyAttrs>(p).reduction == static_cast<int64_t>(Reduction::None)) return simt_totals<kAt>(p);
  const int64_t rows = rows_of_logits(p.params[kAt.input]);
  return simt_totals<kAt>(p) + row_losses<kAt>(p) + simt::fold_workspace(rows, 1, 8);
}

template <class Tag, class Args>
constexpr auto of_classes(const char* op, const char* name, const char* on_gpus = "simt") {
  const auto plain = row<Tag>(op).name(name, on_gpus).takes(kFloats, Element::I64 | Element::I32);
  return plain.template args_of<Args>().template attrs_of<CrossEntropyAttrs>();
}

// Targets are class indices; of cross_entropy also numbers of the logits' element and shape.
template <bool kSimt>
constexpr auto local() {
  using Gradient = CrossEntropyBackwardArgs;
  const auto indices = of_classes<CrossEntropyBackward, Gradient>("cross_entropy", "rows")
                           .backward()
                           .sum(5)
                           .in_place_of(1u << Gradient::logits);
  const auto numbers =
      of_classes<ProbabilitiesBackward, Gradient>("cross_entropy", "probabilities", "simt_probabilities")
          .backward()
          .sum(6)
          .takes(kFloats, kFloats)
          .only_if(&same_element);
  const auto nll = of_classes<NllBackward, NllBackwardArgs>("nll_loss", "rows").backward().sum(2);
  return table(
      of_classes<CrossEntropy, CrossEntropyArgs>("cross_entropy", "rows")
          .sum(5)
          .scratch(kSimt ? &simt_losses<kForward> : &row_losses<kForward>),
      kSimt ? indices.scratch(&simt_totals<kBackward>) : indices,
      of_classes<CrossEntropyFused, FusedArgs>("cross_entropy_fused", "rows")
          .sum(4)
          .scratch(kSimt ? &simt_losses<kFused> : &fused_scratch)
          .in_place(),
      of_classes<Probabilities, CrossEntropyArgs>("cross_entropy", "probabilities", "simt_probabilities")
          .takes(kFloats, kFloats)
          .sum(6)
          .only_if(&same_element)
          .scratch(kSimt ? &simt_losses<kForward> : &row_losses<kForward>),
      kSimt ? numbers.scratch(&simt_totals<kBackward>) : numbers,
      of_classes<Nll, NllArgs>("nll_loss", "rows").sum(2).scratch(kSimt ? &simt_losses<kNll> : &row_losses<kNll>),
      kSimt ? nll.scratch(&simt_totals<kNllBackward>) : nll);
}

inline int64_t sum_scratch(const Problem& p) {
  return attributes<PointwiseAttrs>(p).reduction == static_cast<int64_t>(PointwiseReduction::None)
             ? 0
             : simt::kSumWorkspace;
}
template <class Tag, class Args>
constexpr auto map(const char* op, double bound) {
  const auto plain = row<Tag>(op).name("map").takes(kFloats).reads(kReal).sum(bound);
  return plain.template args_of<Args>().template attrs_of<PointwiseAttrs>();
}
template <class Loss, bool kSimt>
constexpr auto pointwise(const char* op, double bound) {
  const auto forward = map<Pointwise<Loss>, typename ArgsOf<Loss>::Forward>(op, bound).not_batch_invariant();
  return table(kSimt ? forward.scratch(&sum_scratch) : forward,
               map<PointwiseBackward<Loss>, typename ArgsOf<Loss>::Backward>(op, bound).backward());
}
template <bool kSimt>
constexpr auto elementwise() {
  return join(pointwise<Mse, kSimt>("mse_loss", 3), pointwise<L1, kSimt>("l1_loss", 2),
              pointwise<SmoothL1, kSimt>("smooth_l1_loss", 4), pointwise<Huber, kSimt>("huber_loss", 4),
              pointwise<Bce, kSimt>("binary_cross_entropy", 6),
              pointwise<BceWithLogits, kSimt>("binary_cross_entropy_with_logits", 8),
              pointwise<KlDiv, kSimt>("kl_div", 6));
}

// A sample's sums are its own, whatever is beside it.
template <class Args>
int64_t ctc_scratch(const Problem& p) {
  constexpr bool kBack = std::is_same_v<Args, CtcBackwardArgs>;
  const ParamMeta& targets = p.params[Args::targets];
  const bool wide = p.element == Element::F64;
  return CtcMemory(p.params[Args::log_probs].shape, targets.rank, targets.shape, kBack, wide).bytes;
}
template <class Tag, class Args>
constexpr auto ctc_row() {
  const auto plain = row<Tag>("ctc_loss").name("states").takes(kFloats, Element::I64 | Element::I32).sum(0.5);
  return plain.template args_of<Args>().template attrs_of<CtcAttrs>().scratch(&ctc_scratch<Args>);
}
inline constexpr auto kCtc = table(ctc_row<Ctc, CtcArgs>(), ctc_row<CtcBackward, CtcBackwardArgs>().backward());

// GPUs compute rows that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = not_alone(local<true>()) + elementwise<true>() + kCtc;

// Sums of products are the packed matmul's; those of rows over all chunks are added up in order.
template <class Tag, class Args>
constexpr auto linear_row(const char* name) {
  const auto plain = of_classes<Tag, Args>("linear_cross_entropy", name).sum(13).not_batch_invariant();
  return plain.scratch(&linear_scratch<Args>);
}
// Products with gradients in bf16 are dot products of pairs, twice as fast; rounding them takes half an ulp of each
// term, 2^-8, in units of f32's eps.
inline Reason wants_gradients(const Problem& p) {
  if (p.params[LinearArgs::dinput].rank >= 0) return {};
  return {"gradients_wanted", "True", "without gradients the other row does the same and promises more"};
}
template <class Tag, class Args>
constexpr auto rounded_row() {
  const auto plain = linear_row<Tag, Args>("chunks_bf16_dot").takes(set_of(Element::BF16), Element::I64 | Element::I32);
  return plain.sum(13 + 0x1p-8 / 0x1p-23).arch(5).prefer(10, "Zen5, 2026-11-24");
}
inline constexpr auto kLinear = table(linear_row<LinearCrossEntropy, LinearArgs>("chunks"),
                                      linear_row<LinearCrossEntropyBackward, LinearBackwardArgs>("chunks").backward(),
                                      rounded_row<LinearCrossEntropyRounded, LinearArgs>().only_if(&wants_gradients),
                                      rounded_row<LinearCrossEntropyRoundedBackward, LinearBackwardArgs>().backward());

inline constexpr auto kTable =
    local<false>() + elementwise<false>() + kCtc + kLinear + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::loss
