// The SKU table of the optimizer steps.
#pragma once
#include "core/row.h"

namespace baracuda::optim {

// maximize: ascend instead of descend.
BCU_ATTRS(AdamWAttrs, (i64, maximize))

// Tensors: grads, then in place params, exp_avgs, exp_avg_sqs; each may be a list, all four of the same length.
// Scalars: lr, beta1, beta2, eps, weight_decay, step, grad_scale.
struct AdamW {};

inline constexpr auto kTable =
    everywhere(table(row<AdamW>("adamw").name("chunked").takes(kFloats).attrs_of<AdamWAttrs>().sum(9)));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::optim
