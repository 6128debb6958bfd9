// Launches the gated activations on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/gated/halves.h"
#include "ops/gated/simt.h"
#include "ops/quant/simt_coded_launch.h"
#include "simt/map_launch.h"

namespace baracuda {

template <class Gate>
struct SimtKernel<gated::Forward<Gate>> {
  static Status run(const Launch& launch) {
    using Args = gated::ForwardArgs;
    using gated::half, gated::Half;
    gated::GatedAttrs attrs = attributes<gated::GatedAttrs>(launch);
    IterationSpace space = space_of(launch[Args::y]);
    const simt::Input in[] = {half(Half::Value, launch[Args::x], launch[Args::value], attrs, space),
                              half(Half::Gate, launch[Args::x], launch[Args::gate], attrs, space)};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_floats<gated::Product<Gate>>(launch, space, in, out);
  }
};

template <class Gate>
struct SimtKernel<gated::Backward<Gate>> {
  static Status run(const Launch& launch) {
    using Args = gated::BackwardArgs;
    using gated::half, gated::Half;
    gated::GatedAttrs attrs = attributes<gated::GatedAttrs>(launch);
    IterationSpace space = space_of(launch[Args::dy]);
    const simt::Input in[] = {operand(launch[Args::dy], space),
                              half(Half::Value, launch[Args::x], launch[Args::value], attrs, space),
                              half(Half::Gate, launch[Args::x], launch[Args::gate], attrs, space)};
    const Operand out[] = {half(Half::Value, launch[Args::dx], launch[Args::dvalue], attrs, space),
                           half(Half::Gate, launch[Args::dx], launch[Args::dgate], attrs, space)};
    return simt::map_floats<gated::Gradients<Gate>>(launch, space, in, out);
  }
};

template <class Gate>
struct SimtKernel<gated::Coded<Gate>> {
  static Status run(const Launch& launch) {
    using namespace gated;
    using Args = gated::CodedArgs;
    const auto attrs = attributes<CodedAttrs>(launch);
    const GatedAttrs split{attrs.split_dim, attrs.gate_first};
    const quant::CodedLaunch<Args> to(launch);
    const Operand tensors[] = {half(Half::Value, launch[Args::x], launch[Args::value], split, to.space),
                               half(Half::Gate, launch[Args::x], launch[Args::gate], split, to.space), to.codes(),
                               to.scales()};
    CodedParams p{};
    p.s = simt::row_space(to.space, to.inner(), tensors);
    if (p.s.rows == 0) return Status::Ok;
    p.codes = to.frame(attrs.group, p.s, ~(1u << kCodedScale));
    return quant::with_row_code(launch[Args::y].element, [&]<class Code>() {
      using Body = CodedForward<Gate, Code>;
      const simt::TeamGrid grid = simt::row_teams(p.s, 16, Body::kThreads);
      return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
    });
  }
};

}  // namespace baracuda
