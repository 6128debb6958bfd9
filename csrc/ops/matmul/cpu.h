// The ways to compute a product that a CPU level's module has; each handles every shape, stride and element it is
// given.
#pragma once
#include "core/launch.h"
#include "ops/matmul/gemm.h"

namespace baracuda::matmul {

void run_packed(const Gemm& g, void* workspace);
// bf16 by vdpbf16ps; falls back to run_packed at levels without it and for very small operands.
void run_bf16(const Gemm& g, void* workspace);
// The same where an operand is contiguous in K and the other one small; else false.
bool run_in_place(const Gemm& g, void* workspace);
// Products whose smaller side is at most kMaxThin; false when the strides of the large operand suit neither of its
// loops.
bool run_thin(const Gemm& g, void* workspace);
// Integers of one element, modulo 2^n.
void run_whole(const Gemm& g, void* workspace);
// Products of 8-bit integers and of 8-bit floats.
void run_scaled(const Gemm& g, void* workspace);
// 8-bit integers by vpdpbusd, at levels that have it.
void run_vnni(const Gemm& g, void* workspace);
// f32 and f64 through OpenBLAS; false when it cannot take these strides.
bool run_blas(const Gemm& g);
// value * g(gate) of a thin product's halves.
void run_gated(const Launch& launch);

}  // namespace baracuda::matmul
