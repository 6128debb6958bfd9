// Launches random fills on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/random/simt.h"
#include "ops/random/simt_discrete.h"
#include "ops/random/simt_multinomial.h"
#include "ops/random/skus.h"
#include "ops/random/targets.h"
#include "simt/map_launch.h"

namespace baracuda::random {

template <template <class> class Draw, class T>
Status fill(const Launch& launch, const typename Draw<T>::Target& target) {
  using Body = Fill<Draw<T>, T>;
  const IterationSpace space = space_of(launch[0]);
  const Operand y = operand(launch[0], space);
  const Operand* const operands[] = {&y};
  return simt::for_parts(simt::merged<1>(space, operands, 0, true), true, [&](const simt::Merged<1>& s) {
    typename Body::Params p{};
    p.y = s.data[0];
    p.a = simt::number_of(launch.scalars[0]), p.b = simt::number_of(launch.scalars[1]);
    p.seed = simt::number_of(launch.scalars[2]), p.offset = simt::number_of(launch.scalars[3]);
    p.target = target;
    p.first = s.first;
    p.element = static_cast<int32_t>(y.element);
    p.rank = s.rank;
    p.count = static_cast<uint32_t>(s.count());
    for (int d = 0; d < s.rank; ++d) {
      p.shape[d] = simt::divider(s.shape[d]);
      p.stride[d] = static_cast<int32_t>(s.stride[0][d]);
    }
    p.packed = s.rank <= 1 && (s.rank == 0 || s.stride[0][0] == 1) && s.first % Body::kCount == 0 &&
               reinterpret_cast<uintptr_t>(s.data[0]) % (Body::kCount * s.bytes[0]) == 0;
    const int64_t blocks = s.count() / Body::kCount + 2;
    return simt::submit<Body>(launch, {simt::blocks_for(blocks, 256)}, 256, p);
  });
}

// Numbers that only the device knows are taken as they are, there.
inline bool known(const Launch& launch) { return !launch.scalars[0].data && !launch.scalars[1].data; }
inline double value_of(const Scalar& s) { return math::bit_cast<double>(simt::number_of(s).real); }

template <class T>
Status run_uniform(const Launch& launch) {
  Interval<T> to{};
  const Status status =
      known(launch) ? interval_of(launch, value_of(launch.scalars[0]), value_of(launch.scalars[1]), to) : Status::Ok;
  return status == Status::Ok ? fill<UniformDraw, T>(launch, to) : status;
}
template <class T>
Status run_normal(const Launch& launch) {
  Moments<T> to{};
  const Status status =
      known(launch) ? moments_of(launch, value_of(launch.scalars[0]), value_of(launch.scalars[1]), to) : Status::Ok;
  return status == Status::Ok ? fill<NormalDraw, T>(launch, to) : status;
}

// `first`: of the scalars seed and offset.
inline DrawExtra draw_extra(const Launch& launch, int first) {
  DrawExtra x{};
  x.seed = simt::number_of(launch.scalars[first]), x.offset = simt::number_of(launch.scalars[first + 1]);
  x.fault = simt::fault_of(launch), x.row = launch.row;
  return x;
}
// What the driver reads where a draw reads nothing.
inline Scalar nothing() { return Scalar(); }

inline Status run_bernoulli(const Launch& launch) {
  const TensorView &p = launch[0], &y = launch[1];
  const IterationSpace space = space_of(y);
  DrawExtra x = draw_extra(launch, p.present() ? 0 : 1);
  x.tensor = p.present() ? 0 : -1;
  if (!p.present() && !launch.scalars[0].data) {
    const double v = value_of(launch.scalars[0]);
    if (!(v >= 0 && v <= 1)) return wrong_scalar(launch, 0);
  }
  const simt::Input in[] = {p.present() ? simt::Input(operand(p, space)) : simt::Input(launch.scalars[0])};
  const Operand out[] = {operand(y, space)};
#if BCU_HAS_F64
  if (launch.aux == Element::F64) return simt::run_map<TossDraw, double, DrawExtra>(launch, space, in, out, x);
#endif
  return simt::run_map<TossDraw, float, DrawExtra>(launch, space, in, out, x);
}

template <class Draw>
Status run_integers(const Launch& launch, const DrawExtra& x) {
  const IterationSpace space = space_of(launch[0]);
  const simt::Input in[] = {nothing()};
  const Operand out[] = {operand(launch[0], space)};
  return simt::run_map<Draw, int64_t, DrawExtra>(launch, space, in, out, x);
}

inline Status run_randint(const Launch& launch) {
  DrawExtra x = draw_extra(launch, 2);
  x.a = simt::number_of(launch.scalars[0]), x.b = simt::number_of(launch.scalars[1]);
  if (known(launch)) {
    if (x.a.whole >= x.b.whole) return wrong_scalar(launch, 1);
    for (int k = 0; k < 2; ++k)
      if (!holds(launch[0].element, x.a.whole, k == 0 ? x.a.whole : x.b.whole - 1)) return wrong_scalar(launch, k);
  }
  return run_integers<IntegerDraw>(launch, x);
}

inline Status run_randperm(const Launch& launch) {
  DrawExtra x = draw_extra(launch, 0);
  x.n = launch[0].numel();
  return run_integers<ShuffleDraw>(launch, x);
}

inline Status run_dropout(const Launch& launch) {
  DrawExtra x = draw_extra(launch, 1);
  x.a = simt::number_of(launch.scalars[0]);
  x.known = !launch.scalars[0].data;
  if (x.known) {
    const double p = value_of(launch.scalars[0]);
    if (!(p >= 0 && p <= 1)) return wrong_scalar(launch, 0);
    Scalar scale;
    scale.f = p < 1 ? 1 / (1 - p) : 0;
    x.b = simt::number_of(scale);
  }
  const IterationSpace space = space_of(launch[1]);
  const simt::Input in[] = {operand(launch[0], space)};
  const Operand out[] = {operand(launch[1], space)};
  return simt::map_floats<DropoutDraw, DrawExtra>(launch, space, in, out, x);
}

template <class C>
Status run_multinomial(const Launch& launch) {
  const TensorView &p = launch[0], &y = launch[1];
  SampleParams s{};
  s.p = p.data, s.y = y.data;
  const int last = p.rank - 1;
  s.rows = last > 0 ? p.shape[0] : 1, s.categories = p.shape[last], s.samples = y.shape[last];
  s.p_row = last > 0 ? p.strides[0] : 0, s.p_step = p.strides[last];
  s.y_row = last > 0 ? y.strides[0] : 0, s.y_step = y.strides[last];
  const bool replacement = attributes<MultinomialAttrs>(launch).replacement != 0;
  const SampleScratch scratch(s.rows, s.categories, replacement);
  s.groups = scratch.groups;
  char* at = static_cast<char*>(launch.workspace);
  s.totals = reinterpret_cast<uint64_t*>(at), s.most = reinterpret_cast<int32_t*>(at + s.rows * 8);
  at += whole_lines(s.rows * 16);
  s.sums = reinterpret_cast<uint64_t*>(at), at += whole_lines(s.rows * s.groups * 8);
  s.marks = replacement ? nullptr : reinterpret_cast<uint8_t*>(at);
  s.seed = simt::number_of(launch.scalars[0]), s.offset = simt::number_of(launch.scalars[1]);
  s.fault = simt::fault_of(launch), s.row = launch.row;
  s.p_element = static_cast<int32_t>(p.element), s.y_element = static_cast<int32_t>(y.element);
  s.bits = weight_bits(s.categories);
  const Status status = simt::submit<WeighRows<C>>(launch, {simt::blocks_for(s.rows, 1)}, 256, s);
  if (status != Status::Ok) return status;
  if (replacement) return simt::submit<DrawSamples<C>>(launch, {simt::blocks_for(s.rows * s.samples, 256)}, 256, s);
  return simt::submit<TakeSamples<C>>(launch, {simt::blocks_for(s.rows, 1)}, 256, s);
}

}  // namespace baracuda::random

namespace baracuda {

template <>
struct SimtKernel<random::Bernoulli> {
  static Status run(const Launch& launch) { return random::run_bernoulli(launch); }
};
template <>
struct SimtKernel<random::Randint> {
  static Status run(const Launch& launch) { return random::run_randint(launch); }
};
template <>
struct SimtKernel<random::Randperm> {
  static Status run(const Launch& launch) { return random::run_randperm(launch); }
};
template <>
struct SimtKernel<random::Dropout> {
  static Status run(const Launch& launch) { return random::run_dropout(launch); }
};
template <>
struct SimtKernel<random::DropoutBackward> {
  static Status run(const Launch& launch) { return random::run_dropout(launch); }
};
template <>
struct SimtKernel<random::Multinomial> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_multinomial<double>(launch);
#endif
    return random::run_multinomial<float>(launch);
  }
};

template <>
struct SimtKernel<random::Uniform> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_uniform<double>(launch);
#endif
    return random::run_uniform<float>(launch);
  }
};

template <>
struct SimtKernel<random::Normal> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_normal<double>(launch);
#endif
    return random::run_normal<float>(launch);
  }
};

}  // namespace baracuda
