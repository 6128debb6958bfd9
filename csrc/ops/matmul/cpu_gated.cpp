// A thin product whose halves are gated: the sums stay in the workspace, of a few rows and so in the caches.
#include "host/loops.h"
#include "ops/gated/math.h"
#include "ops/matmul/cpu.h"
#include "ops/matmul/skus.h"

namespace baracuda::matmul {
namespace {

using Args = GatedMatmulArgs;

// The sums as a tensor: out's sizes with twice the columns.
TensorView sums_of(const Launch& launch) {
  TensorView sums = launch[Args::out];
  sums.data = launch.workspace;
  sums.element = launch.element == Element::F64 ? Element::F64 : Element::F32;
  sums.shape[sums.rank - 1] *= 2;
  int64_t stride = 1;
  for (int i = sums.rank - 1; i >= 0; --i) sums.strides[i] = stride, stride *= sums.shape[i];
  return sums;
}

template <class Gate>
void apply(const Launch& launch, const TensorView& sums, bool gate_first) {
  const TensorView& out = launch[Args::out];
  TensorView first = sums;
  first.shape[first.rank - 1] /= 2;
  TensorView second = first;
  second.data = first.as<char>() + first.shape[first.rank - 1] * size_of(sums.element);
  const IterationSpace space = space_of(out);
  const Operand in[] = {operand(gate_first ? second : first, space), operand(gate_first ? first : second, space)};
  const Operand to[] = {operand(out, space)};
  run_elements<gated::Product<Gate>>(launch.element, space, in, to);
}

}  // namespace

void run_gated(const Launch& launch) {
  const TensorView &a = launch[Args::a], &out = launch[Args::out];
  const TensorView sums = sums_of(launch);
  Gemm g;
  if (!read_views(a, launch[Args::b], sums, {}, g)) return;
  ParamMeta sizes;
  sizes.rank = out.rank;
  std::copy_n(out.shape, out.rank, sizes.shape);
  void* rest = static_cast<char*>(launch.workspace) + gated_sums_bytes(sizes, launch.element);
  if (!run_thin(g, rest)) run_packed(g, rest);
  const auto attrs = attributes<GatedMatmulAttrs>(launch);
  switch (attrs.gate) {
    case kGlu:
      return apply<gated::Glu>(launch, sums, attrs.gate_first != 0);
    case kReGlu:
      return apply<gated::ReGlu>(launch, sums, attrs.gate_first != 0);
    case kSwiGlu:
      return apply<gated::SwiGlu>(launch, sums, attrs.gate_first != 0);
    default:
      return apply<gated::GeGlu>(launch, sums, attrs.gate_first != 0);
  }
}

}  // namespace baracuda::matmul
