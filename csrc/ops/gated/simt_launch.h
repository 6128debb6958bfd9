// Launches the gated activations on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/gated/halves.h"
#include "ops/gated/simt.h"
#include "simt/map_launch.h"

namespace baracuda {

template <class Gate>
struct SimtKernel<gated::Forward<Gate>> {
  static Status run(const Launch& launch) {
    using gated::half, gated::Half;
    gated::GatedAttrs attrs = attributes<gated::GatedAttrs>(launch);
    IterationSpace space = space_of(launch[3]);
    const simt::Input in[] = {half(Half::Value, launch, 0, attrs, space), half(Half::Gate, launch, 0, attrs, space)};
    const Operand out[] = {operand(launch[3], space)};
    return simt::map_floats<gated::Product<Gate>>(launch, space, in, out);
  }
};

template <class Gate>
struct SimtKernel<gated::Backward<Gate>> {
  static Status run(const Launch& launch) {
    using gated::half, gated::Half;
    gated::GatedAttrs attrs = attributes<gated::GatedAttrs>(launch);
    IterationSpace space = space_of(launch[0]);
    const simt::Input in[] = {operand(launch[0], space), half(Half::Value, launch, 1, attrs, space),
                              half(Half::Gate, launch, 1, attrs, space)};
    const Operand out[] = {half(Half::Value, launch, 4, attrs, space), half(Half::Gate, launch, 4, attrs, space)};
    return simt::map_floats<gated::Gradients<Gate>>(launch, space, in, out);
  }
};

}  // namespace baracuda
