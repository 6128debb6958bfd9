// Element conversion: the tile driver's own loads and stores, with nothing between them.
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/tile.h"
#include "ops/cast/math.h"
#include "ops/cast/skus.h"

namespace baracuda::cast {
namespace {

template <class F, class C>
void loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F::f(x[i]);
}

template <class F, class C>
void loop_with(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C saturate = *static_cast<const C*>(params);
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F::f(x[i], saturate);
}

// 8-bit floats travel as their codes.
Operand codes(const TensorView& t, const IterationSpace& space) {
  Operand o = operand(t, space);
  if (kF8.has(t.element)) o.element = Element::U8;
  return o;
}

template <class C>
Status convert(const Launch& launch, TileLoop<C> loop) {
  const C saturate = C(attributes<CastAttrs>(launch).saturate);
  IterationSpace space = space_of(launch[1]);
  const Operand in[] = {codes(launch[0], space)}, out[] = {codes(launch[1], space)};
  run_tiles<C>(space, in, out, loop, &saturate);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::cast

namespace baracuda {

template <>
struct CpuKernel<cast::Cast> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[0], &y = launch[1];
    IterationSpace space = space_of(y);
    const Operand in[] = {operand(x, space)};
    const Operand out[] = {operand(y, space)};
    if (x.element == y.element) {
      copy_tiles(space, in[0], out[0]);
    } else {
      with_compute_type(x.element, [&](auto c) { run_tiles<decltype(c)>(space, in, out, nullptr, nullptr); });
    }
    return Status::Ok;
  }
};

template <>
struct CpuKernel<cast::FromF8> {
  static Status run(const Launch& launch) {
    using namespace cast;
    const bool wide = launch[0].element == Element::F8E4M3;  // the significand, that is
    switch (launch[1].element) {
      case Element::F8E4M3:
        return convert<float>(launch, wide ? &loop<Same, float> : &loop_with<Recode<2, 3>, float>);
      case Element::F8E5M2:
        return convert<float>(launch, wide ? &loop_with<Recode<3, 2>, float> : &loop<Same, float>);
      default:
        return convert<float>(launch, wide ? &loop<Decode<3>, float> : &loop<Decode<2>, float>);
    }
  }
};

template <>
struct CpuKernel<cast::ToF8> {
  static Status run(const Launch& launch) {
    return with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const bool wide = launch[1].element == Element::F8E4M3;
      return cast::convert<C>(launch,
                              wide ? &cast::loop_with<cast::Encode<3>, C> : &cast::loop_with<cast::Encode<2>, C>);
    });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(cast)
