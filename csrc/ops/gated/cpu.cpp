// Gated activations on the CPU: 1-D loops fed by the tile driver; the two halves are two views of the same tensor.
#include "backends/cpu/family.h"
#include "core/tile.h"
#include "ops/gated/skus.h"

namespace baracuda::gated {
namespace {

template <class Gate, class C>
void forward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * Gate::g(b[i]);
}

template <class Gate, class C>
void backward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *dy = in[0], *a = in[1], *b = in[2];
  C *da = out[0], *db = out[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Slope<C> gate = Gate::slope(b[i]);
    C d = dy[i], to_gate = d * a[i] * gate.slope;
    da[i] = d * gate.value;
    db[i] = to_gate;
  }
}

struct Halves {
  TensorView value, gate;
};

// The (value, gate) views of a split tensor, or of a pair of tensors when `joined` is absent.
Halves halves(const TensorView& joined, const TensorView& value, const TensorView& gate, const GatedAttrs& attrs) {
  if (!joined.present()) return {value, gate};
  TensorView first = joined;
  first.shape[attrs.split_dim] /= 2;
  TensorView second = first;
  int64_t offset = first.shape[attrs.split_dim] * first.strides[attrs.split_dim] * size_of(first.element);
  second.data = first.as<char>() + offset;
  return attrs.gate_first ? Halves{second, first} : Halves{first, second};
}

template <class Gate, class C>
void forward(const Launch& launch) {
  auto [value, gate] = halves(launch[0], launch[1], launch[2], attributes<GatedAttrs>(launch));
  const TensorView& y = launch[3];
  IterationSpace space = space_of(y);
  const Operand in[] = {operand(value, space), operand(gate, space)};
  const Operand out[] = {operand(y, space)};
  run_tiles<C>(space, in, out, &forward_loop<Gate, C>, nullptr);
}

template <class Gate, class C>
void backward(const Launch& launch) {
  GatedAttrs attrs = attributes<GatedAttrs>(launch);
  const TensorView& dy = launch[0];
  auto [value, gate] = halves(launch[1], launch[2], launch[3], attrs);
  auto [dvalue, dgate] = halves(launch[4], launch[5], launch[6], attrs);
  IterationSpace space = space_of(dy);
  const Operand in[] = {operand(dy, space), operand(value, space), operand(gate, space)};
  const Operand out[] = {operand(dvalue, space), operand(dgate, space)};
  run_tiles<C>(space, in, out, &backward_loop<Gate, C>, nullptr);
}

}  // namespace
}  // namespace baracuda::gated

namespace baracuda {

template <class Gate>
struct CpuKernel<gated::Forward<Gate>> {
  static Status run(const Launch& launch) {
    launch.element == Element::F64 ? gated::forward<Gate, double>(launch) : gated::forward<Gate, float>(launch);
    return Status::Ok;
  }
};

template <class Gate>
struct CpuKernel<gated::Backward<Gate>> {
  static Status run(const Launch& launch) {
    launch.element == Element::F64 ? gated::backward<Gate, double>(launch) : gated::backward<Gate, float>(launch);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(gated)
