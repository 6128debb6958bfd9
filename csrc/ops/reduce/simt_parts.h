// What the launches of the reductions on a GPU are made of.
#pragma once
#include <cmath>

#include "backends/simt/family.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/simt.h"
#include "ops/reduce/skus.h"
#include "simt/fold_launch.h"
#include "simt/map_launch.h"
#include "simt/state_fold_launch.h"

namespace baracuda::reduce {

// x and y, which has x's dimensions with or without those that `axes` folds, as rows to fold.
inline simt::RowSpace<2> fold_space(const TensorView& x, const TensorView& y, uint32_t axes, bool ordered) {
  const IterationSpace space = space_of(x);
  const TensorView full = with_folded(y, x, axes);
  const Operand all[] = {operand(x, space), operand(full, space)};
  const simt::FoldDims<2> dims(space, axes, all, ordered);
  return simt::row_space(dims.space, dims.inner, dims.tensors);
}

// divisor: negative where nothing is divided.
template <template <class> class Fold>
Status fold_floats(const Launch& launch, const simt::RowSpace<2>& s, int64_t divisor = -1) {
  simt::FoldLaunch<Fold> fold(launch, s, launch.workspace, divisor);
  return simt::with_float(launch.element, [&](auto t) { return fold.template floats<decltype(t)>(); });
}
template <template <class> class Fold>
Status fold_any(const Launch& launch, const simt::RowSpace<2>& s) {
  if (is_float(launch.element)) return fold_floats<Fold>(launch, s);
  simt::FoldLaunch<Fold> fold(launch, s, launch.workspace);
  return kSigned.has(launch.element) ? fold.template integers<int64_t>() : fold.template integers<uint64_t>();
}

inline uint32_t axes_of(const Launch& launch) { return static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes); }
inline simt::RowSpace<2> fold_space(const Launch& launch, uint32_t axes, bool ordered) {
  return fold_space(launch[ReduceArgs::x], launch[ReduceArgs::y], axes, ordered);
}

// dx = F(in...), where inputs are tensors with x's dimensions, folded ones of size 1, and numbers.
class Expand {
 public:
  Expand(const Launch& launch, const TensorView& dx) : launch_(launch), space_(space_of(dx)), dx_(dx) {}
  simt::Input tensor(const TensorView& t) const { return operand(t, space_); }
  static simt::Input number(double v) {
    Scalar s;
    s.f = v;
    return s;
  }
  template <class F, class... Inputs>
  Status run(const Inputs&... inputs) const {
    const simt::Input in[] = {inputs...};
    const Operand out[] = {operand(dx_, space_)};
    return simt::map_floats<F>(launch_, space_, in, out);
  }

 private:
  const Launch& launch_;
  IterationSpace space_;
  const TensorView& dx_;
};

inline Status spread(const Launch& launch, const TensorView& dy, int64_t divisor) {
  const Expand expand(launch, launch[SpreadArgs::dx]);
  return expand.run<Spread>(expand.tensor(dy), Expand::number(static_cast<double>(divisor)));
}

// What the states of a fold are made from: x, and results with x's dimensions, with or without the folded ones.
inline simt::StateFold state_fold(const TensorView& x, uint32_t axes, void* workspace) {
  simt::StateFold f;
  f.space = space_of(x);
  f.axes = axes;
  f.tensors[0] = operand(x, f.space);
  f.workspace = workspace;
  return f;
}
inline void set_result(simt::StateFold& f, int k, const TensorView& y, const TensorView& x) {
  if (y.present()) f.tensors[simt::kFoldResult + k] = operand(with_folded(y, x, f.axes), f.space);
}
// Of a call that folds x to y.
inline simt::StateFold state_fold(const Launch& launch, uint32_t axes) {
  using Args = ReduceArgs;
  simt::StateFold f = state_fold(launch[Args::x], axes, launch.workspace);
  set_result(f, 0, launch[Args::y], launch[Args::x]);
  return f;
}
// Numbers kept per output at the start of the workspace, and what is left of it.
struct SimtKept {
  TensorView number[3];
  void* rest;
  SimtKept(const Launch& launch, const TensorView& x, uint32_t axes, int numbers) {
    const Element e = launch.element == Element::F64 ? Element::F64 : Element::F32;
    int64_t outputs = 0;
    for (int k = 0; k < numbers; ++k) {
      number[k] = kept_view(launch.workspace, e, x, axes);
      outputs = number[k].numel();
      number[k].data = static_cast<char*>(launch.workspace) + k * outputs * 8;
    }
    rest = static_cast<char*>(launch.workspace) + kept_bytes(outputs, numbers);
  }
};

// Folds integers as C, whatever their sign where that does not matter.
template <template <class> class Fold>
Status fold_real_states(const Launch& launch, const simt::StateFold& f) {
  if (is_float(launch.element)) return simt::fold_float_states<Fold>(launch, f);
  if (kSigned.has(launch.element)) return simt::fold_states<Fold<int64_t>>(launch, f);
  return simt::fold_states<Fold<uint64_t>>(launch, f);
}
template <bool kMax>
struct Places {
  template <class C>
  using Fold = PlaceFold<kMax, C>;
};

template <bool kMax>
struct Extreme {
  template <class C>
  using Fold = simt::ExtremeFold<kMax, C>;
  template <class C>
  using Search = simt::SearchFold<kMax, C>;
};

// places: where x, dx, and dy and y of each extremum stand in the signature.
template <int kPlaces>
Status share(const Launch& launch, uint32_t axes, bool magnitude, const int (&places)[kPlaces],
             bool exponential = false) {
  const TensorView& x = launch[places[0]];
  const IterationSpace space = space_of(x);
  Operand all[6] = {operand(x, space), operand(launch[places[1]], space)};
  for (int k = 2; k < kPlaces; ++k) all[k] = operand(with_folded(launch[places[k]], x, axes), space);
  ShareParams p{simt::row_space(space, axes, all), (kPlaces - 2) / 2, magnitude, exponential};
  const auto grid = simt::teams(p.s, 32, 512);
  return simt::with_float(launch.element, [&](auto t) {
    return simt::submit<Share<simt::StridedRows<decltype(t)>>>(launch, {grid.blocks}, grid.threads, p);
  });
}

inline Status place(const Launch& launch) {
  using Args = IndexedBackwardArgs;
  const TensorView& dx = launch[Args::dx];
  const IterationSpace space = space_of(dx);
  const uint32_t axes = dx.rank == 0 ? 0 : 1u << attributes<ArgReduceAttrs>(launch).axis;
  const TensorView dy = with_folded(launch[Args::dvalues], dx, axes);
  const TensorView index = with_folded(launch[Args::indices], dx, axes);
  const Operand all[] = {operand(dy, space), operand(index, space), operand(dx, space)};
  PlaceParams p{simt::row_space(space, axes, all), simt::fault_of(launch), launch.row, Args::indices};
  const auto grid = simt::teams(p.s, 32, 256, 2);
#if BCU_HAS_F64
  if (launch.element == Element::F64)
    return simt::submit<PlaceGradient<double>>(launch, {grid.blocks}, grid.threads, p);
#endif
  return simt::submit<PlaceGradient<float>>(launch, {grid.blocks}, grid.threads, p);
}

inline Status moments(const Launch& launch, const TensorView& x, const TensorView& y, const TensorView& mean,
                      uint32_t axes, double correction, MomentKind kind, void* workspace) {
  simt::StateFold f = state_fold(x, axes, workspace);
  set_result(f, 0, y, x);
  set_result(f, 1, mean, x);
  f.kind = kind;
  f.number.f = std::max(0.0, static_cast<double>(folded_count(x, axes)) - correction);
  return simt::fold_float_states<MomentFold>(launch, f);
}
inline TensorView absent() {
  TensorView none;
  none.rank = -1;
  return none;
}

template <bool kRoot, bool kWithMean>
Status variance_gradient(const Launch& launch) {
  using Call = VarianceCall<kRoot, kWithMean>;
  using Args = typename Call::BackwardArgs;
  const VarAttrs attrs = attributes<VarAttrs>(launch);
  const auto axes = static_cast<uint32_t>(attrs.axes);
  const TensorView& x = launch[Args::x];
  const SimtKept kept(launch, x, axes, 2);
  const Status status = moments(launch, x, kept.number[1], kept.number[0], axes, 0, kMeanRest, kept.rest);
  if (status != Status::Ok) return status;
  const Expand expand(launch, launch[Args::dx]);
  const auto count = static_cast<double>(folded_count(x, axes));
  const auto scale = Expand::number((kRoot ? 1 : 2) / std::max(0.0, count - attrs.correction)),
             n = Expand::number(count);
  const auto part = [&](int param) { return expand.tensor(with_folded(launch[param], x, axes)); };
  const auto dy = part(Call::kGradient), in = expand.tensor(x), mean = expand.tensor(kept.number[0]),
             rest = expand.tensor(kept.number[1]);
  if constexpr (kRoot && kWithMean)
    return expand.run<DeviationGradient>(dy, part(Args::dmean), in, mean, rest, part(Call::kSaved), scale, n);
  else if constexpr (kRoot)
    return expand.run<DeviationGradient>(dy, in, mean, rest, part(Call::kSaved), scale);
  else if constexpr (kWithMean)
    return expand.run<VarianceGradient>(dy, part(Args::dmean), in, mean, rest, scale, n);
  else
    return expand.run<VarianceGradient>(dy, in, mean, rest, scale);
}

inline Status norm(const Launch& launch) {
  const NormAttrs attrs = attributes<NormAttrs>(launch);
  simt::StateFold f = state_fold(launch, static_cast<uint32_t>(attrs.axes));
  f.number.f = attrs.p;
  if (std::isinf(attrs.p)) {
    f.kind = attrs.p > 0 ? kMostMagnitude : kLeastMagnitude;
    return simt::fold_float_states<RangeFold>(launch, f);
  }
  f.kind = attrs.p == 1 ? kNorm1 : attrs.p == 2 ? kNorm2 : kNormP;
  if (attrs.p != 0) return simt::fold_float_states<TermFold>(launch, f);
  f.kind = kCount;
  return simt::fold_float_states<CountFold>(launch, f);
}

inline Status norm_gradient(const Launch& launch) {
  using Args = ResultArgs;
  const NormAttrs attrs = attributes<NormAttrs>(launch);
  const auto axes = static_cast<uint32_t>(attrs.axes);
  if (std::isinf(attrs.p)) return share(launch, axes, true, {Args::x, Args::dx, Args::dy, Args::y});
  const Expand expand(launch, launch[Args::dx]);
  const auto part = [&](int param) { return expand.tensor(with_folded(launch[param], launch[Args::x], axes)); };
  const auto dy = part(Args::dy), x = part(Args::x), y = part(Args::y);
  if (attrs.p == 1) return expand.run<NormGradient1>(dy, x);
  if (attrs.p == 2) return expand.run<NormGradient2>(dy, x, y);
  return expand.run<NormGradient>(dy, x, y, Expand::number(attrs.p));
}

// `small` with the dimensions of `large`, which it is broadcast to; axis: one that it does not have.
inline TensorView without_axis(const TensorView& small, const TensorView& large, int axis) {
  TensorView t = small;
  t.rank = large.rank;
  for (int i = 0; i < large.rank; ++i) {
    const int from = i < axis ? i : i - 1;
    t.shape[i] = i == axis ? 1 : small.shape[from];
    t.strides[i] = i == axis ? 0 : small.strides[from];
  }
  return t;
}

template <class Args>
Status cosine_states(const Launch& launch, int kind, const TensorView* results, int n) {
  const int axis = static_cast<int>(attributes<CosineAttrs>(launch).axis);
  const TensorView &a = launch[Args::x1], &b = launch[Args::x2];
  simt::StateFold f;
  f.space = space_of(a.rank >= b.rank ? a : b);
  const TensorView& less = a.rank >= b.rank ? b : a;
  for (int i = 0; i < less.rank; ++i) {
    int64_t& size = f.space.shape[f.space.rank - less.rank + i];
    if (size == 1) size = less.shape[i];
  }
  f.axes = 1u << axis;
  f.tensors[0] = operand(a, f.space), f.tensors[1] = operand(b, f.space);
  TensorView shape = a;
  shape.rank = f.space.rank;
  for (int k = 0; k < n; ++k) {
    const bool whole = results[k].rank == shape.rank;
    f.tensors[simt::kFoldResult + k] = operand(whole ? results[k] : without_axis(results[k], shape, axis), f.space);
  }
  f.kind = kind;
  f.number = launch.scalars[Args::eps];
  return simt::fold_float_states<CosineFold>(launch, f);
}

}  // namespace baracuda::reduce
