// Element conversion: the tile driver's own loads and stores, with nothing between them.
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "host/tile.h"
#include "ops/cast/cpu_direct.h"
#include "ops/cast/int4.h"
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
  IterationSpace space = space_of(launch[Args::y]);
  const Operand in[] = {codes(launch[Args::x], space)}, out[] = {codes(launch[Args::y], space)};
  run_tiles<C>(space, in, out, loop, &saturate);
  return Status::Ok;
}

template <class F, class C>
void pack_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *low = in[0], *high = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F::f(low[i], high[i]);
}

// Rows may end with the low half of a byte.
template <class F, class C>
void unpack_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C* x = in[0];
  C *low = out[0], *high = out[1];
  if (high) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const Values<C, 2> v = F::f(x[i]);
      low[i] = v.v[0], high[i] = v.v[1];
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) low[i] = F::f(x[i]).v[0];
  }
}

template <class C>
Status pack(const Launch& launch) {
  const C zero = 0;
  const bool is_signed = attributes<Int4Attrs>(launch).is_signed != 0;
  return both_halves(launch[Args::x], launch[Args::y], [&](const Halves& h) {
    const Operand in[] = {h.low, h.high.data ? h.high : constant(&zero, element_of<C>)}, out[] = {h.bytes};
    run_tiles<C>(h.space, in, out, is_signed ? &pack_loop<PackInt4<true>, C> : &pack_loop<PackInt4<false>, C>, nullptr);
    return Status::Ok;
  });
}

template <class C>
Status unpack(const Launch& launch) {
  const bool is_signed = attributes<Int4Attrs>(launch).is_signed != 0;
  return both_halves(launch[Args::y], launch[Args::x], [&](const Halves& h) {
    const Operand in[] = {h.bytes}, out[] = {h.low, h.high};
    run_tiles<C>(h.space, in, out, is_signed ? &unpack_loop<UnpackInt4<true>, C> : &unpack_loop<UnpackInt4<false>, C>,
                 nullptr);
    return Status::Ok;
  });
}

}  // namespace
}  // namespace baracuda::cast

namespace baracuda {

template <>
struct CpuKernel<cast::Cast> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[cast::Args::x], &y = launch[cast::Args::y];
    IterationSpace space = space_of(y);
    const Operand in[] = {operand(x, space)};
    const Operand out[] = {operand(y, space)};
    if (x.element == y.element) {
      copy_tiles(space, in[0], out[0]);
    } else if (!cast::convert_direct(x, y)) {
      with_compute_type(x.element, [&](auto c) { run_tiles<decltype(c)>(space, in, out, nullptr, nullptr); });
    }
    return Status::Ok;
  }
};

template <>
struct CpuKernel<cast::FromF8> {
  static Status run(const Launch& launch) {
    using namespace cast;
    const bool wide = launch[Args::x].element == Element::F8E4M3;  // the significand, that is
    switch (launch[Args::y].element) {
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
      const bool wide = launch[cast::Args::y].element == Element::F8E4M3;
      return cast::convert<C>(launch,
                              wide ? &cast::loop_with<cast::Encode<3>, C> : &cast::loop_with<cast::Encode<2>, C>);
    });
  }
};

template <>
struct CpuKernel<cast::PackInt4Row> {
  static Status run(const Launch& launch) {
    return with_compute_type(launch.element, [&](auto c) { return cast::pack<decltype(c)>(launch); });
  }
};

template <>
struct CpuKernel<cast::UnpackInt4Row> {
  static Status run(const Launch& launch) {
    return with_compute_type(launch.element, [&](auto c) { return cast::unpack<decltype(c)>(launch); });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(cast)
