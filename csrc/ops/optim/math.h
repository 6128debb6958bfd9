// The update rules of the optimizers and of gradient clipping, one element at a time.
//
// A rule says how many of a call's lists of tensors it goes over: the gradients, where kGradient is 1 and they are read
// only, then kWritten lists in place, of which the first has the plan's element and the others the statistics'; and
// what a call gives besides: kScalars scalars, of which kBetas from kBeta on are betas and kStep is the number of the
// step
// (-1: none), and kFlags attributes. make() works out a Step once from these, and returns the place of the first scalar
// that the optimizer does not accept, or -1; the comparisons refuse NaN.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "ops/optim/args.h"

namespace baracuda::optim {

// A beta, its distance to 1 and its logarithm, which f32 would lose most of for a beta given in f64.
template <class W>
struct Beta {
  W value, gain, log;
};

// The numbers of a call, in double where there is that.
template <class W>
struct Numbers {
  W value[kMostNumbers];
  Beta<W> beta[2];
  int64_t step;
  int32_t maximize, option;  // the first attribute and the second one
};

template <class W>
BCU_FN bool is_size(W v) {
  return v >= W(0) && v - v == W(0);
}
template <class W>
BCU_FN bool is_beta(W v) {
  return v >= W(0) && v < W(1);
}
// +-1 / grad_scale.
template <class W>
BCU_FN W grad_factor(BCU_THREAD const Numbers<W>& n, W grad_scale) {
  return (n.maximize ? W(-1) : W(1)) / grad_scale;
}
template <class W>
BCU_FN bool is_scale(W v) {
  return math::fabs(v) > W(0);
}
// 1 - beta^step.
template <class W>
BCU_FN W correction(BCU_THREAD const Numbers<W>& n, int which) {
  return -math::expm1(W(n.step) * n.beta[which].log);
}

// What the scalars of a step with moments come to; worked out in W, then rounded to the compute type. Rules use some.
template <class T>
struct MomentStep {
  T grad_factor;
  T beta1, gain1;  // gain = 1 - beta
  T beta2, gain2;
  T decay;          // weight_decay, where gradients are given it
  T kept;           // 1 - lr * weight_decay, where it is decoupled
  T step_size;      // of the moment
  T gradient_size;  // of the gradient itself
  T root_factor;    // 1 / sqrt(1 - beta2^step)
  T eps;
};

template <class W, class T>
BCU_FN void set_betas(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
  s.beta1 = T(n.beta[0].value), s.gain1 = T(n.beta[0].gain);
  s.beta2 = T(n.beta[1].value), s.gain2 = T(n.beta[1].gain);
}
template <class W, class T>
BCU_FN void set_decay(bool decoupled, W lr, W weight_decay, BCU_THREAD MomentStep<T>& s) {
  s.decay = T(decoupled ? W(0) : weight_decay);
  s.kept = T(decoupled ? W(1) - lr * weight_decay : W(1));
}

// What a gradient gains by weight decay; nothing where there is none, however large the parameter.
template <class T>
BCU_FN T decayed(T g, T p, T weight_decay) {
  return weight_decay == T(0) ? g : g + weight_decay * p;
}

// The first scalar of Adam's list that is wrong, or -1; of every optimizer with betas, eps, weight_decay and step.
template <class Args, class W>
BCU_FN int first_wrong(BCU_THREAD const Numbers<W>& n) {
  if (!is_size(n.value[Args::lr])) return Args::lr;
  if (!is_beta(n.beta[0].value)) return Args::beta1;
  if (!is_beta(n.beta[1].value)) return Args::beta2;
  if (!(n.value[Args::eps] >= W(0))) return Args::eps;
  if (!is_size(n.value[Args::weight_decay])) return Args::weight_decay;
  if (n.step < 1) return Args::step;
  return is_scale(n.value[Args::grad_scale]) ? -1 : int(Args::grad_scale);
}

// x: the parameter, its first and second moment and, for kAmsgrad, the largest second moment so far.
template <bool kDecoupled, bool kAmsgrad>
struct AdamRule {
  using Args = AdamArgs;
  enum : int { kGradient = 1, kWritten = kAmsgrad ? 4 : 3, kScalars = Args::grad_scale + 1, kFlags = 1 };
  enum : int { kBetas = 2, kBeta = Args::beta1, kStep = Args::step };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr];
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    set_betas(n, s);
    set_decay(kDecoupled, lr, n.value[Args::weight_decay], s);
    s.step_size = T(lr / correction(n, 0));
    s.root_factor = T(W(1) / math::sqrt(correction(n, 1)));
    s.eps = T(n.value[Args::eps]);
    return first_wrong<Args>(n);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
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
    T kept = kDecoupled ? s.kept * x[0] : x[0];
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
  enum : int { kGradient = 1, kWritten = kMomentum ? 2 : 1, kScalars = Args::grad_scale + 1, kFlags = 2 };
  enum : int { kBetas = 0, kBeta = 0, kStep = Args::step };
  template <class T>
  using Step = SgdStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD SgdStep<T>& s) {
    W lr = n.value[Args::lr], momentum = n.value[Args::momentum], dampening = n.value[Args::dampening];
    W decay = n.value[Args::weight_decay], grad_scale = n.value[Args::grad_scale];
    s.grad_factor = T(grad_factor(n, grad_scale));
    s.weight_decay = T(decay), s.momentum = T(momentum), s.gain = T(W(1) - dampening), s.lr = T(lr);
    s.first = n.step == 1 ? 1 : 0, s.nesterov = n.option;
    bool still = momentum == W(0), plain = dampening == W(0);
    if (!is_size(lr)) return Args::lr;
    if (kMomentum ? !is_size(momentum) || (n.option && still) : !still) return Args::momentum;
    if (!(dampening - dampening == W(0)) || (n.option && !plain)) return Args::dampening;
    if (!is_size(decay)) return Args::weight_decay;
    if (n.step < 1) return Args::step;
    return is_scale(grad_scale) ? -1 : int(Args::grad_scale);
  }

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
// Gradients times what brings their norm down to the largest one wanted. The norm comes after the call's scalars.
struct ScaleRule {
  using Args = ClipWithNormArgs;
  enum : int { kGradient = 0, kWritten = 1, kScalars = Args::max_norm + 1, kFlags = 0 };
  enum : int { kBetas = 0, kBeta = 0, kStep = -1 };
  template <class T>
  using Step = ScaleStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD ScaleStep<T>& s) {
    W share = n.value[Args::max_norm] / (n.value[kScalars] + norm_margin<W>());
    s.factor = T(share > W(1) ? W(1) : share);
    return -1;
  }

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
  enum : int { kGradient = 0, kWritten = 1, kScalars = Args::clip_value + 1, kFlags = 0 };
  enum : int { kBetas = 0, kBeta = 0, kStep = -1 };
  template <class T>
  using Step = BoundStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD BoundStep<T>& s) {
    s.most = T(n.value[Args::clip_value]);
    return s.most == s.most ? -1 : int(Args::clip_value);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const BoundStep<T>& s, T, BCU_THREAD T* x) {
    T v = x[0] < -s.most ? -s.most : x[0];
    x[0] = v > s.most ? s.most : v;
  }
};

}  // namespace baracuda::optim
