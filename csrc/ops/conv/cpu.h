// The passes of CPU convolutions.
#pragma once
#include "core/launch.h"
#include "ops/conv/epilogue.h"
#include "ops/conv/frame.h"

namespace baracuda::conv {

// made = the pass from `read`; bias may be absent.
void run_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
              const TensorView& made, void* workspace);
// The same of `made`'s compute type, with an epilogue.
template <class C>
void run_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
              const TensorView& made, void* workspace, const Epilogue<C>* epilogue);
// The same where in_lanes() says so: f32 and halves.
void run_wide_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
                   const TensorView& made, void* workspace, const Epilogue<float>* epilogue);
// dweight = the sum over images and places of result times image.
void run_filter(const Conv& c, const TensorView& image, const TensorView& result, const TensorView& dweight,
                void* workspace);
// dbias = the sum of every channel.
void run_bias(const TensorView& dy, const TensorView& dbias);

}  // namespace baracuda::conv
