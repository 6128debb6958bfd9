// What kernels need to read a call's indices.
#pragma once
#include "simt/index.h"
#include "simt/space_launch.h"

namespace baracuda::simt {

inline IndexParams index_params(const Launch& launch, int tensor, int64_t limit, bool wrap) {
  IndexParams p{};
  p.data = launch[tensor].data, p.limit = limit, p.row = launch.row;
  p.fault = fault_of(launch);
  p.element = static_cast<int32_t>(launch[tensor].element), p.tensor = tensor, p.wrap = wrap;
  return p;
}

inline Status check_indices(const Launch& launch, int tensor, int64_t limit, bool wrap) {
  CheckParams p{};
  const IterationSpace space = space_of(launch[tensor]);
  p.space = space_over<1>(space, {operand(launch[tensor], space)});
  p.index = index_params(launch, tensor, limit, wrap);
  return submit<CheckIndices>(launch, {blocks_for(p.space.count, 256)}, 256, p);
}

}  // namespace baracuda::simt
