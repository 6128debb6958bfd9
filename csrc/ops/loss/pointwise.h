// Elementwise losses on the CPU. A sum or mean is taken tile by tile: no loss of an element reaches memory.
#pragma once
#include <bit>
#include <utility>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/loops.h"
#include "host/runs.h"
#include "ops/loss/call.h"
#include "ops/loss/kernels.h"

namespace baracuda::loss {

inline constexpr int64_t kSumChunk = 32768;  // elements
inline constexpr int64_t kSumParts = 256;

// The operands of a loss in its order: absent weights are 1.
template <class Loss, class C>
struct Inputs {
  static constexpr int kCount = 2 + Loss::kWeights + Loss::kNumbers;
  C constants[kCount];
  TensorView views[kCount];  // constants are tensors without a dimension

  template <class Args>
  Inputs(const Launch& launch, Args) {
    for (int k = 0; k < kCount; ++k) {
      const bool number = k >= 2 + Loss::kWeights;
      if (!number && launch[kOperands<Args>[k]].present()) {
        views[k] = launch[kOperands<Args>[k]];
        continue;
      }
      constants[k] = number ? scalar_as<C>(launch.scalars[number_of<Args>()]) : C(1);
      views[k].data = &constants[k], views[k].element = element_of<C>;
    }
  }
};

// The dimensions of a space in the order of an operand's memory, which is the best order to go through all of them.
struct Order {
  int rank = 0, dims[kMaxRank];

  Order(const IterationSpace& space, const Operand& by) {
    for (int d = 0; d < space.rank; ++d) {
      int at = rank++;
      for (; at > 0 && std::abs(by.strides[dims[at - 1]]) < std::abs(by.strides[d]); --at) dims[at] = dims[at - 1];
      dims[at] = d;
    }
  }
  TensorView view(const IterationSpace& space, const Operand& o) const {
    TensorView t;
    t.data = o.data, t.element = o.element, t.rank = rank;
    for (int i = 0; i < rank; ++i) t.shape[i] = space.shape[dims[i]], t.strides[i] = o.strides[dims[i]];
    return t;
  }
};

template <class Loss, class C, int... K>
C part_sum(const TensorView* views, int64_t begin, int64_t end, std::integer_sequence<int, K...>) {
  Stretch<C> in[] = {Stretch<C>(views[K])...};
  CompensatedSum<C> sum;
  for (int64_t n; begin < end; begin += n) {
    n = end - begin < kStretch ? end - begin : kStretch;
    const C* const x[] = {in[K].get(begin, n)...};
    C term[kStretch];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) term[i] = Loss::f(x[K][i]...);
    sum.add(lane_sum<C>(n, [](auto v) { return v; }, term));
  }
  return sum.value();
}

// The sum of the losses of all elements, in an order that depends on sizes and strides alone.
template <class Loss, class C>
C total(const IterationSpace& space, const Inputs<Loss, C>& in) {
  constexpr int kCount = Inputs<Loss, C>::kCount;
  const Order order(space, operand(in.views[0], space));
  TensorView views[kCount];
  for (int k = 0; k < kCount; ++k) views[k] = order.view(space, operand(in.views[k], space));
  const int64_t n = space.numel(), chunks = (n + kSumChunk - 1) / kSumChunk;
  const int64_t per = (chunks + kSumParts - 1) / kSumParts * kSumChunk, parts = per > 0 ? (n + per - 1) / per : 0;
  C part[kSumParts];
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p)
      part[p] =
          part_sum<Loss, C>(views, p * per, std::min(n, (p + 1) * per), std::make_integer_sequence<int, kCount>());
  });
  CompensatedSum<C> sum;
  for (int64_t p = 0; p < parts; ++p) sum.add(part[p]);
  return sum.value();
}

// Finds the element outside [0, 1] that a loss of such values is not defined for; NaN is one, too.
template <class Args, class C>
Status outside_unit(const Launch& launch) {
  for (const int tensor : {Args::input, Args::target}) {
    const TensorView& t = launch[tensor];
    Stretch<C> values(t);
    for (int64_t at = 0, n = t.numel(); at < n; at += kStretch) {
      const int64_t count = std::min(kStretch, n - at);
      const C* v = values.get(at, count);
      for (int64_t i = 0; i < count; ++i) {
        if (v[i] >= C(0) && v[i] <= C(1)) continue;
        const double value = v[i];
        if (launch.failure)
          *launch.failure = {tensor, at + i, std::bit_cast<int64_t>(value), static_cast<int64_t>(ValueRange::Unit)};
        return Status::ValueOutOfRange;
      }
    }
  }
  return Status::Ok;
}

template <class Loss, class C, int... K>
void each(const Launch& launch, const Inputs<Loss, C>& in, std::integer_sequence<int, K...>) {
  const TensorView& loss = launch[ArgsOf<Loss>::Forward::loss];
  const IterationSpace space = space_of(loss);
  const Operand from[] = {operand(in.views[K], space)...}, to[] = {operand(loss, space)};
  run_elements<Loss>(launch.element, space, from, to);
}

template <class Loss, class C>
Status forward(const Launch& launch) {
  using Args = typename ArgsOf<Loss>::Forward;
  if (wrong_number<Args>(launch)) return Status::InvalidProblem;
  const Inputs<Loss, C> in(launch, Args());
  const auto reduction = static_cast<PointwiseReduction>(attributes<PointwiseAttrs>(launch).reduction);
  if (reduction == PointwiseReduction::None) {
    if constexpr (Loss::kUnit) {
      if (const Status s = outside_unit<Args, C>(launch); s != Status::Ok) return s;
    }
    each(launch, in, std::make_integer_sequence<int, Inputs<Loss, C>::kCount>());
    return Status::Ok;
  }
  const TensorView &input = launch[Args::input], &loss = launch[Args::loss];
  const IterationSpace space = together(input, launch[Args::target]);
  C sum = total(space, in);
  // What is outside has given NaN.
  if constexpr (Loss::kUnit) {
    if (sum != sum)
      if (const Status s = outside_unit<Args, C>(launch); s != Status::Ok) return s;
  }
  sum = sum / static_cast<C>(divisor_of(reduction, space.numel(), input));
  store<C>(loss.element, loss.data, 1, &sum, 1);
  return Status::Ok;
}

template <class Loss, class C, int... K>
void slope(const Launch& launch, std::integer_sequence<int, K...>) {
  using Args = typename ArgsOf<Loss>::Backward;
  const Inputs<Loss, C> in(launch, Args());
  const TensorView& dinput = launch[Args::dinput];
  const IterationSpace space = space_of(dinput);
  const auto reduction = static_cast<PointwiseReduction>(attributes<PointwiseAttrs>(launch).reduction);
  const C count = static_cast<C>(divisor_of(reduction, space.numel(), launch[Args::input]));
  const Operand from[] = {operand(launch[Args::dloss], space), constant(&count, element_of<C>),
                          operand(in.views[K], space)...};
  const Operand to[] = {operand(dinput, space)};
  run_elements<Slope<Loss>>(launch.element, space, from, to);
}

template <class Loss, class C>
Status backward(const Launch& launch) {
  if (wrong_number<typename ArgsOf<Loss>::Backward>(launch)) return Status::InvalidProblem;
  slope<Loss, C>(launch, std::make_integer_sequence<int, Inputs<Loss, C>::kCount>());
  return Status::Ok;
}

}  // namespace baracuda::loss

namespace baracuda {

template <class Loss>
Status CpuKernel<loss::Pointwise<Loss>>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    return loss::with_loss<Loss>(launch, [&](auto l) { return loss::forward<decltype(l), decltype(c)>(launch); });
  });
}
template <class Loss>
Status CpuKernel<loss::PointwiseBackward<Loss>>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    return loss::with_loss<Loss>(launch, [&](auto l) { return loss::backward<decltype(l), decltype(c)>(launch); });
  });
}

#define BCU_POINTWISE(Loss)                               \
  template struct CpuKernel<loss::Pointwise<loss::Loss>>; \
  template struct CpuKernel<loss::PointwiseBackward<loss::Loss>>;

}  // namespace baracuda
