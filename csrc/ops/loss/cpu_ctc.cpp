// Connectionist temporal classification on the CPU: samples side by side, blanks and labels of one in vectors; then the
// rows of the gradient. Lengths and labels are checked before the first write.
#include <algorithm>

#include "core/wanted.h"
#include "host/lanes.h"
#include "host/tile.h"
#include "ops/loss/ctc.h"
#include "ops/loss/kernels.h"
#include "ops/loss/problem.h"

namespace baracuda::loss {
namespace {

// From one class to the next; a map of one class has no stride.
int64_t class_stride(const RowMap& m) { return m.inner.rank ? m.inner.strides[0] : 0; }
int64_t whole_at(const TensorView& t, int64_t offset) {
  int64_t v;
  load<int64_t>(t.element, t.as<char>() + offset * size_of(t.element), 1, &v, 1);
  return v;
}

// From the states behind one step to those behind the next: `n` labels at odd, and blanks around them at even.
template <class C>
void step_forward(int64_t n, const C* even, const C* odd, const C* skip, const C* score, C blank, C* to) {
  C* const to_odd = to + n + 1;
  to[0] = blank + even[0];
  if (n == 0) return;
  to_odd[0] = score[0] + log_add(odd[0], even[0]);
  to[n] = blank + log_add(even[n], odd[n - 1]);
#pragma GCC ivdep
  for (int64_t k = 1; k < n; ++k) {
    to[k] = blank + log_add(even[k], odd[k - 1]);
    to_odd[k] = score[k] + log_add(odd[k], even[k], odd[k - 1] + skip[k]);
  }
}
// What is to come behind the step before this one, from what comes behind this one.
template <class C>
void step_backward(int64_t n, const C* even, const C* odd, const C* skip, const C* score, C blank, C* to) {
  C* const to_odd = to + n + 1;
  to[n] = even[n] + blank;
  if (n == 0) return;
  const C last = odd[n - 1] + score[n - 1];
  to[n - 1] = log_add(even[n - 1] + blank, last);
  to_odd[n - 1] = log_add(last, even[n] + blank);
#pragma GCC ivdep
  for (int64_t k = 0; k < n - 1; ++k) {
    const C stay = odd[k] + score[k];
    to[k] = log_add(even[k] + blank, stay);
    to_odd[k] = log_add(stay, even[k + 1] + blank, odd[k + 1] + score[k + 1] + skip[k + 1]);
  }
}

template <class C>
class Sequences {
 public:
  // kBack: all rows of states are kept.
  template <class Args>
  Sequences(const Launch& launch, Args)
      : launch_(launch),
        back_(std::is_same_v<Args, CtcBackwardArgs>),
        at_(Args::targets),
        attrs_(attributes<CtcAttrs>(launch)),
        scores_(row_map(launch[Args::log_probs], 4)),
        memory_(launch[Args::log_probs].shape, targets().rank, targets().shape, back_, sizeof(C) == 8) {
    char* const at = static_cast<char*>(launch.workspace);
    const auto whole = [&](int64_t offset) { return reinterpret_cast<int64_t*>(at + offset); };
    const auto numbers = [&](int64_t offset) { return reinterpret_cast<C*>(at + offset); };
    states_ = numbers(memory_.states), skips_ = numbers(memory_.skips), label_scores_ = numbers(memory_.scores);
    losses_ = numbers(memory_.losses), starts_ = whole(memory_.starts), counts_ = whole(memory_.counts);
    lengths_ = whole(memory_.lengths), ids_ = whole(memory_.ids), order_ = whole(memory_.next);
  }

  // Reads lengths and labels; false, with the failure filled in, where one is out of range.
  bool check() {
    const bool apart = targets().rank == 2;
    const int64_t most = targets().shape[apart];
    int64_t start = 0;
    for (int64_t n = 0; n < memory_.samples; ++n) {
      if (!length(1, n, memory_.steps, lengths_[n])) return false;
      if (apart) start = n * most;
      if (!length(2, n, apart ? most : most - start, counts_[n])) return false;
      starts_[n] = start;
      const int64_t from = apart ? n * targets().strides[0] : start * targets().strides[0];
      for (int64_t k = 0; k < counts_[n]; ++k) {
        int64_t& id = ids_[start + k];
        id = whole_at(targets(), from + k * targets().strides[apart]);
        if (id < 0 || id >= memory_.classes) return refuse(at_, start + k, id, memory_.classes);
      }
      start += counts_[n];
    }
    if (!apart && start != most) return refuse(at_ + 2, -1, start, limit_of(Wanted::Sum, most));
    return true;
  }

  void run_all() {
    const int64_t each = memory_.steps * (2 * (memory_.labels / std::max<int64_t>(1, memory_.samples)) + 1) * 16;
    parallel_for(memory_.samples, row_grain(each), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) sample(n);
    });
  }
  C loss(int64_t n) const { return attrs_.zero_infinity && losses_[n] == math::infinity<C>() ? C(0) : losses_[n]; }
  void gradients(const TensorView& dloss, const TensorView& dscores) const {
    const RowMap to = row_map(dscores, 4), given = row_map(dloss, 0);
    parallel_for(memory_.steps * memory_.samples, row_grain(memory_.classes * 4), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t n = row % memory_.samples;
        gradient(row, n, get<C>(given, n), to);
      }
    });
  }

 private:
  const TensorView& targets() const { return launch_[at_]; }
  bool refuse(int param, int64_t position, int64_t got, int64_t limit) const {
    if (launch_.failure) *launch_.failure = {param, position, got, limit};
    return false;
  }
  bool length(int behind, int64_t n, int64_t most, int64_t& v) const {
    const TensorView& t = launch_[at_ + behind];
    v = whole_at(t, n * t.strides[0]);
    return (v >= 0 && v <= most) || refuse(at_ + behind, n, v, limit_of(Wanted::Length, most + 1));
  }

  C* rows(int64_t n) const { return states_ + memory_.rows * (2 * starts_[n] + n); }
  int64_t width(int64_t n) const { return 2 * counts_[n] + 1; }
  // Scores of the sample's labels at a step, and of the blank.
  C read_scores(int64_t step, int64_t n) const {
    const int64_t row = scores_.outer.offset(step * memory_.samples + n), stride = class_stride(scores_);
    const int64_t* const ids = ids_ + starts_[n];
    for (int64_t k = 0, m; k < counts_[n]; k += m) {
      int64_t at[kTargets];
      m = std::min(kTargets, counts_[n] - k);
      for (int64_t i = 0; i < m; ++i) at[i] = row + ids[k + i] * stride;
      pick(scores_, at, m, label_scores_ + starts_[n] + k);
    }
    C blank;
    const int64_t at = row + attrs_.blank * stride;
    pick(scores_, &at, 1, &blank);
    return blank;
  }

  void sample(int64_t n) {
    const int64_t count = counts_[n], start = starts_[n], wide = width(n);
    const C none = -math::infinity<C>();
    C* const skip = skips_ + start;
    for (int64_t k = 0; k < count; ++k) skip[k] = k > 0 && ids_[start + k] != ids_[start + k - 1] ? C(0) : none;
    // Before the first step there is the blank before all labels.
    C* last = rows(n) + (back_ ? memory_.steps : 1) * wide;
    std::fill_n(last, wide, none);
    last[0] = 0;
    for (int64_t t = 0; t < lengths_[n]; ++t) {
      C* const to = rows(n) + (back_ ? t : t % 2) * wide;
      const C blank = read_scores(t, n);
      step_forward(count, last, last + count + 1, skip, label_scores_ + start, blank, to);
      last = to;
    }
    losses_[n] = C(0) - (count == 0 ? last[0] : log_add(last[count], last[wide - 1]));
    if (back_) add_other_way(n);
  }
  // States from the end of time, without a step's own scores, are added to those from the start.
  void add_other_way(int64_t n) {
    const int64_t count = counts_[n], start = starts_[n], wide = width(n);
    sort_labels(start, count);
    C *from = rows(n) + memory_.steps * wide, *to = from + wide;
    std::fill_n(from, wide, -math::infinity<C>());
    from[count] = from[wide - 1] = 0;
    for (int64_t t = lengths_[n]; t-- > 0;) {
      C* const row = rows(n) + t * wide;
#pragma GCC ivdep
      for (int64_t k = 0; k < wide; ++k) row[k] += from[k];
      if (t == 0) return;
      const C blank = read_scores(t, n);
      step_backward(count, from, from + count + 1, skips_ + start, label_scores_ + start, blank, to);
      std::swap(from, to);
    }
  }
  // Places of labels, those of one class together, in their order.
  void sort_labels(int64_t start, int64_t count) {
    int64_t *const ids = ids_ + start, *const order = order_ + start;
    for (int64_t k = 0; k < count; ++k) order[k] = k;
    std::sort(order, order + count, [&](int64_t a, int64_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  }

  // dloss (e^score - what of all paths goes through the class at this step).
  void gradient(int64_t row, int64_t n, C dloss, const RowMap& to) const {
    const int64_t step = row / memory_.samples;
    const C loss = losses_[n];
    const bool inside = step < lengths_[n], finite = loss < math::infinity<C>();
    const bool zero = !inside || (loss == math::infinity<C>() && attrs_.zero_infinity);
    if (!finite) dloss = std::numeric_limits<C>::quiet_NaN();
    C in[kRowTile<C>], out[kRowTile<C>];
    for (int64_t at = 0; at < memory_.classes; at += kRowTile<C>) {
      const int64_t m = std::min(kRowTile<C>, memory_.classes - at);
      const C* const x = read(scores_, scores_.row(row), at, m, in);
      C* const d = target(to, to.row(row), at, out);
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) d[i] = zero ? C(0) : dloss * math::exp(x[i]);
      write(to, to.row(row), at, m, d);
    }
    if (inside && finite) paths(row, n, dloss, to);
  }
  void paths(int64_t row, int64_t n, C dloss, const RowMap& to) const {
    const int64_t count = counts_[n], start = starts_[n], wide = width(n);
    const C loss = losses_[n];
    C* const states = rows(n) + row / memory_.samples * wide;
#pragma GCC ivdep
    for (int64_t k = 0; k < wide; ++k) states[k] = math::exp(states[k] + loss);
    const auto put = [&](int64_t id, C share) {
      const C score = value_at<C>(scores_, scores_.row(row), id), v = dloss * (math::exp(score) - share);
      store<C>(to.element, to.row(row) + id * class_stride(to) * size_of(to.element), 1, &v, 1);
    };
    C blank = lane_sum<C>(count + 1, [](auto x) { return x; }, states);
    for (int64_t k = 0; k < count;) {
      const int64_t id = ids_[start + order_[start + k]];
      C sum = 0;
      for (; k < count && ids_[start + order_[start + k]] == id; ++k) sum += states[count + 1 + order_[start + k]];
      if (id == attrs_.blank)
        blank += sum;
      else
        put(id, sum);
    }
    put(attrs_.blank, blank);
  }

  const Launch& launch_;
  const bool back_;
  const int at_;
  const CtcAttrs attrs_;
  const RowMap scores_;
  const CtcMemory memory_;
  C *states_, *skips_, *label_scores_, *losses_;
  int64_t *starts_, *counts_, *lengths_, *ids_, *order_;
};

}  // namespace
}  // namespace baracuda::loss

namespace baracuda {

using namespace loss;

Status CpuKernel<Ctc>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    Sequences<C> all(launch, CtcArgs());
    if (!all.check()) return Status::IndexOutOfRange;
    all.run_all();
    const RowMap to = row_map(launch[CtcArgs::loss], 0);
    for (int64_t n = 0; n < to.rows(); ++n) put(to, n, all.loss(n));
    return Status::Ok;
  });
}

Status CpuKernel<CtcBackward>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    Sequences<C> all(launch, CtcBackwardArgs());
    if (!all.check()) return Status::IndexOutOfRange;
    all.run_all();
    all.gradients(launch[CtcBackwardArgs::dloss], launch[CtcBackwardArgs::dlog_probs]);
    return Status::Ok;
  });
}

}  // namespace baracuda
