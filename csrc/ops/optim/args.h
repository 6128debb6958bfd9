// What kernels that change lists of tensors are called with: all of the same length and, but for an optimizer's
// gradients, changed in place. Portable.
#pragma once
#include "core/args.h"

namespace baracuda::optim {

BCU_ARGS(AdamArgs, (grads, params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs),
         (lr, beta1, beta2, eps, weight_decay, step, grad_scale))
BCU_ARGS(SgdArgs, (grads, params, momentum_buffers), (lr, momentum, dampening, weight_decay, step, grad_scale))
BCU_ARGS(AdagradArgs, (grads, params, state_sums), (lr, lr_decay, eps, weight_decay, step, grad_scale))
BCU_ARGS(RmspropArgs, (grads, params, square_avgs, momentum_buffers, grad_avgs),
         (lr, alpha, eps, momentum, weight_decay, grad_scale))
BCU_ARGS(AdadeltaArgs, (grads, params, square_avgs, acc_deltas), (lr, rho, eps, weight_decay, grad_scale))
BCU_ARGS(AdamaxArgs, (grads, params, exp_avgs, exp_infs), (lr, beta1, beta2, eps, weight_decay, step, grad_scale))
BCU_ARGS(NadamArgs, (grads, params, exp_avgs, exp_avg_sqs),
         (lr, beta1, beta2, eps, weight_decay, momentum_decay, mu_product, step, grad_scale))
BCU_ARGS(RadamArgs, (grads, params, exp_avgs, exp_avg_sqs), (lr, beta1, beta2, eps, weight_decay, step, grad_scale))
BCU_ARGS(LionArgs, (grads, params, exp_avgs), (lr, beta1, beta2, weight_decay, grad_scale))
BCU_ARGS(ClipWithNormArgs, (grads, total_norm), (max_norm))
BCU_ARGS(ClipValueArgs, (grads), (clip_value))

// The most numbers of a call: its scalars, and one that comes after them.
enum : int { kMostNumbers = NadamArgs::grad_scale + 2 };

}  // namespace baracuda::optim
