// Launches pooling and its gradients on a GPU.
#pragma once
#include <limits>

#include "backends/simt/family.h"
#include "ops/pool/simt.h"
#include "ops/pool/skus.h"
#include "simt/index_launch.h"

namespace baracuda::pool {

// A thread for each element of `made`, neighbours next to each other in memory; `read` is looked at by planes.
inline PoolParams pool_params(const Pool& pool, const TensorView& made, const TensorView* second,
                              const TensorView& read, const TensorView* read_second) {
  PoolParams p{};
  const Planes to(made), from(read), beside(second ? *second : made), under(read_second ? *read_second : read);
  const Planes* const walked[] = {&to, &beside, &from, &under};
  IterationSpace space;
  std::array<Operand, kWalked> steps{};
  auto add = [&](int64_t size, int64_t Planes::* stride, bool read_too) {
    const int d = space.rank++;
    space.shape[d] = size;
    for (int k = 0; k < (read_too ? 4 : 2); ++k) steps[k].strides[d] = walked[k]->*stride;
  };
  const bool last = to.channels_last();
  add(made.shape[0], &Planes::outer, true);
  if (!last) add(made.shape[1], &Planes::channel, true);
  for (int i = 0; i < kAxes; ++i) {
    const int d = space.rank++;
    space.shape[d] = to.size[i];
    steps[kMade].strides[d] = to.stride[i], steps[kSecond].strides[d] = beside.stride[i];
    steps[kPlace + i].strides[d] = 1;
    p.axis[i] = pool.axis[i], p.stride[i] = from.stride[i], p.second_stride[i] = under.stride[i];
  }
  if (last) add(made.shape[1], &Planes::channel, true);
  p.space = simt::space_over(space, steps);
  p.divisor = pool.divisor, p.padded = pool.padded;
  p.made = to.data, p.read = from.data;
  p.made_element = static_cast<int32_t>(made.element), p.read_element = static_cast<int32_t>(read.element);
  return p;
}

// What is larger than no other value of an element.
inline int64_t least_bits(Element e) {
  if (e == Element::F64) return simt::bits_of(-std::numeric_limits<double>::infinity());
  if (is_float(e)) return simt::bits_of(-std::numeric_limits<float>::infinity());
  return least_of<int64_t>(e);
}

template <class Body>
Status submit_pool(const Launch& launch, const PoolParams& p) {
  return simt::submit<Body>(launch, {simt::blocks_for(p.space.count, Body::kThreads)}, Body::kThreads, p);
}

}  // namespace baracuda::pool

namespace baracuda {

template <pool::Windows kWindows>
struct SimtKernel<pool::Max<kWindows>> {
  static Status run(const Launch& launch) {
    using Args = pool::MaxArgs;
    const TensorView &x = launch[Args::x], &y = launch[Args::y], &indices = launch[Args::indices];
    const bool wanted = indices.present();
    pool::PoolParams p =
        pool::pool_params(pool::max_pool_of<kWindows>(launch, x, y), y, wanted ? &indices : nullptr, x, nullptr);
    p.indices = wanted ? indices.data : nullptr, p.least = pool::least_bits(launch.element);
    if (launch.element == Element::F64) {
#if BCU_HAS_F64
      return pool::submit_pool<pool::MaxPool<double>>(launch, p);
#else
      return Status::Unsupported;
#endif
    }
    if (is_float(launch.element)) return pool::submit_pool<pool::MaxPool<float>>(launch, p);
    if (kSigned.has(launch.element)) return pool::submit_pool<pool::MaxPool<int64_t>>(launch, p);
    return pool::submit_pool<pool::MaxPool<uint64_t>>(launch, p);
  }
};

template <pool::Windows kWindows>
struct SimtKernel<pool::MaxBackward<kWindows>> {
  static Status run(const Launch& launch) {
    using Args = pool::MaxBackwardArgs;
    const TensorView &dy = launch[Args::dy], &indices = launch[Args::indices], &dx = launch[Args::dx];
    const pool::Pool pool = pool::max_pool_of<kWindows>(launch, dx, dy);
    const Status status = simt::check_indices(launch, Args::indices, pool.plane(), false);
    if (status != Status::Ok) return status;
    pool::PoolParams p = pool::pool_params(pool, dx, nullptr, dy, &indices);
    p.indices = indices.data;
#if BCU_HAS_F64
    if (launch.element == Element::F64) return pool::submit_pool<pool::PoolGradient<double, true>>(launch, p);
#endif
    return pool::submit_pool<pool::PoolGradient<float, true>>(launch, p);
  }
};

template <pool::Windows kWindows>
struct SimtKernel<pool::Mean<kWindows>> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[pool::MeanArgs::x], &y = launch[pool::MeanArgs::y];
    const auto p = pool::pool_params(pool::mean_pool_of<kWindows>(launch, x, y), y, nullptr, x, nullptr);
#if BCU_HAS_F64
    if (launch.element == Element::F64) return pool::submit_pool<pool::MeanPool<double>>(launch, p);
#endif
    return pool::submit_pool<pool::MeanPool<float>>(launch, p);
  }
};

template <pool::Windows kWindows>
struct SimtKernel<pool::MeanBackward<kWindows>> {
  static Status run(const Launch& launch) {
    const TensorView &dy = launch[pool::MeanBackwardArgs::dy], &dx = launch[pool::MeanBackwardArgs::dx];
    const auto p = pool::pool_params(pool::mean_pool_of<kWindows>(launch, dx, dy), dx, nullptr, dy, nullptr);
#if BCU_HAS_F64
    if (launch.element == Element::F64) return pool::submit_pool<pool::PoolGradient<double, false>>(launch, p);
#endif
    return pool::submit_pool<pool::PoolGradient<float, false>>(launch, p);
  }
};

}  // namespace baracuda
