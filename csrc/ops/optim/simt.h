// Optimizer steps and gradient clipping on GPUs: one launch goes over many tensors, a block over one chunk of one of
// them.
#pragma once
#include "ops/optim/adaptive.h"
#include "simt/space.h"

namespace baracuda::optim {

// What the scalars of a step are worked out in.
template <class C>
struct WorkOf {
#if BCU_HAS_F64
  using type = double;
#else
  using type = C;
#endif
};

// Where a block gets its step from.
template <class C, class Step>
struct StepSource {
  using W = typename WorkOf<C>::type;
  Step known;                         // where all scalars are numbers
  simt::Number scalar[kMostNumbers];  // otherwise
  Beta<W> beta[2];                    // of those that are no tensors
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t on_device, maximize, option;
};

// A known step, field by field, because Metal copies no structs out of constant memory.
template <class C>
BCU_DEVICE void read(BCU_CONSTANT MomentStep<C>& from, BCU_THREAD MomentStep<C>& to) {
  to.grad_factor = from.grad_factor;
  to.beta1 = from.beta1, to.gain1 = from.gain1;
  to.beta2 = from.beta2, to.gain2 = from.gain2;
  to.decay = from.decay, to.kept = from.kept;
  to.step_size = from.step_size, to.gradient_size = from.gradient_size;
  to.root_factor = from.root_factor, to.eps = from.eps;
}
template <class C>
BCU_DEVICE void read(BCU_CONSTANT SgdStep<C>& from, BCU_THREAD SgdStep<C>& to) {
  to.grad_factor = from.grad_factor, to.weight_decay = from.weight_decay;
  to.momentum = from.momentum, to.gain = from.gain, to.lr = from.lr;
  to.first = from.first, to.nesterov = from.nesterov;
}
template <class C>
BCU_DEVICE void read(BCU_CONSTANT ScaleStep<C>& from, BCU_THREAD ScaleStep<C>& to) {
  to.factor = from.factor;
}
template <class C>
BCU_DEVICE void read(BCU_CONSTANT BoundStep<C>& from, BCU_THREAD BoundStep<C>& to) {
  to.most = from.most;
}

// The numbers of a call, some of which are on the device; numbers_of() does the same on the host.
template <class Rule, class W, class Source>
BCU_DEVICE void read_numbers(BCU_CONSTANT Source& p, BCU_THREAD Numbers<W>& n) {
  BCU_UNROLL for (int k = 0; k <= Rule::kScalars; ++k) n.value[k] = simt::number<W>(p.scalar[k]);
  BCU_UNROLL for (int k = 0; k < Rule::kBetas; ++k) {
    W beta = n.value[Rule::kBeta + k];
    bool given = p.scalar[Rule::kBeta + k].data == nullptr;
    n.beta[k].value = given ? p.beta[k].value : beta;
    n.beta[k].gain = given ? p.beta[k].gain : W(1) - beta;
    n.beta[k].log = given ? p.beta[k].log : math::log(beta);
  }
  n.step = Rule::kStep < 0 ? 1 : simt::number<int64_t>(p.scalar[Rule::kStep < 0 ? 0 : Rule::kStep]);
  n.maximize = p.maximize, n.option = p.option;
}

// A block's step. Scalars on the device are worked out by one thread of it.
template <class C, class Rule>
struct StepOf {
  using Step = typename Rule::template Step<C>;
  using Source = StepSource<C, Step>;
  struct Made {
    Step step;
    int32_t good;  // 0: a scalar is wrong, and nothing is updated
  };
  enum : int { kShared = int(sizeof(Made) + 3) / 4 };

  BCU_DEVICE Made get(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Source& p) {
    Made made;
    read(p.known, made.step);
    made.good = 1;
    if (!p.on_device) return made;
    BCU_SHARED Made* all = (BCU_SHARED Made*)shared;
    if (ctx.tid() == 0u) {
      Numbers<typename WorkOf<C>::type> numbers;
      read_numbers<Rule>(p, numbers);
      int bad = Rule::make(numbers, made.step);
      if (bad >= 0) simt::raise_number(p.fault, p.row, bad);
      made.good = bad < 0 ? 1 : 0;
      *all = made;
    }
    simt::barrier(ctx);
    return *all;
  }
};

// What a launch's tensors may take of its parameters: what a step's own numbers and sources leave.
enum : int { kStepBytes = 720, kListBytes = simt::kParameterBytes - kStepBytes };
// Chunks of contiguous tensors.
template <int kLists, int kTensors>
struct ListSpace {
  BCU_GLOBAL void* data[kLists][kTensors];
  int64_t count[kTensors];
  uint32_t end[kTensors];  // the chunk after the tensor's last
  int32_t tensors;
  int32_t packs;  // all addresses are multiples of kPackBytes
  int32_t chunk;  // elements
};
// The tensor of a chunk, and which of its elements that holds.
struct ChunkPlace {
  int64_t begin, end;
  int32_t tensor;
};
template <class Space>
BCU_DEVICE ChunkPlace place_of(BCU_CONSTANT Space& s, uint32_t chunk) {
  int low = 0, high = s.tensors - 1;  // the first tensor whose end is beyond the chunk
  while (low < high) {
    int middle = (low + high) / 2;
    if (s.end[middle] > chunk) high = middle;
    if (s.end[middle] <= chunk) low = middle + 1;
  }
  ChunkPlace place;
  place.tensor = low;
  place.begin = int64_t(chunk - (low > 0 ? s.end[low - 1] : 0u)) * s.chunk;
  place.end = place.begin + s.chunk < s.count[low] ? place.begin + s.chunk : s.count[low];
  return place;
}

template <class T, class Rule>
struct ListParams {
  using C = simt::ComputeOf<T>;
  enum : int { kLists = Rule::kGradient + Rule::kWritten, kTensors = kListBytes / (8 * kLists + 12) };
  typename StepOf<C, Rule>::Source source;
  ListSpace<kLists, kTensors> list;
};

template <class T, class Rule>
struct ListStep {
  using Params = ListParams<T, Rule>;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  using Of = StepOf<C, Rule>;
  using Step = typename Of::Step;
  enum : int { kThreads = 256, kBlocks = 1, kShared = Of::kShared };
  enum : int { kGradient = Rule::kGradient, kWritten = Rule::kWritten };
  enum : int { kPack = simt::Pack<T>::kCount, kWide = simt::Pack<C>::kCount, kRound = kThreads * kPack };

  // List k from element `at` of a tensor on: the gradients and parameters, and what is kept for these.
  BCU_DEVICE BCU_GLOBAL T* plain(BCU_CONSTANT Params& p, int k, int tensor, int64_t at) {
    return (BCU_GLOBAL T*)p.list.data[k][tensor] + at;
  }
  BCU_DEVICE BCU_GLOBAL C* kept(BCU_CONSTANT Params& p, int k, int tensor, int64_t at) {
    return (BCU_GLOBAL C*)p.list.data[kGradient + k][tensor] + at;
  }

  BCU_DEVICE void pack(BCU_CONSTANT Params& p, BCU_THREAD const Step& step, int tensor, int64_t at) {
    simt::Pack<T> g = *(BCU_GLOBAL const simt::Pack<T>*)plain(p, 0, tensor, at);
    simt::Pack<T> w = *(BCU_GLOBAL const simt::Pack<T>*)plain(p, kGradient, tensor, at);
    BCU_UNROLL for (int i = 0; i < kPack; i += kWide) {
      simt::Pack<C> wide[kWritten];  // the first is not used
      BCU_UNROLL for (int k = 1; k < kWritten; ++k) wide[k] = *(BCU_GLOBAL simt::Pack<C>*)kept(p, k, tensor, at + i);
      BCU_UNROLL for (int j = 0; j < kWide; ++j) {
        C x[kWritten];
        x[0] = S::load(w.v[i + j]);
        BCU_UNROLL for (int k = 1; k < kWritten; ++k) x[k] = wide[k].v[j];
        Rule::f(step, S::load(g.v[i + j]), x);
        w.v[i + j] = S::store(x[0]);
        BCU_UNROLL for (int k = 1; k < kWritten; ++k) wide[k].v[j] = x[k];
      }
      BCU_UNROLL for (int k = 1; k < kWritten; ++k) * (BCU_GLOBAL simt::Pack<C>*)kept(p, k, tensor, at + i) = wide[k];
    }
    *(BCU_GLOBAL simt::Pack<T>*)plain(p, kGradient, tensor, at) = w;
  }
  BCU_DEVICE void one(BCU_CONSTANT Params& p, BCU_THREAD const Step& step, int tensor, int64_t at) {
    C x[kWritten];
    x[0] = S::load(*plain(p, kGradient, tensor, at));
    BCU_UNROLL for (int k = 1; k < kWritten; ++k) x[k] = *kept(p, k, tensor, at);
    Rule::f(step, S::load(*plain(p, 0, tensor, at)), x);
    *plain(p, kGradient, tensor, at) = S::store(x[0]);
    BCU_UNROLL for (int k = 1; k < kWritten; ++k) * kept(p, k, tensor, at) = x[k];
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    typename Of::Made made = Of::get(ctx, shared, p.source);
    if (!made.good) return;
    ChunkPlace here = place_of(p.list, ctx.bid_x());
    int64_t packed = p.list.packs ? here.begin + (here.end - here.begin) / kPack * kPack : here.begin;
    for (int64_t at = here.begin + int64_t(ctx.tid()) * kPack; at < packed; at += kRound)
      pack(p, made.step, here.tensor, at);
    for (int64_t at = packed + ctx.tid(); at < here.end; at += kThreads) one(p, made.step, here.tensor, at);
  }
};

// Any strides, one tensor of each list.
template <class C, class Rule>
struct StridedParams {
  enum : int { kLists = Rule::kGradient + Rule::kWritten };
  typename StepOf<C, Rule>::Source source;
  simt::Space<kLists> space;
  BCU_GLOBAL void* data[kLists];
  int32_t element[kLists];
};

template <class C, class Rule>
struct StridedStep {
  using Params = StridedParams<C, Rule>;
  using Of = StepOf<C, Rule>;
  enum : int { kThreads = 256, kBlocks = 1, kShared = Of::kShared };
  enum : int { kLists = Params::kLists, kGradient = Rule::kGradient };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    typename Of::Made made = Of::get(ctx, shared, p.source);
    if (!made.good) return;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[kLists];
      C x[kLists];
      simt::locate(p.space, i, offset);
      BCU_UNROLL for (int k = 0; k < kLists; ++k) x[k] = simt::load_element<C>(p.data[k], p.element[k], offset[k]);
      Rule::f(made.step, x[0], x + kGradient);
      BCU_UNROLL for (int k = kGradient; k < kLists; ++k) simt::store_element(p.data[k], p.element[k], offset[k], x[k]);
    }
  }
};

}  // namespace baracuda::optim
