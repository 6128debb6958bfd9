// Reductions over the last axes behind a fused expression.
#pragma once
#include "ops/expr/fusion.h"

namespace baracuda::expr {

// Of the values of one operand that are held at once, in any compute type.
inline constexpr int64_t kHeldBytes = 65536;

// Why a program with reductions cannot run, if so.
const char* refuse_reduction(const Fusion& fusion, const Problem& problem);
void run_reducing(const Launch& launch, const Fusion& fusion);

}  // namespace baracuda::expr
