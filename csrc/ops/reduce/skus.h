// The SKU table of the reductions.
#pragma once
#include "core/row.h"
#include "simt/fold_workspace.h"

namespace baracuda::reduce {

// axes: bit i set when dimension i is reduced.
BCU_ATTRS(ReduceAttrs, (i64, axes), (i64, keepdim))
// axis: -1 searches the whole tensor in its logical order.
BCU_ATTRS(ArgReduceAttrs, (i64, axis), (i64, keepdim))

struct Sum {};
struct Mean {};
struct SumTo {};
template <bool kMax>
struct Extremum {};
template <bool kMax>
struct ArgExtremum {};
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
inline int64_t partials(const Problem& p, int32_t out, int64_t bytes) {
  int64_t in_count = 1, out_count = 1;
  for (int i = 0; i < p.params[0].rank; ++i) in_count *= p.params[0].shape[i];
  for (int i = 0; i < p.params[out].rank; ++i) out_count *= p.params[out].shape[i];
  if (in_count < kSplitFrom) return 0;
  int64_t most = 2 * kMaxStrips * kColumnTile, wanted = out_count < most ? out_count * kMaxStrips : most;
  return (wanted < most ? wanted : most) * bytes;
}
inline int64_t value_partials(const Problem& p) { return partials(p, 1, 8); }
inline int64_t indexed_partials(const Problem& p) { return partials(p, 1, 16); }

constexpr int64_t reduced_count(const ParamMeta& x, int64_t axes) {
  int64_t n = 1;
  for (int i = 0; i < x.rank; ++i) n *= (axes >> i) & 1 ? x.shape[i] : 1;
  return n;
}
inline Reason not_empty(const Problem& p) {
  if (reduced_count(p.params[0], p.attrs[0]) > 0) return {};
  return {"x", "at least one element along the reduced axes", "an empty maximum or minimum has no value"};
}
inline Reason not_empty_axis(const Problem& p) {
  if (reduced_count(p.params[0], p.attrs[0] < 0 ? 0xff : int64_t{1} << p.attrs[0]) > 0) return {};
  return {"x", "at least one element along the searched axis", "an empty tensor has no position of its maximum"};
}

// The GPUs' kernels cut more finely.
inline int64_t simt_partials(const Problem& p, int64_t bytes) {
  int64_t in_count = 1, out_count = 1;
  for (int i = 0; i < p.params[0].rank; ++i) in_count *= p.params[0].shape[i];
  for (int i = 0; i < p.params[1].rank; ++i) out_count *= p.params[1].shape[i];
  return simt::fold_workspace(in_count, out_count, bytes);
}
inline int64_t simt_value_partials(const Problem& p) { return simt_partials(p, 8); }
inline int64_t simt_indexed_partials(const Problem& p) { return simt_partials(p, 16); }

// kSimt: the rows of GPUs.
template <class Tag, bool kSimt>
constexpr auto forward(const char* op) {
  const auto r = row<Tag>(op).name("blocked").template attrs_of<ReduceAttrs>();
  return r.scratch(kSimt ? &simt_value_partials : &value_partials);
}
// The cut into strips depends on how many sums there are.
template <class Tag, bool kSimt>
constexpr auto sum_of(const char* op) {
  const auto r = forward<Tag, kSimt>(op).takes(kFloats).sum(1);
  return kSimt ? r.not_batch_invariant() : r;
}
template <class Tag, bool kSimt>
constexpr auto extremum(const char* op) {
  return forward<Tag, kSimt>(op).takes(kReal).exact().only_if(&not_empty);
}
template <class Tag, bool kSimt>
constexpr auto search(const char* op) {
  return row<Tag>(op)
      .name("blocked")
      .takes(kReal, Element::I64 | Element::I32)
      .exact()
      .template attrs_of<ArgReduceAttrs>()
      .scratch(kSimt ? &simt_indexed_partials : &indexed_partials)
      .only_if(&not_empty_axis);
}
template <bool kSimt>
constexpr auto sum_to() {
  const auto r = row<SumTo>("sum_to").name("blocked").takes(kFloats).sum(1);
  return kSimt ? r.scratch(&simt_value_partials).not_batch_invariant() : r.scratch(&value_partials);
}
template <class Op>
constexpr auto gradient(const char* op) {
  return row<Backward<Op>>(op).backward().name("expand").takes(kFloats).template attrs_of<ReduceAttrs>();
}

inline constexpr Elements kSummed = kInts | kBool;

// Signatures: (x, y); backward of sum and mean (dy, dx); of amax and amin (dy, x, y, dx). The sum of integers is i64.
template <bool kSimt>
constexpr auto local() {
  return table(sum_of<Sum, kSimt>("sum"), forward<Sum, kSimt>("sum").name("integer").takes(kSummed).exact(),
               sum_of<Mean, kSimt>("mean"), extremum<Extremum<true>, kSimt>("amax"),
               extremum<Extremum<false>, kSimt>("amin"), search<ArgExtremum<true>, kSimt>("argmax"),
               search<ArgExtremum<false>, kSimt>("argmin"), sum_to<kSimt>(), gradient<Sum>("sum").exact(),
               gradient<Mean>("mean").ulp(1), gradient<Extremum<true>>("amax").ulp(1),
               gradient<Extremum<false>>("amin").ulp(1),
               row<Backward<SumTo>>("sum_to").backward().name("expand").takes(kFloats).exact());
}

inline constexpr auto kTable = local<false>() + on_cuda(local<true>()) + on_metal(local<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::reduce
