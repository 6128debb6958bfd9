// Kernels of scans that cpu.cpp does not hold.
#pragma once
#include "core/launch.h"

namespace baracuda::scan {

void extremes(const Launch& launch, bool max);
void log_sums(const Launch& launch);
void log_sums_backward(const Launch& launch);

}  // namespace baracuda::scan
