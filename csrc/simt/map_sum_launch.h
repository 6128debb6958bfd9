// Launches the sum of a function over all elements.
#pragma once
#include "simt/map_launch.h"
#include "simt/map_sum.h"
#include "simt/map_sum_workspace.h"

namespace baracuda::simt {

template <class C>
inline constexpr bool kTellsPlaces<SumParts<C>> = false;

// Adds up one part of a space, in the order of the parts.
template <class F, class C, int kIn, class X>
Status submit_sum(const Launch& launch, int64_t threads, const MapFrame<kIn, 1>& frame, void* extra) {
  X& x = *static_cast<X*>(extra);
  const int64_t blocks = std::min(blocks_for(threads, 256), kSumParts);
  const typename MapSum<F, C, kIn, X>::Params params{frame, x};
  x.filled = std::max(x.filled, static_cast<int32_t>(blocks));
  return submit<MapSum<F, C, kIn, X>>(launch, {blocks}, 256, params);
}
template <class F, class C, int kIn, class X>
inline constexpr MapKernel<kIn, 1> kSumKernel = {PackOf<C>::kCount, Unpack<C>::kElements, false,
                                                 kTellsPlaces<X>,   &bits_of_number<C>,   &submit_sum<F, C, kIn, X>};

// out = the sum of F over the space, computed in C, divided by `divisor`. `extra` is an X for F, made from SumParts;
// `workspace` holds kSumWorkspace bytes.
template <class F, class C, class X, int kIn>
Status run_sum(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], X extra, void* workspace,
               const TensorView& out, double divisor) {
  // The dimensions in the order of the first input's memory, as if it were written.
  Operand like[1] = {in[0].operand};
  like[0].data = nullptr;
  extra.part = static_cast<LongSum<C>*>(workspace);
  const Status status = MapLaunch<kIn, 1>(launch, kSumKernel<F, C, kIn, X>, &extra).run(space, in, like);
  if (status != Status::Ok) return status;
  SumTotalParams<C> p{};
  p.parts = {extra.part, extra.filled};
  p.out = out.data, p.element = static_cast<int32_t>(out.element);
  p.divisor = static_cast<C>(divisor);
  return submit<SumTotal<C>>(launch, {1}, SumTotal<C>::kThreads, p);
}

}  // namespace baracuda::simt
