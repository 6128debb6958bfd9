// The SKU table of the losses.
#pragma once
#include "core/row.h"
#include "ops/loss/linear.h"
#include "ops/loss/math.h"
#include "simt/fold_workspace.h"
#include "simt/map_sum_workspace.h"

namespace baracuda::loss {

enum class Reduction : int64_t { None, Mean, Sum };

// Targets equal to ignore_index add nothing to the loss, to its gradient or to the count that a mean divides by.
BCU_ATTRS(CrossEntropyAttrs, (i64, reduction), (i64, ignore_index))

// What becomes of elementwise losses; BatchMean divides their sum by the input's first size.
enum class PointwiseReduction : int64_t { None, Mean, Sum, BatchMean };
BCU_ATTRS(PointwiseAttrs, (i64, reduction), (i64, log_target))

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
struct LinearCrossEntropy {};
struct LinearCrossEntropyBackward {};

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

inline Reason same_element(const Problem& p) {
  if (p.element == p.aux) return {};
  return {"target", "the element of the logits, or class indices", "cast the target"};
}

// On GPUs: what a mean's targets count for and what classes weigh, and one loss per row, added up afterwards.
template <int kWeight>
int64_t simt_totals(const Problem& p) {
  const bool weighted = kWeight >= 0 && p.params[kWeight < 0 ? 0 : kWeight].rank >= 0;
  return weighted || p.attrs[0] == static_cast<int64_t>(Reduction::Mean) ? whole_lines(2 * sizeof(double)) : 0;
}
template <int kWeight>
int64_t simt_losses(const Problem& p) {
  if (p.attrs[0] == static_cast<int64_t>(Reduction::None)) return simt_totals<kWeight>(p);
  return simt_totals<kWeight>(p) + row_losses(p) + simt::fold_workspace(rows_of_logits(p.params[0]), 1, 8);
}

template <class Tag>
constexpr auto of_classes(const char* op, const char* name) {
  return row<Tag>(op).name(name).takes(kFloats, Element::I64 | Element::I32).template attrs_of<CrossEntropyAttrs>();
}

// Signatures, the first three with the scalar label_smoothing; lse is f32, f64 for f64; weight: of each class.
//   cross_entropy        (logits, target, [weight], loss, [lse])
//     backward           (dloss, logits, target, [weight], lse, dlogits)
//   cross_entropy_fused  (logits, target, loss, [lse], dlogits): dlogits is the gradient for dloss = 1.
//   nll_loss             (input, target, [weight], loss), backward (dloss, input, target, [weight], dinput)
// Targets are class indices; of cross_entropy also numbers of the logits' element and shape.
template <bool kSimt>
constexpr auto local() {
  const auto indices = of_classes<CrossEntropyBackward>("cross_entropy", "rows").backward().sum(5).in_place_of(1u << 1);
  const auto numbers = of_classes<ProbabilitiesBackward>("cross_entropy", "probabilities").backward().sum(6);
  const auto nll = of_classes<NllBackward>("nll_loss", "rows").backward().sum(2);
  return table(of_classes<CrossEntropy>("cross_entropy", "rows").sum(5).scratch(kSimt ? &simt_losses<2> : &row_losses),
               kSimt ? indices.scratch(&simt_totals<3>) : indices,
               of_classes<CrossEntropyFused>("cross_entropy_fused", "rows")
                   .sum(4)
                   .scratch(kSimt ? &simt_losses<-1> : &fused_scratch)
                   .in_place(),
               of_classes<Probabilities>("cross_entropy", "probabilities")
                   .takes(kFloats, kFloats)
                   .sum(6)
                   .only_if(&same_element)
                   .scratch(kSimt ? &simt_losses<2> : &row_losses),
               kSimt ? numbers.takes(kFloats, kFloats).only_if(&same_element).scratch(&simt_totals<3>)
                     : numbers.takes(kFloats, kFloats).only_if(&same_element),
               of_classes<Nll>("nll_loss", "rows").sum(2).scratch(kSimt ? &simt_losses<2> : &row_losses),
               kSimt ? nll.scratch(&simt_totals<3>) : nll);
}

// Elementwise losses: (input, target, [weight], [pos_weight], loss) and a loss's number, broadcast to the input.
//   backward (dloss, input, target, [weight], [pos_weight], dinput), dinput of the shape that all have together
inline int64_t sum_scratch(const Problem& p) {
  return p.attrs[0] == static_cast<int64_t>(PointwiseReduction::None) ? 0 : simt::kSumWorkspace;
}
template <class Loss, bool kSimt>
constexpr auto pointwise(const char* op, double bound) {
  const auto forward =
      row<Pointwise<Loss>>(op).name("map").takes(kFloats).reads(kReal).template attrs_of<PointwiseAttrs>().sum(bound);
  return table(kSimt ? forward.scratch(&sum_scratch).not_batch_invariant() : forward.not_batch_invariant(),
               row<PointwiseBackward<Loss>>(op)
                   .backward()
                   .name("map")
                   .takes(kFloats)
                   .reads(kReal)
                   .template attrs_of<PointwiseAttrs>()
                   .sum(bound));
}
template <bool kSimt>
constexpr auto elementwise() {
  return join(pointwise<Mse, kSimt>("mse_loss", 3), pointwise<L1, kSimt>("l1_loss", 2),
              pointwise<SmoothL1, kSimt>("smooth_l1_loss", 4), pointwise<Huber, kSimt>("huber_loss", 4),
              pointwise<Bce, kSimt>("binary_cross_entropy", 6),
              pointwise<BceWithLogits, kSimt>("binary_cross_entropy_with_logits", 8),
              pointwise<KlDiv, kSimt>("kl_div", 6));
}

// GPUs compute rows that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = not_alone(local<true>()) + elementwise<true>();

// linear_cross_entropy (input, target, linear_weight, [linear_bias], [weight], loss, [lse], [dinput], [dlinear_weight],
//   [dlinear_bias]), scalars label_smoothing and dloss, which the gradients are for
//   backward           (dloss, input, target, linear_weight, [linear_bias], [weight], lse, dinput, dlinear_weight,
//   [dlinear_bias])
// Sums of products are the packed matmul's; those of rows over all chunks are added up in order.
inline constexpr auto kLinear = table(of_classes<LinearCrossEntropy>("linear_cross_entropy", "chunks")
                                          .sum(13)
                                          .scratch(&linear_scratch<false>)
                                          .not_batch_invariant(),
                                      of_classes<LinearCrossEntropyBackward>("linear_cross_entropy", "chunks")
                                          .backward()
                                          .sum(13)
                                          .scratch(&linear_scratch<true>)
                                          .not_batch_invariant());

inline constexpr auto kTable = local<false>() + elementwise<false>() + kLinear + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::loss
