// Variances, standard deviations and logsumexp.
#include <cmath>

#include "baracuda/math/log.h"
#include "core/compute.h"
#include "ops/reduce/careful.h"
#include "ops/reduce/driver.h"
#include "ops/reduce/moments.h"

namespace baracuda::reduce {
namespace {

struct Spreading {
  double correction;
  MomentResult result;
};

// Leaves what is there where the row's values are not finite, or all zeros.
template <class C>
void put_carefully(const Walk& w, int64_t output, C divisor, bool root, C& value, C& mean) {
  const CarefulSums s = careful_sums<C>(w, output, true);
  if (s.scale == 0) return;
  const double v = s.squares / static_cast<double>(divisor);
  value = static_cast<C>(root ? std::sqrt(v) / s.scale : v / s.scale / s.scale);
  mean = static_cast<C>(s.mean / s.scale);
}

// What `mean` leaves over; nothing where it is not the sum of the two numbers.
template <class C>
C rest_of(const Moments& s, C mean) {
  const auto rest = static_cast<C>((s.mean - mean) + s.low);
  return std::fabs(rest) <= std::fabs(mean) ? rest : C(0);
}

template <class C>
void put_moments(const Walk& w, int64_t first, int64_t n, const Moments* states, const void* args) {
  const auto [correction, result] = *static_cast<const Spreading*>(args);
  const bool root = result == MomentResult::Deviation, rest_of_mean = result == MomentResult::Rest;
  const double rest = static_cast<double>(w.length) - correction;
  const C divisor = static_cast<C>(rest > 0 ? rest : 0);
  C mean[64], value[64], squares[64];
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t piece = std::min<int64_t>(64, n - i);
    for (int64_t j = 0; j < piece; ++j) {
      const Moments& s = states[i + j];
      const double v = s.squares / static_cast<double>(divisor);
      value[j] = static_cast<C>(root ? std::sqrt(v) : v);
      // With an infinity the order of merging would decide between it and NaN.
      mean[j] = w.length > 0 && s.squares == s.squares ? static_cast<C>(s.mean + s.low) : math::quiet_nan<C>();
      squares[j] = static_cast<C>(s.squares);
    }
    if (w.length > 1 && any_lost(squares, piece, w.length)) {
      for (int64_t j = 0; j < piece; ++j)
        if (squares_lost(squares[j] / static_cast<C>(w.length)))
          put_carefully(w, first + i + j, divisor, root, value[j], mean[j]);
    }
    if (rest_of_mean)
      for (int64_t j = 0; j < piece; ++j) value[j] = rest_of(states[i + j], mean[j]);
    if (w.out[0]) put_values<C>(w, 0, first + i, piece, value);
    if (w.out[1]) put_values<C>(w, 1, first + i, piece, mean);
  }
}

template <class C>
void put_logarithm(const Walk& w, int64_t first, int64_t n, const Exponentials<C>* states, const void*) {
  C value[64];
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t piece = std::min<int64_t>(64, n - i);
    for (int64_t j = 0; j < piece; ++j) value[j] = states[i + j].value();
    put_values<C>(w, 0, first + i, piece, value);
  }
}

}  // namespace

void fold_moments(const Launch& launch, const TensorView& x, const TensorView& y, const TensorView& mean, uint32_t axes,
                  double correction, MomentResult result, void* workspace) {
  const Walk w(x, y, axes, launch.batch_invariant, &mean);
  const Spreading args{correction, result};
  if (x.element == Element::F64)
    fold<double, MomentFold<double>>(w, {}, workspace, {&put_moments<double>, &args});
  else
    fold<float, MomentFold<float>>(w, {}, workspace, {&put_moments<float>, &args});
}

}  // namespace baracuda::reduce

namespace baracuda {

using namespace reduce;

template <bool kRoot, bool kWithMean>
Status CpuKernel<Variance<kRoot, kWithMean>>::run(const Launch& launch) {
  using Call = VarianceCall<kRoot, kWithMean>;
  using Args = typename Call::Args;
  const VarAttrs attrs = attributes<VarAttrs>(launch);
  const auto axes = static_cast<uint32_t>(attrs.axes);
  TensorView none;
  none.rank = -1;
  const TensorView* mean = &none;
  if constexpr (kWithMean) mean = &launch[Args::mean];
  fold_moments(launch, launch[Args::x], launch[Call::kResult], *mean, axes, attrs.correction,
               kRoot ? MomentResult::Deviation : MomentResult::Variance, launch.workspace);
  return Status::Ok;
}
template struct CpuKernel<Variance<false, false>>;
template struct CpuKernel<Variance<true, false>>;
template struct CpuKernel<Variance<false, true>>;
template struct CpuKernel<Variance<true, true>>;

Status CpuKernel<LogSumExp>::run(const Launch& launch) {
  using Args = ReduceArgs;
  const auto axes = static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes);
  const Walk w(launch[Args::x], launch[Args::y], axes, launch.batch_invariant);
  if (launch.element == Element::F64)
    fold<double, ExponentialFold<double>>(w, {}, launch.workspace, {&put_logarithm<double>});
  else
    fold<float, ExponentialFold<float>>(w, {}, launch.workspace, {&put_logarithm<float>});
  return Status::Ok;
}

}  // namespace baracuda
