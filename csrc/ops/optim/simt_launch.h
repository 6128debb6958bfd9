// Launches optimizer steps and gradient clipping on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/optim/scalars.h"
#include "ops/optim/simt.h"
#include "ops/optim/simt_norm.h"
#include "ops/optim/skus.h"
#include "simt/space_launch.h"

namespace baracuda::optim {

inline const TensorView& tensor_of(const Launch& launch, int list, int tensor) {
  return launch.tensors[launch.first[list] + tensor];
}

// Collects contiguous tensors of kLists lists, which Lists says where to find, for one launch. Chunks are a few rounds
// of a block.
template <class Lists, int kLists, int kTensors>
class ListBuilder {
 public:
  using Space = ListSpace<kLists, kTensors>;

  ListBuilder(const Launch& launch, Space& list, int32_t round) : launch_(launch), list_(list) {
    int64_t total = 0;
    for (int t = 0; t < count(); ++t) total += first(t).numel();
    list_.chunk = round * (total < kManyElements ? 2 : 8);
    clear();
  }

  // How many tensors each list has; those of the first.
  int count() const { return launch_.count(Lists::at(0)); }
  const TensorView& first(int t) const { return tensor_of(launch_, Lists::at(0), t); }

  int64_t chunks() const { return list_.tensors > 0 ? list_.end[list_.tensors - 1] : 0; }
  void clear() { list_.tensors = 0, list_.packs = 1; }
  bool dense(int t) const {
    for (int list = 0; list < kLists; ++list)
      if (!is_contiguous(tensor_of(launch_, Lists::at(list), t))) return false;
    return true;
  }
  // Whether a tensor still fits.
  bool takes(int t) const { return list_.tensors < kTensors && chunks() + chunks_of(t) <= simt::kMaxGridX; }
  void add(int t) {
    const int64_t before = chunks();
    const int at = list_.tensors++;
    for (int list = 0; list < kLists; ++list) {
      list_.data[list][at] = tensor_of(launch_, Lists::at(list), t).data;
      list_.packs &= reinterpret_cast<uintptr_t>(list_.data[list][at]) % simt::kPackBytes == 0;
    }
    list_.count[at] = first(t).numel();
    list_.end[at] = static_cast<uint32_t>(before + chunks_of(t));
  }

 private:
  static constexpr int64_t kManyElements = int64_t{1} << 23;  // fewer are cut finer, to occupy the device
  int64_t chunks_of(int t) const { return (first(t).numel() + list_.chunk - 1) / list_.chunk; }

  const Launch& launch_;
  Space& list_;
};

// Calls dense() for runs of contiguous tensors that one launch takes and strided(t) for others.
template <class Builder, class Dense, class Strided>
Status over_lists(Builder& build, Dense&& dense, Strided&& strided) {
  const auto flush = [&] {
    if (build.chunks() == 0) return Status::Ok;
    const Status s = dense();
    build.clear();
    return s;
  };
  for (int t = 0; t < build.count(); ++t) {
    if (build.first(t).numel() == 0) continue;
    if (!build.dense(t)) {
      if (const Status s = strided(t); s != Status::Ok) return s;
      continue;
    }
    if (!build.takes(t)) {
      if (const Status s = flush(); s != Status::Ok) return s;
    }
    build.add(t);
  }
  return flush();
}

template <class T, class Rule>
class RuleLaunch {
  using C = simt::ComputeOf<T>;
  using List = ListStep<T, Rule>;
  using Params = ListParams<T, Rule>;
  using Strided = StridedParams<C, Rule>;
  using Source = typename StepOf<C, Rule>::Source;
  using W = typename Source::W;

 public:
  explicit RuleLaunch(const Launch& launch) : launch_(launch), p_() {}

  // Scalars that are numbers are worked out here, as on the CPU; tensors by the kernels.
  Status read_scalars() {
    Source& source = p_.source;
    for (int k = 0; k < Rule::kScalars; ++k) source.on_device |= launch_.scalars[k].data != nullptr;
    if (!source.on_device) {
      const int wrong = Rule::make(numbers_of<Rule>(launch_), source.known);
      if (wrong >= 0 && launch_.failure) *launch_.failure = {-1, wrong, 0, 0};
      return wrong >= 0 ? Status::InvalidProblem : Status::Ok;
    }
    on_device();
    for (int k = 0; k < Rule::kBetas; ++k) {
      const Scalar& beta = launch_.scalars[Rule::kBeta + k];
      if (!beta.data) source.beta[k] = beta_of<W>(beta.as_f64());
    }
    read_flags<Rule>(launch_, source);
    return Status::Ok;
  }
  // The scalars are worked out on the device, `last` after those of the call.
  void on_device(const TensorView* last = nullptr) {
    constexpr int kCount = Rule::kScalars;
    Source& source = p_.source;
    source.on_device = 1;
    for (int k = 0; k < kCount; ++k) source.scalar[k] = simt::number_of(launch_.scalars[k]);
    if (last)
      source.scalar[kCount].data = last->data, source.scalar[kCount].element = static_cast<int32_t>(last->element);
    source.fault = simt::fault_of(launch_), source.row = launch_.row;
  }

  Status run() {
    ListBuilder<ListsOf<Rule>, Params::kLists, Params::kTensors> build(launch_, p_.list, List::kRound);
    return over_lists(
        build, [&] { return simt::submit<List>(launch_, {build.chunks()}, List::kThreads, p_); },
        [&](int t) { return strided(t); });
  }

 private:
  Status strided(int t) {
    const IterationSpace space = space_of(tensor_of(launch_, ListsOf<Rule>::at(0), t));
    Strided p{};
    p.source = p_.source;
    std::array<Operand, Strided::kLists> all;
    for (int list = 0; list < Strided::kLists; ++list) {
      all[list] = operand(tensor_of(launch_, ListsOf<Rule>::at(list), t), space);
      p.data[list] = all[list].data, p.element[list] = static_cast<int32_t>(all[list].element);
    }
    p.space = simt::space_of_rows(space, all, 1);
    return simt::submit<StridedStep<C, Rule>>(launch_, {simt::blocks_for(p.space.count, 4 * 256)}, 256, p);
  }

  const Launch& launch_;
  Params p_;
};

template <class Rule>
Status run_rule(const Launch& launch) {
  return simt::with_float(launch.element, [&](auto t) {
    RuleLaunch<decltype(t), Rule> call(launch);
    const Status status = call.read_scalars();
    return status == Status::Ok ? call.run() : status;
  });
}

struct NormLists {
  static constexpr int at(int) { return NormArgs::tensors; }
};

template <class T>
class NormLaunch {
  using C = simt::ComputeOf<T>;
  using Params = ListNormParams<T>;

 public:
  explicit NormLaunch(const Launch& launch) : launch_(launch), attrs_(attributes<NormAttrs>(launch)), p_() {
    const bool most = attrs_.p > std::numeric_limits<double>::max();
    p_.parts.terms = most ? kLargest : attrs_.p == 1 ? kMagnitudes : attrs_.p == 2 ? kSquares : kPowers;
    p_.parts.p = static_cast<C>(attrs_.p);
    p_.parts.part = static_cast<simt::LongSum<C>*>(launch.workspace);
  }

  Status run() {
    ListBuilder<NormLists, 1, Params::kTensors> build(launch_, p_.list, ListNorm<T>::kRound);
    const Status status = over_lists(
        build,
        [&] {
          p_.chunks = static_cast<uint32_t>(build.chunks());
          return fill<ListNorm<T>>(build.chunks(), p_);
        },
        [&](int t) { return strided(t); });
    return status == Status::Ok ? total() : status;
  }

 private:
  // Launches a block for each part; parts that no launch has filled yet are set.
  template <class Body>
  Status fill(int64_t blocks, typename Body::Params& p) {
    const int64_t used = std::min(blocks, kNormParts);
    p.parts.filled = filled_;
    filled_ = std::max(filled_, static_cast<int32_t>(used));
    return simt::submit<Body>(launch_, {used}, Body::kThreads, p);
  }

  Status strided(int t) {
    const TensorView& x = tensor_of(launch_, NormArgs::tensors, t);
    const IterationSpace space = space_of(x);
    const std::array<Operand, 1> all = {operand(x, space)};
    StridedNormParams<C> p{};
    p.parts = p_.parts;
    p.data = x.data, p.element = static_cast<int32_t>(x.element);
    p.space = simt::space_of_rows(space, all, 1);
    return fill<StridedNorm<C>>((p.space.count + 1023) / 1024, p);
  }

  Status total() {
    const TensorView& out = launch_[NormArgs::total_norm];
    NormTotalParams<C> p{};
    p.parts = p_.parts;
    p.parts.filled = filled_;
    p.out = out.data, p.element = static_cast<int32_t>(out.element);
    p.fault = attrs_.error_if_nonfinite ? simt::fault_of(launch_) : nullptr;
    p.row = launch_.row, p.tensor = launch_.first[NormArgs::total_norm];
    return simt::submit<NormTotal<C>>(launch_, {1}, NormTotal<C>::kThreads, p);
  }

  const Launch& launch_;
  NormAttrs attrs_;
  Params p_;
  int32_t filled_ = 0;
};

}  // namespace baracuda::optim

namespace baracuda {

template <bool kDecoupled>
struct SimtKernel<optim::Adam<kDecoupled>> {
  static Status run(const Launch& launch) {
    return attributes<optim::AdamAttrs>(launch).amsgrad ? optim::run_rule<optim::AdamRule<kDecoupled, true>>(launch)
                                                        : optim::run_rule<optim::AdamRule<kDecoupled, false>>(launch);
  }
};

template <>
struct SimtKernel<optim::Sgd> {
  static Status run(const Launch& launch) {
    return launch[optim::SgdArgs::momentum_buffers].present() ? optim::run_rule<optim::SgdRule<true>>(launch)
                                                              : optim::run_rule<optim::SgdRule<false>>(launch);
  }
};

template <>
struct SimtKernel<optim::Rmsprop> {
  static Status run(const Launch& launch) {
    using Args = optim::RmspropArgs;
    const bool centered = launch[Args::grad_avgs].present();
    if (launch[Args::momentum_buffers].present())
      return centered ? optim::run_rule<optim::RmspropRule<true, true>>(launch)
                      : optim::run_rule<optim::RmspropRule<false, true>>(launch);
    return centered ? optim::run_rule<optim::RmspropRule<true, false>>(launch)
                    : optim::run_rule<optim::RmspropRule<false, false>>(launch);
  }
};

template <>
struct SimtKernel<optim::TotalNorm> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) { return optim::NormLaunch<decltype(t)>(launch).run(); });
  }
};

template <>
struct SimtKernel<optim::ClipWithNorm> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      optim::RuleLaunch<decltype(t), optim::ScaleRule> call(launch);
      call.on_device(&launch[optim::ClipWithNormArgs::total_norm]);
      return call.run();
    });
  }
};

template <class Rule>
struct SimtKernel<optim::Stepped<Rule>> {
  static Status run(const Launch& launch) { return optim::run_rule<Rule>(launch); }
};

}  // namespace baracuda
