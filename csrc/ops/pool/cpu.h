// Pooling on CPUs, in the type that is computed in.
#pragma once
#include "core/launch.h"
#include "ops/pool/problem.h"

namespace baracuda::pool {

// y, and, where they are present, the indices of the maxima.
void run_max(const Pool& pool, const TensorView& x, const TensorView& y, const TensorView& indices);
void run_mean(const Pool& pool, const TensorView& x, const TensorView& y);
// Gradients; indices are in range.
void run_max_backward(const Pool& pool, const TensorView& dy, const TensorView& indices, const TensorView& dx);
void run_mean_backward(const Pool& pool, const TensorView& dy, const TensorView& dx);

}  // namespace baracuda::pool
