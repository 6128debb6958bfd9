// Remainders and floor division. Integer loops find zero divisors; the position is looked for only when there is one.
#include "core/convert.h"
#include "ops/binary/cpu.h"

namespace baracuda::binary {
namespace {

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
  bool zero = false;
  bool* const found = &zero;
  // In place, the divisor may be overwritten: it is looked at first then.
  const TensorView& divisor = launch[1];
  const bool overwritten = divisor.present() && divisor.data == launch[2].data;
  const int64_t early = overwritten ? first_zero(divisor) : -1;
  if (early < 0) {
    launch_forward<C>(launch, &checked_loop<Op, C>, &found);
    if (!zero) return Status::Ok;
  }
  if (launch.failure) {
    const int64_t at = early >= 0 ? early : divisor.present() ? first_zero(divisor) : 0;
    *launch.failure = {divisor.present() ? 1 : -1, at, 0, 0};
  }
  return Status::IntegerDivision;
}

}  // namespace

template <class Op>
Status run_integers(const Launch& launch) {
  if (is_float(launch.element)) return run_floats<Op>(launch);
  if (kSigned.has(launch.element)) return run_checked<Op, int64_t>(launch);
  return run_checked<Op, uint64_t>(launch);
}

template Status run_integers<Fmod>(const Launch&);
template Status run_integers<Remainder>(const Launch&);
template Status run_integers<FloorDivide>(const Launch&);
template Status run_backward<Fmod>(const Launch&);
template Status run_backward<Remainder>(const Launch&);

}  // namespace baracuda::binary
