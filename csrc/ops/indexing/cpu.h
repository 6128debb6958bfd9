// Reading and writing by index on the CPU. Writers go over the places of the axis in order, so that what is written
// last, and how sums are rounded, does not depend on the number of threads.
#pragma once
#include "core/launch.h"
#include "ops/indexing/skus.h"

namespace baracuda::indexing {

Status collect(const Launch& launch, By by);
Status collect_backward(const Launch& launch, By by);
Status scatter(const Launch& launch);
Status index_copy(const Launch& launch);
Status fill(const Launch& launch);
Status scatter_reduce(const Launch& launch);
Status index_add(const Launch& launch);
Status nonzero(const Launch& launch);
Status masked_select(const Launch& launch);
Status one_hot(const Launch& launch);
Status bincount(const Launch& launch);
Status histc(const Launch& launch);

// y = x, unless they are the same memory.
void copy_of(const TensorView& x, const TensorView& y);

}  // namespace baracuda::indexing
