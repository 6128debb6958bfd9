// Dimensions that tensors walk together.
#pragma once
#include <cstdint>

namespace baracuda {

// Adds a dimension inside of the `rank` that `shape` has. One of size 1 is left out; one that, with the dimension
// before it, every operand steps through evenly, becomes one with that. `stride(k, d)` refers to operand k's stride in
// dimension d of `shape`, and `step(k)` is its stride in the one that is added.
template <class Stride, class Step>
[[gnu::always_inline]] inline void collapse(int32_t& rank, int64_t* shape, int operands, int64_t size,
                                            const Stride& stride, const Step& step) {
  if (size == 1) return;
  bool joins = rank > 0;
  for (int k = 0; joins && k < operands; ++k) joins = stride(k, rank - 1) == step(k) * size;
  if (joins)
    shape[rank - 1] *= size;
  else
    shape[rank++] = size;
  for (int k = 0; k < operands; ++k) stride(k, rank - 1) = step(k);
}

}  // namespace baracuda
