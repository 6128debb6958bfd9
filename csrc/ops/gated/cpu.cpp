// Gated activations on the CPU: loops of one element fed by the tile driver; the two halves are two views of the same
// tensor.
#include "backends/cpu/family.h"
#include "core/loops.h"
#include "ops/gated/halves.h"

namespace baracuda::gated {
namespace {

template <class Gate>
void forward(const Launch& launch) {
  const TensorView& y = launch[3];
  IterationSpace space = space_of(y);
  GatedAttrs attrs = attributes<GatedAttrs>(launch);
  const Operand in[] = {half(Half::Value, launch, 0, attrs, space), half(Half::Gate, launch, 0, attrs, space)};
  const Operand out[] = {operand(y, space)};
  run_elements<Product<Gate>>(launch.element, space, in, out);
}

template <class Gate>
void backward(const Launch& launch) {
  const TensorView& dy = launch[0];
  IterationSpace space = space_of(dy);
  GatedAttrs attrs = attributes<GatedAttrs>(launch);
  const Operand in[] = {operand(dy, space), half(Half::Value, launch, 1, attrs, space),
                        half(Half::Gate, launch, 1, attrs, space)};
  const Operand out[] = {half(Half::Value, launch, 4, attrs, space), half(Half::Gate, launch, 4, attrs, space)};
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

}  // namespace baracuda

BCU_CPU_FAMILY(gated)
