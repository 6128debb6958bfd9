// The parts of data movement on the CPU that are more than copies.
#pragma once
#include "core/launch.h"

namespace baracuda::layout {

Status pad_backward(const Launch& launch);
Status repeat_backward(const Launch& launch);
Status triangle(const Launch& launch, bool upper);
Status arange(const Launch& launch);
Status linspace(const Launch& launch);

}  // namespace baracuda::layout
