// Cross-entropy with probabilities as target, and the negative log-likelihood, on the CPU.
#include "baracuda/math/math.h"
#include "host/lanes.h"
#include "host/tile.h"
#include "ops/loss/kernels.h"
#include "ops/loss/problem.h"

namespace baracuda::loss {
namespace {

// What the classes of a row count for: smoothed probabilities times weights.
template <class C>
const C* shares(const Problems& p, int64_t row, int64_t at, int64_t n, C* buffer, C* weights) {
  C in[kRowTile<C>];
  const C* t = read(p.target, p.target.row(row), at, n, in);
  const C keep = static_cast<C>(1 - p.smoothing), spread = static_cast<C>(p.smoothing / static_cast<double>(p.classes));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) buffer[i] = t[i] * keep + spread;
  if (!p.weight.present()) return buffer;
  const C* w = p.class_weights(at, n, weights);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) buffer[i] *= w[i];
  return buffer;
}

template <class C>
void probabilities(const Problems& p, void* workspace) {
  C* losses = static_cast<C*>(workspace);
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    C in[kRowTile<C>], e[kRowTile<C>], weights[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const char* row = p.logits.row(r);
      C max = -std::numeric_limits<C>::infinity();
      for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, p.classes - at);
        const C top = lane_max(read(p.logits, row, at, n, in), n);
        max = top > max ? top : max;
      }
      CompensatedSum<C> sum, below, whole;
      for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, p.classes - at);
        const C* v = read(p.logits, row, at, n, in);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) e[i] = math::exp_weight(v[i] - max);
        sum.add(lane_sum<C>(n, [](auto x) { return x; }, e));
        const C* q = shares(p, r, at, n, e, weights);
        whole.add(lane_sum<C>(n, [](auto x) { return x; }, q));
        below.add(lane_sum<C>(n, [max](auto x, auto s) { return s * (max - x); }, v, q));
      }
      const C log_sum = math::log(sum.value()), value = below.value() + whole.value() * log_sum;
      if (p.reduction() == Reduction::None)
        put(p.loss, r, value);
      else
        losses[r] = value;
      if (p.lse.present()) put(p.lse, r, max + log_sum);
    }
  });
  reduce_losses(p, losses);
}

template <class C>
void probabilities_gradient(const Problems& p) {
  if (p.rows == 0) return;
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    C in[kRowTile<C>], out[kRowTile<C>], q[kRowTile<C>], weights[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      CompensatedSum<C> sum;
      for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, p.classes - at);
        sum.add(lane_sum<C>(n, [](auto x) { return x; }, shares(p, r, at, n, q, weights)));
      }
      const C share = p.share_of<C>(r), lse = get<C>(p.lse, r), whole = sum.value();
      char* to = p.dlogits.row(r);
      for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, p.classes - at);
        const C* v = read(p.logits, p.logits.row(r), at, n, in);
        C* d = target(p.dlogits, to, at, out);
        shares(p, r, at, n, q, weights);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) d[i] = share * (math::exp(v[i] - lse) * whole - q[i]);
        write(p.dlogits, to, at, n, d);
      }
    }
  });
}

// -weight[target] input[target] of n <= kTargets rows; ignored ones have 0.
template <class C>
void likelihoods(const Problems& p, int64_t begin, int64_t n, C* values) {
  int64_t buffer[kTargets], at[kTargets];
  C weights[kTargets];
  const int64_t *t = p.targets(begin, n, buffer), ignored = p.attrs.ignore_index;
  if (p.logits.outer.rank == 1 && p.logits.inner.rank == 1) {
    const int64_t row = p.logits.outer.strides[0], step = p.logits.inner.strides[0];
    for (int64_t i = 0; i < n; ++i) at[i] = t[i] == ignored ? 0 : (begin + i) * row + t[i] * step;
  } else {
    for (int64_t i = 0; i < n; ++i)
      at[i] = t[i] == ignored ? 0 : p.logits.outer.offset(begin + i) + p.logits.inner.offset(t[i]);
  }
  pick(p.logits, at, n, values);
  if (p.weight.present()) {
    p.weights_at(t, n, at);
    pick(p.weight, at, n, weights);
    for (int64_t i = 0; i < n; ++i) values[i] *= weights[i];
  }
  for (int64_t i = 0; i < n; ++i) values[i] = t[i] == ignored ? C(0) : -values[i];
}

template <class C>
void likelihood(const Problems& p, void* workspace) {
  C* losses = static_cast<C*>(workspace);
  const RowMap each = across(p.loss);
  parallel_for(p.rows, kParallelGrain, [&](int64_t begin, int64_t end) {
    C values[kTargets];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kTargets, end - begin);
      C* to = p.reduction() == Reduction::None ? target(each, each.data, begin, values) : losses + begin;
      if (p.classes > 0)
        likelihoods(p, begin, n, to);
      else
        std::fill(to, to + n, C(0));
      if (p.reduction() == Reduction::None) write(each, each.data, begin, n, to);
    }
  });
  reduce_losses(p, losses);
}

// Zeros, and what belongs to the targets: rows may lie side by side, so that zeros are not written by rows.
template <class C>
void likelihood_gradient(const Problems& p, const TensorView& dinput) {
  const double zeros[2] = {};
  const IterationSpace space = space_of(dinput);
  copy_tiles(space, constant(zeros, dinput.element), operand(dinput, space));
  parallel_for(p.rows, kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = p.counted_target(r);
      if (t < 0) continue;
      const C value = -p.share_of<C>(r) * p.weight_of<C>(t);
      const int64_t offset = p.dlogits.inner.offset(t) * size_of(dinput.element);
      store<C>(dinput.element, p.dlogits.row(r) + offset, 1, &value, 1);
    }
  });
}

}  // namespace
}  // namespace baracuda::loss

namespace baracuda {

using namespace loss;

Status CpuKernel<Probabilities>::run(const Launch& launch) {
  Problems p(launch, kForward, false);
  return p.run_unchecked(launch, [&](auto c) { probabilities<decltype(c)>(p, launch.workspace); });
}

Status CpuKernel<ProbabilitiesBackward>::run(const Launch& launch) {
  Problems p(launch, kBackward, false);
  return p.run_unchecked(launch, [&](auto c) { probabilities_gradient<decltype(c)>(p); });
}

Status CpuKernel<Nll>::run(const Launch& launch) {
  Problems p(launch, kNll);
  return p.run(launch, [&](auto c) { likelihood<decltype(c)>(p, launch.workspace); });
}

Status CpuKernel<NllBackward>::run(const Launch& launch) {
  Problems p(launch, kNllBackward);
  return p.run(launch, [&](auto c) { likelihood_gradient<decltype(c)>(p, launch[NllBackwardArgs::dinput]); });
}

}  // namespace baracuda
