// Launches element conversion on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/cast/simt.h"
#include "ops/cast/skus.h"
#include "simt/map_launch.h"

namespace baracuda {

// The plan's element is the input's, which is what numbers are carried in.
template <>
struct SimtKernel<cast::Cast> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[1]);
    const simt::Input in[] = {operand(launch[0], space)};
    const Operand out[] = {operand(launch[1], space)};
    return simt::map_real<Same>(launch, space, in, out);
  }
};

}  // namespace baracuda
