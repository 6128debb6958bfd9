// Fused expressions on the CPU: threaded code, run as a loop of the tile driver.
#include "backends/cpu/family.h"
#include "host/tile.h"
#include "ops/expr/epilogue.h"
#include "ops/expr/interpret.h"
#include "ops/expr/skus.h"

namespace baracuda::expr {
namespace {

// --- several compute types ------------------------------------------------------------------------------------------

struct alignas(64) Buffer {
  char bytes[kChunk * 8];
};

void convert(const Conversion& step, Buffer* buffers) {
  Buffer stored;
  with_class(step.from_class, [&](auto c) {
    using C = decltype(c);
    storer<C>(step.stored)(stored.bytes, 1, reinterpret_cast<const C*>(buffers[step.from].bytes), kChunk);
  });
  with_class(step.to_class, [&](auto c) {
    using C = decltype(c);
    loader<C>(step.loaded)(stored.bytes, 1, reinterpret_cast<C*>(buffers[step.to].bytes), kChunk);
  });
}

template <class C>
void run_region(const Compiled<C>& code, const RegionStep& step, std::atomic<bool>& zero, Buffer* buffers,
                int64_t count) {
  typename Compiled<C>::Block memory[kMaxTemporaries];
  const Running<Compiled<C>> running{code, zero};
  Context<C> c;
  code.settle(c, memory);
  for (int64_t i = 0; i < kChunk; i += kBlock<C>) {
    for (size_t k = 0; k < step.in.size(); ++k) c.slot[k] = reinterpret_cast<C*>(buffers[step.in[k]].bytes) + i;
    for (size_t k = 0; k < step.out.size(); ++k) c.out[k] = reinterpret_cast<C*>(buffers[step.out[k]].bytes) + i;
    run_block(code, c, running, std::clamp<int64_t>(count - i, 0, kBlock<C>));
  }
}

void interpret_mixed(const uint64_t* const* in, uint64_t* const* out, int64_t n, const void* params) {
  const auto& running = *static_cast<const Running<Fusion>*>(params);
  const Fusion& f = running.code;
  Buffer buffers[kMaxBuffers];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    for (int k = 0; k < f.program.inputs; ++k) {
      if (count < kChunk) buffers[k] = {};
      std::memcpy(buffers[k].bytes, in[k] + i, count * 8);
    }
    for (const Step& step : f.steps) {
      if (const auto* conversion = std::get_if<Conversion>(&step)) {
        convert(*conversion, buffers);
        continue;
      }
      const RegionStep& region = std::get<RegionStep>(step);
      std::visit([&](const auto& code) { run_region(code, region, running.zero, buffers, count); }, region.code);
    }
    for (int k = 0; k < f.program.outputs; ++k) std::memcpy(out[k] + i, buffers[f.program.inputs + k].bytes, count * 8);
  }
}

struct Operands {
  Operand in[kMaxInputs], out[kMaxOutputs];

  Operands(const Launch& launch, const Fusion& f, const IterationSpace& space) {
    for (int k = 0; k < f.program.inputs; ++k) in[k] = operand(launch[ExprArgs::x0 + k], space);
    for (int k = 0; k < f.program.outputs; ++k) out[k] = operand(launch[ExprArgs::y0 + k], space);
  }
};

void run_mixed(const Fusion& f, const IterationSpace& space, Operands operands, std::atomic<bool>& zero) {
  const Running<Fusion> running{f, zero};
  for (int k = 0; k < f.program.inputs; ++k) operands.in[k].element = bits_of(operands.in[k].element);
  for (int k = 0; k < f.program.outputs; ++k) operands.out[k].element = bits_of(operands.out[k].element);
  run_tiles<uint64_t>(space, {operands.in, size_t(f.program.inputs)}, {operands.out, size_t(f.program.outputs)},
                      &interpret_mixed, &running);
}

Status prepare(const Preparation& p, Prepared** out, Reason* why) {
  auto made = std::make_unique<Fusion>();
  const char* wrong = read_program(text_at(p.problem.attrs), made->program);
  for (int k = 0; k < kMaxInputs + kMaxOutputs; ++k) made->stored[k] = p.problem.params[k].element;
  if (!wrong) wrong = make_fusion(*made);
  if (!wrong && made->program.axes > 0) wrong = refuse_reduction(*made, p.problem);
  *why = {"program", wrong};
  if (!wrong) *out = made.release();
  return wrong ? Status::Unsupported : Status::Ok;
}

}  // namespace
}  // namespace baracuda::expr

namespace baracuda {

template <>
struct CpuKernel<expr::Fused> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) { return expr::prepare(p, out, why); }

  static Status run(const Launch& launch) {
    using namespace expr;
    const Fusion& f = *static_cast<const Fusion*>(launch.prepared);
    std::atomic<bool> zero = false;
    const IterationSpace space = space_of(launch[ExprArgs::y0]);
    const Operands operands(launch, f, space);
    if (f.single)
      std::visit(
          [&]<class C>(const Compiled<C>& code) {
            const Running<Compiled<C>> running{code, zero};
            run_tiles<C>(space, {operands.in, size_t(f.program.inputs)}, {operands.out, size_t(f.program.outputs)},
                         &interpret<C>, &running);
          },
          *f.single);
    else
      run_mixed(f, space, operands, zero);
    if (!zero) return Status::Ok;
    if (launch.failure) *launch.failure = {-1, -1, 0, 0};
    return Status::IntegerDivision;
  }
};

template <>
struct CpuKernel<expr::FusedRows> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) { return expr::prepare(p, out, why); }

  static Status run(const Launch& launch) {
    expr::run_reducing(launch, *static_cast<const expr::Fusion*>(launch.prepared));
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(expr)
