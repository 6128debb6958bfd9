// What the losses of classes read and write on the CPU, and what their targets count for.
#pragma once
#include "core/compute.h"
#include "core/parallel.h"
#include "host/move_row.h"
#include "host/rows.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {

template <class C>
C value_at(const RowMap& m, const char* row, int64_t at) {
  C buffer;
  return *read(m, row, at, 1, &buffer);
}

inline constexpr int64_t kTargets = 256;  // read together

// The elements at n <= kTargets offsets from the map's data. They may lie anywhere: reading them is all that is done
// between one and the next, so that many are on their way at a time.
template <class C>
void pick(const RowMap& m, const int64_t* at, int64_t n, C* to) {
  with_cell(size_of(m.element), [&](auto cell) {
    using T = decltype(cell);
    const T* from = reinterpret_cast<const T*>(m.data);
    T picked[kTargets];
    for (int64_t i = 0; i < n; ++i) picked[i] = from[at[i]];
    load<C>(m.element, picked, 1, to, n);
  });
}

struct Problems {
  RowMap logits, target, weight, loss, lse, dloss, dlogits;
  CrossEntropyAttrs attrs;
  double smoothing = 0;
  int64_t rows = 0, classes = 0;
  int64_t first = 0;       // the row that the first one of logits and dlogits is
  double counted = 0;      // weights of the targets that are not ignored, added up
  double mean_weight = 1;  // of all classes
  Places places;

  // Targets are class indices, or numbers for every class, which run along the rows as the logits do.
  Problems(const Launch& launch, const Places& at, bool indices = true)
      : attrs(attributes<CrossEntropyAttrs>(launch)), places(at) {
    const uint32_t along = 1u << class_axis(launch[at.input].rank);
    const auto map = [&](int place, uint32_t inner) { return place < 0 ? RowMap{} : row_map(launch[place], inner); };
    logits = map(at.input, along), dlogits = map(at.dinput, along);
    target = map(at.target, indices ? 0 : along);
    weight = map(at.weight, 1u);
    loss = map(at.loss, 0), lse = map(at.lse, 0), dloss = map(at.dloss, 0);
    rows = logits.rows(), classes = logits.length();
    if (at.smoothing >= 0) smoothing = launch.scalars[at.smoothing].as_f64();
    if (!indices) counted = static_cast<double>(rows);
  }

  Reduction reduction() const { return static_cast<Reduction>(attrs.reduction); }
  char* logits_row(int64_t r) const { return logits.row(r - first); }
  char* dlogits_row(int64_t r) const { return dlogits.row(r - first); }
  // Targets of n <= kTargets rows.
  const int64_t* targets(int64_t begin, int64_t n, int64_t* buffer) const {
    return read(across(target), target.data, begin, n, buffer);
  }
  // Where these classes' weights lie, for pick(); those of ignored targets are not to be used.
  void weights_at(const int64_t* classes_of, int64_t n, int64_t* at) const {
    const int64_t stride = weight.inner.rank ? weight.inner.strides[0] : 0;
    for (int64_t i = 0; i < n; ++i) at[i] = classes_of[i] == attrs.ignore_index ? 0 : classes_of[i] * stride;
  }
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
      if (launch.failure) *launch.failure = {-1, places.smoothing, 0, -2 - static_cast<int64_t>(ValueRange::Unit)};
      return Status::InvalidProblem;
    }
    weigh_classes();
    with_float_type(launch.element, f);
    return Status::Ok;
  }

 private:
  // Only what smoothing spreads asks for all classes.
  void weigh_classes() {
    if (!weight.present() || classes == 0 || smoothing == 0) return;
    double sum = 0, weights[kTargets];
    for (int64_t at = 0; at < classes; at += kTargets) {
      const int64_t n = std::min(kTargets, classes - at);
      const double* w = class_weights(at, n, weights);
      for (int64_t i = 0; i < n; ++i) sum += w[i];
    }
    mean_weight = sum / static_cast<double>(classes);
  }

  // Adds up what the targets count for; false, with the failure filled in, at the first bad one.
  bool check_targets(Failure* failure) {
    int64_t buffer[kTargets];
    for (int64_t begin = 0; begin < rows; begin += kTargets) {
      const int64_t n = std::min(kTargets, rows - begin), *t = targets(begin, n, buffer);
      int64_t bad = 0, ignored = 0;
      for (int64_t i = 0; i < n; ++i) {
        const bool skipped = t[i] == attrs.ignore_index;
        ignored += skipped;
        bad += !skipped && static_cast<uint64_t>(t[i]) >= static_cast<uint64_t>(classes);
      }
      if (bad > 0) return refuse(t, begin, failure);
      counted += weight.present() && reduction() == Reduction::Mean && ignored < n ? weight_of_targets(t, n)
                                                                                   : static_cast<double>(n - ignored);
    }
    return true;
  }
  bool refuse(const int64_t* t, int64_t begin, Failure* failure) const {
    int64_t i = 0;
    while (t[i] == attrs.ignore_index || (t[i] >= 0 && t[i] < classes)) ++i;
    if (failure) *failure = {places.target, begin + i, t[i], classes};
    return false;
  }
  double weight_of_targets(const int64_t* t, int64_t n) const {
    int64_t at[kTargets];
    double weights[kTargets];
    weights_at(t, n, at);
    pick(weight, at, n, weights);
    for (int64_t i = 0; i < n; ++i) weights[i] = t[i] == attrs.ignore_index ? 0.0 : weights[i];
    return lane_sum<double>(n, [](auto w) { return w; }, weights);
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
