// Launches the losses of classes on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/loss/simt.h"
#include "ops/loss/simt_ctc_launch.h"
#include "ops/loss/simt_pointwise_launch.h"
#include "ops/loss/simt_targets.h"
#include "ops/loss/skus.h"
#include "simt/fold_launch.h"

namespace baracuda::loss {

template <class T>
class LossLaunch {
  using C = simt::ComputeOf<T>;

 public:
  // Targets are class indices, or numbers for every class.
  LossLaunch(const Launch& launch, const Places& at, bool indices = true)
      : launch_(launch), attrs_(attributes<CrossEntropyAttrs>(launch)), p_{}, indices_(indices) {
    const TensorView &x = launch[at.input], &target = launch[at.target];
    const IterationSpace space = space_of(x);
    axis_ = class_axis(x.rank);
    const auto row_values = [&](int k) { return k < 0 ? Operand{} : per_row(launch[k]); };
    const Operand all[] = {operand(x, space),
                           indices ? per_row(target) : operand(target, space),
                           row_values(at.loss),
                           row_values(at.lse),
                           row_values(at.dloss),
                           at.dinput < 0 ? Operand{} : operand(launch[at.dinput], space),
                           at.weight < 0 ? Operand{} : per_class(launch[at.weight])};
    p_.s = simt::row_space(space, 1u << axis_, all);
    if (at.smoothing >= 0) p_.smoothing = simt::number_of(launch.scalars[at.smoothing]);
    p_.ignore_index = attrs_.ignore_index;
    p_.each = reduction() == Reduction::None, p_.mean = reduction() == Reduction::Mean;
    p_.fault = simt::fault_of(launch);
    p_.fault_row = launch.row, p_.fault_tensor = at.target;
    char* next = static_cast<char*>(launch.workspace);
    if (p_.mean || p_.s.data[kWeight]) p_.totals = reinterpret_cast<C*>(next), next += whole_lines(2 * sizeof(double));
    losses_ = reinterpret_cast<C*>(next);
  }

  Status count() const {
    if (!indices_ || !p_.totals) return Status::Ok;
    return simt::submit<CountTargets<C>>(launch_, {1}, CountTargets<C>::kThreads, p_);
  }

  template <template <class> class Body>
  Status rows() {
    const uint32_t rowwise = 1u << kLogits | 1u << kDlogits | 1u << kWeight | (indices_ ? 0u : 1u << kTarget);
    if constexpr (sizeof(T) < 8) {  // f64 has no packed kernels: few call it
      if (!simt::side_by_side(p_.s, kLogits) && simt::packed_rows<T>(p_.s, rowwise)) {
        const auto grid = simt::row_teams(p_.s, 16, 512);
        return simt::submit<Body<simt::PackedRows<T>>>(launch_, {grid.blocks}, grid.threads, p_);
      }
    }
    const auto grid = simt::teams(p_.s, 16, 512, kLogits);
    return simt::submit<Body<simt::LineRows<T>>>(launch_, {grid.blocks}, grid.threads, p_);
  }

  // Rows, and the sum of their losses.
  template <template <class> class Body>
  Status losses() {
    return with_losses([&] { return rows<Body>(); });
  }
  Status likelihoods() {
    return with_losses(
        [&] { return simt::submit<ForwardLikelihood<C>>(launch_, {simt::blocks_for(p_.s.rows, 256)}, 256, p_); });
  }
  template <template <class> class Body>
  Status gradient() {
    const Status status = count();
    return status == Status::Ok ? rows<Body>() : status;
  }

 private:
  template <class Make>
  Status with_losses(Make&& make) {
    if (reduction() != Reduction::None) p_.losses = losses_;
    Status status = count();
    if (status == Status::Ok) status = make();
    return status == Status::Ok && reduction() != Reduction::None ? add_up() : status;
  }

  Reduction reduction() const { return static_cast<Reduction>(attrs_.reduction); }

  // A tensor without the class axis, or one value for all rows.
  Operand per_row(const TensorView& t) const {
    Operand o{};
    if (!t.present()) return o;
    o.data = t.data, o.element = t.element;
    for (int d = 0; d < t.rank; ++d) o.strides[d < axis_ ? d : d + 1] = t.shape[d] == 1 ? 0 : t.strides[d];
    return o;
  }

  // One value for every class, which all rows share.
  Operand per_class(const TensorView& t) const {
    Operand o{};
    if (!t.present()) return o;
    o.data = t.data, o.element = t.element;
    o.strides[axis_] = t.shape[0] == 1 ? 0 : t.strides[0];
    return o;
  }

  Status add_up() const {
    simt::RowSpace<2> s{};
    s.rows = 1, s.length = s.inner_shape[0] = p_.s.rows;
    s.inner_rank = 1, s.inner_stride[0][0] = 1;
    s.data[0] = p_.losses, s.data[1] = p_.s.data[kLoss];
    s.element[1] = p_.s.element[kLoss];
    char* rest = reinterpret_cast<char*>(p_.losses) + whole_lines(p_.s.rows * static_cast<int64_t>(sizeof(C)));
    // Without a counted target a mean is 0 / 0.
    const bool counts = p_.mean && indices_;
    simt::FoldLaunch<simt::SumFold> fold(launch_, s, rest, p_.mean ? p_.s.rows : -1, counts ? p_.totals : nullptr);
    return fold.template values<C>();
  }

  const Launch& launch_;
  CrossEntropyAttrs attrs_;
  LossParams<C> p_;
  bool indices_;
  int axis_;
  C* losses_;
};

template <class Rows>
using LossOnly = Forward<Rows, false>;
template <class Rows>
using LossAndGradient = Forward<Rows, true>;

}  // namespace baracuda::loss

namespace baracuda {

template <>
struct SimtKernel<loss::CrossEntropy> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kForward);
      return call.template losses<loss::LossOnly>();
    });
  }
};

template <>
struct SimtKernel<loss::CrossEntropyBackward> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kBackward);
      return call.template gradient<loss::Backward>();
    });
  }
};

template <>
struct SimtKernel<loss::CrossEntropyFused> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kFused);
      return call.template losses<loss::LossAndGradient>();
    });
  }
};

template <>
struct SimtKernel<loss::Probabilities> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kForward, false);
      return call.template losses<loss::ForwardProbabilities>();
    });
  }
};

template <>
struct SimtKernel<loss::ProbabilitiesBackward> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kBackward, false);
      return call.template gradient<loss::BackwardProbabilities>();
    });
  }
};

template <>
struct SimtKernel<loss::Nll> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kNll);
      return call.likelihoods();
    });
  }
};

template <>
struct SimtKernel<loss::NllBackward> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, loss::kNllBackward);
      return call.template gradient<loss::BackwardLikelihood>();
    });
  }
};

}  // namespace baracuda
