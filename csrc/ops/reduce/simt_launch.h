// Launches the reductions and their gradients on a GPU.
#pragma once
#include "ops/reduce/simt_parts.h"

namespace baracuda {

template <>
struct SimtKernel<reduce::Sum> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    if (is_float(launch.element)) return reduce::fold_floats<simt::SumFold>(launch, s);
    // Integers wrap, whatever their sign.
    return simt::FoldLaunch<simt::SumFold>(launch, s, launch.workspace).integers<uint64_t>();
  }
};

template <>
struct SimtKernel<reduce::Mean> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    return reduce::fold_floats<simt::SumFold>(launch, s, s.length);
  }
};

template <>
struct SimtKernel<reduce::SumTo> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    const TensorView y = reduce::aligned(launch[1], launch[0], &axes);
    return reduce::fold_floats<simt::SumFold>(launch, reduce::fold_space(launch[0], y, axes, false));
  }
};

template <bool kMax>
struct SimtKernel<reduce::Extremum<kMax>> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Fold>(launch, s);
  }
};

template <bool kMax>
struct SimtKernel<reduce::ArgExtremum<kMax>> {
  static Status run(const Launch& launch) {
    const int64_t axis = attributes<reduce::ArgReduceAttrs>(launch).axis;
    const uint32_t axes = axis < 0 ? (1u << launch[0].rank) - 1u : 1u << axis;
    const auto s = reduce::fold_space(launch[0], launch[1], axes, true);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Search>(launch, s);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Sum>> {
  static Status run(const Launch& launch) {
    return reduce::spread(launch, reduce::with_folded(launch[0], launch[1], reduce::axes_of(launch)), 1);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Mean>> {
  static Status run(const Launch& launch) {
    const uint32_t axes = reduce::axes_of(launch);
    const int64_t count = reduce::folded_count(launch[1], axes);
    return reduce::spread(launch, reduce::with_folded(launch[0], launch[1], axes), count);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::SumTo>> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    return reduce::spread(launch, reduce::aligned(launch[0], launch[1], &axes), 1);
  }
};

template <bool kMax>
struct SimtKernel<reduce::Backward<reduce::Extremum<kMax>>> {
  static Status run(const Launch& launch) {
    return reduce::share(launch, reduce::axes_of(launch), false, {1, 3, 0, 2});
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::MinMax>> {
  static Status run(const Launch& launch) {
    return reduce::share(launch, reduce::axes_of(launch), false, {2, 5, 0, 3, 1, 4});
  }
};

template <bool kMax>
struct SimtKernel<reduce::Backward<reduce::IndexedExtremum<kMax>>> {
  static Status run(const Launch& launch) { return reduce::place(launch); }
};

template <>
struct SimtKernel<reduce::Trace> {
  static Status run(const Launch& launch) {
    TensorView d = launch[0];
    d.rank = 1;
    d.shape[0] = std::min(d.shape[0], d.shape[1]);
    d.strides[0] += d.strides[1];
    const auto s = reduce::fold_space(d, launch[1], 1u, false);
    if (is_float(launch.element)) return reduce::fold_floats<simt::SumFold>(launch, s);
    return simt::FoldLaunch<simt::SumFold>(launch, s, launch.workspace).integers<uint64_t>();
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Trace>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[1]);
    const simt::Input in[] = {operand(launch[0], space)};
    const Operand out[] = {operand(launch[1], space)};
    const reduce::DiagonalSize size{std::max<int64_t>(1, launch[1].shape[1])};
    return simt::map_floats<reduce::DiagonalGradient, reduce::DiagonalSize>(launch, space, in, out, size);
  }
};

template <>
struct SimtKernel<reduce::NanSum> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    f.kind = reduce::kNanSum;
    return simt::fold_float_states<reduce::TermFold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::NanMean> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    f.kind = reduce::kNanMean;
    return simt::fold_float_states<reduce::TermFold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::Product> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    f.kind = reduce::kProduct;
    if (is_float(launch.element)) return simt::fold_float_states<reduce::ProductFold>(launch, f);
    // Integers wrap, whatever their sign.
    return simt::fold_states<reduce::ProductFold<uint64_t>>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::LogSumExp> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    return simt::fold_float_states<reduce::ExponentialFold>(launch, f);
  }
};

template <reduce::Truth kTruth>
struct SimtKernel<reduce::Truths<kTruth>> {
  static Status run(const Launch& launch) {
    using reduce::Truth;
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
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
    const auto attrs = attributes<reduce::VarAttrs>(launch);
    const TensorView mean = kWithMean ? launch[2] : reduce::absent();
    return reduce::moments<kRoot>(launch, launch[0], launch[1], mean, static_cast<uint32_t>(attrs.axes),
                                  attrs.correction, launch.workspace);
  }
};

template <>
struct SimtKernel<reduce::MinMax> {
  static Status run(const Launch& launch) {
    simt::StateFold f = reduce::state_fold(launch[0], reduce::axes_of(launch), launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    reduce::set_result(f, 1, launch[2], launch[0]);
    f.kind = reduce::kBoth;
    if (launch[1].numel() > 0 && reduce::folded_count(launch[0], f.axes) == 0) return Status::InvalidProblem;
    return reduce::fold_real_states<reduce::RangeFold>(launch, f);
  }
};

template <bool kMax>
struct SimtKernel<reduce::IndexedExtremum<kMax>> {
  static Status run(const Launch& launch) {
    const int64_t axis = attributes<reduce::ArgReduceAttrs>(launch).axis;
    simt::StateFold f = reduce::state_fold(launch[0], axis < 0 ? 0 : 1u << axis, launch.workspace);
    reduce::set_result(f, 0, launch[1], launch[0]);
    reduce::set_result(f, 1, launch[2], launch[0]);
    if (launch[1].numel() > 0 && reduce::folded_count(launch[0], f.axes) == 0) return Status::InvalidProblem;
    return reduce::fold_real_states<reduce::Places<kMax>::template Fold>(launch, f);
  }
};

template <>
struct SimtKernel<reduce::Cosine> {
  static Status run(const Launch& launch) { return reduce::cosine_states(launch, 0, reduce::kCosine, &launch[2], 1); }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Cosine>> {
  static Status run(const Launch& launch) {
    const TensorView &a = launch[1], &b = launch[2];
    const int axis = static_cast<int>(attributes<reduce::CosineAttrs>(launch).axis);
    const reduce::SimtKept kept(launch, a, 1u << axis, 3);
    const Status status = reduce::cosine_states(launch, 1, reduce::kCosineGradient, kept.number, 3);
    if (status != Status::Ok) return status;
    for (int k = 0; k < 2; ++k) {
      const reduce::Expand expand(launch, launch[3 + k]);
      const auto dy = expand.tensor(reduce::without_axis(launch[0], a, axis));
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
    const reduce::Expand expand(launch, launch[2]);
    const auto dy = expand.tensor(reduce::with_folded(launch[0], launch[1], reduce::axes_of(launch)));
    return expand.run<reduce::SpreadNumbers>(dy, expand.tensor(launch[1]), reduce::Expand::number(1));
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::NanMean>> {
  static Status run(const Launch& launch) {
    const TensorView& x = launch[1];
    const uint32_t axes = reduce::axes_of(launch);
    const reduce::SimtKept kept(launch, x, axes, 1);
    simt::StateFold f = reduce::state_fold(x, axes, kept.rest);
    reduce::set_result(f, 1, kept.number[0], x);
    f.kind = reduce::kNanSum;
    const Status status = simt::fold_float_states<reduce::TermFold>(launch, f);
    if (status != Status::Ok) return status;
    const reduce::Expand expand(launch, launch[2]);
    const auto dy = expand.tensor(reduce::with_folded(launch[0], x, axes));
    return expand.run<reduce::SpreadNumbers>(dy, expand.tensor(x), expand.tensor(kept.number[0]));
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Product>> {
  static Status run(const Launch& launch) {
    const TensorView& x = launch[1];
    const uint32_t axes = reduce::axes_of(launch);
    const reduce::SimtKept kept(launch, x, axes, 2);
    simt::StateFold f = reduce::state_fold(x, axes, kept.rest);
    reduce::set_result(f, 0, kept.number[0], x);
    reduce::set_result(f, 1, kept.number[1], x);
    f.kind = reduce::kProductGradient;
    const Status status = simt::fold_float_states<reduce::ProductFold>(launch, f);
    if (status != Status::Ok) return status;
    const reduce::Expand expand(launch, launch[3]);
    const auto dy = expand.tensor(reduce::with_folded(launch[0], x, axes));
    const auto others = expand.tensor(kept.number[0]), zeros = expand.tensor(kept.number[1]);
    return expand.run<reduce::ProductGradient>(dy, expand.tensor(x), others, zeros);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::LogSumExp>> {
  static Status run(const Launch& launch) {
    const uint32_t axes = reduce::axes_of(launch);
    const reduce::Expand expand(launch, launch[3]);
    const auto dy = expand.tensor(reduce::with_folded(launch[0], launch[1], axes));
    const auto y = expand.tensor(reduce::with_folded(launch[2], launch[1], axes));
    return expand.run<reduce::LogSumExpGradient>(dy, expand.tensor(launch[1]), y);
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
