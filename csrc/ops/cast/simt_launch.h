// Launches element conversion on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/cast/int4.h"
#include "ops/cast/simt.h"
#include "ops/cast/skus.h"
#include "simt/map_launch.h"

namespace baracuda::cast {

// 8-bit floats travel as their codes.
inline Operand codes(const TensorView& t, const IterationSpace& space) {
  Operand o = operand(t, space);
  if (kF8.has(t.element)) o.element = Element::U8;
  return o;
}

inline simt::Input saturation(const Launch& launch) {
  Scalar number;
  if (is_float(launch.element) || kF8.has(launch.element)) {
    number.f = static_cast<double>(attributes<CastAttrs>(launch).saturate);
  } else {
    number.kind = Scalar::Kind::Int, number.i = attributes<CastAttrs>(launch).saturate;
  }
  return number;
}

template <class F>
Status decoded(const Launch& launch) {
  const IterationSpace space = space_of(launch[Args::y]);
  const simt::Input in[] = {codes(launch[Args::x], space)};
  const Operand out[] = {codes(launch[Args::y], space)};
  return simt::run_map<F, float>(launch, space, in, out);
}
template <class F>
Status recoded(const Launch& launch) {
  const IterationSpace space = space_of(launch[Args::y]);
  const simt::Input in[] = {codes(launch[Args::x], space), saturation(launch)};
  const Operand out[] = {codes(launch[Args::y], space)};
  return simt::run_map<F, float>(launch, space, in, out);
}
template <class F>
Status encoded(const Launch& launch) {
  const IterationSpace space = space_of(launch[Args::y]);
  const simt::Input in[] = {codes(launch[Args::x], space), saturation(launch)};
  const Operand out[] = {codes(launch[Args::y], space)};
  return simt::map_real<F>(launch, space, in, out);
}

template <bool kSigned>
Status packed(const Launch& launch) {
  Scalar zero;
  if (!is_float(launch.element)) zero.kind = Scalar::Kind::Int, zero.i = 0;
  return both_halves(launch[Args::x], launch[Args::y], [&](const Halves& h) {
    const simt::Input in[] = {h.low, h.high.data ? simt::Input(h.high) : simt::Input(zero)};
    const Operand out[] = {h.bytes};
    return simt::map_real<PackInt4<kSigned>>(launch, h.space, in, out);
  });
}
template <bool kSigned>
Status unpacked(const Launch& launch) {
  return both_halves(launch[Args::y], launch[Args::x], [&](const Halves& h) {
    const simt::Input in[] = {h.bytes};
    const Operand out[] = {h.low, h.high};
    return simt::map_real<UnpackInt4<kSigned>>(launch, h.space, in, out);
  });
}

}  // namespace baracuda::cast

namespace baracuda {

// The plan's element is the input's, which is what numbers are carried in.
template <>
struct SimtKernel<cast::Cast> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[cast::Args::y]);
    const simt::Input in[] = {operand(launch[cast::Args::x], space)};
    const Operand out[] = {operand(launch[cast::Args::y], space)};
    return simt::map_real<Same>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<cast::FromF8> {
  static Status run(const Launch& launch) {
    using namespace cast;
    const bool wide = launch[Args::x].element == Element::F8E4M3;  // the significand, that is
    switch (launch[Args::y].element) {
      case Element::F8E4M3:
        return wide ? decoded<Same>(launch) : recoded<Recode<2, 3>>(launch);
      case Element::F8E5M2:
        return wide ? recoded<Recode<3, 2>>(launch) : decoded<Same>(launch);
      default:
        return wide ? decoded<Decode<3>>(launch) : decoded<Decode<2>>(launch);
    }
  }
};

template <>
struct SimtKernel<cast::ToF8> {
  static Status run(const Launch& launch) {
    const bool wide = launch[cast::Args::y].element == Element::F8E4M3;
    return wide ? cast::encoded<cast::Encode<3>>(launch) : cast::encoded<cast::Encode<2>>(launch);
  }
};

template <>
struct SimtKernel<cast::PackInt4Row> {
  static Status run(const Launch& launch) {
    return attributes<cast::Int4Attrs>(launch).is_signed ? cast::packed<true>(launch) : cast::packed<false>(launch);
  }
};

template <>
struct SimtKernel<cast::UnpackInt4Row> {
  static Status run(const Launch& launch) {
    return attributes<cast::Int4Attrs>(launch).is_signed ? cast::unpacked<true>(launch) : cast::unpacked<false>(launch);
  }
};

}  // namespace baracuda
