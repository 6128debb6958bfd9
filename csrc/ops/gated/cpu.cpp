// Gated activations on the CPU: loops of one element fed by the tile driver; the two halves are two views of the same
// tensor.
#include "ops/gated/cpu.h"
#include "backends/cpu/family.h"
#include "host/loops.h"
#include "ops/gated/halves.h"

namespace baracuda::gated {
namespace {

template <class Gate>
void forward(const Launch& launch) {
  using Args = ForwardArgs;
  const TensorView& y = launch[Args::y];
  IterationSpace space = space_of(y);
  GatedAttrs attrs = attributes<GatedAttrs>(launch);
  const Operand in[] = {half(Half::Value, launch[Args::x], launch[Args::value], attrs, space),
                        half(Half::Gate, launch[Args::x], launch[Args::gate], attrs, space)};
  const Operand out[] = {operand(y, space)};
  run_elements<Product<Gate>>(launch.element, space, in, out);
}

template <class Gate>
void backward(const Launch& launch) {
  using Args = BackwardArgs;
  const TensorView& dy = launch[Args::dy];
  IterationSpace space = space_of(dy);
  GatedAttrs attrs = attributes<GatedAttrs>(launch);
  const Operand in[] = {operand(dy, space), half(Half::Value, launch[Args::x], launch[Args::value], attrs, space),
                        half(Half::Gate, launch[Args::x], launch[Args::gate], attrs, space)};
  const Operand out[] = {half(Half::Value, launch[Args::dx], launch[Args::dvalue], attrs, space),
                         half(Half::Gate, launch[Args::dx], launch[Args::dgate], attrs, space)};
  run_elements<Gradients<Gate>>(launch.element, space, in, out);
}

}  // namespace
}  // namespace baracuda::gated

namespace baracuda {

template <class Gate>
struct CpuKernel<gated::Forward<Gate>> {
  static Status run(const Launch& launch) {
    gated::forward<Gate>(launch);
    return Status::Ok;
  }
};

template <class Gate>
struct CpuKernel<gated::Backward<Gate>> {
  static Status run(const Launch& launch) {
    gated::backward<Gate>(launch);
    return Status::Ok;
  }
};

template <class Gate>
struct CpuKernel<gated::Coded<Gate>> {
  static Status run(const Launch& launch) {
    gated::coded<Gate>(launch);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(gated)
