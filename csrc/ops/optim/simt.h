// Optimizer steps on GPUs: one launch updates many tensors, a block one chunk of one of them.
#pragma once
#include "ops/optim/math.h"
#include "simt/space.h"

namespace baracuda::optim {

enum : int { kLr, kBeta1, kBeta2, kEps, kWeightDecay, kStep, kGradScale, kScalars };

// A beta as a number, its distance to 1 and its logarithm, which f32 would lose most of for a beta given in f64.
template <class W>
struct Beta {
  W value, gain, log;
};

// What the scalars of a step are worked out in.
template <class C>
struct WorkOf {
#if BCU_HAS_F64
  using type = double;
#else
  using type = C;
#endif
};

template <class C>
struct StepSource {
  using W = typename WorkOf<C>::type;
  AdamWStep<C> known;             // where all scalars are numbers
  simt::Number scalar[kScalars];  // otherwise
  Beta<W> beta[2];                // of those that are no tensors
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t on_device, maximize;
};

template <class C>
struct MadeStep {
  AdamWStep<C> step;
  int32_t good;  // 0: a scalar is wrong, and nothing is updated
};

// A block's step. Scalars on the device are worked out by one thread of it.
template <class C>
struct StepOf {
  using Source = StepSource<C>;
  using W = typename Source::W;
  enum : int { kShared = int(sizeof(MadeStep<C>) + 3) / 4 };

  BCU_DEVICE Beta<W> beta_of(BCU_CONSTANT Source& p, int which) {
    Beta<W> b;
    if (p.scalar[kBeta1 + which].data) {
      b.value = simt::number<W>(p.scalar[kBeta1 + which]);
      b.gain = W(1) - b.value, b.log = math::log(b.value);
    } else {
      b.value = p.beta[which].value, b.gain = p.beta[which].gain, b.log = p.beta[which].log;
    }
    return b;
  }

  // The first scalar that torch.optim.AdamW would not accept, or -1; the comparisons refuse NaN.
  BCU_DEVICE int wrong(W lr, W beta1, W beta2, W eps, W decay, int64_t step, W grad_scale) {
    if (!(lr >= W(0) && lr - lr == W(0))) return kLr;
    if (!(beta1 >= W(0) && beta1 < W(1))) return kBeta1;
    if (!(beta2 >= W(0) && beta2 < W(1))) return kBeta2;
    if (!(eps >= W(0))) return kEps;
    if (!(decay >= W(0) && decay - decay == W(0))) return kWeightDecay;
    if (step < 1) return kStep;
    return math::fabs(grad_scale) > W(0) ? -1 : kGradScale;
  }

  BCU_DEVICE MadeStep<C> make(BCU_CONSTANT Source& p) {
    Beta<W> one = beta_of(p, 0), two = beta_of(p, 1);
    W lr = simt::number<W>(p.scalar[kLr]), eps = simt::number<W>(p.scalar[kEps]);
    W decay = simt::number<W>(p.scalar[kWeightDecay]), grad_scale = simt::number<W>(p.scalar[kGradScale]);
    int64_t step = simt::number<int64_t>(p.scalar[kStep]);
    int bad = wrong(lr, one.value, two.value, eps, decay, step, grad_scale);
    if (bad >= 0) simt::raise(p.fault, p.row, -1, bad, 0, 0);
    MadeStep<C> s;
    s.good = bad < 0;
    s.step.grad_factor = C((p.maximize ? W(-1) : W(1)) / grad_scale);
    s.step.beta1 = C(one.value), s.step.gain1 = C(one.gain);
    s.step.beta2 = C(two.value), s.step.gain2 = C(two.gain);
    s.step.decay = C(W(1) - lr * decay);
    s.step.step_size = C(-lr / math::expm1(W(step) * one.log));
    s.step.root_factor = C(W(1) / math::sqrt(-math::expm1(W(step) * two.log)));
    s.step.eps = C(eps);
    return s;
  }

  // Field by field: Metal copies no structs out of constant memory.
  BCU_DEVICE MadeStep<C> read(BCU_CONSTANT AdamWStep<C>& from) {
    MadeStep<C> s;
    s.good = 1;
    s.step.grad_factor = from.grad_factor;
    s.step.beta1 = from.beta1, s.step.gain1 = from.gain1;
    s.step.beta2 = from.beta2, s.step.gain2 = from.gain2;
    s.step.decay = from.decay, s.step.step_size = from.step_size;
    s.step.root_factor = from.root_factor, s.step.eps = from.eps;
    return s;
  }

  BCU_DEVICE MadeStep<C> get(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Source& p) {
    if (!p.on_device) return read(p.known);
    BCU_SHARED MadeStep<C>* made = (BCU_SHARED MadeStep<C>*)shared;
    if (ctx.tid() == 0u) *made = make(p);
    simt::barrier(ctx);
    return *made;
  }
};

// Contiguous tensors, parameters and gradients of T.
enum : int { kListTensors = 76 };
template <class T>
struct ListParams {
  using C = simt::ComputeOf<T>;
  StepSource<C> source;
  BCU_GLOBAL const T* g[kListTensors];
  BCU_GLOBAL T* p[kListTensors];
  BCU_GLOBAL C* m[kListTensors];
  BCU_GLOBAL C* v[kListTensors];
  int64_t count[kListTensors];
  uint32_t end[kListTensors];  // the block after the tensor's last
  int32_t tensors;
  int32_t packs;  // all addresses are multiples of 16 bytes
  int32_t chunk;  // elements of a block
};

template <class T>
struct ListStep {
  using Params = ListParams<T>;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  enum : int { kThreads = 256, kShared = StepOf<C>::kShared };
  enum : int { kPack = simt::Pack<T>::kCount, kWide = simt::Pack<C>::kCount, kRound = kThreads * kPack };

  BCU_DEVICE void pack(BCU_CONSTANT Params& p, BCU_THREAD const AdamWStep<C>& step, int tensor, int64_t at) {
    simt::Pack<T> g = *(BCU_GLOBAL const simt::Pack<T>*)(p.g[tensor] + at);
    simt::Pack<T> w = *(BCU_GLOBAL const simt::Pack<T>*)(p.p[tensor] + at);
    BCU_UNROLL for (int i = 0; i < kPack; i += kWide) {
      BCU_GLOBAL simt::Pack<C>* ms = (BCU_GLOBAL simt::Pack<C>*)(p.m[tensor] + at + i);
      BCU_GLOBAL simt::Pack<C>* vs = (BCU_GLOBAL simt::Pack<C>*)(p.v[tensor] + at + i);
      simt::Pack<C> m = *ms, v = *vs;
      BCU_UNROLL for (int j = 0; j < kWide; ++j) {
        C value = S::load(w.v[i + j]);
        adamw(step, S::load(g.v[i + j]), value, m.v[j], v.v[j]);
        w.v[i + j] = S::store(value);
      }
      *ms = m, *vs = v;
    }
    *(BCU_GLOBAL simt::Pack<T>*)(p.p[tensor] + at) = w;
  }
  BCU_DEVICE void one(BCU_CONSTANT Params& p, BCU_THREAD const AdamWStep<C>& step, int tensor, int64_t at) {
    C value = S::load(p.p[tensor][at]), m = p.m[tensor][at], v = p.v[tensor][at];
    adamw(step, S::load(p.g[tensor][at]), value, m, v);
    p.p[tensor][at] = S::store(value), p.m[tensor][at] = m, p.v[tensor][at] = v;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    MadeStep<C> made = StepOf<C>::get(ctx, shared, p.source);
    if (!made.good) return;
    uint32_t block = ctx.bid_x();
    int low = 0, high = p.tensors - 1;  // the first tensor whose end is beyond the block
    while (low < high) {
      int middle = (low + high) / 2;
      if (p.end[middle] > block) high = middle;
      if (p.end[middle] <= block) low = middle + 1;
    }
    int64_t chunk = block - (low > 0 ? p.end[low - 1] : 0u), begin = chunk * p.chunk, end = begin + p.chunk;
    end = end < p.count[low] ? end : p.count[low];
    int64_t packed = p.packs ? begin + (end - begin) / kPack * kPack : begin;
    for (int64_t at = begin + int64_t(ctx.tid()) * kPack; at < packed; at += kRound) pack(p, made.step, low, at);
    for (int64_t at = packed + ctx.tid(); at < end; at += kThreads) one(p, made.step, low, at);
  }
};

// Any strides, one tensor.
template <class C>
struct StridedParams {
  enum : int { kG, kP, kM, kV, kTensors };
  StepSource<C> source;
  simt::Space<4> space;
  BCU_GLOBAL void* data[kTensors];
  int32_t element[kTensors];
};

template <class C>
struct StridedStep {
  using Params = StridedParams<C>;
  enum : int { kThreads = 256, kShared = StepOf<C>::kShared };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    MadeStep<C> made = StepOf<C>::get(ctx, shared, p.source);
    if (!made.good) return;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors];
      C x[Params::kTensors];
      simt::locate(p.space, i, offset);
      BCU_UNROLL for (int k = 0; k < Params::kTensors; ++k) x[k] =
          simt::load_element<C>(p.data[k], p.element[k], offset[k]);
      adamw(made.step, x[Params::kG], x[Params::kP], x[Params::kM], x[Params::kV]);
      BCU_UNROLL for (int k = Params::kP; k < Params::kTensors; ++k)
          simt::store_element(p.data[k], p.element[k], offset[k], x[k]);
    }
  }
};

}  // namespace baracuda::optim
