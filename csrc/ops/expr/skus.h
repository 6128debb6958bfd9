// The SKU table of fused expressions: one kernel for functions of elements that follow one another, which gives, bit
// for bit, what the functions give one after the other in the compute type. Halves are rounded once, when they are
// stored.
#pragma once
#include <algorithm>

#include "core/row.h"
#include "ops/expr/program.h"
#include "simt/fold_workspace.h"

namespace baracuda::expr {

BCU_ATTRS(ExprAttrs, (text, program))
BCU_ARGS(ExprArgs,
         (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, y0, y1, y2, y3, y4, y5, y6, y7), ())

struct Fused {};
struct FusedRows {};  // and sums, means, extremes, products over the last axes of what the functions give, and so on

// A shape that others broadcast to; rank -1 where they do not.
struct Space {
  int rank = 0;
  int64_t shape[kMaxRank] = {};

  void widen(const ParamMeta& x) {
    Space wide;
    wide.rank = rank < x.rank ? x.rank : rank;
    for (int i = 1; rank >= 0 && i <= wide.rank; ++i) {
      const int64_t a = i <= rank ? shape[rank - i] : 1, b = i <= x.rank ? x.shape[x.rank - i] : 1;
      wide.shape[wide.rank - i] = a == 1 ? b : a;
      if (a != 1 && b != 1 && a != b) rank = -1;
    }
    if (rank >= 0) *this = wide;
  }
};
// What the inputs of a program broadcast to.
inline Space space_of(const Problem& p, const Program& program) {
  Space space;
  for (int k = 0; k < program.inputs && space.rank >= 0; ++k) space.widen(p.params[ExprArgs::x0 + k]);
  return space;
}

// Whether y is of the shape that a program's output has: the inputs', which may be broadcast, or without the last axes,
// or with those of size 1.
inline bool shaped(const ParamMeta& y, const Space& full, const Program& program, int value) {
  const bool reduced = program.per_row(value);
  const int kept = reduced ? full.rank - program.axes : full.rank;
  if (kept < 0 || y.rank < kept || (reduced && y.rank != kept && y.rank != full.rank)) return false;
  for (int d = 0; reduced && d < y.rank; ++d)
    if (y.shape[d] != (d < kept ? full.shape[d] : 1)) return false;
  for (int d = 0; !reduced && d < full.rank; ++d)
    if (full.shape[d] != 1 && full.shape[d] != y.shape[y.rank - full.rank + d]) return false;
  return true;
}

// Whether outputs have the shapes and elements that the program makes.
inline Reason fitting(const Problem& p, const Program& program) {
  const ParamMeta *x = p.params + ExprArgs::x0, *y = p.params + ExprArgs::y0;
  for (int k = 0; k < kMaxInputs; ++k)
    if ((x[k].rank >= 0) != (k < program.inputs)) return {"program", "as many inputs as tensors"};
  for (int k = 0; k < kMaxOutputs; ++k)
    if ((y[k].rank >= 0) != (k < program.outputs)) return {"program", "as many outputs as tensors"};
  Space full = space_of(p, program);
  if (full.rank < 0) return {"program", "inputs that broadcast together"};
  if (program.axes > full.rank) return {"program", "reductions over axes that there are"};
  for (int k = 0; k < program.outputs; ++k) {
    const Node* made = program.of(program.out[k]);
    if (y[k].element != (made ? made->result : x[program.out[k]].element))
      return {"program", "outputs of its elements"};
    if (!shaped(y[k], full, program, program.out[k])) return {"program", "outputs of its shapes"};
    if (program.axes == 0) {
      if (k > 0 && (y[k].rank != y[0].rank || !std::equal(y[k].shape, y[k].shape + y[k].rank, y[0].shape)))
        return {"program", "outputs of one shape"};
    } else if (!program.per_row(program.out[k])) {
      // Beside a reduction nothing is broadcast further than the inputs are.
      const bool whole = y[k].rank == full.rank && std::equal(full.shape, full.shape + full.rank, y[k].shape);
      if (!whole) return {"program", "outputs of the inputs' shape"};
    }
  }
  return {};
}

// Whether the text is a program of the tensors that there are, with or without reductions.
template <bool kReduces>
Reason readable(const Problem& p) {
  const auto& [text, program, wrong] = known_program(text_at(p.attrs));
  if (wrong) return {"program", wrong};
  if ((program.axes > 0) != kReduces) return {"program", kReduces ? "a reduction" : "no reduction"};
  return fitting(p, program);
}

// The longest rows whose products GPUs fold: longer ones would be cut into strips.
inline constexpr int64_t kLongestProduct = 4096;
// And the longest that no sum is cut into strips of: what is folded must be known to all that read the row.
inline constexpr int64_t kLongestAgain = 8191;

constexpr int64_t folded_length(const Space& full, int axes) {
  int64_t length = 1;
  for (int d = full.rank - axes; d < full.rank; ++d) length *= full.shape[d];
  return length;
}

// `readable` reductions that one kernel of a GPU folds.
inline Reason foldable(const Problem& p) {
  if (const Reason wrong = readable<true>(p)) return wrong;
  const Program& program = known_program(text_at(p.attrs)).program;
  const int64_t length = folded_length(space_of(p, program), program.axes);
  const Node* first = nullptr;
  for (const Node* node = program.node; node < program.node + program.nodes; ++node) {
    if (node->kind != Node::Kind::Reduce) {
      for (int i = 0; i < node->count; ++i)
        if (program.per_row(node->args[i]) && length > kLongestAgain)
          return {"program", "rows of at most 8191 elements for functions of what is reduced"};
      continue;
    }
    if (!first) first = node;
    if ((node->element == Element::F64) != (first->element == Element::F64))
      return {"program", "one compute type, f32 or f64, of all reductions"};
    const bool extreme = node->reduction == Reduction::Amax || node->reduction == Reduction::Amin;
    if (extreme && length == 0) return {"program", "at least one element along the reduced axes"};
    if (node->reduction == Reduction::Prod && length > kLongestProduct)
      return {"program", "rows of at most 4096 elements for prod"};
  }
  return {};
}

// Partial results of each reduction's strips.
inline int64_t fold_scratch(const Problem& p) {
  const auto& [text, program, wrong] = known_program(text_at(p.attrs));
  if (wrong) return 0;
  const Space full = space_of(p, program);
  int64_t bytes = 0;
  for (int k = 0; k < program.outputs; ++k) {
    const Node* made = program.of(program.out[k]);
    if (!made || made->kind != Node::Kind::Reduce) continue;
    int64_t rows = 1;
    for (int d = 0; d < full.rank - made->axes; ++d) rows *= full.shape[d];
    bytes += simt::fold_workspace(rows * folded_length(full, made->axes), rows, 8);
  }
  return bytes;
}

// `kCheck`, on Metal.
template <ExtraCheck kCheck>
Reason without_f64(const Problem& p) {
  const auto& [text, program, wrong] = known_program(text_at(p.attrs));
  if (wrong) return {"program", wrong};
  const auto is_wide = [](const auto& of) { return of.element == Element::F64; };
  if (std::any_of(program.node, program.node + program.nodes, is_wide) ||
      std::any_of(p.params, p.params + p.n_params, [&](const ParamMeta& x) { return x.rank >= 0 && is_wide(x); }))
    return {"program", "no f64, which Metal does not have", "compute in f32, or on the cpu"};
  return kCheck(p);
}

template <class Tag>
constexpr auto fused(const char* name) {
  const auto r = row<Tag>("expr").name(name, name).takes(kReal).reads(kReal).exact();
  return r.template args_of<ExprArgs>().template attrs_of<ExprAttrs>();
}

// Where sums of few rows are cut depends on how many rows there are, as in the reduce family. On GPUs a row that is
// reduced is read by many threads while one writes, so that nothing is written in place.
inline constexpr auto kFold = fused<FusedRows>("fused_rows").not_batch_invariant();
inline constexpr auto kMaps = table(fused<Fused>("fused").in_place().only_if(&readable<false>));
inline constexpr auto kFolds = table(kFold.in_place().only_if(&readable<true>));
inline constexpr auto kGpuFolds = table(kFold.only_if(&foldable).scratch(&fold_scratch));
inline constexpr auto kMetal = table(fused<Fused>("fused").in_place().only_if(&without_f64<&readable<false>>),
                                     kFold.only_if(&without_f64<&foldable>).scratch(&fold_scratch));

inline constexpr auto kTable = join(kMaps, kFolds, on_cuda(kMaps + kGpuFolds), on_metal(kMetal));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::expr
