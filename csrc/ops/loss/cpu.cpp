// Cross-entropy with class indices on the CPU. Rows stay in cache between passes; all targets are checked before the
// first write.
#include "backends/cpu/family.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "baracuda/math/math.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {
namespace {

struct Problems {
  RowMap logits, target, loss, lse, dloss, dlogits;
  CrossEntropyAttrs attrs;
  double smoothing = 0;
  int64_t rows = 0, classes = 0, counted = 0;

  Reduction reduction() const { return static_cast<Reduction>(attrs.reduction); }
  int64_t target_of(int64_t row) const { return get<int64_t>(target, row); }
};

Problems describe(const Launch& launch, int logits) {
  Problems p;
  p.attrs = attributes<CrossEntropyAttrs>(launch);
  p.smoothing = launch.scalars[0].as_f64();
  const TensorView& x = launch[logits];
  p.logits = row_map(x, 1u << class_axis(x.rank));
  p.target = row_map(launch[logits + 1], 0);
  p.rows = p.logits.rows();
  p.classes = p.logits.length();
  return p;
}

// Counts the targets that are not ignored; false, with the failure filled in, at the first bad one.
bool check_targets(Problems& p, int tensor, Failure* failure) {
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t t = p.target_of(r);
    if (t == p.attrs.ignore_index) continue;
    if (t < 0 || t >= p.classes) {
      if (failure) *failure = {tensor, r, t, p.classes};
      return false;
    }
    ++p.counted;
  }
  return true;
}

template <class C>
struct RowTerms {
  C max, sum;    // of the logits, of exp(x - max)
  C to_target;   // max - x[target]
  C mean_below;  // mean(max - x), with smoothing only
};

template <class C>
C value_at(const RowMap& m, const char* row, int64_t at) {
  C buffer;
  return *read(m, row, at, 1, &buffer);
}

// exp(x - max) of the row goes to `keep` where that is not null; keep may be the row itself.
template <class C>
RowTerms<C> row_terms(const Problems& p, const char* row, int64_t target, C* keep) {
  C in[kRowTile<C>], e[kRowTile<C>];
  const bool whole = p.classes <= kRowTile<C>;
  const C* v = nullptr;
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    v = read(p.logits, row, at, n, in);
    const C top = lane_max(v, n);
    max = top > max ? top : max;
  }
  RowTerms<C> terms{max, 0, target < 0 ? C(0) : max - value_at<C>(p.logits, row, target), 0};
  CompensatedSum<C> sum, below;
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    if (!whole) v = read(p.logits, row, at, n, in);
    if (p.smoothing != 0) below.add(lane_sum<C>(n, [max](auto x) { return max - x; }, v));
    C* to = keep ? keep + at : e;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = math::exp(v[i] - max);
    sum.add(lane_sum<C>(n, [](auto x) { return x; }, to));
  }
  terms.sum = sum.value();
  if (p.smoothing != 0) terms.mean_below = below.value() / static_cast<C>(p.classes);
  return terms;
}

template <class C>
C row_loss(const Problems& p, const RowTerms<C>& t, C log_sum) {
  if (p.smoothing == 0) return log_sum + t.to_target;
  const C s = static_cast<C>(p.smoothing);
  return (C(1) - s) * (log_sum + t.to_target) + s * (log_sum + t.mean_below);
}

// Stores a row's results: its loss (kept in `losses` when they are added up later) and its lse.
template <class C>
void put_loss(const Problems& p, int64_t r, bool counted, const RowTerms<C>& t, C* losses) {
  const C log_sum = math::log(t.sum), value = counted ? row_loss(p, t, log_sum) : C(0);
  if (p.reduction() == Reduction::None)
    put(p.loss, r, value);
  else
    losses[r] = value;
  if (p.lse.present()) put(p.lse, r, t.max + log_sum);
}

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
void forward(const Problems& p, void* workspace) {
  C* losses = static_cast<C*>(workspace);
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = p.target_of(r);
      const bool counted = t != p.attrs.ignore_index;
      put_loss(p, r, counted, row_terms<C>(p, p.logits.row(r), counted ? t : -1, nullptr), losses);
    }
  });
  reduce_losses(p, losses);
}

// What a row's gradient is made of: probability(v[i]) * scale - spread, and less at the target.
template <class C>
struct RowGradient {
  C scale, spread, at_target;
};

template <class C>
RowGradient<C> row_gradient(const Problems& p, C weight, C over_sum) {
  const C s = static_cast<C>(p.smoothing);
  return {weight * over_sum, weight * s / static_cast<C>(p.classes), weight * (C(1) - s)};
}

// kKept: `from` holds exp(x - max) already; otherwise it is read from the logits and `shift` is subtracted.
template <bool kKept, class C>
void gradient_row(const Problems& p, int64_t r, int64_t target_class, const C* kept, C shift, RowGradient<C> g) {
  C in[kRowTile<C>], out[kRowTile<C>];
  const char* row = p.logits.row(r);
  char* to = p.dlogits.row(r);
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    const C* v = kKept ? kept + at : read(p.logits, row, at, n, in);
    C* d = target(p.dlogits, to, at, out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = (kKept ? v[i] : math::exp(v[i] - shift)) * g.scale - g.spread;
    if (target_class >= at && target_class < at + n) d[target_class - at] -= g.at_target;
    write(p.dlogits, to, at, n, d);
  }
}

template <class C>
void clear_row(const Problems& p, int64_t r) {
  C zeros[kRowTile<C>];
  char* to = p.dlogits.row(r);
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    C* d = target(p.dlogits, to, at, zeros);
    std::fill(d, d + n, C(0));
    write(p.dlogits, to, at, n, d);
  }
}

template <class C>
void backward(const Problems& p) {
  const bool mean = p.reduction() == Reduction::Mean, each = p.reduction() == Reduction::None;
  if (p.rows == 0) return;
  const C whole = each ? C(0) : get<C>(p.dloss, 0) / (mean ? static_cast<C>(p.counted) : C(1));
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = p.target_of(r);
      if (t == p.attrs.ignore_index) {
        clear_row<C>(p, r);
        continue;
      }
      const C weight = each ? get<C>(p.dloss, r) : whole;
      gradient_row<false, C>(p, r, t, nullptr, get<C>(p.lse, r), row_gradient(p, weight, C(1)));
    }
  });
}

// Where a fused row's exponentials are kept: on the stack, in the output, in the strip's scratch, or nowhere.
template <class C>
void fused_row(const Problems& p, int64_t r, C weight, C* losses, C* scratch) {
  C stack[kRowTile<C>];
  C* keep = p.classes <= kRowTile<C>         ? stack
            : p.dlogits.template direct<C>() ? reinterpret_cast<C*>(p.dlogits.row(r))
                                             : scratch;
  const int64_t t = p.target_of(r);
  const bool counted = t != p.attrs.ignore_index;
  const RowTerms<C> terms = row_terms<C>(p, p.logits.row(r), counted ? t : -1, keep);
  put_loss(p, r, counted, terms, losses);
  if (!counted)
    clear_row<C>(p, r);
  else if (keep)
    gradient_row<true, C>(p, r, t, keep, C(0), row_gradient(p, weight, C(1) / terms.sum));
  else
    gradient_row<false, C>(p, r, t, nullptr, terms.max, row_gradient(p, weight, C(1) / terms.sum));
}

template <class C>
void fused(const Problems& p, Element element, void* workspace) {
  char* next = static_cast<char*>(workspace);
  C* losses = nullptr;
  if (p.reduction() != Reduction::None) {
    losses = reinterpret_cast<C*>(next);
    next += whole_lines(p.rows * static_cast<int64_t>(sizeof(C)));
  }
  const bool scratch = kHalves.has(element) && p.classes > kRowTile<C> && p.classes <= kLongRow;
  const int64_t strips = std::max<int64_t>(1, strips_of(p.rows)), per = (p.rows + strips - 1) / strips;
  const C weight = p.reduction() == Reduction::Mean ? C(1) / static_cast<C>(p.counted) : C(1);
  parallel_for(strips, row_grain(p.classes * std::max<int64_t>(1, per)), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      C* own = scratch ? reinterpret_cast<C*>(next + s * whole_lines(p.classes * sizeof(C))) : nullptr;
      for (int64_t r = s * per; r < std::min(p.rows, (s + 1) * per); ++r) fused_row(p, r, weight, losses, own);
    }
  });
  reduce_losses(p, losses);
}

}  // namespace
}  // namespace baracuda::loss

namespace baracuda {

template <>
struct CpuKernel<loss::CrossEntropy> {
  static Status run(const Launch& launch) {
    loss::Problems p = loss::describe(launch, 0);
    if (!loss::check_targets(p, 1, launch.failure)) return Status::IndexOutOfRange;
    p.loss = row_map(launch[2], 0);
    p.lse = row_map(launch[3], 0);
    launch.element == Element::F64 ? loss::forward<double>(p, launch.workspace)
                                   : loss::forward<float>(p, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<loss::CrossEntropyBackward> {
  static Status run(const Launch& launch) {
    loss::Problems p = loss::describe(launch, 1);
    if (!loss::check_targets(p, 2, launch.failure)) return Status::IndexOutOfRange;
    p.dloss = row_map(launch[0], 0);
    p.lse = row_map(launch[3], 0);
    p.dlogits = row_map(launch[4], 1u << loss::class_axis(launch[4].rank));
    launch.element == Element::F64 ? loss::backward<double>(p) : loss::backward<float>(p);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<loss::CrossEntropyFused> {
  static Status run(const Launch& launch) {
    loss::Problems p = loss::describe(launch, 0);
    if (!loss::check_targets(p, 1, launch.failure)) return Status::IndexOutOfRange;
    p.loss = row_map(launch[2], 0);
    p.lse = row_map(launch[3], 0);
    p.dlogits = row_map(launch[4], 1u << loss::class_axis(launch[4].rank));
    launch.element == Element::F64 ? loss::fused<double>(p, launch.element, launch.workspace)
                                   : loss::fused<float>(p, launch.element, launch.workspace);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(loss)
