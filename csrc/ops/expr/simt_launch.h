// Launches fused expressions on a GPU: each program is a kernel that was compiled when its plan was selected.
#pragma once
#include <memory>

#include "backends/simt/family.h"
#include "ops/expr/simt.h"
#include "ops/expr/skus.h"
#include "ops/expr/source.h"
#include "simt/compiled.h"
#include "simt/map_launch.h"

namespace baracuda::expr {

static_assert(kMostIn == kMaxInputs && kMostOut == kMaxOutputs && kMostNumbers == kMaxNumbers);

struct Compiled : Prepared {
  const simt::CompiledKernel* kernel = nullptr;
  int pack = 0, inputs = 0, outputs = 0;
  int64_t number[kMaxNumbers] = {};
};

inline int64_t number_bits(const Node& node) {
  if (node.element == Element::F64) return simt::bits_of(node.real);
  return is_float(node.element) ? simt::bits_of(static_cast<float>(node.real)) : node.whole;
}

inline Status prepare_compiled(const Preparation& p, Prepared** out, Reason* why) {
  Program program;
  if (const char* wrong = read_program(text_at(p.problem.attrs), program)) {
    *why = {"program", wrong};
    return Status::Unsupported;
  }
  auto made = std::make_unique<Compiled>();
  int numbers = 0;
  for (int k = 0; k < program.nodes; ++k)
    if (program.node[k].kind == Node::Kind::Number) made->number[numbers++] = number_bits(program.node[k]);
  const Written written = write_kernel(program, p.problem.params, p.row->backend, true);
  made->pack = written.pack, made->inputs = program.inputs, made->outputs = program.outputs;
  const Status status = simt::compile(p.device, written.text, &made->kernel, why);
  if (status == Status::Ok) *out = made.release();
  return status;
}

inline Status submit_fused(const Launch& launch, int64_t threads, const simt::MapFrame<kMostIn, kMostOut>& frame,
                           void* extra) {
  const Compiled& made = *static_cast<const Compiled*>(extra);
  FusedParams params{frame, {}, simt::fault_of(launch), launch.row};
  std::copy_n(made.number, kMaxNumbers, params.number);
  constexpr int kThreads = 256;
  return simt::submit_compiled(launch, *made.kernel, {simt::blocks_for(threads, kThreads)}, kThreads, &params,
                               sizeof params);
}

}  // namespace baracuda::expr

namespace baracuda {

template <>
struct SimtKernel<expr::Fused> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) {
    return expr::prepare_compiled(p, out, why);
  }

  static Status run(const Launch& launch) {
    using namespace expr;
    const auto* made = static_cast<const Compiled*>(launch.prepared);
    const IterationSpace space = space_of(launch[ExprArgs::y0]);
    const simt::MapKernel<kMostIn, kMostOut> kernel = {made->pack, ~0u, true, false, nullptr, &submit_fused};
    simt::Input in[kMostIn];
    Operand out[kMostOut];
    for (int k = 0; k < made->inputs; ++k) in[k] = operand(launch[ExprArgs::x0 + k], space);
    for (int k = 0; k < made->outputs; ++k) out[k] = operand(launch[ExprArgs::y0 + k], space);
    return simt::MapLaunch<kMostIn, kMostOut>(launch, kernel, const_cast<Compiled*>(made)).run(space, in, out);
  }
};

}  // namespace baracuda
