// The kernels of the binary family, found by the tags of their rows.
#include "ops/binary/cpu.h"
#include "backends/cpu/family.h"
#include "host/convert.h"

namespace baracuda::binary {
namespace {

template <class C>
void sum_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C alpha = *static_cast<const C*>(params);
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = AddScaled::f(a[i], b[i], alpha);
}

template <class C>
void sum_backward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C alpha = *static_cast<const C*>(params);
  const C* dy = in[0];
  C *da = out[0], *db = out[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Grads<C> g = AddScaled::df(dy[i], alpha);
    da[i] = g.v[0];
    db[i] = g.v[1];
  }
}

template <class Op, class C>
Status run_sum(const Launch& launch) {
  if (run_halves<Op, SumArgs>(launch)) return Status::Ok;
  return launch_forward<SumArgs, C>(launch, forward_loops<Op, C>(), nullptr);
}

template <class C>
C signed_alpha(const Scalar& alpha, int sign) {
  const C value = scalar_as<C>(alpha);
  return sign > 0 ? value : Wrap<C>::mul(value, C(-1));
}

// Integer loops find zero divisors; the position is looked for only when there is one.
template <class Op, class C>
void checked_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C *a = in[0], *b = in[1];
  C* y = out[0];
  bool zero = false;
  for (int64_t i = 0; i < n; ++i) {
    zero |= b[i] == 0;
    y[i] = Op::f(a[i], b[i] == 0 ? C(1) : b[i]);
  }
  if (zero) __atomic_store_n(*static_cast<bool* const*>(params), true, __ATOMIC_RELAXED);
}

int64_t first_zero(const TensorView& t) {
  const int64_t n = t.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, offset = 0;
    for (int d = t.rank - 1; d >= 0; --d) {
      offset += rest % t.shape[d] * t.strides[d];
      rest /= t.shape[d];
    }
    int64_t value;
    load(t.element, t.as<char>() + offset * size_of(t.element), 1, &value, 1);
    if (value == 0) return i;
  }
  return -1;
}

template <class Op, class C>
Status run_checked(const Launch& launch) {
  using Args = OperandArgs;
  bool zero = false;
  bool* const found = &zero;
  // In place, the divisor may be overwritten: it is looked at first then.
  const TensorView& divisor = launch[Args::b];
  const bool overwritten = divisor.present() && divisor.data == launch[Args::y].data;
  const int64_t early = overwritten ? first_zero(divisor) : -1;
  if (early < 0) {
    launch_forward<Args, C>(launch, &checked_loop<Op, C>, &found);
    if (!zero) return Status::Ok;
  }
  if (launch.failure) {
    const int64_t at = early >= 0 ? early : divisor.present() ? first_zero(divisor) : 0;
    *launch.failure = {divisor.present() ? launch.first[Args::b] : -1, at, 0, 0};
  }
  return Status::IntegerDivision;
}

}  // namespace
}  // namespace baracuda::binary

namespace baracuda {

template <class Op>
struct CpuKernel<binary::Forward<Op>> {
  static Status run(const Launch& launch) { return binary::run_forward<Op>(launch); }
};
template <>
struct CpuKernel<binary::Forward<binary::Pow>> {
  static Status run(const Launch& launch) {
    using Args = binary::OperandArgs;
    const bool square = !launch[Args::b].present() && scalar_as<double>(launch.scalars[Args::number]) == 2;
    return square ? binary::run_forward<binary::PowTwo>(launch) : binary::run_forward<binary::Pow>(launch);
  }
};
template <class Op>
struct CpuKernel<binary::Floats<Op>> {
  static Status run(const Launch& launch) { return binary::run_floats<Op>(launch); }
};
template <class Op>
struct CpuKernel<binary::Bits<Op>> {
  static Status run(const Launch& launch) { return binary::run_bits<Op>(launch); }
};
template <class Op>
struct CpuKernel<binary::Backward<Op>> {
  static Status run(const Launch& launch) { return binary::run_backward<Op>(launch); }
};

template <class Op>
struct CpuKernel<binary::Divisions<Op>> {
  static Status run(const Launch& launch) {
    if (is_float(launch.element)) return binary::run_floats<Op>(launch);
    if (kSigned.has(launch.element)) return binary::run_checked<Op, int64_t>(launch);
    return binary::run_checked<Op, uint64_t>(launch);
  }
};

template <class Op>
struct CpuKernel<binary::Close<Op>> {
  static Status run(const Launch& launch) {
    using Args = binary::CloseArgs;
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const Scalar* given = launch.scalars;
      const std::array<C, 3> numbers = {scalar_as<C>(given[Args::rtol]), scalar_as<C>(given[Args::atol]),
                                        scalar_as<C>(given[Args::equal_nan])};
      return binary::launch_forward<Args, C>(launch, &binary::numbers_loop<Op, C, 3>, &numbers);
    });
  }
};

template <>
struct CpuKernel<binary::Neighbours> {
  static Status run(const Launch& launch) {
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const std::array<C, 1> element = {C(binary::neighbours_of(launch.element))};
      constexpr auto kLoop = &binary::numbers_loop<binary::Nextafter, C, 1>;
      return binary::launch_forward<binary::OperandArgs, C>(launch, kLoop, &element);
    });
  }
};

template <int kSign>
struct CpuKernel<binary::Sum<kSign>> {
  static Status run(const Launch& launch) {
    using Args = binary::SumArgs;
    return with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const C alpha = binary::signed_alpha<C>(launch.scalars[Args::alpha], kSign);
      if (alpha == C(1)) return binary::run_sum<binary::Plus, C>(launch);
      if (alpha == C(-1)) return binary::run_sum<binary::Minus, C>(launch);
      // A product with one value for all would be taken out of a loop, and then not be fused with the sum.
      return binary::launch_forward<Args, C>(launch, &binary::sum_loop<C>, &alpha);
    });
  }
};

// The inputs themselves do not matter.
template <int kSign>
struct CpuKernel<binary::SumBackward<kSign>> {
  static Status run(const Launch& launch) {
    using Args = binary::SumBackwardArgs;
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const C alpha = binary::signed_alpha<C>(launch.scalars[Args::alpha], kSign);
      IterationSpace space = space_of(launch[Args::dy]);
      const Operand in[] = {operand(launch[Args::dy], space)};
      const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
      run_tiles<C>(space, in, out, &binary::sum_backward_loop<C>, &alpha);
      return Status::Ok;
    });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(binary)
