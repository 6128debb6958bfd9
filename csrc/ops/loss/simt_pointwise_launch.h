// Launches elementwise losses on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/loss/call.h"
#include "ops/loss/simt_pointwise.h"
#include "ops/loss/skus.h"
#include "simt/map_sum_launch.h"

namespace baracuda::loss {

// A number of the call's own, as an input.
inline Scalar plain_number(double v) {
  Scalar s;
  s.f = v;
  return s;
}

// The operands of a loss in its order, after kBefore others; absent weights are 1.
template <class Loss, class Args, int kBefore>
void add_inputs(const Launch& launch, const IterationSpace& space,
                simt::Input (&in)[kBefore + InputsOf<Loss>::kCount]) {
  for (int k = 0; k < 2 + Loss::kWeights; ++k) {
    const TensorView& t = launch[kOperands<Args>[k]];
    in[kBefore + k] = t.present() ? simt::Input(operand(t, space)) : simt::Input(plain_number(1));
  }
  if constexpr (Loss::kNumbers > 0) in[kBefore + 2 + Loss::kWeights] = launch.scalars[number_of<Args>()];
}

template <class Loss>
Status each(const Launch& launch) {
  using Args = typename ArgsOf<Loss>::Forward;
  const IterationSpace space = space_of(launch[Args::loss]);
  simt::Input in[InputsOf<Loss>::kCount];
  add_inputs<Loss, Args, 0>(launch, space, in);
  const Operand out[] = {operand(launch[Args::loss], space)};
  if constexpr (Loss::kUnit != 0)
    return simt::map_floats<Checked<Loss>>(launch, space, in, out, UnitCheck{simt::fault_of(launch), launch.row});
  else
    return simt::map_floats<Loss>(launch, space, in, out);
}

template <class Loss, class C>
Status added(const Launch& launch, double divisor) {
  using Args = typename ArgsOf<Loss>::Forward;
  const TensorView& loss = launch[Args::loss];
  const IterationSpace space = together(launch[Args::input], launch[Args::target]);
  simt::Input in[InputsOf<Loss>::kCount];
  add_inputs<Loss, Args, 0>(launch, space, in);
  if constexpr (Loss::kUnit != 0) {
    CheckedParts<C> extra{};
    extra.check = {simt::fault_of(launch), launch.row};
    return simt::run_sum<Checked<Loss>, C>(launch, space, in, extra, launch.workspace, loss, divisor);
  } else {
    return simt::run_sum<Added<Loss>, C>(launch, space, in, simt::SumParts<C>{}, launch.workspace, loss, divisor);
  }
}

template <class Loss>
Status forward(const Launch& launch) {
  using Args = typename ArgsOf<Loss>::Forward;
  static_assert(int{Args::input} == 0 && int{Args::target} == 1, "check_unit says which one is wrong");
  if (wrong_number<Args>(launch)) return Status::InvalidProblem;
  const auto reduction = static_cast<PointwiseReduction>(attributes<PointwiseAttrs>(launch).reduction);
  if (reduction == PointwiseReduction::None) return each<Loss>(launch);
  const TensorView& input = launch[Args::input];
  const double divisor = divisor_of(reduction, together(input, launch[Args::target]).numel(), input);
#if BCU_HAS_F64
  if (launch.element == Element::F64) return added<Loss, double>(launch, divisor);
#endif
  return added<Loss, float>(launch, divisor);
}

template <class Loss>
Status backward(const Launch& launch) {
  using Args = typename ArgsOf<Loss>::Backward;
  if (wrong_number<Args>(launch)) return Status::InvalidProblem;
  const IterationSpace space = space_of(launch[Args::dinput]);
  const auto reduction = static_cast<PointwiseReduction>(attributes<PointwiseAttrs>(launch).reduction);
  simt::Input in[2 + InputsOf<Loss>::kCount];
  in[0] = operand(launch[Args::dloss], space);
  in[1] = plain_number(divisor_of(reduction, space.numel(), launch[Args::input]));
  add_inputs<Loss, Args, 2>(launch, space, in);
  const Operand out[] = {operand(launch[Args::dinput], space)};
  return simt::map_floats<Slope<Loss>>(launch, space, in, out);
}

}  // namespace baracuda::loss

namespace baracuda {

template <class Loss>
struct SimtKernel<loss::Pointwise<Loss>> {
  static Status run(const Launch& launch) {
    return loss::with_loss<Loss>(launch, [&](auto l) { return loss::forward<decltype(l)>(launch); });
  }
};
template <class Loss>
struct SimtKernel<loss::PointwiseBackward<Loss>> {
  static Status run(const Launch& launch) {
    return loss::with_loss<Loss>(launch, [&](auto l) { return loss::backward<decltype(l)>(launch); });
  }
};

}  // namespace baracuda
