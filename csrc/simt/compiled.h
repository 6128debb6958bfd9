// Kernels that are compiled on the machine that runs them, when a plan is selected: what a backend gives for that.
#pragma once
#include <string>

#include "core/prepare.h"
#include "simt/launch.h"

namespace baracuda::simt {

// A kernel of one text on one device, kept for the life of the process.
struct CompiledKernel;

// The kernel "fused" of a text (simt/entry.h), compiled without joining products and sums, by now or earlier.
// Unsupported with `why` where there is no compiler; Launch with the backend's last_error() where it does not compile.
Status compile(int32_t device, const std::string& text, const CompiledKernel** out, Reason* why);

// As submit(), of `bytes` parameters that are plain data.
Status submit_compiled(const Launch& launch, const CompiledKernel& kernel, Grid grid, int threads, const void* params,
                       size_t bytes);

}  // namespace baracuda::simt
