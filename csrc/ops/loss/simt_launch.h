// Launches cross-entropy on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/loss/simt.h"
#include "ops/loss/skus.h"
#include "simt/fold_launch.h"

namespace baracuda::loss {

// Where the tensors of a call stand in its signature; -1: nowhere.
struct Places {
  int logits, loss, lse, dloss, dlogits;
};

template <class T>
class LossLaunch {
  using C = simt::ComputeOf<T>;

 public:
  LossLaunch(const Launch& launch, const Places& at)
      : launch_(launch), attrs_(attributes<CrossEntropyAttrs>(launch)), p_{} {
    const TensorView& x = launch[at.logits];
    const IterationSpace space = space_of(x);
    axis_ = class_axis(x.rank);
    const auto row_values = [&](int k) { return k < 0 ? Operand{} : per_row(launch[k]); };
    const Operand all[] = {operand(x, space),    per_row(launch[at.logits + 1]),
                           row_values(at.loss),  row_values(at.lse),
                           row_values(at.dloss), at.dlogits < 0 ? Operand{} : operand(launch[at.dlogits], space)};
    p_.s = simt::row_space(space, 1u << axis_, all);
    p_.smoothing = simt::number_of(launch.scalars[0]);
    p_.ignore_index = attrs_.ignore_index;
    p_.each = reduction() == Reduction::None, p_.mean = reduction() == Reduction::Mean;
    p_.fault = simt::fault_of(launch);
    p_.fault_row = launch.row, p_.fault_tensor = at.logits + 1;
    char* next = static_cast<char*>(launch.workspace);
    if (p_.mean) p_.counted = reinterpret_cast<int64_t*>(next), next += 64;
    losses_ = reinterpret_cast<C*>(next);
  }

  Status count() const {
    return p_.mean ? simt::submit<CountTargets<C>>(launch_, {1}, CountTargets<C>::kThreads, p_) : Status::Ok;
  }

  template <template <class> class Body>
  Status rows() {
    constexpr uint32_t kRowwise = 1u << kLogits | 1u << kDlogits;
    if constexpr (sizeof(T) < 8) {  // f64 has no packed kernels: few call it
      if (!simt::side_by_side(p_.s, kLogits) && simt::packed_rows<T>(p_.s, kRowwise)) {
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
    if (reduction() != Reduction::None) p_.losses = losses_;
    Status status = count();
    if (status == Status::Ok) status = rows<Body>();
    return status == Status::Ok && reduction() != Reduction::None ? add_up() : status;
  }

 private:
  Reduction reduction() const { return static_cast<Reduction>(attrs_.reduction); }

  // A tensor without the class axis, or one value for all rows.
  Operand per_row(const TensorView& t) const {
    Operand o{};
    if (!t.present()) return o;
    o.data = t.data, o.element = t.element;
    for (int d = 0; d < t.rank; ++d) o.strides[d < axis_ ? d : d + 1] = t.shape[d] == 1 ? 0 : t.strides[d];
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
    simt::FoldLaunch<simt::SumFold> fold(launch_, s, rest, p_.mean ? 0 : -1, p_.counted);
    return fold.template values<C>();
  }

  const Launch& launch_;
  CrossEntropyAttrs attrs_;
  LossParams<C> p_;
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
      return loss::LossLaunch<decltype(t)>(launch, {0, 2, 3, -1, -1}).template losses<loss::LossOnly>();
    });
  }
};

template <>
struct SimtKernel<loss::CrossEntropyBackward> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      loss::LossLaunch<decltype(t)> call(launch, {1, -1, 3, 0, 4});
      const Status status = call.count();
      return status == Status::Ok ? call.template rows<loss::Backward>() : status;
    });
  }
};

template <>
struct SimtKernel<loss::CrossEntropyFused> {
  static Status run(const Launch& launch) {
    return simt::with_float(launch.element, [&](auto t) {
      return loss::LossLaunch<decltype(t)>(launch, {0, 2, 3, -1, 4}).template losses<loss::LossAndGradient>();
    });
  }
};

}  // namespace baracuda
