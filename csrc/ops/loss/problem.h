// What the losses of classes read and write on the CPU, and what their targets count for.
#pragma once
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "core/compute.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {

// Where the tensors of a call stand in its signature; -1: nowhere. The target follows the input.
struct CpuPlaces {
  int input = 0, weight = -1, loss = -1, lse = -1, dloss = -1, dinput = -1;
  bool smooths = true;  // the call has the scalar label_smoothing
};

template <class C>
C value_at(const RowMap& m, const char* row, int64_t at) {
  C buffer;
  return *read(m, row, at, 1, &buffer);
}

struct Problems {
  RowMap logits, target, weight, loss, lse, dloss, dlogits;
  CrossEntropyAttrs attrs;
  double smoothing = 0;
  int64_t rows = 0, classes = 0;
  int64_t first = 0;       // the row that the first one of logits and dlogits is
  double counted = 0;      // weights of the targets that are not ignored, added up
  double mean_weight = 1;  // of all classes
  int target_place;

  // Targets are class indices, or numbers for every class, which run along the rows as the logits do.
  Problems(const Launch& launch, const CpuPlaces& at, bool indices = true)
      : attrs(attributes<CrossEntropyAttrs>(launch)), target_place(at.input + 1) {
    const uint32_t along = 1u << class_axis(launch[at.input].rank);
    const auto map = [&](int place, uint32_t inner) { return place < 0 ? RowMap{} : row_map(launch[place], inner); };
    logits = map(at.input, along), dlogits = map(at.dinput, along);
    target = map(target_place, indices ? 0 : along);
    weight = map(at.weight, 1u);
    loss = map(at.loss, 0), lse = map(at.lse, 0), dloss = map(at.dloss, 0);
    rows = logits.rows(), classes = logits.length();
    if (at.smooths) smoothing = launch.scalars[0].as_f64();
    if (!indices) counted = static_cast<double>(rows);
  }

  Reduction reduction() const { return static_cast<Reduction>(attrs.reduction); }
  char* logits_row(int64_t r) const { return logits.row(r - first); }
  char* dlogits_row(int64_t r) const { return dlogits.row(r - first); }
  // The row's class; -1: it is ignored.
  int64_t counted_target(int64_t row) const {
    const int64_t t = get<int64_t>(target, row);
    return t == attrs.ignore_index ? -1 : t;
  }
  template <class C>
  C weight_of(int64_t at) const {
    return weight.present() ? value_at<C>(weight, weight.data, at) : C(1);
  }
  template <class C>
  const C* class_weights(int64_t at, int64_t n, C* buffer) const {
    return read(weight, weight.data, at, n, buffer);
  }
  // What dloss is for a row's loss.
  template <class C>
  C share_of(int64_t row) const {
    if (reduction() == Reduction::None) return get<C>(dloss, row);
    return get<C>(dloss, 0) / (reduction() == Reduction::Mean ? static_cast<C>(counted) : C(1));
  }

  // Runs f(C()) with the compute type, if the targets are right.
  template <class F>
  Status run(const Launch& launch, F&& f) {
    if (!check_targets(launch.failure)) return Status::IndexOutOfRange;
    return run_unchecked(launch, f);
  }
  template <class F>
  Status run_unchecked(const Launch& launch, F&& f) {
    if (!(smoothing >= 0 && smoothing <= 1)) {
      if (launch.failure) *launch.failure = {-1, 0, 0, 0};
      return Status::InvalidProblem;
    }
    weigh_classes();
    with_float_type(launch.element, f);
    return Status::Ok;
  }

 private:
  void weigh_classes() {
    if (!weight.present() || classes == 0) return;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += weight_of<double>(c);
    mean_weight = sum / static_cast<double>(classes);
  }

  // Adds up what the targets count for; false, with the failure filled in, at the first bad one.
  bool check_targets(Failure* failure) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t t = counted_target(r);
      if (t == -1 && get<int64_t>(target, r) == attrs.ignore_index) continue;
      if (t < 0 || t >= classes) {
        if (failure) *failure = {target_place, r, t, classes};
        return false;
      }
      counted += weight_of<double>(t);
    }
    return true;
  }
};

template <class C>
void reduce_losses(const Problems& p, const C* losses) {
  if (p.reduction() == Reduction::None) return;
  CompensatedSum<C> total;
  for (int64_t at = 0; at < p.rows; at += kRowTile<C>)
    total.add(lane_sum<C>(std::min(kRowTile<C>, p.rows - at), [](auto x) { return x; }, losses + at));
  // Without a counted target a mean is 0 / 0.
  const C sum = total.value();
  put(p.loss, 0, p.reduction() == Reduction::Mean ? sum / static_cast<C>(p.counted) : sum);
}

template <class C>
void clear_row(const Problems& p, int64_t r) {
  C zeros[kRowTile<C>];
  char* to = p.dlogits_row(r);
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    C* d = target(p.dlogits, to, at, zeros);
    std::fill(d, d + n, C(0));
    write(p.dlogits, to, at, n, d);
  }
}

}  // namespace baracuda::loss
