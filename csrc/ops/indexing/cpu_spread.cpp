// Elements written by index: scatter, scatter_reduce, index_copy, index_add, index_fill and the gradients of what is
// collected by index. A task is a part of the dimensions beside the axis, so that no two write to one place; it goes
// along the axis in order.
#include <utility>

#include "baracuda/math/math.h"
#include "baracuda/math/pair.h"
#include "core/compute.h"
#include "host/move_row.h"
#include "host/rows.h"
#include "host/tile.h"
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
  const int64_t least = std::min(step.size, std::max<int64_t>(64, step.size / (4 * max_threads())));
  const int64_t piece = whole ? step.size : std::clamp<int64_t>(kParallelGrain / work, least, step.size);
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

  Accumulators from(int64_t i) const { return {sum + i, lost ? lost + i : nullptr, terms ? terms + i : nullptr}; }
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

// Folds n source elements along a step into their places.
template <class W, int kFold, bool kLost>
void fold_run(const TensorView& source, const Accumulators<W>& to, W alpha, const Step& s, const int64_t* at, int64_t n,
              const int64_t* ids) {
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
}

template <class W>
struct Reduction {
  int64_t mode;
  bool include_self;
  W alpha;

  // Readies n accumulators, whose sums hold x already where it counts.
  void start(const Accumulators<W>& to, int64_t n, bool from_x) const {
    if (!from_x) std::fill_n(to.sum, n, identity<W>(mode));
    if (to.lost) std::fill_n(to.lost, n, W(0));
    if (to.terms) std::fill_n(to.terms, n, from_x ? 1u : 0u);
  }

  // Calls run.template operator()<kFold, kLost>().
  template <class Run>
  void with_fold(bool doubles, Run&& run) const {
    constexpr bool kLost = std::is_floating_point_v<W>;
    auto fold = [&](auto kind) {
      doubles ? run.template operator()<kind(), kLost>() : run.template operator()<kind(), false>();
    };
    if (mode == kProd) return fold(std::integral_constant<int, kProd>());
    if (mode == kMax) return fold(std::integral_constant<int, kMax>());
    if (mode == kMin) return fold(std::integral_constant<int, kMin>());
    fold(std::integral_constant<int, kSum>());
  }

  static W mean(W sum, uint32_t n) {
    if constexpr (std::is_floating_point_v<W>) return sum / static_cast<W>(n);
    const W q = sum / static_cast<W>(n);  // rounded down, as torch does
    return std::is_signed_v<W> && sum < 0 && q * static_cast<W>(n) != sum ? q - 1 : q;
  }

  // Elements that nothing was written to keep what they are.
  void settle(const Accumulators<W>& to, int64_t n, const W* self) const {
    for (int64_t i = 0; i < n && to.terms; ++i) {
      if (to.terms[i] == 0)
        to.sum[i] = self[i];
      else if (mode == kMean)
        to.sum[i] = mean(to.sum[i], to.terms[i]);
    }
  }
};

// Rows of y with places along them: their sums stay in the cache. Those without an index are x, or zeros.
template <class W>
void fold_rows(const Places& p, const Reduction<W>& r, const TensorView* x, const TensorView& source,
               const TensorView& y) {
  const TensorView rows_of_y = as_vector(y), rows_of_x = as_vector(x ? *x : y);
  const RowMap to_rows = row_map(rows_of_y, 1u << (rows_of_y.rank - 1));
  const RowMap from_rows = row_map(rows_of_x, 1u << (rows_of_x.rank - 1));
  const int64_t length = to_rows.length(), covered = p.axis.size ? p.outer.count() : 0;
  const bool doubles = y.element == Element::F64, counts = x && counts_terms(r.mode, r.include_self);
  const double zeros[2] = {};
  const IterationSpace space = space_of(y);
  if (covered < to_rows.rows()) x ? copy_of(*x, y) : copy_tiles(space, constant(zeros, y.element), operand(y, space));
  parallel_for(covered, row_grain(length + p.axis.size), [&](int64_t begin, int64_t end) {
    W sums[kRowSums], lost[kRowSums], self[kRowSums];
    uint32_t terms[kRowSums];
    int64_t ids[kIds];
    const Accumulators<W> to{sums, doubles ? lost : nullptr, counts ? terms : nullptr};
    for (int64_t o = begin; o < end; ++o) {
      int64_t at[kTensors] = {};
      p.outer.offset(o, at);
      const int64_t row = std::exchange(at[kIndexed], 0) / length;
      const bool from_x = x && r.include_self;
      W* copy = counts ? self : sums;  // of x
      const W* own = counts || from_x ? read(from_rows, from_rows.row(row), 0, length, copy) : copy;
      if (from_x && own != sums) std::copy_n(own, length, sums);
      r.start(to, length, from_x);
      r.with_fold(doubles, [&]<int kFold, bool kLost>() {
        for (int64_t i = 0, n; i < p.axis.size; i += n) {
          n = std::min(kIds, p.axis.size - i);
          const int64_t from[kTensors] = {at[kPlain] + i * p.axis.stride[kPlain], 0,
                                          at[kIndices] + i * p.axis.stride[kIndices]};
          p.read(from[kIndices], p.axis.stride[kIndices], n, ids);
          fold_run<W, kFold, kLost>(source, to, r.alpha, p.axis, from, n, ids);
        }
      });
      r.settle(to, length, own);
      char* out = to_rows.row(row);
      if (W* direct = target(to_rows, out, 0, sums); direct != sums) std::copy_n(sums, length, direct);
      write(to_rows, out, 0, length, sums);
    }
  });
}

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
  if (sums_rows(by, at.axis, y.rank, y.rank > 0 ? y.shape[y.rank - 1] : 1)) {
    fold_rows(p, r, x, source, y);
    return Status::Ok;
  }
  const int64_t n = y.numel();
  const bool doubles = y.element == Element::F64, from_x = x && r.include_self;
  Accumulators<W> to{static_cast<W*>(launch.workspace), nullptr, nullptr};
  if (doubles) to.lost = to.sum + n;
  if (x && counts_terms(r.mode, r.include_self)) to.terms = reinterpret_cast<uint32_t*>(to.sum + (doubles ? 2 : 1) * n);
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    if (from_x) load_span(MergedView(*x), begin, end - begin, to.sum + begin);
    r.start(to.from(begin), end - begin, from_x);
  });
  if (source.numel() > 0)
    r.with_fold(doubles, [&]<int kFold, bool kLost>() {
      walk(p, [&](const Step& s, const int64_t* offsets, int64_t count, const int64_t* ids) {
        fold_run<W, kFold, kLost>(source, to, r.alpha, s, offsets, count, ids);
      });
    });
  parallel_for(n, kParallelGrain, [&](int64_t begin, int64_t end) {
    W self[kIds];
    for (int64_t i = begin, count; i < end; i += count) {
      count = std::min(kIds, end - i);
      if (to.terms && x) load_span(MergedView(*x), i, count, self);
      r.settle(to.from(i), count, self);
      store_span(MergedView(y), i, count, to.sum + i);
    }
  });
  return Status::Ok;
}

// How elements are compared that are numbers already, and halves.
template <class T>
struct Itself {
  static T of(T v) { return v; }
};
struct OfBf16 {
  static float of(uint16_t v) { return bf16_to_float(v); }
};
struct OfF16 {
  static float of(uint16_t v) { return f16_to_float(v); }
};

// y = the extreme of itself and n source elements along a step, at their places.
template <class T, class Number, int kFold>
void extreme_run(const char* source, char* y, const Step& s, const int64_t* at, int64_t n, const int64_t* ids) {
  const T* const from = reinterpret_cast<const T*>(source) + at[kPlain];
  T* const to = reinterpret_cast<T*>(y) + at[kIndexed];
  const int64_t from_step = s.stride[kPlain], to_step = s.stride[kIndexed], ids_step = s.stride[kIndices] != 0;
  const auto chosen = [](T old, T v) {
    const auto a = Number::of(old), b = Number::of(v);
    return b != b || (kFold == kMax ? b > a : b < a) ? v : old;
  };
  if (ids_step == 0 && to_step == 1 && from_step == 1) {
    T* const row = to + ids[0];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) row[i] = chosen(row[i], from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T& place = to[i * to_step + ids[i * ids_step]];
    place = chosen(place, from[i * from_step]);
  }
}

// Calls run.template operator()<T, Number>() for what elements are stored as and compared by.
template <class Run>
void with_order(Element e, Run&& run) {
  auto numbers = [&](auto t) { run.template operator()<decltype(t), Itself<decltype(t)>>(); };
  switch (e) {
    case Element::F64:
      return numbers(double());
    case Element::F32:
      return numbers(float());
    case Element::BF16:
      return run.template operator()<uint16_t, OfBf16>();
    case Element::F16:
      return run.template operator()<uint16_t, OfF16>();
    case Element::I64:
      return numbers(int64_t());
    case Element::I32:
      return numbers(int32_t());
    case Element::I16:
      return numbers(int16_t());
    case Element::I8:
      return numbers(int8_t());
    case Element::U64:
      return numbers(uint64_t());
    case Element::U32:
      return numbers(uint32_t());
    case Element::U16:
      return numbers(uint16_t());
    default:
      return numbers(uint8_t());  // bool, too
  }
}

template <class Args>
Status fold_extremes(const Launch& launch, By by, const SpreadAttrs& attrs) {
  const TensorView &source = launch[Args::source], &y = launch[Args::y];
  const Places p(by, attrs.axis, attrs.wrap != 0, source, y, launch[Args::index]);
  if (!in_range(launch, Args::index, p.limit, p.wrap)) return Status::IndexOutOfRange;
  copy_of(launch[Args::x], y);
  if (source.numel() == 0) return Status::Ok;
  with_order(y.element, [&]<class T, class Number>() {
    const auto run = attrs.mode == kMax ? &extreme_run<T, Number, kMax> : &extreme_run<T, Number, kMin>;
    walk(p, [&](const Step& s, const int64_t* at, int64_t n, const int64_t* ids) {
      run(source.as<char>(), y.as<char>(), s, at, n, ids);
    });
  });
  return Status::Ok;
}

// `alpha`: what terms are multiplied by; null is 1.
template <class Args>
Status reduce(const Launch& launch, By by, const Scalar* alpha) {
  const TensorView &x = launch[Args::x], &source = launch[Args::source], &y = launch[Args::y];
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  const CollectAttrs at{attrs.axis, attrs.wrap};
  const bool by_rows = sums_rows(by, at.axis, y.rank, y.rank > 0 ? y.shape[y.rank - 1] : 1);
  if (!by_rows && folds_in_place(attrs)) return fold_extremes<Args>(launch, by, attrs);
  auto run = [&](auto w) {
    using W = decltype(w);
    const W times = alpha ? scalar_as<W>(*alpha) : W(1);
    return fold_into<W>(launch, by, at, {attrs.mode, attrs.include_self != 0, times}, Args::index, &x, source, y);
  };
  return is_float(y.element) ? run(double()) : with_integer_type(y.element, run);
}

// y = x, and at the indices the elements of `source`, or one value in its shape.
template <class Args>
Status assign(const Launch& launch, By by, const TensorView& source, const Scalar* value) {
  const TensorView& y = launch[Args::y];
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  alignas(16) char cell[16];
  if (value) stored(*value, y.element, cell);
  const Places p(by, attrs.axis, attrs.wrap != 0, source, y, launch[Args::index]);
  if (!in_range(launch, Args::index, p.limit, p.wrap)) return Status::IndexOutOfRange;
  copy_of(launch[Args::x], y);
  if (source.numel() > 0) write(p, y, value ? cell : source.as<char>(), value != nullptr);
  return Status::Ok;
}

}  // namespace

Status collect_backward(const Launch& launch, By by) {
  using Args = CollectBackwardArgs;
  return fold_into<double>(launch, by, attributes<CollectAttrs>(launch), {kSum, true, 1.0}, Args::index, nullptr,
                           launch[Args::dy], launch[Args::dx]);
}

Status scatter_reduce(const Launch& launch) { return reduce<SpreadArgs>(launch, By::Element, nullptr); }
Status index_add(const Launch& launch) {
  return reduce<IndexAddArgs>(launch, By::Axis, &launch.scalars[IndexAddArgs::alpha]);
}

Status scatter(const Launch& launch) {
  using Args = ScatterArgs;
  const TensorView& source = launch[Args::source];
  if (source.present()) return assign<Args>(launch, By::Element, source, nullptr);
  return assign<Args>(launch, By::Element, launch[Args::index], &launch.scalars[Args::value]);
}
Status index_copy(const Launch& launch) {
  return assign<SpreadArgs>(launch, By::Axis, launch[SpreadArgs::source], nullptr);
}
Status fill(const Launch& launch) {
  using Args = FillArgs;
  TensorView space = as_vector(launch[Args::y]);  // what a source would look like
  space.shape[attributes<SpreadAttrs>(launch).axis] = launch[Args::index].numel();
  return assign<Args>(launch, By::Axis, space, &launch.scalars[Args::value]);
}

}  // namespace baracuda::indexing
