// Launches the reductions and their gradients on a GPU.
#pragma once
#include "ops/reduce/simt_parts.h"

namespace baracuda {

template <>
struct SimtKernel<reduce::Sum> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch, reduce::axes_of(launch), false);
    if (is_float(launch.element)) return reduce::fold_floats<simt::SumFold>(launch, s);
    // Integers wrap, whatever their sign.
    return simt::FoldLaunch<simt::SumFold>(launch, s, launch.workspace).integers<uint64_t>();
  }
};

template <>
struct SimtKernel<reduce::Mean> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch, reduce::axes_of(launch), false);
    return reduce::fold_floats<simt::SumFold>(launch, s, s.length);
  }
};

template <>
struct SimtKernel<reduce::SumTo> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    const TensorView& x = launch[reduce::ReduceArgs::x];
    const TensorView y = reduce::aligned(launch[reduce::ReduceArgs::y], x, &axes);
    return reduce::fold_floats<simt::SumFold>(launch, reduce::fold_space(x, y, axes, false));
  }
};

template <bool kMax>
struct SimtKernel<reduce::Extremum<kMax>> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch, reduce::axes_of(launch), false);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Fold>(launch, s);
  }
};

template <bool kMax>
struct SimtKernel<reduce::ArgExtremum<kMax>> {
  static Status run(const Launch& launch) {
    const int64_t axis = attributes<reduce::ArgReduceAttrs>(launch).axis;
    const uint32_t axes = axis < 0 ? (1u << launch[reduce::ReduceArgs::x].rank) - 1u : 1u << axis;
    const auto s = reduce::fold_space(launch, axes, true);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Search>(launch, s);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Sum>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SpreadArgs;
    return reduce::spread(launch, reduce::with_folded(launch[Args::dy], launch[Args::dx], reduce::axes_of(launch)), 1);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Mean>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SpreadArgs;
    const uint32_t axes = reduce::axes_of(launch);
    const int64_t count = reduce::folded_count(launch[Args::dx], axes);
    return reduce::spread(launch, reduce::with_folded(launch[Args::dy], launch[Args::dx], axes), count);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::SumTo>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SpreadArgs;
    uint32_t axes;
    return reduce::spread(launch, reduce::aligned(launch[Args::dy], launch[Args::dx], &axes), 1);
  }
};

template <bool kMax>
struct SimtKernel<reduce::Backward<reduce::Extremum<kMax>>> {
  static Status run(const Launch& launch) {
    using Args = reduce::ResultArgs;
    return reduce::share(launch, reduce::axes_of(launch), false, {Args::x, Args::dx, Args::dy, Args::y});
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::MinMax>> {
  static Status run(const Launch& launch) {
    using Args = reduce::MinMaxBackwardArgs;
    return reduce::share(launch, reduce::axes_of(launch), false,
                         {Args::x, Args::dx, Args::dmin, Args::min, Args::dmax, Args::max});
  }
};

template <bool kMax>
struct SimtKernel<reduce::Backward<reduce::IndexedExtremum<kMax>>> {
  static Status run(const Launch& launch) { return reduce::place(launch); }
};

template <>
struct SimtKernel<reduce::Trace> {
  static Status run(const Launch& launch) {
    TensorView d = launch[reduce::ReduceArgs::x];
    d.rank = 1;
    d.shape[0] = std::min(d.shape[0], d.shape[1]);
    d.strides[0] += d.strides[1];
    const auto s = reduce::fold_space(d, launch[reduce::ReduceArgs::y], 1u, false);
    if (is_float(launch.element)) return reduce::fold_floats<simt::SumFold>(launch, s);
    return simt::FoldLaunch<simt::SumFold>(launch, s, launch.workspace).integers<uint64_t>();
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Trace>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SpreadArgs;
    const TensorView& dx = launch[Args::dx];
    const IterationSpace space = space_of(dx);
    const simt::Input in[] = {operand(launch[Args::dy], space)};
    const Operand out[] = {operand(dx, space)};
    const reduce::DiagonalSize size{std::max<int64_t>(1, dx.shape[1])};
    return simt::map_floats<reduce::DiagonalGradient, reduce::DiagonalSize>(launch, space, in, out, size);
  }
};

template <>
struct SimtKernel<reduce::NanSum> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch, reduce::axes_of(launch));
    f.kind = reduce::kNanSum;
    return simt::fold_float_states<reduce::TermFold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::NanMean> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch, reduce::axes_of(launch));
    f.kind = reduce::kNanMean;
    return simt::fold_float_states<reduce::TermFold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::Product> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch, reduce::axes_of(launch));
    f.kind = reduce::kProduct;
    if (is_float(launch.element)) return simt::fold_float_states<reduce::ProductFold>(launch, f);
    // Integers wrap, whatever their sign.
    return simt::fold_states<reduce::ProductFold<uint64_t>>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::LogSumExp> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch, reduce::axes_of(launch));
    return simt::fold_float_states<reduce::ExponentialFold>(launch, f);
  }
};

template <reduce::Truth kTruth>
struct SimtKernel<reduce::Truths<kTruth>> {
  static Status run(const Launch& launch) {
    using reduce::Truth;
    simt::StateFold f = reduce::state_fold(launch, reduce::axes_of(launch));
    f.kind = kTruth == Truth::Count ? reduce::kCount : kTruth == Truth::Any ? reduce::kAny : reduce::kAll;
    if (is_float(launch.element)) return simt::fold_float_states<reduce::CountFold>(launch, f);
    return simt::fold_states<reduce::CountFold<int64_t>>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::Norm> {
  static Status run(const Launch& launch) { return reduce::norm(launch); }
};

template <bool kRoot, bool kWithMean>
struct SimtKernel<reduce::Variance<kRoot, kWithMean>> {
  static Status run(const Launch& launch) {
    using Call = reduce::VarianceCall<kRoot, kWithMean>;
    using Args = typename Call::Args;
    const auto attrs = attributes<reduce::VarAttrs>(launch);
    TensorView mean = reduce::absent();
    if constexpr (kWithMean) mean = launch[Args::mean];
    return reduce::moments(launch, launch[Args::x], launch[Call::kResult], mean, static_cast<uint32_t>(attrs.axes),
                           attrs.correction, kRoot ? reduce::kDeviation : reduce::kVariance, launch.workspace);
  }
};

template <>
struct SimtKernel<reduce::MinMax> {
  static Status run(const Launch& launch) {
    using Args = reduce::MinMaxArgs;
    const TensorView &x = launch[Args::x], &least = launch[Args::min];
    simt::StateFold f = reduce::state_fold(x, reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, least, x);
    reduce::set_result(f, 1, launch[Args::max], x);
    f.kind = reduce::kBoth;
    if (least.numel() > 0 && reduce::folded_count(x, f.axes) == 0) return Status::InvalidProblem;
    return reduce::fold_real_states<reduce::RangeFold>(launch, f);
  }
};

template <bool kMax>
struct SimtKernel<reduce::IndexedExtremum<kMax>> {
  static Status run(const Launch& launch) {
    using Args = reduce::IndexedArgs;
    const TensorView &x = launch[Args::x], &values = launch[Args::values];
    const int64_t axis = attributes<reduce::ArgReduceAttrs>(launch).axis;
    simt::StateFold f = reduce::state_fold(x, axis < 0 ? 0 : 1u << axis, launch.workspace);
    reduce::set_result(f, 0, values, x);
    reduce::set_result(f, 1, launch[Args::indices], x);
    if (values.numel() > 0 && reduce::folded_count(x, f.axes) == 0) return Status::InvalidProblem;
    return reduce::fold_real_states<reduce::Places<kMax>::template Fold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::Cosine> {
  static Status run(const Launch& launch) {
    using Args = reduce::CosineArgs;
    return reduce::cosine_states<Args>(launch, reduce::kCosine, &launch[Args::y], 1);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Cosine>> {
  static Status run(const Launch& launch) {
    using Args = reduce::CosineBackwardArgs;
    const TensorView &a = launch[Args::x1], &b = launch[Args::x2];
    const int axis = static_cast<int>(attributes<reduce::CosineAttrs>(launch).axis);
    const reduce::SimtKept kept(launch, a, 1u << axis, 3);
    const Status status = reduce::cosine_states<Args>(launch, reduce::kCosineGradient, kept.number, 3);
    if (status != Status::Ok) return status;
    for (int k = 0; k < 2; ++k) {
      const reduce::Expand expand(launch, launch[k == 0 ? Args::dx1 : Args::dx2]);
      const auto dy = expand.tensor(reduce::without_axis(launch[Args::dy], a, axis));
      const auto x = expand.tensor(k == 0 ? a : b), other = expand.tensor(k == 0 ? b : a);
      const auto cross = expand.tensor(kept.number[0]), own = expand.tensor(kept.number[1 + k]);
      const Status done = expand.run<reduce::CosineGradient>(dy, x, other, cross, own);
      if (done != Status::Ok) return done;
    }
    return Status::Ok;
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::NanSum>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SelectArgs;
    const TensorView& x = launch[Args::x];
    const reduce::Expand expand(launch, launch[Args::dx]);
    const auto dy = expand.tensor(reduce::with_folded(launch[Args::dy], x, reduce::axes_of(launch)));
    return expand.run<reduce::SpreadNumbers>(dy, expand.tensor(x), reduce::Expand::number(1));
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::NanMean>> {
  static Status run(const Launch& launch) {
    using Args = reduce::SelectArgs;
    const TensorView& x = launch[Args::x];
    const uint32_t axes = reduce::axes_of(launch);
    const reduce::SimtKept kept(launch, x, axes, 1);
    simt::StateFold f = reduce::state_fold(x, axes, kept.rest);
    reduce::set_result(f, 1, kept.number[0], x);
    f.kind = reduce::kNanSum;
    const Status status = simt::fold_float_states<reduce::TermFold>(launch, f);
    if (status != Status::Ok) return status;
    const reduce::Expand expand(launch, launch[Args::dx]);
    const auto dy = expand.tensor(reduce::with_folded(launch[Args::dy], x, axes));
    return expand.run<reduce::SpreadNumbers>(dy, expand.tensor(x), expand.tensor(kept.number[0]));
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Product>> {
  static Status run(const Launch& launch) {
    using Args = reduce::ResultArgs;
    const TensorView& x = launch[Args::x];
    const uint32_t axes = reduce::axes_of(launch);
    const reduce::SimtKept kept(launch, x, axes, 2);
    simt::StateFold f = reduce::state_fold(x, axes, kept.rest);
    reduce::set_result(f, 0, kept.number[0], x);
    reduce::set_result(f, 1, kept.number[1], x);
    f.kind = reduce::kProductGradient;
    const Status status = simt::fold_float_states<reduce::ProductFold>(launch, f);
    if (status != Status::Ok) return status;
    const reduce::Expand expand(launch, launch[Args::dx]);
    const auto dy = expand.tensor(reduce::with_folded(launch[Args::dy], x, axes));
    const auto others = expand.tensor(kept.number[0]), zeros = expand.tensor(kept.number[1]);
    return expand.run<reduce::ProductGradient>(dy, expand.tensor(x), others, zeros);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::LogSumExp>> {
  static Status run(const Launch& launch) {
    using Args = reduce::ResultArgs;
    return reduce::share(launch, reduce::axes_of(launch), false, {Args::x, Args::dx, Args::dy, Args::y}, true);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Norm>> {
  static Status run(const Launch& launch) { return reduce::norm_gradient(launch); }
};

template <bool kRoot, bool kWithMean>
struct SimtKernel<reduce::Backward<reduce::Variance<kRoot, kWithMean>>> {
  static Status run(const Launch& launch) { return reduce::variance_gradient<kRoot, kWithMean>(launch); }
};

}  // namespace baracuda
