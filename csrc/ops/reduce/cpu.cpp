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
void put_all(const Walk& w, int64_t first, int64_t n, const int64_t* found, const void*) {
  put_changed<int64_t>(w, first, n, found, [&](int64_t v, int64_t) { return int64_t{v == w.length}; });
}
void put_any(const Walk& w, int64_t first, int64_t n, const int64_t* found, const void*) {
  put_changed<int64_t>(w, first, n, found, [](int64_t v, int64_t) { return int64_t{v != 0}; });
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
template <class C>
void is_number(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] == v[i] ? C(1) : C(0);
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

template <class C>
void norm(const Walk& w, double p, void* workspace) {
  const C power_of = static_cast<C>(p);
  const double inf = std::numeric_limits<double>::infinity();
  if (p == inf) return fold_extreme<true, C>(w, {&magnitude<C>}, workspace, {&put_plain<C>});
  if (p == -inf) return fold_extreme<false, C>(w, {&magnitude<C>}, workspace, {&put_plain<C>});
  if (p == 0) return fold_count<C>(w, {}, workspace, {&put_count});
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
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_count<C>(w, {&is_number<C>}, rest, {&keep_count, launch.workspace});
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
    const Walk w = walk_of(launch);
    const Sink<int64_t> sink{kTruth == Truth::Count ? &put_count : kTruth == Truth::All ? &put_all : &put_any};
    if (!is_float(launch.element))
      fold_count<int64_t>(w, {}, launch.workspace, sink);
    else if (launch.element == Element::F64)
      fold_count<double>(w, {}, launch.workspace, sink);
    else
      fold_count<float>(w, {}, launch.workspace, sink);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Norm> {
  static Status run(const Launch& launch) {
    using Args = ReduceArgs;
    const NormAttrs attrs = attributes<NormAttrs>(launch);
    const Walk w(launch[Args::x], launch[Args::y], static_cast<uint32_t>(attrs.axes), launch.batch_invariant);
    if (w.length == 0 && w.outputs > 0 && !(attrs.p >= 0 && std::isfinite(attrs.p))) return Status::InvalidProblem;
    with_float_type(launch.element, [&](auto c) { norm<decltype(c)>(w, attrs.p, launch.workspace); });
    return Status::Ok;
  }
};

template <bool kMax>
struct CpuKernel<Extremum<kMax>> {
  static Status run(const Launch& launch) {
    const Walk w = walk_of(launch);
    if (w.length == 0 && w.outputs > 0) return Status::InvalidProblem;
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_extreme<kMax, C>(w, {}, launch.workspace, {&put_plain<C>});
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<MinMax> {
  static Status run(const Launch& launch) {
    using Args = MinMaxArgs;
    const Walk w(launch[Args::x], launch[Args::min], axes_of(launch), launch.batch_invariant, &launch[Args::max]);
    if (w.length == 0 && w.outputs > 0) return Status::InvalidProblem;
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      fold_extreme<false, C>(w, {}, launch.workspace, {&put_result<C, 0>});
      fold_extreme<true, C>(w, {}, launch.workspace, {&put_result<C, 1>});
    });
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(reduce)
