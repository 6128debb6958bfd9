// The ops of images on CPUs.
#pragma once
#include "core/launch.h"
#include "ops/image/folding.h"
#include "ops/image/problem.h"
#include "ops/image/sampling.h"

namespace baracuda::image {

// to = what each place takes of `from`, through tables in workspace.
void run_nearest(const Resize& r, const TensorView& from, const TensorView& to, void* workspace);
void run_resize(const Resize& r, const TensorView& from, const TensorView& to, void* workspace);

void run_sample(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y);
// The same where it is faster: false where it is not what this takes.
bool run_flat_sample(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y);
// sums: sample_sums() bytes.
void run_sample_images(const Sampling& s, const TensorView& dy, const TensorView& grid, const TensorView& dx,
                       void* sums);
void run_sample_grids(const Sampling& s, const TensorView& dy, const TensorView& x, const TensorView& grid,
                      const TensorView& dgrid);

void run_fold(const Fold& f, const TensorView& x, const TensorView& y);

Status run_nms(const Launch& launch);
Status run_roi_align(const Launch& launch);
Status run_roi_align_backward(const Launch& launch);
Status run_roi_pool(const Launch& launch);

}  // namespace baracuda::image
