// Launches the folds of simt/fold.h over any axes of a tensor.
#pragma once
#include <array>

#include "core/compute.h"
#include "simt/fold.h"
#include "simt/fold_workspace.h"
#include "simt/rows_launch.h"

namespace baracuda::simt {

// A space whose outer dimensions stand before its inner ones, those of the largest stride of tensor 0 first. The order
// of the inner ones is kept where `ordered`.
template <int kTensors>
struct FoldDims {
  IterationSpace space;
  uint32_t inner = 0;
  Operand tensors[kTensors];

  FoldDims(const IterationSpace& from, uint32_t folded, const Operand (&all)[kTensors], bool ordered) {
    int order[kMaxRank];
    const auto reach = [&](int d) { return from.shape[d] == 1 ? int64_t{0} : std::abs(all[0].strides[d]); };
    const auto is_inner = [&](int d) { return (folded >> d) & 1u; };
    for (int d = 0; d < from.rank; ++d) {
      int at = d;
      for (; at > 0; --at) {
        const int before = order[at - 1];
        const bool moves =
            is_inner(before) != is_inner(d) ? is_inner(before) : !(is_inner(d) && ordered) && reach(before) < reach(d);
        if (!moves) break;
        order[at] = before;
      }
      order[at] = d;
    }
    space.rank = from.rank;
    for (int k = 0; k < kTensors; ++k) tensors[k] = all[k];
    for (int i = 0; i < from.rank; ++i) {
      space.shape[i] = from.shape[order[i]];
      inner |= is_inner(order[i]) ? 1u << i : 0u;
      for (int k = 0; k < kTensors; ++k) tensors[k].strides[i] = all[k].strides[order[i]];
    }
  }
};

// Fold<C> over the rows of a space. `workspace` holds fold_workspace() bytes.
template <template <class> class Fold>
class FoldLaunch {
 public:
  FoldLaunch(const Launch& launch, const RowSpace<2>& s, void* workspace, int64_t divisor = -1,
             const void* divisor_at = nullptr)
      : launch_(launch), s_(s), workspace_(workspace), divisor_(divisor), divisor_at_(divisor_at) {}

  // Floats stored as T.
  template <class T>
  Status floats() {
    using C = ComputeOf<T>;
    if constexpr (sizeof(T) < 8) {
      if (!side_by_side(s_) && packed_rows<T>(s_, 1u)) return run<PackedRows<T>, StridedRows<C>>();
    }
    return run<StridedRows<T>, StridedRows<C>>();
  }
  // Values of the compute type, seldom contiguous.
  template <class C>
  Status values() {
    return run<StridedRows<C>, StridedRows<C>>();
  }
  // Integers of any kind, folded as C.
  template <class C>
  Status integers() {
    return run<CodedRows<C>, CodedRows<C>>();
  }

  // For kernels that fold something else in the same order: how rows are cut, and what is left to do where they are.
  struct Cut {
    TeamGrid grid;
    int64_t per, strips;  // positions of a strip
  };
  // Chooses the teams of the rows, too.
  Cut cut(int most_threads) {
    const TeamGrid grid = teams(s_, 32, most_threads);
    const int64_t wanted = strips(grid.blocks), per = ((s_.length + wanted - 1) / wanted + 7) / 8 * 8;
    return {grid, per, wanted == 1 ? 1 : (s_.length + per - 1) / per};
  }
  const RowSpace<2>& rows() const { return s_; }
  // Folds the partial results of strips, which lie in the workspace.
  template <class C>
  Status fold_partials(int64_t strips) {
    FoldParams<C> p{};
    p.s = s_;
    p.divisor = divisor_;
    p.partial = static_cast<C*>(workspace_);
    return fold_strips<StridedRows<C>>(p, strips);
  }

 private:
  // Strips that the rows are cut into where they are too few to fill a GPU. They depend on sizes alone.
  int64_t strips(int64_t blocks) const {
    if (s_.rows * s_.length < kFoldSplitFrom || blocks >= kFoldStrips / 2) return 1;
    const int64_t wanted = (kFoldStrips + blocks - 1) / blocks, shortest = s_.columns ? 64 : 4096;
    return std::max<int64_t>(1, std::min({wanted, s_.length / shortest, kFoldPartials / s_.rows}));
  }

  template <class Rows, class Second>
  Status run() {
    using C = typename Rows::C;
    if (s_.rows == 0) return Status::Ok;
    const Cut c = cut(FoldRows<Rows, Fold<C>>::kThreads);
    FoldParams<C> p{};
    p.divisor = divisor_, p.divisor_at = static_cast<const C*>(divisor_at_);
    p.per = c.per;
    p.s = s_;
    if (c.strips > 1) {
      p.partial_positions = static_cast<int64_t*>(workspace_);
      p.partial = reinterpret_cast<C*>(p.partial_positions + (Fold<C>::kPositions ? c.strips * s_.rows : 0));
    }
    const Status status = submit<FoldRows<Rows, Fold<C>>>(launch_, {c.grid.blocks, c.strips}, c.grid.threads, p);
    return status == Status::Ok && c.strips > 1 ? fold_strips<Second>(p, c.strips) : status;
  }

  // The partial results, seen as rows of `cut` values.
  template <class Rows, class C>
  Status fold_strips(FoldParams<C> p, int64_t cut) {
    RowSpace<2>& s = p.s;
    int64_t stride = 1;
    for (int d = 0; d < s.outer_rank; stride *= s.outer_shape[d++]) s.outer_stride[0][d] = stride;
    s.length = p.per = s.inner_shape[0] = cut;
    s.inner_rank = 1, s.inner_stride[0][0] = s.rows;
    s.data[0] = p.partial;
    s.element[0] = static_cast<int32_t>(element_of<C>);
    p.positions = Fold<C>::kPositions ? p.partial_positions : nullptr;
    p.partial = nullptr, p.partial_positions = nullptr;
    const TeamGrid grid = s.rows == 1 ? row_teams(s, 4, 512) : column_teams(s);
    return submit<FoldRows<Rows, Fold<C>>>(launch_, {grid.blocks}, grid.threads, p);
  }

  const Launch& launch_;
  RowSpace<2> s_;
  void* workspace_;
  int64_t divisor_;
  const void* divisor_at_;  // of the compute type
};

// The sums of strips, [strip][position], added up in order.
template <class C>
Status fold_strips(const Launch& launch, const C* partial, int64_t strips, int64_t length, const TensorView& gradient,
                   void* workspace) {
  const IterationSpace space = space_of(gradient);
  const Operand all[] = {Operand{}, operand(gradient, space)};
  auto s = row_space(space, 0, all);
  s.data[0] = const_cast<C*>(partial);
  for (int64_t d = 0, stride = 1; d < s.outer_rank; stride *= s.outer_shape[d++]) s.outer_stride[0][d] = stride;
  s.length = s.inner_shape[0] = strips;
  s.inner_rank = 1, s.inner_stride[0][0] = length;
  return FoldLaunch<SumFold>(launch, s, workspace).template values<C>();
}

}  // namespace baracuda::simt
