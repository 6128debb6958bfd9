// The norm of all elements of a list of tensors, on the CPU.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/family.h"
#include "baracuda/math/math.h"
#include "core/compute.h"
#include "host/careful.h"
#include "host/lanes.h"
#include "ops/optim/list.h"
#include "ops/optim/skus.h"

namespace baracuda {

template <>
struct CpuKernel<optim::TotalNorm> {
  static Status run(const Launch& launch);
};

namespace optim {
namespace {

// The terms of a norm and how they are added up.
enum class Terms { Largest, Magnitudes, Squares, Powers };

Terms terms_of(double p) {
  return std::isinf(p) ? Terms::Largest : p == 1 ? Terms::Magnitudes : p == 2 ? Terms::Squares : Terms::Powers;
}

// The larger; NaN stays.
template <class C>
C larger(C a, C b) {
  return b > a || b != b ? b : a;
}

// p: the exponent of powers; for squares a power of two that scales what is squared.
template <class C>
C tile_total(Terms terms, C p, const C* x, int64_t n) {
  if (terms == Terms::Squares && p == C(1)) return lane_sum<C>(n, [](auto v) { return v * v; }, x);
  if (terms == Terms::Squares) return lane_sum<C>(n, [p](auto v) { return v * p * (v * p); }, x);
  C term[kTile];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) term[i] = math::fabs(x[i]);
  if (terms == Terms::Largest) return lane_extreme<true, true>(term, n);
  if (terms == Terms::Powers) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) term[i] = math::pow(term[i], p);
  }
  return lane_sum<C>(n, [](auto v) { return v; }, term);
}

template <class C>
C part_total(const ListIndex& index, const TensorView* tensors, Terms terms, C p, int64_t begin, int64_t end) {
  CompensatedSum<C> sum;
  C most = 0;
  index.pieces(begin, end, [&](int tensor, int64_t from, int64_t to) {
    Stretch<C> x(tensors[tensor]);
    for (; from < to; from += kTile) {
      const int64_t n = to - from < kTile ? to - from : kTile;
      const C total = tile_total(terms, p, x.get(from, n), n);
      if (terms == Terms::Largest)
        most = larger(most, total);
      else
        sum.add(total);
    }
  });
  return terms == Terms::Largest ? most : sum.value();
}

// The norm's terms together: the largest, or their sum.
template <class C>
C list_total(const ListIndex& index, const TensorView* tensors, Terms terms, C p) {
  // Parts of whole chunks, so that they depend on sizes alone.
  const int64_t chunks = (index.total() + kChunk - 1) / kChunk;
  const int64_t per = (chunks + kNormParts - 1) / kNormParts * kChunk;
  const int64_t parts = per > 0 ? (index.total() + per - 1) / per : 0;
  C part[kNormParts];
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k)
      part[k] = part_total(index, tensors, terms, p, k * per, std::min(index.total(), (k + 1) * per));
  });
  CompensatedSum<C> sum;
  C most = 0;
  for (int64_t k = 0; k < parts; ++k) sum.add(part[k]), most = larger(most, part[k]);
  return terms == Terms::Largest ? most : sum.value();
}

template <class C>
C root_of_squares(const ListIndex& index, const TensorView* tensors) {
  const C squares = list_total(index, tensors, Terms::Squares, C(1));
  if (index.total() == 0 || !squares_lost(squares / static_cast<C>(index.total()))) return std::sqrt(squares);
  const C scale = scale_of(list_total(index, tensors, Terms::Largest, C(0)));
  return scale == C(1) ? std::sqrt(squares) : std::sqrt(list_total(index, tensors, Terms::Squares, scale)) / scale;
}

template <class C>
Status total_norm(const Launch& launch) {
  const NormAttrs attrs = attributes<NormAttrs>(launch);
  const Terms terms = terms_of(attrs.p);
  using Args = NormArgs;
  const TensorView *tensors = &launch[Args::tensors], &out = launch[Args::total_norm];
  const ListIndex index(tensors, launch.count(Args::tensors));
  C norm = terms == Terms::Squares ? root_of_squares<C>(index, tensors)
                                   : list_total(index, tensors, terms, static_cast<C>(attrs.p));
  if (terms == Terms::Powers) norm = math::pow(norm, static_cast<C>(1 / attrs.p));
  if (attrs.error_if_nonfinite && !std::isfinite(norm)) {
    const double found = norm;
    if (launch.failure)
      *launch.failure = {launch.first[Args::total_norm], -1, std::bit_cast<int64_t>(found),
                         static_cast<int64_t>(ValueRange::Finite)};
    return Status::ValueOutOfRange;
  }
  store<C>(out.element, out.data, 1, &norm, 1);
  return Status::Ok;
}

}  // namespace
}  // namespace optim

Status CpuKernel<optim::TotalNorm>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) { return optim::total_norm<decltype(c)>(launch); });
}

}  // namespace baracuda
