// Launches codes with scales on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/scale_space.h"
#include "ops/quant/simt_scaled.h"
#include "simt/map_launch.h"
#include "simt/rows_launch.h"

namespace baracuda::quant {

inline Scalar number_of_code(int64_t v) {
  Scalar s;
  s.f = static_cast<double>(v);
  return s;
}

// What maps are given: values and scales of a launch in the same space.
struct ScaledInputs {
  const ScaleSpace cut;
  const IterationSpace space = cut.space();

  Operand values(const TensorView& t) const { return operand(cut.values(t), space); }
  Operand scales(const TensorView& t) const { return operand(cut.scales(t), space); }
  simt::Input zeros(const TensorView& t) const {
    return t.present() ? simt::Input(scales(t)) : simt::Input(number_of_code(0));
  }
};

template <class Code>
Status submit_dynamic(const Launch& launch) {
  using A = DynamicArgs;
  const auto attrs = attributes<DynamicAttrs>(launch);
  const ScaledInputs in{{launch[A::x], launch[A::scale]}};
  const TensorView& zero = launch[A::zero_point];
  const Operand tensors[] = {in.values(launch[A::x]), in.values(launch[A::y]), in.scales(launch[A::scale]),
                             zero.present() ? in.scales(zero) : Operand{}};
  DynamicParams p{};
  p.s = simt::row_space(in.space, in.cut.shared(), tensors);
  if (p.s.rows == 0) return Status::Ok;
  p.least = static_cast<float>(attrs.least), p.most = static_cast<float>(attrs.most);
  p.symmetric = static_cast<int32_t>(attrs.symmetric);
  using Body = DynamicRows<Code>;
  const simt::TeamGrid grid = simt::teams(p.s, 16, Body::kThreads);
  return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
}

}  // namespace baracuda::quant

namespace baracuda {

template <>
struct SimtKernel<quant::QuantizeLinear> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const auto attrs = attributes<CodeAttrs>(launch);
    const TensorView &x = launch[CodeArgs::x], &scale = launch[CodeArgs::scale], &y = launch[CodeArgs::y];
    const ScaledInputs s{{x, scale}};
    const Operand out[] = {s.values(y)};
    if (kF8Codes.has(y.element)) {
      const simt::Input in[] = {s.values(x), s.scales(scale), number_of_code(attrs.saturate)};
      return y.element == Element::F8E4M3 ? simt::run_map<CodedF8<3>, float>(launch, s.space, in, out)
                                          : simt::run_map<CodedF8<2>, float>(launch, s.space, in, out);
    }
    const simt::Input in[] = {s.values(x), s.scales(scale), s.zeros(launch[CodeArgs::zero_point]),
                              number_of_code(attrs.least), number_of_code(attrs.most)};
    return simt::run_map<Coded, float>(launch, s.space, in, out);
  }
};

template <>
struct SimtKernel<quant::DequantizeLinear> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const TensorView &x = launch[CodeArgs::x], &scale = launch[CodeArgs::scale];
    const ScaledInputs s{{x, scale}};
    const Operand out[] = {s.values(launch[CodeArgs::y])};
    if (kF8Codes.has(x.element)) {
      const simt::Input in[] = {s.values(x), s.scales(scale)};
      return x.element == Element::F8E4M3 ? simt::run_map<DecodedF8<3>, float>(launch, s.space, in, out)
                                          : simt::run_map<DecodedF8<2>, float>(launch, s.space, in, out);
    }
    const simt::Input in[] = {s.values(x), s.scales(scale), s.zeros(launch[CodeArgs::zero_point])};
    return simt::run_map<Decoded, float>(launch, s.space, in, out);
  }
};

template <>
struct SimtKernel<quant::FakeQuantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const auto attrs = attributes<FakeAttrs>(launch);
    const TensorView &x = launch[CodeArgs::x], &scale = launch[CodeArgs::scale];
    const ScaledInputs s{{x, scale}};
    const simt::Input in[] = {s.values(x), s.scales(scale), s.zeros(launch[CodeArgs::zero_point]),
                              number_of_code(attrs.least), number_of_code(attrs.most)};
    const Operand out[] = {s.values(launch[CodeArgs::y])};
    return simt::map_floats<Faked>(launch, s.space, in, out);
  }
};

template <>
struct SimtKernel<quant::FakeQuantizeGradient> {
  static Status run(const Launch& launch) {
    using namespace quant;
    using A = FakeGradientArgs;
    const auto attrs = attributes<FakeAttrs>(launch);
    const ScaledInputs s{{launch[A::x], launch[A::scale]}};
    const simt::Input in[] = {s.values(launch[A::dy]),        s.values(launch[A::x]),      s.scales(launch[A::scale]),
                              s.zeros(launch[A::zero_point]), number_of_code(attrs.least), number_of_code(attrs.most)};
    const Operand out[] = {s.values(launch[A::dx])};
    return simt::map_floats<FakedGradient>(launch, s.space, in, out);
  }
};

template <>
struct SimtKernel<quant::DynamicQuantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    switch (launch[DynamicArgs::y].element) {
      case Element::F8E4M3:
        return submit_dynamic<EightCode<3>>(launch);
      case Element::F8E5M2:
        return submit_dynamic<EightCode<2>>(launch);
      default:
        return submit_dynamic<WholeCode>(launch);
    }
  }
};

}  // namespace baracuda
