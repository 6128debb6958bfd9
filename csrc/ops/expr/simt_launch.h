// Launches fused expressions on a GPU: each program is a kernel that was compiled when its plan was selected.
#pragma once
#include <memory>

#include "backends/simt/family.h"
#include "ops/expr/input_space.h"
#include "ops/expr/simt.h"
#include "ops/expr/skus.h"
#include "ops/expr/source.h"
#include "simt/compiled.h"
#include "simt/fold_launch.h"
#include "simt/map_launch.h"

namespace baracuda::expr {

static_assert(kMostIn == kMaxInputs && kMostOut == kMaxOutputs && kMostNumbers == kMaxNumbers);

struct Compiled : Prepared {
  const simt::CompiledKernel* kernel = nullptr;
  Program program;
  int pack = 0;
  int64_t number[kMaxNumbers] = {};
};

inline int64_t number_bits(const Node& node) {
  if (node.element == Element::F64) return simt::bits_of(node.real);
  return is_float(node.element) ? simt::bits_of(static_cast<float>(node.real)) : node.whole;
}

inline Status prepare_compiled(const Preparation& p, Prepared** out, Reason* why) {
  auto made = std::make_unique<Compiled>();
  Program& program = made->program;
  if (const char* wrong = read_program(text_at(p.problem.attrs), program)) {
    *why = {"program", wrong};
    return Status::Unsupported;
  }
  int numbers = 0;
  for (int k = 0; k < program.nodes; ++k)
    if (program.node[k].kind == Node::Kind::Number) made->number[numbers++] = number_bits(program.node[k]);
  const Written written = write_kernel(program, p.problem.params, p.row->backend, true);
  made->pack = written.pack;
  made->workspace = -1;  // by the row's rule
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

template <bool kMax>
struct Extreme {
  template <class C>
  using Fold = simt::ExtremeFold<kMax, C>;
};

// Reductions over the last axes: rows as the reduce family would fold them if what is reduced lay in memory.
class FoldedLaunch {
 public:
  FoldedLaunch(const Launch& launch, const Compiled& made)
      : launch_(launch), made_(made), program_(made.program), space_(input_space(launch, program_.inputs)) {
    kept_ = space_.rank - program_.axes;
    inner_ = ((1u << space_.rank) - 1u) & ~((1u << kept_) - 1u);
    for (int k = 0; k < program_.outputs; ++k) all_[k] = output(k);
    for (int k = 0; k < program_.inputs; ++k) all_[kMostOut + k] = operand(launch[ExprArgs::x0 + k], space_);
  }

  Status run() {
    fill_frame();
    RowFrame& f = params_.frame;
    if (f.rows == 0) return Status::Ok;
    if (f.length == 0 && has_extreme()) return Status::InvalidProblem;
    simt::FoldLaunch<simt::SumFold> like(launch_, as_if_stored(0), nullptr);
    const auto cut = like.cut(kFoldThreads);
    f.per = cut.per, f.columns = like.rows().columns, f.team_size = like.rows().team_size;
    char* partial = static_cast<char*>(launch_.workspace);
    for (int k = 0; k < program_.outputs && cut.strips > 1; ++k)
      if (reduction(k)) f.partial[k] = partial, partial += cut.strips * f.rows * 8;
    std::copy_n(made_.number, kMaxNumbers, params_.number);
    params_.fault = simt::fault_of(launch_), params_.row = launch_.row;
    Status status = simt::submit_compiled(launch_, *made_.kernel, {cut.grid.blocks, cut.strips}, cut.grid.threads,
                                          &params_, sizeof params_);
    for (int k = 0; k < program_.outputs && status == Status::Ok; ++k)
      if (f.partial[k]) status = fold_partials(k, cut.strips);
    return status;
  }

 private:
  static constexpr int kOperands = kMostOut + kMostIn;
  static_assert(sizeof(FoldedParams) <= simt::kParameterBytes);

  const Node* reduction(int k) const {
    const Node* made = program_.of(program_.out[k]);
    return made && made->kind == Node::Kind::Reduce ? made : nullptr;
  }

  bool has_extreme() const {
    return std::any_of(program_.node, program_.node + program_.nodes, [](const Node& node) {
      const bool extreme = node.reduction == Reduction::Amax || node.reduction == Reduction::Amin;
      return node.kind == Node::Kind::Reduce && extreme;
    });
  }

  // What is one for a row stays where it is along the row.
  Operand output(int k) const {
    const TensorView& y = launch_[ExprArgs::y0 + k];
    if (!program_.per_row(program_.out[k])) return operand(y, space_);
    Operand o{y.data, y.element, {}};
    for (int d = 0; d < kept_; ++d) o.strides[d] = space_.shape[d] == 1 ? 0 : y.strides[d];
    return o;
  }

  void fill_frame() {
    const simt::RowSide<kOperands> out(space_, ~inner_, all_), in(space_, inner_, all_);
    RowFrame& f = params_.frame;
    f.rows = out.count, f.length = in.count;
    f.rank = in.rank + out.rank, f.inner_rank = in.rank;
    for (int d = 0; d < f.rank; ++d) {
      const bool along = d < in.rank;
      const int at = along ? d : d - in.rank;
      f.shape[d] = along ? in.shape[at] : out.shape[at];
      f.divider[d] = simt::wide_divider(f.shape[d]);
      for (int k = 0; k < kOperands; ++k) f.stride[k][d] = along ? in.stride[k][at] : out.stride[k][at];
    }
    for (int k = 0; k < kOperands; ++k) f.data[k] = all_[k].data;
    f.packed = packable();
  }

  bool packable() const {
    const RowFrame& f = params_.frame;
    if (f.inner_rank != 1 || f.length % made_.pack != 0) return false;
    for (int k = 0; k < kOperands; ++k) {
      const bool is_input = k >= kMostOut;
      if (!f.data[k] || (is_input ? f.stride[k][0] == 0 : program_.per_row(program_.out[k]))) continue;
      const int64_t bytes = size_of(all_[k].element), word = std::min<int64_t>(simt::kPackBytes, made_.pack * bytes);
      if (f.stride[k][0] != 1 || reinterpret_cast<uintptr_t>(f.data[k]) % word != 0) return false;
      for (int d = 1; d < f.rank; ++d)
        if (f.stride[k][d] * bytes % word != 0) return false;
    }
    return true;
  }

  // Output k's rows, of contiguous values.
  simt::RowSpace<2> as_if_stored(int k) const {
    Operand of[2] = {{}, all_[k]};
    for (int64_t d = space_.rank - 1, step = 1; d >= 0; step *= space_.shape[d--]) of[0].strides[d] = step;
    of[0].element = element_of();
    return simt::row_space(space_, inner_, of);
  }
  Element element_of() const { return is_wide() ? Element::F64 : Element::F32; }
  bool is_wide() const {
    return std::any_of(program_.node, program_.node + program_.nodes, [](const Node& node) {
      return node.kind == Node::Kind::Reduce && node.element == Element::F64;
    });
  }

  Status fold_partials(int k, int64_t strips) {
    switch (reduction(k)->reduction) {
      case Reduction::Amax:
        return fold_partials<Extreme<true>::Fold>(k, strips, -1);
      case Reduction::Amin:
        return fold_partials<Extreme<false>::Fold>(k, strips, -1);
      case Reduction::Mean:
        return fold_partials<simt::SumFold>(k, strips, params_.frame.length);
      default:
        return fold_partials<simt::SumFold>(k, strips, -1);
    }
  }
  template <template <class> class Fold>
  Status fold_partials(int k, int64_t strips, int64_t divisor) {
    simt::FoldLaunch<Fold> fold(launch_, as_if_stored(k), params_.frame.partial[k], divisor);
#if BCU_HAS_F64
    if (is_wide()) return fold.template fold_partials<double>(strips);
#endif
    return fold.template fold_partials<float>(strips);
  }

  const Launch& launch_;
  const Compiled& made_;
  const Program& program_;
  const IterationSpace space_;
  int kept_ = 0;
  uint32_t inner_ = 0;
  Operand all_[kOperands] = {};
  FoldedParams params_{};
};

}  // namespace baracuda::expr

namespace baracuda {

template <>
struct SimtKernel<expr::FusedRows> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) {
    return expr::prepare_compiled(p, out, why);
  }
  static Status run(const Launch& launch) {
    return expr::FoldedLaunch(launch, *static_cast<const expr::Compiled*>(launch.prepared)).run();
  }
};

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
    for (int k = 0; k < made->program.inputs; ++k) in[k] = operand(launch[ExprArgs::x0 + k], space);
    for (int k = 0; k < made->program.outputs; ++k) out[k] = operand(launch[ExprArgs::y0 + k], space);
    return simt::MapLaunch<kMostIn, kMostOut>(launch, kernel, const_cast<Compiled*>(made)).run(space, in, out);
  }
};

}  // namespace baracuda
