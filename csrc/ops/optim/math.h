// The update rules of the optimizers and of gradient clipping, one element at a time.
//
// A rule says how many of a call's lists of tensors it goes over: the gradients, where kGradient is 1 and they are read
// only, then kWritten lists in place, of which the first has the plan's element and the others the statistics'; and how
// many scalars the call has.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "ops/optim/args.h"

namespace baracuda::optim {

// What the scalars of Adam come to for one step; worked out once in double, then rounded to the compute type.
template <class T>
struct AdamStep {
  T grad_factor;   // +-1 / grad_scale
  T beta1, gain1;  // gain = 1 - beta
  T beta2, gain2;
  T decay;        // decoupled: 1 - lr * weight_decay; otherwise weight_decay
  T step_size;    // lr / (1 - beta1^step)
  T root_factor;  // 1 / sqrt(1 - beta2^step)
  T eps;
};

// What a gradient gains by weight decay; nothing where there is none, however large the parameter.
template <class T>
BCU_FN T decayed(T g, T p, T weight_decay) {
  return weight_decay == T(0) ? g : g + weight_decay * p;
}

// x: the parameter, its first and second moment and, for kAmsgrad, the largest second moment so far.
template <bool kDecoupled, bool kAmsgrad>
struct AdamRule {
  using Args = AdamArgs;
  enum : int { kGradient = 1, kWritten = kAmsgrad ? 4 : 3, kScalars = Args::grad_scale + 1 };
  template <class T>
  using Step = AdamStep<T>;

  template <class T>
  BCU_FN void f(BCU_THREAD const AdamStep<T>& s, T g, BCU_THREAD T* x) {
    g = g * s.grad_factor;
    if (!kDecoupled) g = decayed(g, x[0], s.decay);
    x[1] = s.beta1 * x[1] + s.gain1 * g;
    x[2] = s.beta2 * x[2] + s.gain2 * g * g;
    T v = x[2];
    if (kAmsgrad) {
      T most = x[kWritten - 1];
      v = v > most || v != v ? v : most;  // NaN stays
      x[kWritten - 1] = v;
    }
    T kept = kDecoupled ? s.decay * x[0] : x[0];
    x[0] = kept - s.step_size * x[1] / (math::sqrt(v) * s.root_factor + s.eps);
  }
};

template <class T>
struct SgdStep {
  T grad_factor, weight_decay, momentum, gain, lr;  // gain = 1 - dampening
  int32_t first, nesterov;                          // the first step's momentum is the gradient itself
};

// x: the parameter and, for kMomentum, its momentum.
template <bool kMomentum>
struct SgdRule {
  using Args = SgdArgs;
  enum : int { kGradient = 1, kWritten = kMomentum ? 2 : 1, kScalars = Args::grad_scale + 1 };
  template <class T>
  using Step = SgdStep<T>;

  template <class T>
  BCU_FN void f(BCU_THREAD const SgdStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.weight_decay);
    if (kMomentum) {
      T moved = s.momentum * x[kWritten - 1] + s.gain * g;
      moved = s.first ? g : moved;
      x[kWritten - 1] = moved;
      g = s.nesterov ? g + s.momentum * moved : moved;
    }
    x[0] = x[0] - s.lr * g;
  }
};

// torch divides by this much more than the norm.
template <class T>
BCU_FN T norm_margin() {
  return T(1) / T(1000000);
}

template <class T>
struct ScaleStep {
  T factor;
};
// Gradients times what brings their norm down to the largest one wanted.
struct ScaleRule {
  using Args = ClipWithNormArgs;
  enum : int { kGradient = 0, kWritten = 1, kScalars = Args::max_norm + 1 };
  template <class T>
  using Step = ScaleStep<T>;

  template <class T>
  BCU_FN void f(BCU_THREAD const ScaleStep<T>& s, T, BCU_THREAD T* x) {
    x[0] = x[0] * s.factor;
  }
};

template <class T>
struct BoundStep {
  T most;
};
// Gradients cut to [-most, most]; NaN stays.
struct BoundRule {
  using Args = ClipValueArgs;
  enum : int { kGradient = 0, kWritten = 1, kScalars = Args::clip_value + 1 };
  template <class T>
  using Step = BoundStep<T>;

  template <class T>
  BCU_FN void f(BCU_THREAD const BoundStep<T>& s, T, BCU_THREAD T* x) {
    T v = x[0] < -s.most ? -s.most : x[0];
    x[0] = v > s.most ? s.most : v;
  }
};

}  // namespace baracuda::optim
