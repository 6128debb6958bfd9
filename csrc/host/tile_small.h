// Launches of a few rows that need no conversion: the loop runs on the caller's memory at once, where planning tiles
// would cost more than the work.
#pragma once
#include <algorithm>
#include <span>

#include "core/compute.h"
#include "host/tile.h"
#include "host/tile_plan.h"

namespace baracuda::tile {

inline constexpr int64_t kSmall = 4096;    // elements; far below what more threads would pay for
inline constexpr int64_t kFewRows = 8;     // calls of the loop, unless rows are long
inline constexpr int64_t kLongRow = 64;    // elements
inline constexpr int64_t kRepeated = 256;  // of an operand that is one value

template <class C>
class SmallRun {
 public:
  // False when this launch is none of these; nothing was done then.
  static bool run(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
                  const TileLoops<C>& loops, const void* params) {
    const int64_t numel = space.numel();
    if (numel == 0) return true;
    if (numel > kSmall || !loops.loop || inputs.size() + outputs.size() > kMaxOperands) return false;
    SmallRun small(space);
    for (const Operand& o : outputs)
      if (!o.data || !small.take(o)) return false;
    for (const Operand& o : inputs)
      if (!small.take(o)) return false;
    small.n_outputs_ = static_cast<int>(outputs.size());
    return small.walk(numel, loops, params);
  }

 private:
  explicit SmallRun(const IterationSpace& space) : space_(space) {}

  bool take(const Operand& o) {
    at_[n_] = static_cast<C*>(o.data);
    operands_[n_++] = &o;
    return o.element == element_of<C>;
  }

  bool repeats(const Operand& o) const {
    for (int d = 0; d < space_.rank; ++d)
      if (o.strides[d] != 0 && space_.shape[d] != 1) return false;
    return true;
  }

  bool dense(int d, int64_t stride) const {
    for (int k = 0; k < n_; ++k)
      if (!(repeated_ >> k & 1) && operands_[k]->strides[d] != (k == constant_ ? 0 : stride)) return false;
    return true;
  }

  // The loop to take, and which operands are repeated or read once a row.
  TileLoop<C> choose(const TileLoops<C>& loops) {
    for (int k = n_outputs_; space_.rank > 0 && k < n_; ++k) {
      if (operands_[k]->strides[space_.rank - 1] != 0) continue;
      const int input = k - n_outputs_;
      if (constant_ < 0 && input < 2 && loops.repeated[input])
        constant_ = k;
      else if (repeats(*operands_[k]))
        repeated_ |= 1u << k;
    }
    return constant_ < 0 ? loops.loop : loops.repeated[constant_ - n_outputs_];
  }

  bool walk(int64_t numel, const TileLoops<C>& loops, const void* params) {
    const TileLoop<C> loop = choose(loops);
    int64_t run = 1;
    int outer = space_.rank;  // dimensions that are not part of a row
    while (outer > 0 && (space_.shape[outer - 1] == 1 || dense(outer - 1, run))) run *= space_.shape[--outer];
    if (run < kLongRow && numel > run * kFewRows) return false;
    if (repeated_ && run > kRepeated) return false;
    C values[kMaxOperands][kRepeated];
    for (int k = n_outputs_; repeated_ && k < n_; ++k) {
      if (!(repeated_ >> k & 1)) continue;
      std::fill_n(values[k], run, *at_[k]);
      at_[k] = values[k];
    }
    int64_t position[kMaxRank] = {};
    for (;;) {
      loop(at_ + n_outputs_, at_, run, params);
      int d = outer - 1;
      for (; d >= 0; --d) {
        if (++position[d] < space_.shape[d]) break;
        shift(d, 1 - position[d]);
        position[d] = 0;
      }
      if (d < 0) return true;
      shift(d, 1);
    }
  }

  void shift(int d, int64_t steps) {
    for (int k = 0; k < n_; ++k)
      if (!(repeated_ >> k & 1)) at_[k] += steps * operands_[k]->strides[d];
  }

  const IterationSpace& space_;
  const Operand* operands_[kMaxOperands];
  C* at_[kMaxOperands];
  int n_ = 0, n_outputs_ = 0;
  unsigned repeated_ = 0;
  int constant_ = -1;  // an operand that is one value for a row, of which the loop reads that
};

}  // namespace baracuda::tile
