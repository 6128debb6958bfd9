// Sums, means and maxima of bags of rows on the CPU.
#pragma once
#include "core/launch.h"

namespace baracuda::embedding {

Status bag_forward(const Launch& launch);
Status bag_backward(const Launch& launch);

}  // namespace baracuda::embedding
