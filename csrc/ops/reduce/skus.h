// The SKU table of the reductions.
#pragma once
#include <bit>
#include <limits>

#include "core/row.h"
#include "simt/fold_workspace.h"

namespace baracuda::reduce {

// axes: bit i set when dimension i is reduced.
BCU_ATTRS(ReduceAttrs, (i64, axes), (i64, keepdim))
// axis: -1 searches the whole tensor in its logical order.
BCU_ATTRS(ArgReduceAttrs, (i64, axis), (i64, keepdim))
// The sum of squares is divided by count - correction.
BCU_ATTRS(VarAttrs, (i64, axes), (i64, keepdim), (f64, correction))
BCU_ATTRS(NormAttrs, (i64, axes), (i64, keepdim), (f64, p))
BCU_ATTRS(CosineAttrs, (i64, axis))

BCU_ARGS(ReduceArgs, (x, y), ())
BCU_ARGS(VarMeanArgs, (x, var, mean), ())
BCU_ARGS(StdMeanArgs, (x, std, mean), ())
BCU_ARGS(MinMaxArgs, (x, min, max), ())
BCU_ARGS(IndexedArgs, (x, values, indices), ())
BCU_ARGS(CosineArgs, (x1, x2, y), (eps))
BCU_ARGS(SpreadArgs, (dy, dx), ())        // gradients of sum, mean, sum_to and trace
BCU_ARGS(SelectArgs, (dy, x, dx), ())     // of nansum, nanmean and var
BCU_ARGS(ResultArgs, (dy, x, y, dx), ())  // of amax, amin, prod, logsumexp, norm and std
BCU_ARGS(VarMeanBackwardArgs, (dvar, dmean, x, dx), ())
BCU_ARGS(StdMeanBackwardArgs, (dstd, dmean, x, std, dx), ())
BCU_ARGS(MinMaxBackwardArgs, (dmin, dmax, x, min, max, dx), ())
BCU_ARGS(IndexedBackwardArgs, (dvalues, indices, dx), ())
BCU_ARGS(CosineBackwardArgs, (dy, x1, x2, dx1, dx2), (eps))

struct Sum {};
struct Mean {};
struct SumTo {};
struct Trace {};
struct Product {};
struct NanSum {};
struct NanMean {};
struct LogSumExp {};
struct Norm {};
struct MinMax {};
struct Cosine {};
enum class Truth { Count, Any, All };  // of values that are not zero
template <Truth kTruth>
struct Truths {};
// kRoot: the standard deviation; kWithMean: the mean is a second result.
template <bool kRoot, bool kWithMean>
struct Variance {};
// What its calls are given. kResult: the variance or deviation, kGradient: its gradient, kSaved: the deviation, given
// back.
template <bool kRoot, bool kWithMean>
struct VarianceCall {
  using Args = ReduceArgs;
  using BackwardArgs = SelectArgs;
  enum : int { kResult = Args::y, kGradient = BackwardArgs::dy };
};
template <>
struct VarianceCall<true, false> {
  using Args = ReduceArgs;
  using BackwardArgs = ResultArgs;
  enum : int { kResult = Args::y, kGradient = BackwardArgs::dy, kSaved = BackwardArgs::y };
};
template <>
struct VarianceCall<false, true> {
  using Args = VarMeanArgs;
  using BackwardArgs = VarMeanBackwardArgs;
  enum : int { kResult = Args::var, kGradient = BackwardArgs::dvar };
};
template <>
struct VarianceCall<true, true> {
  using Args = StdMeanArgs;
  using BackwardArgs = StdMeanBackwardArgs;
  enum : int { kResult = Args::std, kGradient = BackwardArgs::dstd, kSaved = BackwardArgs::std };
};
template <bool kMax>
struct Extremum {};
template <bool kMax>
struct ArgExtremum {};
template <bool kMax>
struct IndexedExtremum {};
template <class Op>
struct Backward {};

// Parts that a reduction with few outputs is cut into, so that all threads have work. The cut depends on sizes alone.
inline constexpr int64_t kMaxStrips = 64;
// Columns that one task keeps in its accumulators.
inline constexpr int64_t kColumnTile = 1024;
// A reduction of fewer elements is done in one part.
inline constexpr int64_t kSplitFrom = 65536;

// Partial results of all strips, for every size up to the problem's: strips * outputs, where strips <= kMaxStrips and
// strips * tasks < 2 * kMaxStrips for tasks of at most kColumnTile outputs.
constexpr int64_t count_of(const ParamMeta& t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank; ++i) n *= t.shape[i];
  return n;
}
constexpr int64_t partials(int64_t in_count, int64_t out_count, int64_t bytes) {
  if (in_count < kSplitFrom) return 0;
  int64_t most = 2 * kMaxStrips * kColumnTile, wanted = out_count < most ? out_count * kMaxStrips : most;
  return (wanted < most ? wanted : most) * bytes;
}
// Of folding tensor kIn into tensor kOut, with results of kBytes each; and for kKept numbers per result that are kept
// while something else is folded. The GPUs' kernels cut more finely.
inline constexpr int64_t kKeptAlign = 64;
constexpr int64_t kept_bytes(int64_t outputs, int64_t numbers) {
  return (outputs * numbers * 8 + kKeptAlign - 1) / kKeptAlign * kKeptAlign;
}
template <bool kSimt, int kIn, int kOut, int64_t kBytes, int64_t kKept = 0>
int64_t scratch_of(const Problem& p) {
  const int64_t in = count_of(p.params[kIn]), out = count_of(p.params[kOut]);
  return kept_bytes(out, kKept) + (kSimt ? simt::fold_workspace(in, out, kBytes) : partials(in, out, kBytes));
}

constexpr int64_t reduced_count(const ParamMeta& x, int64_t axes) {
  int64_t n = 1;
  for (int i = 0; i < x.rank; ++i) n *= (axes >> i) & 1 ? x.shape[i] : 1;
  return n;
}
template <class Args>
Reason not_empty(const Problem& p) {
  if (reduced_count(p.params[Args::x], attributes<ReduceAttrs>(p).axes) > 0) return {};
  return {"x", "at least one element along the reduced axes", "an empty maximum or minimum has no value"};
}
template <class Args>
Reason not_empty_axis(const Problem& p) {
  const int64_t axis = attributes<ArgReduceAttrs>(p).axis;
  if (reduced_count(p.params[Args::x], axis < 0 ? 0xff : int64_t{1} << axis) > 0) return {};
  return {"x", "at least one element along the searched axis", "an empty tensor has no position of its maximum"};
}

// An infinite or negative norm of nothing has no value.
inline Reason not_empty_norm(const Problem& p) {
  const double power = attributes<NormAttrs>(p).p;
  if (power >= 0 && power <= std::numeric_limits<double>::max()) return {};
  return not_empty<ReduceArgs>(p);
}
// kSimt: the rows of GPUs.
template <class Tag, bool kSimt>
constexpr auto forward(const char* op) {
  using Args = ReduceArgs;
  const auto r = row<Tag>(op).name("blocked").template args_of<Args>().template attrs_of<ReduceAttrs>();
  return r.scratch(&scratch_of<kSimt, Args::x, Args::y, 8>);
}
// The cut into strips depends on how many sums there are.
template <class Tag, bool kSimt>
constexpr auto sum_of(const char* op) {
  const auto r = forward<Tag, kSimt>(op).takes(kFloats).sum(1);
  return kSimt ? r.not_batch_invariant() : r;
}
template <class Tag, bool kSimt>
constexpr auto extremum(const char* op) {
  return forward<Tag, kSimt>(op).takes(kReal).exact().only_if(&not_empty<ReduceArgs>);
}
// kOut: a result.
template <class Tag, bool kSimt, class Args, int kOut>
constexpr auto search(const char* op) {
  return row<Tag>(op)
      .name("blocked")
      .takes(kReal, Element::I64 | Element::I32)
      .exact()
      .template args_of<Args>()
      .template attrs_of<ArgReduceAttrs>()
      .scratch(&scratch_of<kSimt, Args::x, kOut, 16>)
      .only_if(&not_empty_axis<Args>);
}
template <bool kSimt>
constexpr auto sum_to() {
  using Args = ReduceArgs;
  const auto r = row<SumTo>("sum_to").name("blocked").takes(kFloats).args_of<Args>().sum(1).scratch(
      &scratch_of<kSimt, Args::x, Args::y, 8>);
  return kSimt ? r.not_batch_invariant() : r;
}
// Folds whose partial results have kBytes. kOut: a result.
template <class Tag, bool kSimt, int64_t kBytes, int64_t kKept = 0, class Args = ReduceArgs, int kOut = ReduceArgs::y>
constexpr auto folded(const char* op) {
  const auto r = row<Tag>(op).name("blocked").takes(kFloats).scratch(&scratch_of<kSimt, Args::x, kOut, kBytes, kKept>);
  return (kSimt ? r.not_batch_invariant() : r).template args_of<Args>().template attrs_of<ReduceAttrs>();
}
template <Truth kTruth, bool kSimt>
constexpr auto truths(const char* op) {
  return forward<Truths<kTruth>, kSimt>(op).takes(kReal).exact();
}
template <bool kRoot, bool kWithMean, bool kSimt>
constexpr auto variance(const char* op) {
  using Call = VarianceCall<kRoot, kWithMean>;
  using Tag = Variance<kRoot, kWithMean>;
  return folded<Tag, kSimt, 32, 0, typename Call::Args, Call::kResult>(op).sum(4).template attrs_of<VarAttrs>();
}
template <bool kMax, bool kSimt>
constexpr auto indexed(const char* op) {
  return search<IndexedExtremum<kMax>, kSimt, IndexedArgs, IndexedArgs::values>(op);
}
template <class Op, class Args>
constexpr auto plain_gradient(const char* op) {
  return row<Backward<Op>>(op).backward().name("expand").takes(kFloats).template args_of<Args>();
}
template <class Op, class Args>
constexpr auto gradient(const char* op) {
  return plain_gradient<Op, Args>(op).template attrs_of<ReduceAttrs>();
}
template <bool kMax>
constexpr auto indexed_gradient(const char* op) {
  return plain_gradient<IndexedExtremum<kMax>, IndexedBackwardArgs>(op)
      .takes(kFloats, Element::I64 | Element::I32)
      .template attrs_of<ArgReduceAttrs>()
      .exact();
}
template <bool kSimt>
constexpr auto cosine_gradient(const char* op) {
  using Args = CosineBackwardArgs;
  const auto r = plain_gradient<Cosine, Args>(op).sum(8).template attrs_of<CosineAttrs>();
  return r.scratch(&scratch_of<kSimt, Args::x1, Args::dy, 0, 3>);
}
template <bool kRoot, bool kWithMean, bool kSimt>
constexpr auto variance_gradient(const char* op) {
  using Call = VarianceCall<kRoot, kWithMean>;
  using Args = typename Call::BackwardArgs;
  const auto r = plain_gradient<Variance<kRoot, kWithMean>, Args>(op).sum(4).template attrs_of<VarAttrs>();
  return (kSimt ? r.not_batch_invariant() : r).scratch(&scratch_of<kSimt, Args::x, Call::kGradient, 32, 2>);
}

inline constexpr Elements kSummed = kInts | kBool;

// The sum and the product of integers are i64.
template <bool kSimt>
constexpr auto sums() {
  using Args = ReduceArgs;
  const auto trace = row<Trace>("trace").name("blocked").takes(kFloats).args_of<Args>().sum(1).scratch(
      &scratch_of<kSimt, Args::x, Args::y, 8>);
  return table(forward<Sum, kSimt>("sum").name("integer").takes(kSummed).exact(),
               forward<Product, kSimt>("prod").name("integer").takes(kSummed).exact().scratch(
                   &scratch_of<kSimt, Args::x, Args::y, 24>),
               truths<Truth::Count, kSimt>("count_nonzero"), truths<Truth::Any, kSimt>("any"),
               truths<Truth::All, kSimt>("all"), trace, trace.name("integer").takes(kSummed).exact(),
               row<Cosine>("cosine_similarity")
                   .name("rows")
                   .takes(kFloats)
                   .args_of<CosineArgs>()
                   .attrs_of<CosineAttrs>()
                   .sum(4));
}
template <bool kSimt>
constexpr auto extrema() {
  return table(extremum<Extremum<true>, kSimt>("amax"), extremum<Extremum<false>, kSimt>("amin"),
               search<ArgExtremum<true>, kSimt, ReduceArgs, ReduceArgs::y>("argmax"),
               search<ArgExtremum<false>, kSimt, ReduceArgs, ReduceArgs::y>("argmin"),
               folded<MinMax, kSimt, 16, 0, MinMaxArgs, MinMaxArgs::min>("aminmax").takes(kReal).exact().only_if(
                   &not_empty<MinMaxArgs>),
               indexed<true, kSimt>("max"), indexed<false, kSimt>("min"));
}
template <bool kSimt>
constexpr auto gradients() {
  return table(
      gradient<Sum, SpreadArgs>("sum").exact(), gradient<Mean, SpreadArgs>("mean").ulp(1),
      gradient<Extremum<true>, ResultArgs>("amax").ulp(1), gradient<Extremum<false>, ResultArgs>("amin").ulp(1),
      plain_gradient<SumTo, SpreadArgs>("sum_to").exact(), plain_gradient<Trace, SpreadArgs>("trace").exact(),
      gradient<NanSum, SelectArgs>("nansum").exact(),
      gradient<NanMean, SelectArgs>("nanmean").ulp(1).scratch(&scratch_of<kSimt, SelectArgs::x, SelectArgs::dy, 24, 1>),
      gradient<LogSumExp, ResultArgs>("logsumexp").sum(4),
      plain_gradient<Norm, ResultArgs>("norm").sum(8).template attrs_of<NormAttrs>(),
      gradient<MinMax, MinMaxBackwardArgs>("aminmax").ulp(1), indexed_gradient<true>("max"),
      indexed_gradient<false>("min"), cosine_gradient<kSimt>("cosine_similarity"));
}
// Columns are folded side by side, and rows in as many strips as there are threads for.
template <bool kSimt>
constexpr auto rounded() {
  return table(sum_of<Sum, kSimt>("sum"), sum_of<Mean, kSimt>("mean"), sum_to<kSimt>(),
               folded<NanSum, kSimt, 24>("nansum").sum(1), folded<NanMean, kSimt, 24, 1>("nanmean").sum(1),
               folded<Product, kSimt, 24>("prod").sum(1), folded<LogSumExp, kSimt, 24>("logsumexp").sum(4),
               folded<Norm, kSimt, 24>("norm").sum(4).template attrs_of<NormAttrs>().only_if(&not_empty_norm),
               variance<false, false, kSimt>("var"), variance<true, false, kSimt>("std"),
               variance<false, true, kSimt>("var_mean"), variance<true, true, kSimt>("std_mean"));
}
template <bool kSimt>
constexpr auto rounded_gradients() {
  return table(
      gradient<Product, ResultArgs>("prod").sum(2).scratch(&scratch_of<kSimt, ResultArgs::x, ResultArgs::dy, 24, 2>),
      variance_gradient<false, false, kSimt>("var"), variance_gradient<true, false, kSimt>("std"),
      variance_gradient<false, true, kSimt>("var_mean"), variance_gradient<true, true, kSimt>("std_mean"));
}
template <bool kSimt>
constexpr auto local() {
  return sums<kSimt>() + extrema<kSimt>() + gradients<kSimt>();
}

inline constexpr auto kTable = and_alone(rounded<false>() + rounded_gradients<false>()) + local<false>() +
                               on_cuda(rounded<true>() + rounded_gradients<true>() + local<true>()) +
                               on_metal(rounded<true>() + rounded_gradients<true>() + local<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::reduce
