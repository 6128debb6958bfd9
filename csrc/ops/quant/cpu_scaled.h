// Codes with scales on the CPU.
#pragma once
#include "core/launch.h"

namespace baracuda::quant {

void run_quantize_linear(const Launch& launch);
void run_dequantize_linear(const Launch& launch);
void run_fake_quantize(const Launch& launch);
void run_fake_gradient(const Launch& launch);
void run_dynamic_quantize(const Launch& launch);

}  // namespace baracuda::quant
