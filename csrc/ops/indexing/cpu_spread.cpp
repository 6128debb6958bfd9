// Elements written by index: scatter, scatter_reduce, index_copy, index_add, index_fill and the gradients of what is
// collected by index. A task is a part of the dimensions beside the axis, so that no two write to one place; it goes
// along the axis in order.
#include "backends/cpu/move_row.h"
#include "baracuda/math/math.h"
#include "baracuda/math/pair.h"
#include "core/compute.h"
#include "ops/indexing/cpu.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// Calls run(step, at, n, offsets): n elements along `step` from the offsets `at` on; offsets[i] is what index i moves
// the indexed tensor by, or offsets[0] that of all of them where the step does not move the indices.
template <class Run>
void walk(const Places& p, Run&& run) {
  Steps3 inner = p.inner;
  const bool along_axis = inner.rank == 0;
  const Step step = along_axis ? p.axis : inner.steps[--inner.rank];
  const int64_t outer = p.outer.count(), middle = inner.count(), turns = along_axis ? 1 : p.axis.size;
  // A flat tensor has but one order.
  const bool whole = along_axis || p.is_flat;
  const int64_t work = std::max<int64_t>(1, turns * middle);
  const int64_t piece =
      whole ? step.size : std::clamp<int64_t>(kParallelGrain / work, std::min<int64_t>(step.size, 64), step.size);
  const int64_t pieces = step.size ? (step.size + piece - 1) / piece : 0;
  const int64_t tasks = p.is_flat ? 1 : outer * pieces;
  const int64_t size = step.size * turns * middle * outer / std::max<int64_t>(tasks, 1);
  parallel_for(tasks, row_grain(size), [&](int64_t begin, int64_t end) {
    int64_t ids[kIds];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = p.is_flat ? 0 : task % pieces * piece, last = std::min(first + piece, step.size);
      const int64_t outer_begin = p.is_flat ? 0 : task / pieces, outer_end = p.is_flat ? outer : outer_begin + 1;
      for (int64_t o = outer_begin; o < outer_end; ++o) {
        for (int64_t k = 0; k < turns * middle; ++k) {
          int64_t base[kTensors] = {};
          p.outer.offset(o, base);
          inner.offset(k % middle, base);
          for (int t = 0; t < kTensors && !along_axis; ++t) base[t] += k / middle * p.axis.stride[t];
          for (int64_t i = first, n; i < last; i += n) {
            n = std::min(kIds, last - i);
            int64_t at[kTensors];
            for (int t = 0; t < kTensors; ++t) at[t] = base[t] + i * step.stride[t];
            const int64_t stride = step.stride[kIndices];
            p.read(at[kIndices], stride, stride == 0 ? 1 : n, ids);
            run(step, at, n, ids);
          }
        }
      }
    }
  });
}

// Writes source elements, or one value, to their places.
void write(const Places& p, const TensorView& y, const char* source, bool one_value) {
  with_cell(size_of(y.element), [&](auto cell) {
    using T = decltype(cell);
    walk(p, [&](const Step& s, const int64_t* at, int64_t n, const int64_t* ids) {
      T* to = y.as<T>() + at[kIndexed];
      const T* from = reinterpret_cast<const T*>(source) + (one_value ? 0 : at[kPlain]);
      const int64_t from_step = one_value ? 0 : s.stride[kPlain], to_step = s.stride[kIndexed];
      const bool same = s.stride[kIndices] == 0;
      for (int64_t i = 0; i < n; ++i) to[i * to_step + ids[same ? 0 : i]] = from[i * from_step];
    });
  });
}

void stored(const Scalar& value, Element element, char* bytes) {
  if (kInts.has(element)) {
    with_compute_type(element, [&](auto c) {
      c = scalar_as<decltype(c)>(value);
      store(element, bytes, 1, &c, 1);
    });
    return;
  }
  const double number = value.as_f64();
  store(element, bytes, 1, &number, 1);
}

// What an element's terms are added up in: double for halves and floats, which is exact but for its last bits, double
// with Kahan's correction for double, 64-bit integers.
template <class W>
struct Accumulators {
  W* sum;
  W* lost;          // of f64
  uint32_t* terms;  // null: not counted
};

template <class W, int kFold, bool kLost>
void add(W& sum, W& lost, W v) {
  if constexpr (kFold == kSum && kLost) {
    const W y = v - lost, t = sum + y, c = (t - sum) - y;
    lost = c - c == 0 ? c : 0;  // an infinite sum has lost nothing
    sum = t;
  } else if constexpr (kFold == kSum) {
    sum = std::is_integral_v<W> ? static_cast<W>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(v)) : sum + v;
  } else if constexpr (kFold == kProd && kLost) {
    const math::detail::Pair<W> product = math::detail::two_prod(sum, v);
    const W rest = product.lo + lost * v, t = product.hi + rest, c = rest - (t - product.hi);
    lost = c - c == 0 ? c : 0;
    sum = rest - rest == 0 ? t : product.hi;
  } else if constexpr (kFold == kProd) {
    sum = std::is_integral_v<W> ? static_cast<W>(static_cast<uint64_t>(sum) * static_cast<uint64_t>(v)) : sum * v;
  } else if constexpr (kFold == kMax) {
    sum = v != v || v > sum ? v : sum;
  } else {
    sum = v != v || v < sum ? v : sum;
  }
}

template <class W>
W identity(int64_t mode) {
  if (mode == kProd) return 1;
  if constexpr (std::is_floating_point_v<W>) {
    if (mode == kMax || mode == kMin) return mode == kMax ? -__builtin_inf() : __builtin_inf();
  } else {
    if (mode == kMax) return std::is_signed_v<W> ? static_cast<W>(INT64_MIN) : 0;
    if (mode == kMin) return std::is_signed_v<W> ? static_cast<W>(INT64_MAX) : static_cast<W>(UINT64_MAX);
  }
  return 0;
}

template <class W>
W scaled(W v, W alpha) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<uint64_t>(v) * static_cast<uint64_t>(alpha));
  else
    return v * alpha;
}

template <class W, int kFold, bool kLost>
void fold(const Places& p, const TensorView& source, const Accumulators<W>& to, W alpha) {
  walk(p, [&](const Step& s, const int64_t* at, int64_t n, const int64_t* ids) {
    W v[kIds];
    load<W>(source.element, source.as<char>() + at[kPlain] * size_of(source.element), s.stride[kPlain], v, n);
    if (alpha != W(1))
      for (int64_t i = 0; i < n; ++i) v[i] = scaled(v[i], alpha);
    const int64_t step = s.stride[kIndexed];
    if (s.stride[kIndices] == 0 && step == 1) {
      W *sum = to.sum + at[kIndexed] + ids[0], *lost = kLost ? to.lost + at[kIndexed] + ids[0] : sum;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) add<W, kFold, kLost>(sum[i], lost[kLost ? i : 0], v[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = at[kIndexed] + i * step + ids[s.stride[kIndices] == 0 ? 0 : i];
        add<W, kFold, kLost>(to.sum[place], kLost ? to.lost[place] : to.sum[place], v[i]);
      }
    }
    if (!to.terms) return;
    for (int64_t i = 0; i < n; ++i) ++to.terms[at[kIndexed] + i * step + ids[s.stride[kIndices] == 0 ? 0 : i]];
  });
}

template <class W>
struct Reduction {
  int64_t mode;
  bool include_self;
  W alpha;

  void start(const TensorView* x, const Accumulators<W>& to, int64_t n) const {
    const bool from_x = x && include_self;
    const W first = identity<W>(mode);
    parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
      if (from_x) load_span(MergedView(*x), begin, end - begin, to.sum + begin);
      for (int64_t i = begin; i < end && !from_x; ++i) to.sum[i] = first;
      for (int64_t i = begin; i < end && to.lost; ++i) to.lost[i] = 0;
      for (int64_t i = begin; i < end && to.terms; ++i) to.terms[i] = from_x ? 1 : 0;
    });
  }

  template <bool kLost>
  void run(const Places& p, const TensorView& source, const Accumulators<W>& to) const {
    switch (mode) {
      case kProd:
        return fold<W, kProd, kLost>(p, source, to, alpha);
      case kMax:
        return fold<W, kMax, kLost>(p, source, to, alpha);
      case kMin:
        return fold<W, kMin, kLost>(p, source, to, alpha);
      default:
        return fold<W, kSum, kLost>(p, source, to, alpha);
    }
  }

  static W mean(W sum, uint32_t n) {
    if constexpr (std::is_floating_point_v<W>) return sum / static_cast<W>(n);
    const W q = sum / static_cast<W>(n);  // rounded down, as torch does
    return std::is_signed_v<W> && sum < 0 && q * static_cast<W>(n) != sum ? q - 1 : q;
  }

  // Elements that nothing was written to keep what they are.
  void finish(const TensorView* x, const TensorView& y, const Accumulators<W>& to, int64_t n) const {
    parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
      W self[kIds];
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min(kIds, end - i);
        if (to.terms) {
          if (x) load_span(MergedView(*x), i, count, self);
          for (int64_t k = 0; k < count; ++k) {
            const uint32_t terms = to.terms[i + k];
            if (terms == 0)
              to.sum[i + k] = self[k];
            else if (mode == kMean)
              to.sum[i + k] = mean(to.sum[i + k], terms);
          }
        }
        store_span(MergedView(y), i, count, to.sum + i);
      }
    });
  }
};

// The accumulators as a tensor of y's shape.
TensorView accumulated(const TensorView& y) {
  TensorView t = y;
  int64_t stride = 1;
  for (int d = t.rank - 1; d >= 0; --d) t.strides[d] = stride, stride *= t.shape[d];
  return t;
}

// y = x (null: zeros) folded with the source.
template <class W>
Status fold_into(const Launch& launch, By by, const CollectAttrs& at, const Reduction<W>& r, int index,
                 const TensorView* x, const TensorView& source, const TensorView& y) {
  const Places p(by, at.axis, at.wrap != 0, source, accumulated(y), launch[index]);
  if (!in_range(launch, index, p.limit, p.wrap)) return Status::IndexOutOfRange;
  const int64_t n = y.numel();
  const bool doubles = y.element == Element::F64;
  Accumulators<W> to{static_cast<W*>(launch.workspace), nullptr, nullptr};
  if (doubles) to.lost = to.sum + n;
  if (x && counts_terms(r.mode, r.include_self)) to.terms = reinterpret_cast<uint32_t*>(to.sum + (doubles ? 2 : 1) * n);
  r.start(x, to, n);
  if (source.numel() > 0)
    doubles ? r.template run<std::is_floating_point_v<W>>(p, source, to) : r.template run<false>(p, source, to);
  r.finish(x, y, to, n);
  return Status::Ok;
}

}  // namespace

Status collect_backward(const Launch& launch, By by) {
  return fold_into<double>(launch, by, attributes<CollectAttrs>(launch), {kSum, true, 1.0}, 1, nullptr, launch[0],
                           launch[2]);
}

Status reduce(const Launch& launch, By by) {
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  const CollectAttrs at{attrs.axis, attrs.wrap};
  auto run = [&](auto w) {
    using W = decltype(w);
    const W alpha = by == By::Axis ? scalar_as<W>(launch.scalars[0]) : W(1);
    return fold_into<W>(launch, by, at, {attrs.mode, attrs.include_self != 0, alpha}, 1, &launch[0], launch[2],
                        launch[3]);
  };
  const Element e = launch[3].element;
  return is_float(e) ? run(double()) : with_integer_type(e, run);
}

Status assign(const Launch& launch, By by) {
  const TensorView &x = launch[0], &index = launch[1], &source = launch[2], &y = launch[3];
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  alignas(16) char value[16];
  const bool one_value = !source.present();
  if (one_value) stored(launch.scalars[0], y.element, value);
  const Places p(by, attrs.axis, attrs.wrap != 0, one_value ? index : source, y, index);
  if (!in_range(launch, 1, p.limit, p.wrap)) return Status::IndexOutOfRange;
  copy_of(x, y);
  if (index.numel() > 0) write(p, y, one_value ? value : source.as<char>(), one_value);
  return Status::Ok;
}

Status fill(const Launch& launch) {
  const TensorView &x = launch[0], &index = launch[1], &y = launch[2];
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  TensorView space = as_vector(y);  // what a source would look like
  space.shape[attrs.axis] = index.numel();
  alignas(16) char value[16];
  stored(launch.scalars[0], y.element, value);
  const Places p(By::Axis, attrs.axis, attrs.wrap != 0, space, y, index);
  if (!in_range(launch, 1, p.limit, p.wrap)) return Status::IndexOutOfRange;
  copy_of(x, y);
  if (space.numel() > 0) write(p, y, value, true);
  return Status::Ok;
}

}  // namespace baracuda::indexing
