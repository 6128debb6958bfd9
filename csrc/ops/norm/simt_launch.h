// Launches the norms on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/norm/simt.h"
#include "ops/norm/simt_backward.h"
#include "ops/norm/simt_batch_launch.h"
#include "ops/norm/simt_coded_launch.h"
#include "ops/norm/skus.h"
#include "simt/fold_launch.h"

namespace baracuda::norm {

// How a call's tensors lie over the dimensions of x.
struct Layout {
  IterationSpace space;
  uint32_t inner;
  int32_t outer;  // dimensions that pick a row

  Layout(const Launch& launch, const TensorView& x) : space(space_of(x)) {
    outer = space.rank - static_cast<int32_t>(attributes<NormAttrs>(launch).dims);
    inner = ((1u << space.rank) - 1u) & ~((1u << outer) - 1u);
  }
  Operand of(const TensorView& t) const { return output_operand(t, space); }
  // A saved statistic: one value per row; dimensions of size 1 may follow.
  Operand statistic(const TensorView& t) const {
    Operand o = t.present() ? Operand{t.data, t.element, {}} : Operand{};
    for (int d = 0; t.present() && d < outer; ++d) o.strides[d] = t.shape[d] == 1 ? 0 : t.strides[d];
    return o;
  }
};

// 1 / length; a division in the body would cost registers.
template <class C>
int64_t share_of(int64_t length) {
  return simt::bits_of(static_cast<C>(1.0 / static_cast<double>(length)));
}
// Without an offset -0, which changes no weight, not even 0's sign.
template <class C>
int64_t offset_of(const Launch& launch) {
  const double offset = attributes<NormAttrs>(launch).weight_offset;
  return simt::bits_of(static_cast<C>(offset == 0 ? -0.0 : offset));
}

template <bool kCenter>
Status forward(const Launch& launch, const Layout& layout, const Operand (&tensors)[kForwardTensors],
               const Scalar& eps) {
  ForwardParams p{simt::row_space(layout.space, layout.inner, tensors), simt::number_of(eps), 0, 0};
  constexpr uint32_t kRowwise =
      1u << kX | 1u << kResidual | 1u << kWeight | 1u << kBias | 1u << kY | 1u << kSum | 1u << kBehind;
  return simt::with_float(launch.element, [&](auto t) {
    using T = decltype(t);
    p.per_length = share_of<simt::ComputeOf<T>>(p.s.length);
    p.weight_offset = offset_of<simt::ComputeOf<T>>(launch);
    if constexpr (sizeof(T) < 8) {  // f64 has no packed kernels: few call it
      using Cached = ForwardCached<simt::PackedRows<T>, kCenter>;
      using Packed = ForwardLooped<simt::PackedRows<T>, kCenter>;
      if (!simt::side_by_side(p.s, kX) && simt::packed_rows<T>(p.s, kRowwise)) {
        const auto grid = simt::row_teams(p.s, Cached::kValues, Cached::kThreads);
        return p.s.length <= int64_t{Cached::kThreads} * Cached::kValues
                   ? simt::submit<Cached>(launch, {grid.blocks}, grid.threads, p)
                   : simt::submit<Packed>(launch, {grid.blocks}, grid.threads, p);
      }
    }
    const auto grid = simt::teams(p.s, 16, 512, kX);
    return simt::submit<ForwardLooped<simt::StridedRows<T>, kCenter>>(launch, {grid.blocks}, grid.threads, p);
  });
}

struct Gradients {
  Operand tensors[kBackwardTensors];
  const TensorView *dweight = nullptr, *dbias = nullptr;  // null: not wanted
};

template <class T, bool kCenter>
class BackwardLaunch {
  using C = simt::ComputeOf<T>;
  using Cached = BackwardCached<simt::PackedRows<T>, kCenter>;

 public:
  BackwardLaunch(const Launch& launch, const Layout& layout, const Gradients& g)
      : launch_(launch), layout_(layout), g_(g), p_{} {
    p_.s = simt::row_space(layout.space, layout.inner, g.tensors);
    p_.per_length = share_of<C>(p_.s.length);
    p_.weight_offset = offset_of<C>(launch);
    strips_ = simt_strips(p_.s.rows, p_.s.length);
    C* next = static_cast<C*>(launch.workspace);
    if (g.dweight) p_.dweight = next, next += strips_ * p_.s.length;
    if (g.dbias) p_.dbias = next, next += strips_ * p_.s.length;
    rest_ = next;
  }

  Status run() {
    Status status = rows();
    if (status == Status::Ok && g_.dweight)
      status = simt::fold_strips<C>(launch_, p_.dweight, strips_, p_.s.length, *g_.dweight, rest_);
    if (status == Status::Ok && g_.dbias)
      status = simt::fold_strips<C>(launch_, p_.dbias, strips_, p_.s.length, *g_.dbias, rest_);
    return status;
  }

 private:
  Status rows() {
    constexpr uint32_t kRowwise = 1u << kGradY | 1u << kGradSum | 1u << kSavedX | 1u << kScale | 1u << kGradX;
    if constexpr (sizeof(T) < 8) {
      if (!simt::side_by_side(p_.s, kSavedX) && simt::packed_rows<T>(p_.s, kRowwise)) {
        const auto grid = simt::row_teams(p_.s, 16, Cached::kThreads);
        if (p_.s.length > int64_t{Cached::kThreads} * Cached::kValues) return separately<simt::PackedRows<T>>(grid);
        // A strip per team.
        const int64_t teams = grid.threads / p_.s.team_size;
        const bool sums = g_.dweight || g_.dbias;
        return simt::submit<Cached>(launch_, {sums ? strips_ / teams : grid.blocks}, grid.threads, p_);
      }
    }
    return separately<simt::StridedRows<T>>(simt::teams(p_.s, 16, 512, kSavedX));
  }

  // dx, and then the sums of strips.
  template <class Rows>
  Status separately(const simt::TeamGrid& grid) {
    const Status status = simt::submit<BackwardLooped<Rows, kCenter>>(launch_, {grid.blocks}, grid.threads, p_);
    if (status != Status::Ok || (!g_.dweight && !g_.dbias)) return status;
    const Operand terms[] = {g_.tensors[kGradY], g_.tensors[kSavedX], g_.tensors[kSavedMean], g_.tensors[kSavedRstd]};
    TermParams<C> p{simt::row_space(layout_.space, ~layout_.inner, terms), 0, p_.dweight, p_.dbias};
    p.per = ((p.s.length + strips_ - 1) / std::max<int64_t>(1, strips_) + 7) / 8 * 8;
    const auto blocks = simt::teams(p.s, 16, 512, kTermX);
    return simt::submit<WeightTerms<simt::StridedRows<T>, kCenter>>(launch_, {blocks.blocks, strips_}, blocks.threads,
                                                                    p);
  }

  const Launch& launch_;
  const Layout& layout_;
  const Gradients& g_;
  BackwardParams<C> p_;
  int64_t strips_;
  void* rest_;
};

template <bool kCenter>
Status backward(const Launch& launch, const Layout& layout, const Gradients& g) {
  return simt::with_float(launch.element,
                          [&](auto t) { return BackwardLaunch<decltype(t), kCenter>(launch, layout, g).run(); });
}

inline const TensorView* wanted(const TensorView& t) { return t.present() ? &t : nullptr; }

// Of the norm whose arguments Args are; `x` is what was normalised.
template <class Args, bool kCenter = false>
Status run_backward(const Launch& launch, const TensorView& x) {
  const Layout l(launch, x);
  Gradients g{};
  g.tensors[kGradY] = l.of(launch[Args::dy]);
  g.tensors[kSavedX] = l.of(x);
  g.tensors[kScale] = l.of(launch[Args::weight]);
  g.tensors[kSavedRstd] = l.statistic(launch[Args::rstd]);
  g.tensors[kGradX] = l.of(launch[Args::dx]);
  g.dweight = wanted(launch[Args::dweight]);
  if constexpr (requires { Args::dsum; }) g.tensors[kGradSum] = l.of(launch[Args::dsum]);
  if constexpr (kCenter) {
    g.tensors[kSavedMean] = l.statistic(launch[Args::mean]);
    g.dbias = wanted(launch[Args::dbias]);
  }
  return backward<kCenter>(launch, l, g);
}

}  // namespace baracuda::norm

namespace baracuda {

// Backward apart from forward, and rms norms, which share bodies, from layer norms.
template <>
inline constexpr int kSimtSlice<norm::RmsNorm> = 0;
template <>
inline constexpr int kSimtSlice<norm::AddRmsNorm> = 0;
template <>
inline constexpr int kSimtSlice<norm::RmsNormAdd> = 0;
template <>
inline constexpr int kSimtSlice<norm::LayerNorm> = 0;
template <bool kCenter>
inline constexpr int kSimtSlice<norm::CodedNorm<kCenter>> = 0;
template <>
inline constexpr int kSimtSlice<norm::Backward<norm::RmsNorm>> = 1;
template <>
inline constexpr int kSimtSlice<norm::Backward<norm::AddRmsNorm>> = 1;
template <>
inline constexpr int kSimtSlice<norm::Backward<norm::LayerNorm>> = 2;

template <>
struct SimtKernel<norm::RmsNorm> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::RmsNormArgs;
    const norm::Layout l(launch, launch[Args::x]);
    const Operand tensors[] = {
        l.of(launch[Args::x]),           {}, l.of(launch[Args::weight]), {}, l.of(launch[Args::y]), {}, {},
        l.statistic(launch[Args::rstd]), {}};
    return norm::forward<false>(launch, l, tensors, launch.scalars[Args::eps]);
  }
};

template <>
struct SimtKernel<norm::AddRmsNorm> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::AddRmsNormArgs;
    const norm::Layout l(launch, launch[Args::x]);
    const Operand tensors[] = {l.of(launch[Args::x]),
                               l.of(launch[Args::residual]),
                               l.of(launch[Args::weight]),
                               {},
                               l.of(launch[Args::y]),
                               l.of(launch[Args::sum]),
                               {},
                               l.statistic(launch[Args::rstd]),
                               {}};
    return norm::forward<false>(launch, l, tensors, launch.scalars[Args::eps]);
  }
};

template <>
struct SimtKernel<norm::RmsNormAdd> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::RmsNormAddArgs;
    const norm::Layout l(launch, launch[Args::x]);
    const Operand tensors[] = {l.of(launch[Args::x]),
                               {},
                               l.of(launch[Args::weight]),
                               {},
                               l.of(launch[Args::y]),
                               {},
                               {},
                               l.statistic(launch[Args::rstd]),
                               l.of(launch[Args::residual])};
    return norm::forward<false>(launch, l, tensors, launch.scalars[Args::eps]);
  }
};

template <>
struct SimtKernel<norm::LayerNorm> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::LayerNormArgs;
    const norm::Layout l(launch, launch[Args::x]);
    const Operand tensors[] = {l.of(launch[Args::x]),
                               {},
                               l.of(launch[Args::weight]),
                               l.of(launch[Args::bias]),
                               l.of(launch[Args::y]),
                               {},
                               l.statistic(launch[Args::mean]),
                               l.statistic(launch[Args::rstd]),
                               {}};
    return norm::forward<true>(launch, l, tensors, launch.scalars[Args::eps]);
  }
};

template <>
struct SimtKernel<norm::Backward<norm::RmsNorm>> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::RmsNormBackwardArgs;
    return norm::run_backward<Args>(launch, launch[Args::x]);
  }
};
template <>
struct SimtKernel<norm::Backward<norm::AddRmsNorm>> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::AddRmsNormBackwardArgs;
    return norm::run_backward<Args>(launch, launch[Args::sum]);
  }
};
template <>
struct SimtKernel<norm::Backward<norm::LayerNorm>> {
  template <class L>
  static Status run(const L& launch) {
    using Args = norm::LayerNormBackwardArgs;
    return norm::run_backward<Args, true>(launch, launch[Args::x]);
  }
};

template <bool kCenter>
struct SimtKernel<norm::CodedNorm<kCenter>> {
  template <class L>
  static Status run(const L& launch) {
    return norm::coded_forward<kCenter>(launch);
  }
};

}  // namespace baracuda
