// Optimizer steps and gradient clipping on the CPU, over lists of tensors.
#include <utility>

#include "backends/cpu/family.h"
#include "core/compute.h"
#include "ops/optim/list.h"
#include "ops/optim/scalars.h"
#include "ops/optim/skus.h"

namespace baracuda::optim {
namespace {

template <int... K>
using Ints = std::integer_sequence<int, K...>;

template <class Rule, class T, class Step, int... K>
void update(const Step& step, const T* g, T* const* written, int64_t n, Ints<K...>) {
  const Step s = step;
  T* const to[] = {written[K]...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T x[] = {to[K][i]...};
    Rule::f(s, Rule::kGradient ? g[i] : T(0), x);
    ((to[K][i] = x[K]), ...);
  }
}

// Elements [begin, end) of tensor number `tensor` of every list; K counts the written ones.
template <class Rule, class T, class Step, int... K>
void update_part(const Launch& launch, int tensor, const Step& step, int64_t begin, int64_t end, Ints<K...> written) {
  auto view = [&](int list) -> const TensorView& {
    return launch.tensors[launch.first[ListsOf<Rule>::at(list)] + tensor];
  };
  // A rule without gradients gives the first written list in their place, which it does not read from there.
  Stretch<T> g(view(0)), x[] = {Stretch<T>(view(Rule::kGradient + K))...};
  const bool direct = g.direct() && (x[K].direct() && ...);
  for (int64_t n; begin < end; begin += n) {
    n = direct || end - begin < kTile ? end - begin : kTile;
    T* const to[] = {x[K].get(begin, n)...};
    update<Rule, T>(step, Rule::kGradient ? g.get(begin, n) : nullptr, to, n, written);
    (x[K].put(begin, n), ...);
  }
}

template <class Rule, class T, class... Known>
Status run_lists(const Launch& launch, Known... known) {
  typename Rule::template Step<T> step{};
  if (const int k = Rule::make(numbers_of<Rule>(launch, known...), step); k >= 0) {
    if (launch.failure) *launch.failure = {-1, k, 0, 0};
    return Status::InvalidProblem;
  }
  constexpr int kFirst = Rule::Args::grads;
  const ListIndex index(&launch[kFirst], launch.count(kFirst));
  parallel_for(index.total(), kChunk, [&](int64_t begin, int64_t end) {
    index.pieces(begin, end, [&](int tensor, int64_t from, int64_t to) {
      update_part<Rule, T>(launch, tensor, step, from, to, std::make_integer_sequence<int, Rule::kWritten>());
    });
  });
  return Status::Ok;
}

template <class Rule, class... Known>
Status run(const Launch& launch, Known... known) {
  return with_float_type(launch.element, [&](auto c) { return run_lists<Rule, decltype(c)>(launch, known...); });
}

}  // namespace
}  // namespace baracuda::optim

namespace baracuda {

template <bool kDecoupled>
struct CpuKernel<optim::Adam<kDecoupled>> {
  static Status run(const Launch& launch) {
    return attributes<optim::AdamAttrs>(launch).amsgrad ? optim::run<optim::AdamRule<kDecoupled, true>>(launch)
                                                        : optim::run<optim::AdamRule<kDecoupled, false>>(launch);
  }
};

template <>
struct CpuKernel<optim::Sgd> {
  static Status run(const Launch& launch) {
    return launch[optim::SgdArgs::momentum_buffers].present() ? optim::run<optim::SgdRule<true>>(launch)
                                                              : optim::run<optim::SgdRule<false>>(launch);
  }
};

template <>
struct CpuKernel<optim::Rmsprop> {
  static Status run(const Launch& launch) {
    using Args = optim::RmspropArgs;
    const bool centered = launch[Args::grad_avgs].present();
    if (launch[Args::momentum_buffers].present())
      return centered ? optim::run<optim::RmspropRule<true, true>>(launch)
                      : optim::run<optim::RmspropRule<false, true>>(launch);
    return centered ? optim::run<optim::RmspropRule<true, false>>(launch)
                    : optim::run<optim::RmspropRule<false, false>>(launch);
  }
};

template <class Rule>
struct CpuKernel<optim::Stepped<Rule>> {
  static Status run(const Launch& launch) { return optim::run<Rule>(launch); }
};

template <>
struct CpuKernel<optim::ClipWithNorm> {
  static Status run(const Launch& launch) {
    const TensorView& total_norm = launch[optim::ClipWithNormArgs::total_norm];
    double norm;
    load<double>(total_norm.element, total_norm.data, 1, &norm, 1);
    return optim::run<optim::ScaleRule>(launch, norm);
  }
};

// cpu_norm.cpp
template <>
struct CpuKernel<optim::TotalNorm> {
  static Status run(const Launch& launch);
};

}  // namespace baracuda

BCU_CPU_FAMILY(optim)
