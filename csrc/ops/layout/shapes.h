// What data movement asks of its tensors.
#pragma once
#include "core/shapes.h"
#include "ops/layout/axis.h"
#include "ops/layout/skus.h"

namespace baracuda::layout {

using Tensor = Shapes::Tensor;

inline constexpr int64_t kMostDiagonal = int64_t{1} << 40;

inline void copy_shapes(Shapes& s) {
  const auto x = s.in(MoveArgs::x);
  s.out(MoveArgs::y).is(x);
}
inline void flip_shapes(Shapes& s) {
  copy_shapes(s);
  s.axes(s.attrs<FlipAttrs>().axes, s.in(MoveArgs::x).rank());
}
inline void triangle_shapes(Shapes& s) {
  copy_shapes(s);
  s.in(MoveArgs::x).ranks(2, kMaxRank);
}
template <class Args, int kLeast, int kMost>
void filled_shapes(Shapes& s) {
  s.out(Args::y).ranks(kLeast, kMost);
}

inline void cat_shapes(Shapes& s) {
  using Args = ListArgs;
  const int64_t axis = s.attrs<ListAttrs>().axis;
  const auto y = s.out(Args::y).ranks(1, kMaxRank);
  s.axis(axis, y.rank());
  int64_t size = 0;
  for (int64_t i = 0, n = s.list(Args::tensors, Role::In, s.element()); i < n; ++i) {
    const auto x = s.of(Args::tensors, i);
    const int64_t own = x.at(static_cast<int>(axis));
    x.is(y.sizes().with(axis, own));
    size += std::max<int64_t>(own, 0);  // up to 2^20 of less than 2^59: compared before it can overflow
    if (!s.want(size <= y.at(static_cast<int>(axis)), Args::tensors, "sizes that make up the result's")) return;
  }
  y.is(y.sizes().with(axis, size));
}
inline void stack_shapes(Shapes& s) {
  using Args = ListArgs;
  const int64_t axis = s.attrs<ListAttrs>().axis, n = s.list(Args::tensors, Role::In, s.element());
  const auto y = s.out(Args::y).ranks(1, kMaxRank);
  s.axis(axis, y.rank());
  for (int64_t i = 0; i < n; ++i) s.of(Args::tensors, i).is(y.sizes().without(axis));
  y.is(y.sizes().with(axis, n));
}

// What a padded axis takes of `size` elements.
inline void padded_axis(Shapes& s, int64_t mode, int64_t size, int64_t low, int64_t high, int param) {
  const int64_t kept = size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0);
  s.want(kept >= 0, param, "not more cut off than there is");
  const int64_t most = mode == kReflect     ? kept - 1
                       : mode == kCircular  ? kept
                       : mode == kReplicate ? (kept > 0 ? int64_t{1} << 40 : 0)
                                            : INT64_MAX;
  const int64_t longest = std::max<int64_t>({low, high, 0});
  s.want(longest <= std::max<int64_t>(most, 0), param, "no more padding than the mode has elements for");
}
inline void padded(Shapes& s, const Tensor& x, const Tensor& y, int param) {
  constexpr int64_t kFar = int64_t{1} << 60;
  const PadAttrs attrs = s.attrs<PadAttrs>();
  const int64_t low[] = {attrs.low0, attrs.low1, attrs.low2, attrs.low3,
                         attrs.low4, attrs.low5, attrs.low6, attrs.low7};
  s.attribute(attrs.mode >= kConstant && attrs.mode <= kCircular, "mode", "a way to pad");
  y.ranks(x.rank());
  for (int i = 0; i < kMaxRank; ++i) {
    const bool there = i < x.rank() && i < y.rank();
    if (!s.attribute(there ? low[i] > -kFar && low[i] < kFar : low[i] == 0, "low", "a number of elements")) return;
    if (there) padded_axis(s, attrs.mode, x.at(i), low[i], y.at(i) - x.at(i) - low[i], param);
  }
}
inline void pad_shapes(Shapes& s) { padded(s, s.in(PadArgs::x), s.out(PadArgs::y), PadArgs::y); }
inline void pad_backward_shapes(Shapes& s) {
  padded(s, s.out(MoveBackwardArgs::dx), s.in(MoveBackwardArgs::dy), MoveBackwardArgs::dy);
}
inline void roll_shapes(Shapes& s) {
  copy_shapes(s);
  const RollAttrs attrs = s.attrs<RollAttrs>();
  const int64_t shifts[] = {attrs.shift0, attrs.shift1, attrs.shift2, attrs.shift3,
                            attrs.shift4, attrs.shift5, attrs.shift6, attrs.shift7};
  const int rank = s.in(MoveArgs::x).rank();
  for (int i = rank; i < kMaxRank; ++i) s.attribute(shifts[i] == 0, "shifts", "0 for an axis that is not there");
}

// y has a multiple of each size of x, and perhaps more dimensions in front.
inline void repeated(Shapes& s, const Tensor& x, const Tensor& y, int param) {
  constexpr int64_t kMost = int64_t{1} << 31;
  y.ranks(x.rank(), kMaxRank);
  for (int i = 1; i <= y.rank(); ++i) {
    const int64_t size = i <= x.rank() ? x.at(-i) : 1, made = y.at(-i);
    const bool whole = size == 0 ? made == 0 : made % size == 0 && made / size < kMost;
    s.want(whole, param, "a multiple of each size");
  }
  s.attribute(s.attrs<RepeatAttrs>().each == 0 || s.attrs<RepeatAttrs>().each == 1, "each", "0 or 1");
}
inline void repeat_shapes(Shapes& s) { repeated(s, s.in(MoveArgs::x), s.out(MoveArgs::y), MoveArgs::y); }
inline void repeat_backward_shapes(Shapes& s) {
  repeated(s, s.out(MoveBackwardArgs::dx), s.in(MoveBackwardArgs::dy), MoveBackwardArgs::dy);
}

// The diagonal of a matrix x, or a vector x as one.
inline void diagonal(Shapes& s, const Tensor& x, const Tensor& y) {
  const int64_t k = s.attrs<DiagonalAttrs>().diagonal;
  x.ranks(1, 2);
  if (!s.attribute(k > -kMostDiagonal && k < kMostDiagonal, "diagonal", "|diagonal| < 2^40")) return;
  const int64_t side = x.at(0) + (k < 0 ? -k : k);
  const int64_t length = std::min(x.at(0) + std::min<int64_t>(k, 0), x.at(1) - std::max<int64_t>(k, 0));
  y.is(x.rank() == 1 ? Sizes{side, side} : Sizes{std::max<int64_t>(length, 0)});
}
inline void diag_shapes(Shapes& s) { diagonal(s, s.in(MoveArgs::x), s.out(MoveArgs::y)); }
inline void diag_backward_shapes(Shapes& s) { diagonal(s, s.out(MoveBackwardArgs::dx), s.in(MoveBackwardArgs::dy)); }

inline void slice_shapes(Shapes& s) {
  using Args = SliceArgs;
  constexpr int64_t kMostStep = int64_t{1} << 31;
  const SliceAttrs attrs = s.attrs<SliceAttrs>();
  const auto x = s.in(Args::x).ranks(1, kMaxRank), source = s.in(Args::source);
  s.out(Args::y).is(x);
  if (!s.axis(attrs.axis, x.rank())) return;
  const int64_t size = source.at(static_cast<int>(attrs.axis)), whole = x.at(static_cast<int>(attrs.axis));
  source.is(x.sizes().with(attrs.axis, size));
  if (!s.attribute(attrs.step >= 1 && attrs.step < kMostStep, "step", "1 <= step < 2^31")) return;
  const bool fits = size <= 0 || (size - 1 <= whole / attrs.step && (size - 1) * attrs.step < whole);
  s.want(!s.real() || fits, Args::source, "a slice that fits into the tensor");
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "pad") return back ? pad_backward_shapes : pad_shapes;
  if (op == "repeat") return back ? repeat_backward_shapes : repeat_shapes;
  if (op == "diag") return back ? diag_backward_shapes : diag_shapes;
  if (op == "tril" || op == "triu") return triangle_shapes;
  return op == "copy"          ? copy_shapes
         : op == "fill"        ? filled_shapes<FillArgs, 0, kMaxRank>
         : op == "arange"      ? filled_shapes<ArangeArgs, 0, kMaxRank>
         : op == "linspace"    ? filled_shapes<LinspaceArgs, 1, 1>
         : op == "eye"         ? filled_shapes<EyeArgs, 2, 2>
         : op == "cat"         ? cat_shapes
         : op == "stack"       ? stack_shapes
         : op == "flip"        ? flip_shapes
         : op == "roll"        ? roll_shapes
         : op == "write_slice" ? slice_shapes
                               : nullptr;
}

}  // namespace baracuda::layout
