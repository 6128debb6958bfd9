// Resizing on CPUs.
#pragma once
#include "core/launch.h"
#include "ops/image/problem.h"

namespace baracuda::image {

// to = what each place takes of `from`, through tables in workspace.
void run_nearest(const Resize& r, const TensorView& from, const TensorView& to, void* workspace);
void run_resize(const Resize& r, const TensorView& from, const TensorView& to, void* workspace);

}  // namespace baracuda::image
