// Samples of categories on GPUs: a block weighs a row, as the CPU does; then a thread draws a sample, or, without
// replacement, a block the samples of a row one after another.
#pragma once
#include "ops/random/discrete.h"
#include "simt/simt.h"

namespace baracuda::random {

struct SampleParams {
  BCU_GLOBAL const void* p;
  BCU_GLOBAL void* y;
  int64_t rows, categories, samples, groups;
  int64_t p_row, p_step, y_row, y_step;  // strides in elements
  BCU_GLOBAL uint64_t* sums;             // of groups, from the start of their row on
  BCU_GLOBAL uint64_t* totals;           // of rows
  BCU_GLOBAL int32_t* most;              // the largest exponent of each row
  BCU_GLOBAL uint8_t* marks;             // categories that are drawn already; null: they may be drawn again
  simt::Number seed, offset;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;  // in the table
  int32_t p_element, y_element, bits;
  int32_t tensor;  // p, as a fault names it
};

template <class C>
BCU_DEVICE C chance_of(BCU_CONSTANT SampleParams& p, int64_t row, int64_t at) {
  return simt::load_element<C>(p.p, p.p_element, row * p.p_row + at * p.p_step);
}
// What is no weight counts as 0.
template <class C>
BCU_DEVICE uint64_t weight_at(BCU_CONSTANT SampleParams& p, int64_t row, int64_t at, int32_t most) {
  C v = chance_of<C>(p, row, at);
  return is_weight(v) ? weight_of(v, most, p.bits) : uint64_t(0);
}
BCU_DEVICE void put_sample(BCU_CONSTANT SampleParams& p, int64_t row, int64_t j, int64_t category) {
  simt::store_element(p.y, p.y_element, row * p.y_row + j * p.y_step, category);
}

template <class C>
struct WeighRows {
  using Params = SampleParams;
  enum : int { kThreads = 256, kShared = 2 * kThreads };

  BCU_DEVICE int32_t largest(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p,
                             int64_t row) {
    int32_t most = 1;
    for (int64_t i = ctx.tid(); i < p.categories; i += ctx.bdim()) {
      C v = chance_of<C>(p, row, i);
      if (!is_weight(v)) simt::raise_value(p.fault, p.row, p.tensor, row * p.categories + i, v, simt::kNotNegative);
      int32_t e = is_weight(v) ? Parts<C>::exponent(v) : 1;
      most = e > most ? e : most;
    }
    return simt::block_reduce<simt::Larger>(ctx, most, int32_t(1), (BCU_SHARED int32_t*)shared);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint64_t* sums = (BCU_SHARED uint64_t*)shared;
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      int32_t most = largest(ctx, shared, p, row);
      // Each thread adds up neighbouring groups, then knows what lies before them.
      int64_t per = (p.groups + ctx.bdim() - 1) / ctx.bdim(), first = int64_t(ctx.tid()) * per;
      int64_t last = first + per < p.groups ? first + per : p.groups;
      uint64_t own = 0;
      for (int64_t g = first; g < last; ++g) {
        int64_t end = (g + 1) * kGroup < p.categories ? (g + 1) * kGroup : p.categories;
        for (int64_t i = g * kGroup; i < end; ++i) own += weight_at<C>(p, row, i, most);
        p.sums[row * p.groups + g] = own;
      }
      simt::barrier(ctx);
      sums[ctx.tid()] = own;
      simt::barrier(ctx);
      uint64_t before = 0;
      for (uint32_t k = 0; k < ctx.tid(); ++k) before += sums[k];
      for (int64_t g = first; g < last; ++g) p.sums[row * p.groups + g] += before;
      if (ctx.tid() == ctx.bdim() - 1u) {
        p.totals[row] = before + own, p.most[row] = most;
        if (before + own == 0u && p.samples > 0)
          simt::raise_value(p.fault, p.row, p.tensor, row * p.categories, C(0), simt::kPositiveSum);
      }
      if (p.marks)
        for (int64_t i = ctx.tid(); i < p.categories; i += ctx.bdim()) p.marks[row * p.categories + i] = 0;
      simt::barrier(ctx);
    }
  }
};

struct Sample {
  int64_t category;
  uint64_t weight;
};
// Sample `index` of the call, counted over all rows; `total` is not 0.
template <class C>
BCU_DEVICE Sample draw_sample(BCU_CONSTANT SampleParams& p, int64_t row, int64_t index, uint64_t total) {
  uint64_t left = below(simt::number<uint64_t>(p.seed), simt::number<uint64_t>(p.offset), uint64_t(index), total);
  BCU_GLOBAL const uint64_t* sums = p.sums + row * p.groups;
  int64_t low = 0, high = p.groups - 1;  // the first group that goes beyond
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (sums[middle] > left)
      high = middle;
    else
      low = middle + 1;
  }
  if (low > 0) left -= sums[low - 1];
  int64_t end = (low + 1) * kGroup < p.categories ? (low + 1) * kGroup : p.categories;
  Sample found;
  found.category = 0, found.weight = 0;
  int32_t most = p.most[row];
  for (int64_t i = low * kGroup; i < end; ++i) {
    bool drawn = p.marks && p.marks[row * p.categories + i] != 0;
    uint64_t weight = drawn ? uint64_t(0) : weight_at<C>(p, row, i, most);
    if (left < weight) {
      found.category = i, found.weight = weight;
      break;
    }
    left -= weight;
  }
  return found;
}

template <class C>
struct DrawSamples {
  using Params = SampleParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t k = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); k < p.rows * p.samples; k += step) {
      int64_t row = k / p.samples;
      uint64_t total = p.totals[row];
      put_sample(p, row, k % p.samples, total != 0u ? draw_sample<C>(p, row, k, total).category : int64_t(0));
    }
  }
};

// Without replacement: every sample is taken out of what is left.
template <class C>
struct TakeSamples {
  using Params = SampleParams;
  enum : int { kThreads = 256, kShared = 8 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED Sample* found = (BCU_SHARED Sample*)shared;
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      uint64_t total = p.totals[row];
      for (int64_t j = 0; j < p.samples; ++j) {
        if (ctx.tid() == 0u) {
          Sample s;
          s.category = 0, s.weight = 0;
          if (total != 0u) s = draw_sample<C>(p, row, row * p.samples + j, total);
          if (total == 0u && j > 0)
            simt::raise_value(p.fault, p.row, p.tensor, row * p.categories, C(0), simt::kPositiveSum);
          put_sample(p, row, j, s.category);
          if (s.weight != 0u) p.marks[row * p.categories + s.category] = 1;
          *found = s;
        }
        simt::barrier_all(ctx);
        Sample s = *found;
        total -= s.weight;
        for (int64_t g = s.category / kGroup + ctx.tid(); g < p.groups; g += ctx.bdim())
          p.sums[row * p.groups + g] -= s.weight;
        simt::barrier_all(ctx);
      }
    }
  }
};

}  // namespace baracuda::random
