// What kernels that change lists of tensors are called with: all of the same length and, but for an optimizer's
// gradients, changed in place. Portable.
#pragma once
#include "core/args.h"

namespace baracuda::optim {

BCU_ARGS(AdamArgs, (grads, params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs),
         (lr, beta1, beta2, eps, weight_decay, step, grad_scale))
BCU_ARGS(SgdArgs, (grads, params, momentum_buffers), (lr, momentum, dampening, weight_decay, step, grad_scale))
BCU_ARGS(ClipWithNormArgs, (grads, total_norm), (max_norm))
BCU_ARGS(ClipValueArgs, (grads), (clip_value))

}  // namespace baracuda::optim
