// Launches random fills on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/random/simt.h"
#include "ops/random/simt_discrete.h"
#include "ops/random/simt_multinomial.h"
#include "ops/random/simt_rejection.h"
#include "ops/random/skus.h"
#include "ops/random/targets.h"
#include "simt/map_launch.h"

namespace baracuda::random {

// `a` and `b`: the numbers that the target is made of.
template <template <class> class Draw, class T, class Args>
Status fill(const Launch& launch, const Scalar& a, const Scalar& b, const typename Draw<T>::Target& target) {
  using Body = Fill<Draw<T>, T>;
  const IterationSpace space = space_of(launch[Args::y]);
  const Operand y = operand(launch[Args::y], space);
  const Operand* const operands[] = {&y};
  return simt::for_parts(simt::merged<1>(space, operands, 0, true), true, [&](const simt::Merged<1>& s) {
    typename Body::Params p{};
    p.y = s.data[0];
    p.a = simt::number_of(a), p.b = simt::number_of(b);
    p.seed = simt::number_of(launch.scalars[Args::seed]), p.offset = simt::number_of(launch.scalars[Args::offset]);
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
inline bool known(const Scalar& a, const Scalar& b) { return !a.data && !b.data; }
inline double value_of(const Scalar& s) { return math::bit_cast<double>(simt::number_of(s).real); }

template <class T>
Status run_uniform(const Launch& launch) {
  using Args = UniformArgs;
  const Scalar &low = launch.scalars[Args::low], &high = launch.scalars[Args::high];
  Interval<T> to{};
  const Status status = known(low, high) ? interval_of(launch, value_of(low), value_of(high), to) : Status::Ok;
  return status == Status::Ok ? fill<UniformDraw, T, Args>(launch, low, high, to) : status;
}
template <class T>
Status run_normal(const Launch& launch) {
  using Args = NormalArgs;
  const Scalar &mean = launch.scalars[Args::mean], &std = launch.scalars[Args::std];
  Moments<T> to{};
  const Status status = known(mean, std) ? moments_of(launch, value_of(mean), value_of(std), to) : Status::Ok;
  return status == Status::Ok ? fill<NormalDraw, T, Args>(launch, mean, std, to) : status;
}

template <class Args>
DrawExtra draw_extra(const Launch& launch) {
  DrawExtra x{};
  x.seed = simt::number_of(launch.scalars[Args::seed]), x.offset = simt::number_of(launch.scalars[Args::offset]);
  x.fault = simt::fault_of(launch), x.row = launch.row;
  return x;
}
// What the driver reads where a draw reads nothing.
inline Scalar nothing() { return Scalar(); }

inline Status run_bernoulli(const Launch& launch) {
  using Args = BernoulliArgs;
  const TensorView &p = launch[Args::p], &y = launch[Args::y];
  const Scalar& number = launch.scalars[Args::p];
  const IterationSpace space = space_of(y);
  DrawExtra x = draw_extra<Args>(launch);
  x.tensor = p.present() ? int{Args::p} : -1;
  if (!p.present() && !number.data) {
    const double v = value_of(number);
    if (!(v >= 0 && v <= 1)) return wrong_scalar(launch, Args::p, ValueRange::Unit);
  }
  const simt::Input in[] = {p.present() ? simt::Input(operand(p, space)) : simt::Input(number)};
  const Operand out[] = {operand(y, space)};
#if BCU_HAS_F64
  if (launch.aux == Element::F64) return simt::run_map<TossDraw, double, DrawExtra>(launch, space, in, out, x);
#endif
  return simt::run_map<TossDraw, float, DrawExtra>(launch, space, in, out, x);
}

template <class Draw>
Status run_integers(const Launch& launch, const TensorView& y, const DrawExtra& x) {
  const IterationSpace space = space_of(y);
  const simt::Input in[] = {nothing()};
  const Operand out[] = {operand(y, space)};
  return simt::run_map<Draw, int64_t, DrawExtra>(launch, space, in, out, x);
}

inline Status run_randint(const Launch& launch) {
  using Args = RandintArgs;
  const TensorView& y = launch[Args::y];
  const Scalar &low = launch.scalars[Args::low], &high = launch.scalars[Args::high];
  DrawExtra x = draw_extra<Args>(launch);
  x.a = simt::number_of(low), x.b = simt::number_of(high), x.scalar = Args::high;
  if (known(low, high)) {
    if (x.a.whole >= x.b.whole) return wrong_scalar(launch, Args::high);
    if (!holds(y.element, x.a.whole, x.a.whole)) return wrong_scalar(launch, Args::low);
    if (!holds(y.element, x.a.whole, x.b.whole - 1)) return wrong_scalar(launch, Args::high);
  }
  return run_integers<IntegerDraw>(launch, y, x);
}

inline Status run_randperm(const Launch& launch) {
  using Args = RandpermArgs;
  const TensorView& y = launch[Args::y];
  DrawExtra x = draw_extra<Args>(launch);
  x.n = y.numel();
  return run_integers<ShuffleDraw>(launch, y, x);
}

template <class Args>
Status run_dropout(const Launch& launch, const TensorView& from, const TensorView& to) {
  const Scalar& number = launch.scalars[Args::p];
  DrawExtra x = draw_extra<Args>(launch);
  x.a = simt::number_of(number), x.scalar = Args::p;
  x.known = !number.data;
  if (x.known) {
    const double p = value_of(number);
    if (!(p >= 0 && p <= 1)) return wrong_scalar(launch, Args::p, ValueRange::Unit);
    Scalar scale;
    scale.f = p < 1 ? 1 / (1 - p) : 0;
    x.b = simt::number_of(scale);
  }
  const IterationSpace space = space_of(to);
  const simt::Input in[] = {operand(from, space)};
  const Operand out[] = {operand(to, space)};
  return simt::map_floats<DropoutDraw, DrawExtra>(launch, space, in, out, x);
}

template <class Draw, class C>
Status run_rejection(const Launch& launch) {
  constexpr int kInputs = Draw::kInputs;
  const TensorView& y = launch[kInputs];
  const IterationSpace space = space_of(y);
  DrawExtra x = draw_extra<GammaArgs>(launch);
  simt::Input in[kInputs];
  for (int i = 0; i < kInputs; ++i) in[i] = operand(launch[i], space);
  const Operand out[] = {operand(y, space)};
  return simt::run_map<Drawn<Draw>, C, DrawExtra>(launch, space, in, out, x);
}

template <class C>
Status run_multinomial(const Launch& launch) {
  using Args = MultinomialArgs;
  const TensorView &p = launch[Args::p], &y = launch[Args::y];
  SampleParams s{};
  s.p = p.data, s.y = y.data, s.tensor = Args::p;
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
  s.seed = simt::number_of(launch.scalars[Args::seed]), s.offset = simt::number_of(launch.scalars[Args::offset]);
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

template <class Draw>
struct SimtKernel<random::Rejection<Draw>> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_rejection<Draw, double>(launch);
#endif
    return random::run_rejection<Draw, float>(launch);
  }
};
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
  static Status run(const Launch& launch) {
    using Args = random::DropoutArgs;
    return random::run_dropout<Args>(launch, launch[Args::x], launch[Args::y]);
  }
};
template <>
struct SimtKernel<random::DropoutBackward> {
  static Status run(const Launch& launch) {
    using Args = random::DropoutBackwardArgs;
    return random::run_dropout<Args>(launch, launch[Args::dy], launch[Args::dx]);
  }
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
