// Launches optimizer steps on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/optim/scalars.h"
#include "ops/optim/simt.h"
#include "ops/optim/skus.h"
#include "simt/space_launch.h"

namespace baracuda::optim {

template <class T>
class AdamWLaunch {
  using C = simt::ComputeOf<T>;
  using W = typename StepSource<C>::W;
  using List = ListStep<T>;
  enum : int { kGrads, kParams, kExpAvgs, kExpAvgSqs };

 public:
  explicit AdamWLaunch(const Launch& launch) : launch_(launch), list_() {
    int64_t total = 0;
    for (int t = 0; t < launch_.count(kParams); ++t) total += view(kParams, t).numel();
    list_.chunk = List::kRound * (total < kManyElements ? 2 : 8);
    list_.packs = 1;
  }

  Status run() {
    if (Status s = read_scalars(); s != Status::Ok) return s;
    for (int t = 0; t < launch_.count(kParams); ++t) {
      const int64_t n = view(kParams, t).numel();
      if (n == 0) continue;
      const Status s = dense(t) ? add(t, n) : strided(t);
      if (s != Status::Ok) return s;
    }
    return flush();
  }

 private:
  static constexpr int64_t kManyElements = int64_t{1} << 23;  // fewer are cut finer, to occupy the device

  const TensorView& view(int param, int tensor) const { return launch_.tensors[launch_.first[param] + tensor]; }

  // Scalars that are numbers are worked out here, as on the CPU; tensors by the kernels.
  Status read_scalars() {
    const bool maximize = attributes<AdamWAttrs>(launch_).maximize != 0;
    StepSource<C>& source = list_.source;
    for (int k = 0; k < kScalars; ++k) source.on_device |= launch_.scalars[k].data != nullptr;
    if (!source.on_device) {
      const AdamWScalars scalars(launch_.scalars);
      if (const int k = scalars.wrong(); k >= 0) {
        if (launch_.failure) *launch_.failure = {-1, k, 0, 0};
        return Status::InvalidProblem;
      }
      source.known = make_step<C>(scalars, maximize);
      return Status::Ok;
    }
    for (int k = 0; k < kScalars; ++k) source.scalar[k] = simt::number_of(launch_.scalars[k]);
    for (int k = 0; k < 2; ++k) {
      const Scalar& beta = launch_.scalars[kBeta1 + k];
      if (beta.data) continue;
      const double b = beta.as_f64();
      source.beta[k] = {static_cast<W>(b), static_cast<W>(1 - b), static_cast<W>(std::log(b))};
    }
    source.fault = simt::fault_of(launch_), source.row = launch_.row, source.maximize = maximize;
    return Status::Ok;
  }

  bool dense(int t) const {
    for (int param : {kGrads, kParams, kExpAvgs, kExpAvgSqs})
      if (!is_contiguous(view(param, t))) return false;
    return true;
  }

  Status add(int t, int64_t n) {
    const int64_t blocks = (n + list_.chunk - 1) / list_.chunk;
    const int64_t used = list_.tensors > 0 ? list_.end[list_.tensors - 1] : 0;
    if (list_.tensors == kListTensors || used + blocks > simt::kMaxGridX)
      if (Status s = flush(); s != Status::Ok) return s;
    const int at = list_.tensors++;
    list_.g[at] = static_cast<const T*>(view(kGrads, t).data), list_.p[at] = static_cast<T*>(view(kParams, t).data);
    list_.m[at] = static_cast<C*>(view(kExpAvgs, t).data), list_.v[at] = static_cast<C*>(view(kExpAvgSqs, t).data);
    list_.count[at] = n;
    list_.end[at] = static_cast<uint32_t>((at > 0 ? list_.end[at - 1] : 0) + blocks);
    for (int param : {kGrads, kParams, kExpAvgs, kExpAvgSqs})
      list_.packs &= reinterpret_cast<uintptr_t>(view(param, t).data) % 16 == 0;
    return Status::Ok;
  }

  Status flush() {
    if (list_.tensors == 0) return Status::Ok;
    const Status s = simt::submit<List>(launch_, {list_.end[list_.tensors - 1]}, List::kThreads, list_);
    list_.tensors = 0, list_.packs = 1;
    return s;
  }

  Status strided(int t) {
    const IterationSpace space = space_of(view(kParams, t));
    StridedParams<C> p{};
    p.source = list_.source;
    std::array<Operand, StridedParams<C>::kTensors> all;
    for (int param : {kGrads, kParams, kExpAvgs, kExpAvgSqs}) {
      all[param] = operand(view(param, t), space);
      p.data[param] = all[param].data, p.element[param] = static_cast<int32_t>(all[param].element);
    }
    p.space = simt::space_of_rows(space, all, 1);
    return simt::submit<StridedStep<C>>(launch_, {simt::blocks_for(p.space.count, 4 * 256)}, 256, p);
  }

  const Launch& launch_;
  ListParams<T> list_;
};

}  // namespace baracuda::optim

namespace baracuda {

template <>
struct SimtKernel<optim::AdamW> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) { return optim::AdamWLaunch<decltype(t)>(launch).run(); });
  }
};

}  // namespace baracuda
