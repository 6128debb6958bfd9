// The update rules of optimizers besides Adam and SGD, as math.h has those.
#pragma once
#include "ops/optim/math.h"

namespace baracuda::optim {

// x: the parameter and the sum of its squared gradients.
struct AdagradRule {
  using Args = AdagradArgs;
  enum : int { kGradient = 1, kWritten = 2, kScalars = Args::grad_scale + 1, kFlags = 1 };
  enum : int { kBetas = 0, kBeta = 0, kStep = Args::step };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr], lr_decay = n.value[Args::lr_decay];
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    s.decay = T(n.value[Args::weight_decay]);
    s.gradient_size = T(lr / (W(1) + W(n.step - 1) * lr_decay));
    s.eps = T(n.value[Args::eps]);
    if (!is_size(lr)) return Args::lr;
    if (!is_size(lr_decay)) return Args::lr_decay;
    if (!(n.value[Args::eps] >= W(0))) return Args::eps;
    if (!is_size(n.value[Args::weight_decay])) return Args::weight_decay;
    if (n.step < 1) return Args::step;
    return is_scale(n.value[Args::grad_scale]) ? -1 : int(Args::grad_scale);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = x[1] + g * g;
    x[0] = x[0] - s.gradient_size * g / (math::sqrt(x[1]) + s.eps);
  }
};

// x: the parameter, the mean of its squared gradients and, for kMomentum and kCentered, the momentum and the mean of
// its gradients.
template <bool kCentered, bool kMomentum>
struct RmspropRule {
  using Args = RmspropArgs;
  enum : int { kGradient = 1, kMean = kMomentum ? 3 : 2, kWritten = kMean + (kCentered ? 1 : 0) };
  enum : int { kScalars = Args::grad_scale + 1, kFlags = 1, kBetas = 1, kBeta = Args::alpha, kStep = -1 };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr], momentum = n.value[Args::momentum];
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    s.decay = T(n.value[Args::weight_decay]);
    s.beta2 = T(n.beta[0].value), s.gain2 = T(n.beta[0].gain);
    s.beta1 = T(momentum);
    s.gradient_size = T(lr);
    s.eps = T(n.value[Args::eps]);
    if (!is_size(lr)) return Args::lr;
    if (!is_size(n.beta[0].value)) return Args::alpha;
    if (!(n.value[Args::eps] >= W(0))) return Args::eps;
    if (kMomentum ? !is_size(momentum) : !(momentum == W(0))) return Args::momentum;
    if (!is_size(n.value[Args::weight_decay])) return Args::weight_decay;
    return is_scale(n.value[Args::grad_scale]) ? -1 : int(Args::grad_scale);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = s.beta2 * x[1] + s.gain2 * g * g;
    T v = x[1];
    if (kCentered) {
      T mean = s.beta2 * x[kWritten - 1] + s.gain2 * g;
      x[kWritten - 1] = mean;
      v = v - mean * mean;
    }
    T move = g / (math::sqrt(v) + s.eps);
    if (kMomentum) {
      move = s.beta1 * x[kMean - 1] + move;
      x[kMean - 1] = move;
    }
    x[0] = x[0] - s.gradient_size * move;
  }
};

// x: the parameter and the means of its squared gradients and of its squared updates.
struct AdadeltaRule {
  using Args = AdadeltaArgs;
  enum : int { kGradient = 1, kWritten = 3, kScalars = Args::grad_scale + 1, kFlags = 1 };
  enum : int { kBetas = 1, kBeta = Args::rho, kStep = -1 };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr], rho = n.beta[0].value;
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    s.decay = T(n.value[Args::weight_decay]);
    s.beta2 = T(rho), s.gain2 = T(n.beta[0].gain);
    s.gradient_size = T(lr);
    s.eps = T(n.value[Args::eps]);
    if (!is_size(lr)) return Args::lr;
    if (!(rho >= W(0) && rho <= W(1))) return Args::rho;
    if (!(n.value[Args::eps] >= W(0))) return Args::eps;
    if (!is_size(n.value[Args::weight_decay])) return Args::weight_decay;
    return is_scale(n.value[Args::grad_scale]) ? -1 : int(Args::grad_scale);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = s.beta2 * x[1] + s.gain2 * g * g;
    T delta = math::sqrt(x[2] + s.eps) / math::sqrt(x[1] + s.eps) * g;
    x[2] = s.beta2 * x[2] + s.gain2 * delta * delta;
    x[0] = x[0] - s.gradient_size * delta;
  }
};

// x: the parameter, its first moment and the largest gradient, which decays.
struct AdamaxRule {
  using Args = AdamaxArgs;
  enum : int { kGradient = 1, kWritten = 3, kScalars = Args::grad_scale + 1, kFlags = 1 };
  enum : int { kBetas = 2, kBeta = Args::beta1, kStep = Args::step };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    set_betas(n, s);
    s.decay = T(n.value[Args::weight_decay]);
    s.step_size = T(n.value[Args::lr] / correction(n, 0));
    s.eps = T(n.value[Args::eps]);
    return first_wrong<Args>(n);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = s.beta1 * x[1] + s.gain1 * g;
    T faded = s.beta2 * x[2], now = math::fabs(g) + s.eps;
    x[2] = now > faded || now != now ? now : faded;  // NaN stays
    x[0] = x[0] - s.step_size * x[1] / x[2];
  }
};

// x: the parameter and its first and second moment. The option decouples weight decay.
struct NadamRule {
  using Args = NadamArgs;
  enum : int { kGradient = 1, kWritten = 3, kScalars = Args::grad_scale + 1, kFlags = 2 };
  enum : int { kBetas = 2, kBeta = Args::beta1, kStep = Args::step };
  template <class T>
  using Step = MomentStep<T>;

  // Half of 0.96^(step momentum_decay), by which a step's momentum is smaller than beta1, as a share of that.
  template <class W>
  BCU_FN W warmup(W step, W momentum_decay) {
    return W(0.5) * math::exp(step * momentum_decay * W(-0.040821994520255166));
  }

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr], fade = n.value[Args::momentum_decay], product = n.value[Args::mu_product];
    W beta1 = n.beta[0].value, now = warmup(W(n.step), fade), next = warmup(W(n.step) + W(1), fade);
    W mu_next = beta1 * (W(1) - next);
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    set_betas(n, s);
    set_decay(n.option != 0, lr, n.value[Args::weight_decay], s);
    s.gradient_size = T(lr * (n.beta[0].gain + beta1 * now) / (W(1) - product));
    s.step_size = T(lr * mu_next / (W(1) - product * mu_next));
    s.root_factor = T(W(1) / math::sqrt(correction(n, 1)));
    s.eps = T(n.value[Args::eps]);
    if (!is_size(fade)) return Args::momentum_decay;
    if (!is_beta(product)) return Args::mu_product;
    return first_wrong<Args>(n);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = s.beta1 * x[1] + s.gain1 * g;
    x[2] = s.beta2 * x[2] + s.gain2 * g * g;
    T root = math::sqrt(x[2]) * s.root_factor + s.eps;
    x[0] = s.kept * x[0] - s.gradient_size * g / root - s.step_size * x[1] / root;
  }
};

// x: the parameter and its first and second moment. The option decouples weight decay.
struct RadamRule {
  using Args = RadamArgs;
  enum : int { kGradient = 1, kWritten = 3, kScalars = Args::grad_scale + 1, kFlags = 2 };
  enum : int { kBetas = 2, kBeta = Args::beta1, kStep = Args::step };
  template <class T>
  using Step = MomentStep<T>;

  // 2 / g - 1 + 2 / log(1 - g), by Gregory's coefficients; g <= 0.1.
  template <class W>
  BCU_FN W rest(W g) {
    W sum = W(4671) / W(394240);
    sum = W(3250433) / W(239500800) + g * sum;
    sum = W(8183) / W(518400) + g * sum;
    sum = W(33953) / W(1814400) + g * sum;
    sum = W(275) / W(12096) + g * sum;
    sum = W(863) / W(30240) + g * sum;
    sum = W(3) / W(80) + g * sum;
    sum = W(19) / W(360) + g * sum;
    sum = W(1) / W(12) + g * sum;
    return g * (W(1) / W(6) + g * sum);
  }
  // 2 / x - 2 / (e^x - 1), by Bernoulli's numbers; x <= 0.5.
  template <class W>
  BCU_FN W spread(W x) {
    W square = x * x, sum = W(-1) / W(37362124800.0);
    sum = W(691) / W(653837184000.0) + square * sum;
    sum = W(-1) / W(23950080) + square * sum;
    sum = W(1) / W(604800) + square * sum;
    sum = W(-1) / W(15120) + square * sum;
    sum = W(1) / W(360) + square * sum;
    return W(1) - x * (W(1) / W(6) - square * sum);
  }
  // The length of the average: 2 / (1 - beta2) - 1 - 2 step beta2^step / (1 - beta2^step), which for the first steps is
  // a small difference of large numbers.
  template <class W>
  BCU_FN W length(W step, Beta<W> beta) {
    W x = -step * beta.log;
    if (x < W(0.5) && beta.gain < W(0.1)) return rest(beta.gain) + step * spread(x);
    return W(2) / beta.gain - W(1) - W(2) * step / math::expm1(x);
  }

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr], most = W(2) / n.beta[1].gain - W(1), now = length(W(n.step), n.beta[1]);
    W unbiased = lr / correction(n, 0);
    W share = (now - W(4)) / (most - W(4)) * ((now - W(2)) / (most - W(2))) * (most / now);
    bool rectified = now > W(5);
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    set_betas(n, s);
    set_decay(n.option != 0, lr, n.value[Args::weight_decay], s);
    s.step_size = T(rectified ? unbiased * math::sqrt(share * correction(n, 1)) : unbiased);
    // A step that is not rectified divides by 1.
    s.root_factor = T(rectified ? W(1) : W(0));
    s.eps = T(rectified ? n.value[Args::eps] : W(1));
    return first_wrong<Args>(n);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = decayed(g * s.grad_factor, x[0], s.decay);
    x[1] = s.beta1 * x[1] + s.gain1 * g;
    x[2] = s.beta2 * x[2] + s.gain2 * g * g;
    T root = s.root_factor == T(0) ? s.eps : math::sqrt(x[2]) + s.eps;  // of whatever is in x[2]
    x[0] = s.kept * x[0] - s.step_size * x[1] / root;
  }
};

// x: the parameter and its momentum.
struct LionRule {
  using Args = LionArgs;
  enum : int { kGradient = 1, kWritten = 2, kScalars = Args::grad_scale + 1, kFlags = 1 };
  enum : int { kBetas = 2, kBeta = Args::beta1, kStep = -1 };
  template <class T>
  using Step = MomentStep<T>;

  template <class W, class T>
  BCU_FN int make(BCU_THREAD const Numbers<W>& n, BCU_THREAD MomentStep<T>& s) {
    W lr = n.value[Args::lr];
    s.grad_factor = T(grad_factor(n, n.value[Args::grad_scale]));
    set_betas(n, s);
    set_decay(true, lr, n.value[Args::weight_decay], s);
    s.step_size = T(lr);
    if (!is_size(lr)) return Args::lr;
    if (!is_beta(n.beta[0].value)) return Args::beta1;
    if (!is_beta(n.beta[1].value)) return Args::beta2;
    if (!is_size(n.value[Args::weight_decay])) return Args::weight_decay;
    return is_scale(n.value[Args::grad_scale]) ? -1 : int(Args::grad_scale);
  }

  template <class T>
  BCU_FN void f(BCU_THREAD const MomentStep<T>& s, T g, BCU_THREAD T* x) {
    g = g * s.grad_factor;
    T toward = s.beta1 * x[1] + s.gain1 * g;
    T sign = toward > T(0) ? T(1) : toward < T(0) ? T(-1) : toward;  // zeros and NaN as they are
    x[0] = s.kept * x[0] - s.step_size * sign;
    x[1] = s.beta2 * x[1] + s.gain2 * g;
  }
};

}  // namespace baracuda::optim
