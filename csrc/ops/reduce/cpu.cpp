// Reductions over any set of axes: what is folded, and what becomes of the result. driver.h says how.
#include <cmath>

#include "baracuda/math/math.h"
#include "core/compute.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/careful.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {
namespace {

uint32_t axes_of(const Launch& launch) { return static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes); }
Walk walk_of(const Launch& launch) {
  using Args = ReduceArgs;
  return Walk(launch[Args::x], launch[Args::y], axes_of(launch), launch.batch_invariant);
}

template <class C>
void put_plain(const Walk& w, int64_t first, int64_t n, const C* values, const void*) {
  put_values<C>(w, 0, first, n, values);
}
// Changes the values on their way.
template <class C, class F>
void put_changed(const Walk& w, int64_t first, int64_t n, const C* values, F&& change) {
  C out[64];
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t piece = std::min<int64_t>(64, n - i);
    for (int64_t j = 0; j < piece; ++j) out[j] = change(values[i + j], first + i + j);
    put_values<C>(w, 0, first + i, piece, out);
  }
}
template <class C>
void put_mean(const Walk& w, int64_t first, int64_t n, const C* values, const void*) {
  const C count = static_cast<C>(w.length);
  put_changed<C>(w, first, n, values, [count](C v, int64_t) { return v / count; });
}
template <class C>
void put_mean_of_numbers(const Walk& w, int64_t first, int64_t n, const C* values, const void* counts) {
  const auto* by = static_cast<const int64_t*>(counts);
  put_changed<C>(w, first, n, values, [by](C v, int64_t o) { return v / static_cast<C>(by[o]); });
}
template <class C>
void put_square_root(const Walk& w, int64_t first, int64_t n, const C* values, const void*) {
  if (w.length == 0 || !any_lost(values, n, w.length))
    return put_changed<C>(w, first, n, values, [](C v, int64_t) { return std::sqrt(v); });
  put_changed<C>(w, first, n, values, [&w](C v, int64_t output) {
    if (!squares_lost(v / static_cast<C>(w.length))) return std::sqrt(v);
    const CarefulSums s = careful_sums<C>(w, output, false);
    return s.scale == 0 ? std::sqrt(v) : static_cast<C>(std::sqrt(s.squares) / s.scale);
  });
}
template <class C>
void put_power(const Walk& w, int64_t first, int64_t n, const C* values, const void* args) {
  const double p = *static_cast<const double*>(args);
  const C root = static_cast<C>(1 / p);
  if (w.length == 0 || !any_lost(values, n, w.length))
    return put_changed<C>(w, first, n, values, [root](C v, int64_t) { return math::pow(v, root); });
  put_changed<C>(w, first, n, values, [&w, p, root](C v, int64_t output) {
    return squares_lost(v / static_cast<C>(w.length)) ? careful_norm<C>(w, output, p) : math::pow(v, root);
  });
}
void put_count(const Walk& w, int64_t first, int64_t n, const int64_t* found, const void*) {
  put_values<int64_t>(w, 0, first, n, found);
}
// Whether words are not zero, as bool or u8.
template <class W, int k = 0>
void put_truth(const Walk& w, int64_t first, int64_t n, const W* values, const void*) {
  uint8_t truth[kColumnTile];
  for (int64_t i = 0; i < n; i += kColumnTile) {
    const int64_t piece = std::min(kColumnTile, n - i);
    for (int64_t j = 0; j < piece; ++j) truth[j] = values[i + j] != 0;
    put_values<uint8_t>(w, k, first + i, piece, truth);
  }
}
void keep_count(const Walk&, int64_t first, int64_t n, const int64_t* found, const void* kept) {
  std::copy(found, found + n, static_cast<int64_t*>(const_cast<void*>(kept)) + first);
}
template <class C, int k>
void put_result(const Walk& w, int64_t first, int64_t n, const C* values, const void*) {
  put_values<C>(w, k, first, n, values);
}

template <class C>
void drop_nan(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] == v[i] ? v[i] : C(0);
}
// Words of which those are not zero whose floats are numbers; `infinite` is the word of infinity without its sign.
template <class W>
void is_number(W* v, int64_t n, W infinite) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<W>(v[i] << 1) <= infinite;
}
template <class C>
void magnitude(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = math::fabs(v[i]);
}
template <class C>
void square(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] *= v[i];
}
template <class C>
void power(C* v, int64_t n, C p) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = math::pow(math::fabs(v[i]), p);
}

void sum(const Launch& launch, const TensorView& x, const TensorView& y, uint32_t axes) {
  const Walk w(x, y, axes, launch.batch_invariant);
  with_compute_type(x.element, [&](auto c) {
    using C = decltype(c);
    fold_sum<C>(w, {}, launch.workspace, {&put_plain<C>});
  });
}

// The bits of an infinity, without its sign.
template <class W>
W infinity_of(Element e) {
  const int fraction = e == Element::F16 ? 10 : e == Element::BF16 ? 7 : e == Element::F32 ? 23 : 52;
  return static_cast<W>(static_cast<W>(~W(0) << (fraction + 1)));
}
// How many elements are not zero, or how many are numbers.
void count(const Launch& launch, uint32_t axes, void* workspace, const Sink<int64_t>& sink, bool numbers = false) {
  using Args = ReduceArgs;
  const TensorView& x = launch[Args::x];
  const Walk w(words_of(x), launch[Args::y], axes, launch.batch_invariant);
  with_word_type(x.element, [&](auto word) {
    using W = decltype(word);
    Terms<W> terms;
    if (numbers)
      terms = {&is_number<W>, infinity_of<W>(x.element)};
    else if (is_float(x.element))
      terms = {&drop_sign<W>};
    fold_count<W>(w, terms, workspace, sink);
  });
}
// Whether any or all elements are not zero, as result k: the largest or the smallest of their bits.
template <bool kAny, int k = 0>
void truth(const Launch& launch, const TensorView& x, const Walk& w) {
  with_word_type(x.element, [&](auto word) {
    using W = decltype(word);
    Terms<W> terms;
    if (is_float(x.element)) terms = {&drop_sign<W>};
    fold_extreme<kAny, W>(w, terms, launch.workspace, {&put_truth<W, k>});
  });
}

template <class C>
void norm(const Walk& w, double p, void* workspace) {
  const C power_of = static_cast<C>(p);
  const double inf = std::numeric_limits<double>::infinity();
  if (p == inf) return fold_extreme<true, C>(w, {&magnitude<C>}, workspace, {&put_plain<C>});
  if (p == -inf) return fold_extreme<false, C>(w, {&magnitude<C>}, workspace, {&put_plain<C>});
  if (p == 1) return fold_sum<C>(w, {&magnitude<C>}, workspace, {&put_plain<C>});
  if (p == 2) return fold_sum<C>(w, {&square<C>}, workspace, {&put_square_root<C>});
  fold_sum<C>(w, {&power<C>, power_of}, workspace, {&put_power<C>, &p});
}

// The diagonal of a matrix as a vector.
TensorView diagonal(const TensorView& x) {
  TensorView d = x;
  d.rank = 1;
  d.shape[0] = std::min(x.shape[0], x.shape[1]);
  d.strides[0] = x.strides[0] + x.strides[1];
  return d;
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

using namespace reduce;

template <>
struct CpuKernel<Sum> {
  static Status run(const Launch& launch) {
    sum(launch, launch[ReduceArgs::x], launch[ReduceArgs::y], axes_of(launch));
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Trace> {
  static Status run(const Launch& launch) {
    sum(launch, diagonal(launch[ReduceArgs::x]), launch[ReduceArgs::y], 1u);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<SumTo> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    const TensorView& x = launch[ReduceArgs::x];
    TensorView y = aligned(launch[ReduceArgs::y], x, &axes);
    sum(launch, x, y, axes);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Mean> {
  static Status run(const Launch& launch) {
    const Walk w = walk_of(launch);
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_sum<C>(w, {}, launch.workspace, {&put_mean<C>});
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<NanSum> {
  static Status run(const Launch& launch) {
    const Walk w = walk_of(launch);
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_sum<C>(w, {&drop_nan<C>}, launch.workspace, {&put_plain<C>});
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<NanMean> {
  static Status run(const Launch& launch) {
    const Walk w = walk_of(launch);
    void* rest = static_cast<char*>(launch.workspace) + kept_bytes(w.outputs, 1);
    count(launch, axes_of(launch), rest, {&keep_count, launch.workspace}, true);
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_sum<C>(w, {&drop_nan<C>}, rest, {&put_mean_of_numbers<C>, launch.workspace});
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Product> {
  static Status run(const Launch& launch) {
    const Walk w = walk_of(launch);
    // Integers wrap, whatever their sign: loads to uint64_t extend it.
    if (!is_float(launch.element))
      fold_product<uint64_t>(w, {}, launch.workspace, {&put_plain<uint64_t>});
    else if (launch.element == Element::F64)
      fold_product<double>(w, {}, launch.workspace, {&put_plain<double>});
    else
      fold_product<float>(w, {}, launch.workspace, {&put_plain<float>});
    return Status::Ok;
  }
};

template <Truth kTruth>
struct CpuKernel<Truths<kTruth>> {
  static Status run(const Launch& launch) {
    using Args = ReduceArgs;
    const TensorView& x = launch[Args::x];
    if constexpr (kTruth == Truth::Count)
      count(launch, axes_of(launch), launch.workspace, {&put_count});
    else
      truth<kTruth == Truth::Any>(launch, x, Walk(words_of(x), launch[Args::y], axes_of(launch), true));
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Norm> {
  static Status run(const Launch& launch) {
    using Args = ReduceArgs;
    const NormAttrs attrs = attributes<NormAttrs>(launch);
    const auto axes = static_cast<uint32_t>(attrs.axes);
    const Walk w(launch[Args::x], launch[Args::y], axes, launch.batch_invariant);
    if (w.length == 0 && w.outputs > 0 && !(attrs.p >= 0 && std::isfinite(attrs.p))) return Status::InvalidProblem;
    if (attrs.p == 0) return count(launch, axes, launch.workspace, {&put_count}), Status::Ok;
    with_float_type(launch.element, [&](auto c) { norm<decltype(c)>(w, attrs.p, launch.workspace); });
    return Status::Ok;
  }
};

template <bool kMax>
struct CpuKernel<Extremum<kMax>> {
  static Status run(const Launch& launch) {
    using Args = ReduceArgs;
    const TensorView& x = launch[Args::x];
    const Walk w(x.element == Element::Bool ? words_of(x) : x, launch[Args::y], axes_of(launch), true);
    if (w.length == 0 && w.outputs > 0) return Status::InvalidProblem;
    if (x.element == Element::Bool) return truth<kMax>(launch, x, w), Status::Ok;
    with_stored_type(x.element, [&](auto v) {
      using V = decltype(v);
      fold_extreme<kMax, V>(w, {}, launch.workspace, {&put_plain<V>});
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<MinMax> {
  static Status run(const Launch& launch) {
    using Args = MinMaxArgs;
    const TensorView& x = launch[Args::x];
    const Walk w(x.element == Element::Bool ? words_of(x) : x, launch[Args::min], axes_of(launch), true,
                 &launch[Args::max]);
    if (w.length == 0 && w.outputs > 0) return Status::InvalidProblem;
    if (x.element == Element::Bool) return truth<false, 0>(launch, x, w), truth<true, 1>(launch, x, w), Status::Ok;
    with_stored_type(x.element, [&](auto v) {
      using V = decltype(v);
      fold_extreme<false, V>(w, {}, launch.workspace, {&put_result<V, 0>});
      fold_extreme<true, V>(w, {}, launch.workspace, {&put_result<V, 1>});
    });
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(reduce)
