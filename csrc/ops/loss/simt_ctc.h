// Connectionist temporal classification on GPUs: a block for each sample goes through time, a thread for each label and
// the blank before it; then a block for each row of the gradient.
#pragma once
#include "ops/loss/ctc.h"
#include "simt/element.h"

namespace baracuda::loss {

template <class C>
struct CtcParams {
  BCU_GLOBAL const void* scores;  // [step][sample][class]
  BCU_GLOBAL const void* targets;
  BCU_GLOBAL const void* input_lengths;
  BCU_GLOBAL const void* target_lengths;
  BCU_GLOBAL const void* dloss;
  BCU_GLOBAL void* made;  // the loss, or the gradient
  BCU_GLOBAL C* states;
  BCU_GLOBAL C* losses;
  BCU_GLOBAL int64_t* starts;   // of each sample's labels
  BCU_GLOBAL int64_t* counts;   // of labels
  BCU_GLOBAL int64_t* lengths;  // of its time
  BCU_GLOBAL int64_t* ids;      // labels
  BCU_GLOBAL int64_t* next;     // lists of equal ones
  BCU_GLOBAL simt::Fault* fault;
  int64_t steps, samples, classes, labels, rows, blank;
  int64_t score_step, score_sample, score_class, target_row, target_step, input_step, length_step, dloss_step;
  int64_t made_step, made_sample, made_class;
  int64_t row;
  int32_t element, index_element, tensor;  // the targets' place among the tensors; lengths follow it
  int32_t apart, zero_infinity;            // apart: a row of targets for each sample
};

// One block: how long each sample is and where its labels start. Lengths out of range count as 0.
template <class C>
struct CtcLengths {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = CtcParams<C>;

  BCU_DEVICE int64_t length(BCU_CONSTANT Params& p, BCU_GLOBAL const void* data, int64_t step, int64_t n, int64_t most,
                            int32_t tensor) {
    int64_t v = simt::load_element<int64_t>(data, p.index_element, n * step);
    if (v >= 0 && v <= most) return v;
    simt::raise(p.fault, p.row, tensor, n, v, simt::limit_of(simt::kWantLength, most + 1));
    return 0;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    for (int64_t n = ctx.tid(); n < p.samples; n += ctx.bdim()) {
      p.lengths[n] = length(p, p.input_lengths, p.input_step, n, p.steps, p.tensor + 1);
      if (!p.apart) continue;
      p.starts[n] = n * p.labels;
      p.counts[n] = length(p, p.target_lengths, p.length_step, n, p.labels, p.tensor + 2);
    }
    if (p.apart || ctx.tid() != 0u) return;
    int64_t start = 0;
    for (int64_t n = 0; n < p.samples; ++n) {
      int64_t count = length(p, p.target_lengths, p.length_step, n, p.labels - start, p.tensor + 2);
      p.starts[n] = start, p.counts[n] = count;
      start += count;
    }
    if (start != p.labels)
      simt::raise(p.fault, p.row, p.tensor + 2, -1, start, simt::limit_of(simt::kWantSum, p.labels));
  }
};

template <class C>
BCU_DEVICE C ctc_score(BCU_CONSTANT CtcParams<C>& p, int64_t step, int64_t sample, int64_t id) {
  int64_t at = step * p.score_step + sample * p.score_sample + id * p.score_class;
  return simt::load_element<C>(p.scores, p.element, at);
}

// The states of a sample at each step: of the last two, or, for a gradient, of all; those of the other direction are
// added to these.
template <class C, bool kBack>
struct CtcStates {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = CtcParams<C>;

  BCU_DEVICE void read_labels(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t n, int64_t start,
                              int64_t count) {
    for (int64_t k = ctx.tid(); k < count; k += ctx.bdim()) {
      int64_t at = (p.apart ? n * p.target_row : start * p.target_step) + k * p.target_step;
      int64_t id = simt::load_element<int64_t>(p.targets, p.index_element, at);
      bool good = uint64_t(id) < uint64_t(p.classes);
      if (!good) simt::raise(p.fault, p.row, p.tensor, start + k, id, p.classes);
      p.ids[start + k] = good ? id : int64_t(0);
    }
    simt::barrier_all(ctx);
  }
  BCU_DEVICE void link_labels(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t start,
                              int64_t count) {
    BCU_GLOBAL const int64_t* ids = p.ids + start;
    for (int64_t k = ctx.tid(); k < count; k += ctx.bdim()) {
      int64_t id = ids[k], after = k + 1, before = k - 1;
      while (after < count && ids[after] != id) ++after;
      while (before >= 0 && ids[before] != id) --before;
      p.next[start + k] = list_entry(after, before < 0 && id != p.blank);
    }
  }
  // From the states behind one step to those behind the next; `from` is null at the first.
  BCU_DEVICE void forward(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t n, int64_t step,
                          BCU_GLOBAL const int64_t* ids, int64_t count, BCU_GLOBAL const C* from, BCU_GLOBAL C* to) {
    C blank = ctc_score(p, step, n, p.blank), none = -math::infinity<C>();
    for (int64_t k = ctx.tid(); k <= count; k += ctx.bdim()) {
      C even = from ? from[k] : k == 0 ? C(0) : none, below = from && k > 0 ? from[count + k] : none;
      to[k] = blank + log_add(even, below);
      if (k == count) continue;
      C odd = from ? from[count + 1 + k] : none, skipping = k > 0 && ids[k] != ids[k - 1] ? below : none;
      to[count + 1 + k] = ctc_score(p, step, n, ids[k]) + log_add(odd, even, skipping);
    }
  }
  // What is to come behind the step before this one, from what comes behind this one.
  BCU_DEVICE void backward(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t n, int64_t step,
                           BCU_GLOBAL const int64_t* ids, int64_t count, BCU_GLOBAL const C* from, BCU_GLOBAL C* to) {
    C blank = ctc_score(p, step, n, p.blank), none = -math::infinity<C>();
    for (int64_t k = ctx.tid(); k <= count; k += ctx.bdim()) {
      C even = from[k] + blank, odd = none;
      if (k < count) odd = from[count + 1 + k] + ctc_score(p, step, n, ids[k]);
      to[k] = log_add(even, odd);
      if (k == count) continue;
      C skipping = none;
      if (k + 1 < count && ids[k] != ids[k + 1]) skipping = from[count + 2 + k] + ctc_score(p, step, n, ids[k + 1]);
      to[count + 1 + k] = log_add(odd, from[k + 1] + blank, skipping);
    }
  }
  BCU_DEVICE void add_other_way(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t n, int64_t start,
                                int64_t count, BCU_GLOBAL C* rows) {
    int64_t width = 2 * count + 1, length = p.lengths[n];
    BCU_GLOBAL C* other = rows + p.steps * width;
    for (int64_t k = ctx.tid(); k < width; k += ctx.bdim())
      other[(length & 1) * width + k] = k == count || k == width - 1 ? C(0) : -math::infinity<C>();
    simt::barrier_all(ctx);
    for (int64_t t = length; t-- > 0;) {
      BCU_GLOBAL C* now = other + ((t + 1) & 1) * width;
      for (int64_t k = ctx.tid(); k < width; k += ctx.bdim()) rows[t * width + k] += now[k];
      if (t > 0) backward(ctx, p, n, t, p.ids + start, count, now, other + (t & 1) * width);
      simt::barrier_all(ctx);
    }
  }
  BCU_DEVICE void sample(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t n) {
    int64_t start = p.starts[n], count = p.counts[n], length = p.lengths[n], width = 2 * count + 1;
    BCU_GLOBAL C* rows = p.states + p.rows * (2 * start + n);
    BCU_GLOBAL const C* last = (BCU_GLOBAL const C*)0;
    read_labels(ctx, p, n, start, count);
    if (kBack) link_labels(ctx, p, start, count);
    for (int64_t t = 0; t < length; ++t) {
      BCU_GLOBAL C* to = rows + (kBack ? t : (t & 1)) * width;
      forward(ctx, p, n, t, p.ids + start, count, last, to);
      simt::barrier_all(ctx);
      last = to;
    }
    if (ctx.tid() == 0u) {
      C loss = count == 0 ? C(0) : math::infinity<C>();
      if (length > 0) loss = C(0) - log_add(last[count], count > 0 ? last[width - 1] : -math::infinity<C>());
      if (kBack)
        p.losses[n] = loss;
      else
        simt::store_element<C>(p.made, p.element, n * p.made_sample,
                               p.zero_infinity && loss == math::infinity<C>() ? C(0) : loss);
    }
    simt::barrier_all(ctx);
    if (kBack) add_other_way(ctx, p, n, start, count, rows);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    for (int64_t n = ctx.bid_x(); n < p.samples; n += ctx.gdim_x()) sample(ctx, p, n);
  }
};

// dloss (e^score - what of all paths goes through the class at this step), of a row of classes. Classes of labels are
// written again by whoever begins their lists.
template <class C>
struct CtcSlope {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 64 };
  using Params = CtcParams<C>;

  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t step, int64_t n, int64_t id, C v) {
    simt::store_element<C>(p.made, p.element, step * p.made_step + n * p.made_sample + id * p.made_class, v);
  }
  BCU_DEVICE void paths(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT Params& p, int64_t step,
                        int64_t n, C dloss) {
    int64_t start = p.starts[n], count = p.counts[n];
    C loss = p.losses[n], blank = C(0);
    BCU_GLOBAL const C* row = p.states + p.rows * (2 * start + n) + step * (2 * count + 1);
    BCU_GLOBAL const C* odd = row + count + 1;
    for (int64_t k = ctx.tid(); k <= count; k += ctx.bdim()) {
      blank += math::exp(row[k] + loss);
      if (k == count) continue;
      int64_t id = p.ids[start + k], entry = p.next[start + k];
      if (id == p.blank) blank += math::exp(odd[k] + loss);
      if (!begins_list(entry)) continue;
      C sum = C(0);
      for (int64_t j = k; j < count; j = next_equal(p.next[start + j])) sum += math::exp(odd[j] + loss);
      put(p, step, n, id, dloss * (math::exp(ctc_score(p, step, n, id)) - sum));
    }
    blank = simt::block_reduce<simt::Add>(ctx, blank, C(0), shared);
    if (ctx.tid() == 0u) put(p, step, n, p.blank, dloss * (math::exp(ctc_score(p, step, n, p.blank)) - blank));
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    for (int64_t row = ctx.bid_x(); row < p.steps * p.samples; row += ctx.gdim_x()) {
      int64_t step = row / p.samples, n = row - step * p.samples;
      C loss = p.losses[n], dloss = simt::load_element<C>(p.dloss, p.element, n * p.dloss_step);
      bool inside = step < p.lengths[n], finite = loss < math::infinity<C>();
      if (!finite) dloss = loss - loss;  // NaN
      bool zero = !inside || (!finite && p.zero_infinity && loss == loss);
      for (int64_t id = ctx.tid(); id < p.classes; id += ctx.bdim())
        put(p, step, n, id, zero ? C(0) : dloss * math::exp(ctc_score(p, step, n, id)));
      simt::barrier_all(ctx);
      if (!zero && finite) paths(ctx, (BCU_SHARED C*)shared, p, step, n, dloss);
    }
  }
};

}  // namespace baracuda::loss
