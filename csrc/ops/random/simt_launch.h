// Launches random fills on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/random/simt.h"
#include "ops/random/skus.h"
#include "ops/random/targets.h"
#include "simt/map_launch.h"

namespace baracuda::random {

template <template <class> class Draw, class T>
Status fill(const Launch& launch, const typename Draw<T>::Target& target) {
  using Body = Fill<Draw<T>, T>;
  const IterationSpace space = space_of(launch[0]);
  const Operand y = operand(launch[0], space);
  const Operand* const operands[] = {&y};
  return simt::for_parts(simt::merged<1>(space, operands, 0, true), true, [&](const simt::Merged<1>& s) {
    typename Body::Params p{};
    p.y = s.data[0];
    p.a = simt::number_of(launch.scalars[0]), p.b = simt::number_of(launch.scalars[1]);
    p.seed = simt::number_of(launch.scalars[2]), p.offset = simt::number_of(launch.scalars[3]);
    p.target = target;
    p.first = s.first;
    p.element = static_cast<int32_t>(y.element);
    p.rank = s.rank;
    p.count = static_cast<uint32_t>(s.count());
    for (int d = 0; d < s.rank; ++d) {
      p.shape[d] = simt::divider(s.shape[d]);
      p.stride[d] = static_cast<int32_t>(s.stride[0][d]);
    }
    p.packed = s.rank <= 1 && (s.rank == 0 || s.stride[0][0] == 1) && s.first % Body::kCount == 0 &&
               reinterpret_cast<uintptr_t>(s.data[0]) % (Body::kCount * s.bytes[0]) == 0;
    const int64_t blocks = s.count() / Body::kCount + 2;
    return simt::submit<Body>(launch, {simt::blocks_for(blocks, 256)}, 256, p);
  });
}

// Numbers that only the device knows are taken as they are, there.
inline bool known(const Launch& launch) { return !launch.scalars[0].data && !launch.scalars[1].data; }
inline double value_of(const Scalar& s) { return math::bit_cast<double>(simt::number_of(s).real); }

template <class T>
Status run_uniform(const Launch& launch) {
  Interval<T> to{};
  const Status status =
      known(launch) ? interval_of(launch, value_of(launch.scalars[0]), value_of(launch.scalars[1]), to) : Status::Ok;
  return status == Status::Ok ? fill<UniformDraw, T>(launch, to) : status;
}
template <class T>
Status run_normal(const Launch& launch) {
  Moments<T> to{};
  const Status status =
      known(launch) ? moments_of(launch, value_of(launch.scalars[0]), value_of(launch.scalars[1]), to) : Status::Ok;
  return status == Status::Ok ? fill<NormalDraw, T>(launch, to) : status;
}

}  // namespace baracuda::random

namespace baracuda {

template <>
struct SimtKernel<random::Uniform> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_uniform<double>(launch);
#endif
    return random::run_uniform<float>(launch);
  }
};

template <>
struct SimtKernel<random::Normal> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return random::run_normal<double>(launch);
#endif
    return random::run_normal<float>(launch);
  }
};

}  // namespace baracuda
