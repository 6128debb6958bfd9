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
    IterationSpace space = space_of(launch[3]);
    auto [value, gate] = gated::halves(launch[0], launch[1], launch[2], attributes<gated::GatedAttrs>(launch), space);
    const Operand in[] = {value, gate}, out[] = {operand(launch[3], space)};
    return simt::map_floats<gated::ForwardMap<Gate>>(launch, space, in, out);
  }
};

template <class Gate>
struct SimtKernel<gated::Backward<Gate>> {
  static Status run(const Launch& launch) {
    gated::GatedAttrs attrs = attributes<gated::GatedAttrs>(launch);
    IterationSpace space = space_of(launch[0]);
    auto [value, gate] = gated::halves(launch[1], launch[2], launch[3], attrs, space);
    auto [dvalue, dgate] = gated::halves(launch[4], launch[5], launch[6], attrs, space);
    const Operand in[] = {operand(launch[0], space), value, gate};
    const Operand out[] = {dvalue, dgate};
    return simt::map_floats<gated::BackwardMap<Gate>>(launch, space, in, out);
  }
};

}  // namespace baracuda
