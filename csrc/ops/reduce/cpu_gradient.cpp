// Gradients of the reductions: dy spread over the folded dimensions.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/loops.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/math.h"

namespace baracuda::reduce {
namespace {

// dx = F(in...), where inputs are tensors with x's dimensions, folded ones of size 1, and numbers.
template <class F, int kIn>
class Expand {
 public:
  Expand(Element element, const TensorView& dx) : element_(element), space_(space_of(dx)), dx_(dx) {}
  Expand& add(const TensorView& t) {
    in_[n_++] = operand(t, space_);
    return *this;
  }
  Expand& add(double number) {
    numbers_[n_] = number, floats_[n_] = static_cast<float>(number);
    const bool wide = element_ == Element::F64;
    in_[n_] = constant(wide ? static_cast<void*>(&numbers_[n_]) : &floats_[n_], wide ? Element::F64 : Element::F32);
    ++n_;
    return *this;
  }
  Status run() {
    const Operand out[] = {operand(dx_, space_)};
    with_float_type(element_, [&](auto c) {
      using C = decltype(c);
      run_tiles<C>(space_, in_, out, &loop<C>, nullptr);
    });
    return Status::Ok;
  }

 private:
  template <class C>
  static void loop(const C* const* in, C* const* out, int64_t n, const void*) {
    element_loop(in, out[0], n, std::make_integer_sequence<int, kIn>());
  }
  template <class C, int... I>
  static void element_loop(const C* const* in, C* dx, int64_t n, std::integer_sequence<int, I...>) {
    const C* const from[] = {in[I]...};
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = F::f(from[I][i]...);
  }

  Element element_;
  IterationSpace space_;
  const TensorView& dx_;
  Operand in_[kIn];
  double numbers_[kIn];
  float floats_[kIn];
  int n_ = 0;
};

uint32_t axes_of(const Launch& launch) { return static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes); }

template <class C>
void put_kept(const Walk& w, int64_t first, int64_t n, const C* values, const void*) {
  put_values<C>(w, 0, first, n, values);
}
template <class C>
void is_number(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] == v[i] ? C(1) : C(0);
}
template <class C>
void is_zero(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] == C(0) ? C(1) : C(0);
}
template <class C>
void zero_to_one(C* v, int64_t n, C) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] == C(0) ? C(1) : v[i];
}

// Numbers kept per output at the start of the workspace, and what is left of it.
struct Kept {
  TensorView first, second;
  void* rest;
  Kept(const Launch& launch, const TensorView& x, uint32_t axes, int numbers) {
    const Element e = launch.element == Element::F64 ? Element::F64 : Element::F32;
    first = second = kept_view(launch.workspace, e, x, axes);
    const int64_t outputs = first.numel();
    second.data = static_cast<char*>(launch.workspace) + outputs * 8;
    rest = static_cast<char*>(launch.workspace) + kept_bytes(outputs, numbers);
  }
};

// An extremum with its gradient: tensors, and their rows with one value each.
struct ExtremumViews {
  const TensorView &dy, &y;
};
struct Shared {
  RowMap dy, y;
};

// Every element that equals an extremum gets an equal share of its gradient. As in torch a NaN extremum equals nothing,
// so the whole slice is 0/0. kMagnitude: y is the extremum of |x|.
template <bool kMagnitude, int kExtrema, class C>
void share(const Shared (&extrema)[kExtrema], const RowMap& x, const RowMap& dx) {
  const int64_t length = x.length();
  const auto measure = [](C v) { return kMagnitude ? math::fabs(v) : v; };
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C from[kRowTile<C>], to[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      C best[kExtrema], each[kExtrema], other = 0;
      int64_t equal[kExtrema] = {};
      for (int k = 0; k < kExtrema; ++k) best[k] = get<C>(extrema[k].y, r);
      const char* in = x.row(r);
      char* out = dx.row(r);
      const C* v = from;
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        v = read(x, in, at, n, from);
        for (int k = 0; k < kExtrema; ++k)
          for (int64_t j = 0; j < n; ++j) equal[k] += measure(v[j]) == best[k];
      }
      for (int k = 0; k < kExtrema; ++k) {
        each[k] = get<C>(extrema[k].dy, r) / static_cast<C>(equal[k]);
        if (equal[k] == 0) other = C(0) / C(equal[k]);
      }
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        if (length > kRowTile<C>) v = read(x, in, at, n, from);
        C* g = target(dx, out, at, to);
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) {
          C sum = other;
          for (int k = 0; k < kExtrema; ++k) sum += measure(v[j]) == best[k] ? each[k] : C(0);
          g[j] = kMagnitude ? sum * sign_of(v[j]) : sum;
        }
        write(dx, out, at, n, g);
      }
    }
  });
}

template <bool kMagnitude, int kExtrema>
Status share_any(Element element, uint32_t axes, const ExtremumViews (&given)[kExtrema], const TensorView& x,
                 const TensorView& dx) {
  Shared extrema[kExtrema];
  for (int k = 0; k < kExtrema; ++k) {
    extrema[k].dy = row_map(with_folded(given[k].dy, x, axes), axes);
    extrema[k].y = row_map(with_folded(given[k].y, x, axes), axes);
  }
  const RowMap in = row_map(x, axes), out = row_map(dx, axes);
  with_float_type(element, [&](auto c) { share<kMagnitude, kExtrema, decltype(c)>(extrema, in, out); });
  return Status::Ok;
}
template <bool kMagnitude>
Status share_one(const Launch& launch, uint32_t axes) {
  using Args = ResultArgs;
  const ExtremumViews given[] = {{launch[Args::dy], launch[Args::y]}};
  return share_any<kMagnitude>(launch.element, axes, given, launch[Args::x], launch[Args::dx]);
}

// Whether a result is infinite, whose elements' differences from it are no numbers.
template <class C>
bool any_infinite(const TensorView& y) {
  const RowMap all = row_map(y, (1u << y.rank) - 1u);
  std::atomic<bool> found{false};
  parallel_for(all.length(), int64_t{1} << 15, [&](int64_t begin, int64_t end) {
    C buffer[kRowTile<C>];
    for (int64_t at = begin; at < end; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, end - at);
      const C* v = read(all, all.row(0), at, n, buffer);
      int32_t infinite = 0;
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) infinite |= math::fabs(v[j]) == math::infinity<C>();
      if (infinite) found.store(true, std::memory_order_relaxed);
    }
  });
  return found.load();
}

// dy e^(x - y). Where y is infinite, the elements that equal it share dy evenly, as they do on the way there.
template <class C>
void spread_exponentials(const Shared& result, const RowMap& x, const RowMap& dx) {
  const int64_t length = x.length();
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C from[kRowTile<C>], to[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const C y = get<C>(result.y, r), dy = get<C>(result.dy, r);
      const bool infinite = math::fabs(y) == math::infinity<C>();
      int64_t equal = 0;
      for (int64_t at = 0; infinite && at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        const C* v = read(x, x.row(r), at, n, from);
        for (int64_t j = 0; j < n; ++j) equal += v[j] == y;
      }
      const C share = dy / static_cast<C>(equal);
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        const C* v = read(x, x.row(r), at, n, from);
        C* g = target(dx, dx.row(r), at, to);
        for (int64_t j = 0; j < n; ++j) g[j] = !infinite ? LogSumExpGradient::f(dy, v[j], y) : v[j] == y ? share : C(0);
        write(dx, dx.row(r), at, n, g);
      }
    }
  });
}

template <class C>
void place(const RowMap& dy, const RowMap& index, const RowMap& dx) {
  const int64_t length = dx.length();
  parallel_for(dx.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C buffer[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const int64_t chosen = get<int64_t>(index, r);
      char* to = dx.row(r);
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        C* g = target(dx, to, at, buffer);
        std::fill_n(g, n, C(0));
        if (chosen >= at && chosen < at + n) g[chosen - at] = get<C>(dy, r);
        write(dx, to, at, n, g);
      }
    }
  });
}

Status place_any(const Launch& launch) {
  using Args = IndexedBackwardArgs;
  const auto axis = attributes<ArgReduceAttrs>(launch).axis;
  const TensorView& out = launch[Args::dx];
  const uint32_t axes = out.rank == 0 ? 0 : 1u << axis;
  const RowMap dy = row_map(with_folded(launch[Args::dvalues], out, axes), axes), dx = row_map(out, axes);
  const RowMap index = row_map(with_folded(launch[Args::indices], out, axes), axes);
  for (int64_t r = 0; r < dx.rows(); ++r) {
    const int64_t chosen = get<int64_t>(index, r);
    if (chosen >= 0 && chosen < dx.length()) continue;
    *launch.failure = {Args::indices, r, chosen, dx.length()};
    return Status::IndexOutOfRange;
  }
  with_float_type(launch.element, [&](auto c) { place<decltype(c)>(dy, index, dx); });
  return Status::Ok;
}

template <bool kRoot, bool kWithMean>
Status variance_gradient(const Launch& launch) {
  using Call = VarianceCall<kRoot, kWithMean>;
  using Args = typename Call::BackwardArgs;
  const VarAttrs attrs = attributes<VarAttrs>(launch);
  const auto axes = static_cast<uint32_t>(attrs.axes);
  const TensorView &x = launch[Args::x], &dx = launch[Args::dx];
  const Kept kept(launch, x, axes, 2);
  fold_moments(launch, x, kept.second, kept.first, axes, 0, MomentResult::Rest, kept.rest);
  const auto count = static_cast<double>(folded_count(x, axes));
  const double scale = (kRoot ? 1 : 2) / std::max(0.0, count - attrs.correction);
  using Gradient = std::conditional_t<kRoot, DeviationGradient, VarianceGradient>;
  Expand<Gradient, 5 + kRoot + 2 * kWithMean> expand(launch.element, dx);
  expand.add(with_folded(launch[Call::kGradient], x, axes));
  if constexpr (kWithMean) expand.add(with_folded(launch[Args::dmean], x, axes));
  expand.add(x).add(kept.first).add(kept.second);
  if constexpr (kRoot) expand.add(with_folded(launch[Call::kSaved], x, axes));
  expand.add(scale);
  if (kWithMean) expand.add(count);
  return expand.run();
}

template <class C>
void fold_gradient_of_product(const TensorView& x, const Kept& kept, uint32_t axes, bool alone) {
  fold_product<C>(Walk(x, kept.first, axes, alone), {&zero_to_one<C>}, kept.rest, {&put_kept<C>});
  fold_sum<C>(Walk(x, kept.second, axes, alone), {&is_zero<C>}, kept.rest, {&put_kept<C>});
}

Status norm_gradient(const Launch& launch) {
  using Args = ResultArgs;
  const NormAttrs attrs = attributes<NormAttrs>(launch);
  const auto axes = static_cast<uint32_t>(attrs.axes);
  const TensorView &x = launch[Args::x], &dx = launch[Args::dx];
  const TensorView dy = with_folded(launch[Args::dy], x, axes), y = with_folded(launch[Args::y], x, axes);
  if (std::isinf(attrs.p)) return share_one<true>(launch, axes);
  if (attrs.p == 1) return Expand<NormGradient1, 2>(launch.element, dx).add(dy).add(x).run();
  if (attrs.p == 2) return Expand<NormGradient2, 3>(launch.element, dx).add(dy).add(x).add(y).run();
  return Expand<NormGradient, 4>(launch.element, dx).add(dy).add(x).add(y).add(attrs.p).run();
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

using namespace reduce;

template <>
Status CpuKernel<Backward<Sum>>::run(const Launch& launch) {
  using Args = SpreadArgs;
  const TensorView& dx = launch[Args::dx];
  return Expand<Same, 1>(launch.element, dx).add(with_folded(launch[Args::dy], dx, axes_of(launch))).run();
}

template <>
Status CpuKernel<Backward<Mean>>::run(const Launch& launch) {
  using Args = SpreadArgs;
  const uint32_t axes = axes_of(launch);
  const TensorView& dx = launch[Args::dx];
  const auto count = static_cast<double>(folded_count(dx, axes));
  return Expand<Spread, 2>(launch.element, dx).add(with_folded(launch[Args::dy], dx, axes)).add(count).run();
}

template <>
Status CpuKernel<Backward<SumTo>>::run(const Launch& launch) {
  uint32_t axes;
  const TensorView& dx = launch[SpreadArgs::dx];
  return Expand<Same, 1>(launch.element, dx).add(aligned(launch[SpreadArgs::dy], dx, &axes)).run();
}

template <>
Status CpuKernel<Backward<Trace>>::run(const Launch& launch) {
  const TensorView& dx = launch[SpreadArgs::dx];
  with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    const RowMap rows = row_map(dx, 2u);
    TensorView single = launch[SpreadArgs::dy];
    single.rank = 0;
    const C dy = get<C>(row_map(single, 0), 0);
    parallel_for(dx.shape[0], row_grain(dx.shape[1]), [&](int64_t begin, int64_t end) {
      C buffer[kRowTile<C>];
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t at = 0; at < dx.shape[1]; at += kRowTile<C>) {
          const int64_t n = std::min(kRowTile<C>, dx.shape[1] - at);
          C* g = target(rows, rows.row(r), at, buffer);
          std::fill_n(g, n, C(0));
          if (r >= at && r < at + n) g[r - at] = dy;
          write(rows, rows.row(r), at, n, g);
        }
      }
    });
  });
  return Status::Ok;
}

template <>
Status CpuKernel<Backward<Extremum<true>>>::run(const Launch& launch) {
  return share_one<false>(launch, axes_of(launch));
}
template <>
Status CpuKernel<Backward<Extremum<false>>>::run(const Launch& launch) {
  return share_one<false>(launch, axes_of(launch));
}
template <>
Status CpuKernel<Backward<MinMax>>::run(const Launch& launch) {
  using Args = MinMaxBackwardArgs;
  const ExtremumViews given[] = {{launch[Args::dmin], launch[Args::min]}, {launch[Args::dmax], launch[Args::max]}};
  return share_any<false>(launch.element, axes_of(launch), given, launch[Args::x], launch[Args::dx]);
}
template <>
Status CpuKernel<Backward<IndexedExtremum<true>>>::run(const Launch& launch) {
  return place_any(launch);
}
template <>
Status CpuKernel<Backward<IndexedExtremum<false>>>::run(const Launch& launch) {
  return place_any(launch);
}

template <>
Status CpuKernel<Backward<NanSum>>::run(const Launch& launch) {
  using Args = SelectArgs;
  const TensorView& x = launch[Args::x];
  const TensorView dy = with_folded(launch[Args::dy], x, axes_of(launch));
  return Expand<SpreadNumbers, 3>(launch.element, launch[Args::dx]).add(dy).add(x).add(1).run();
}
template <>
Status CpuKernel<Backward<NanMean>>::run(const Launch& launch) {
  using Args = SelectArgs;
  const uint32_t axes = axes_of(launch);
  const TensorView& x = launch[Args::x];
  const Kept kept(launch, x, axes, 1);
  with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    fold_sum<C>(Walk(x, kept.first, axes, launch.batch_invariant), {&is_number<C>}, kept.rest, {&put_kept<C>});
  });
  const TensorView dy = with_folded(launch[Args::dy], x, axes);
  return Expand<SpreadNumbers, 3>(launch.element, launch[Args::dx]).add(dy).add(x).add(kept.first).run();
}
template <>
Status CpuKernel<Backward<Product>>::run(const Launch& launch) {
  using Args = ResultArgs;
  const uint32_t axes = axes_of(launch);
  const TensorView& x = launch[Args::x];
  const Kept kept(launch, x, axes, 2);
  if (launch.element == Element::F64)
    fold_gradient_of_product<double>(x, kept, axes, launch.batch_invariant);
  else
    fold_gradient_of_product<float>(x, kept, axes, launch.batch_invariant);
  Expand<ProductGradient, 4> expand(launch.element, launch[Args::dx]);
  return expand.add(with_folded(launch[Args::dy], x, axes)).add(x).add(kept.first).add(kept.second).run();
}
template <>
Status CpuKernel<Backward<LogSumExp>>::run(const Launch& launch) {
  using Args = ResultArgs;
  const uint32_t axes = axes_of(launch);
  const TensorView& x = launch[Args::x];
  const TensorView dy = with_folded(launch[Args::dy], x, axes), y = with_folded(launch[Args::y], x, axes);
  const bool infinite =
      launch.element == Element::F64 ? any_infinite<double>(launch[Args::y]) : any_infinite<float>(launch[Args::y]);
  if (infinite) {
    const Shared result{row_map(dy, axes), row_map(y, axes)};
    const RowMap in = row_map(x, axes), out = row_map(launch[Args::dx], axes);
    with_float_type(launch.element, [&](auto c) { spread_exponentials<decltype(c)>(result, in, out); });
    return Status::Ok;
  }
  return Expand<LogSumExpGradient, 3>(launch.element, launch[Args::dx]).add(dy).add(x).add(y).run();
}
template <>
Status CpuKernel<Backward<Norm>>::run(const Launch& launch) {
  return norm_gradient(launch);
}

#define BCU_VARIANCE_GRADIENT(root, mean)                                       \
  template <>                                                                   \
  Status CpuKernel<Backward<Variance<root, mean>>>::run(const Launch& launch) { \
    return variance_gradient<root, mean>(launch);                               \
  }
BCU_VARIANCE_GRADIENT(false, false)
BCU_VARIANCE_GRADIENT(true, false)
BCU_VARIANCE_GRADIENT(false, true)
BCU_VARIANCE_GRADIENT(true, true)
#undef BCU_VARIANCE_GRADIENT

}  // namespace baracuda
