// Suppression of boxes on GPUs: a bit for each pair of which the first removes the second, then one block that goes
// through the boxes in their order, 64 at a time.
#pragma once
#include "ops/image/overlap.h"
#include "simt/index.h"

namespace baracuda::image {

struct NmsParams {
  simt::IndexParams order;
  int64_t n, words, order_stride, box_stride, corner_stride, group_stride, keep_stride;
  int64_t threshold;  // bits
  BCU_GLOBAL const void* boxes;
  BCU_GLOBAL const void* groups;  // null: all are of one
  BCU_GLOBAL int64_t* sorted_groups;
  BCU_GLOBAL void* fields;     // x1, y1, x2, y2 and area of all boxes in their order
  BCU_GLOBAL uint64_t* pairs;  // [box][word]
  BCU_GLOBAL uint64_t* gone;   // [word]
  BCU_GLOBAL uint64_t* kept;   // [word]
  BCU_GLOBAL uint8_t* keep;
  int32_t element, group_element;
};

// Boxes in their order; one whose number is out of range is empty.
template <class C>
struct NmsSort {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = NmsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    BCU_GLOBAL C* to = (BCU_GLOBAL C*)p.fields;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.n; i += step) {
      int64_t id;
      bool good = simt::read_index(p.order, i * p.order_stride, i, id);
      C corner[4];
      BCU_UNROLL for (int k = 0; k < 4; ++k) {
        corner[k] = C(0);
        if (good) corner[k] = simt::load_element<C>(p.boxes, p.element, id * p.box_stride + k * p.corner_stride);
        to[k * p.n + i] = corner[k];
      }
      to[4 * p.n + i] = (corner[2] - corner[0]) * (corner[3] - corner[1]);
      int64_t group = 0;
      if (good && p.groups) group = simt::load_element<int64_t>(p.groups, p.group_element, id * p.group_stride);
      p.sorted_groups[i] = group;
      if (i < p.words) p.gone[i] = 0;
    }
  }
};

template <class C>
struct NmsPairs {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = NmsParams;

  BCU_DEVICE Box<C> box(BCU_CONSTANT NmsParams& p, int64_t i) {
    BCU_GLOBAL const C* from = (BCU_GLOBAL const C*)p.fields;
    Box<C> b;
    b.x1 = from[i], b.y1 = from[p.n + i], b.x2 = from[2 * p.n + i], b.y2 = from[3 * p.n + i];
    b.area = from[4 * p.n + i];
    return b;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), all = p.n * p.words;
    C threshold = simt::from_bits<C>(p.threshold);
    for (int64_t at = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); at < all; at += step) {
      int64_t i = at / p.words, first = (at - i * p.words) * 64;
      uint64_t bits = 0;
      Box<C> me = box(p, i);
      int64_t begin = first > i ? first : i + 1, end = first + 64 < p.n ? first + 64 : p.n;
      for (int64_t k = begin; k < end; ++k) {
        bool over = overlap(me, box(p, k)) > threshold && p.sorted_groups[k] == p.sorted_groups[i];
        bits |= over ? uint64_t(1) << uint32_t(k - first) : uint64_t(0);
      }
      p.pairs[at] = bits;
    }
  }
};

// One block.
struct NmsKeep {
  enum : int { kThreads = 1024, kShared = 0 };
  using Params = NmsParams;

  // What of 64 boxes is kept: thread 0 goes through them.
  BCU_DEVICE void settle(BCU_CONSTANT Params& p, int64_t word) {
    uint64_t gone = p.gone[word], kept = 0;
    for (int64_t k = 0; k < 64 && word * 64 + k < p.n; ++k) {
      if ((gone >> uint32_t(k) & 1u) != 0) continue;
      kept |= uint64_t(1) << uint32_t(k);
      gone |= p.pairs[(word * 64 + k) * p.words + word];
    }
    p.kept[word] = kept;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    for (int64_t word = 0; word < p.words; ++word) {
      if (ctx.tid() == 0u) settle(p, word);
      simt::barrier_all(ctx);
      uint64_t kept = p.kept[word];
      for (int64_t other = word + 1 + ctx.tid(); other < p.words; other += ctx.bdim()) {
        uint64_t gone = p.gone[other];
        for (int64_t k = 0; k < 64; ++k)
          if ((kept >> uint32_t(k) & 1u) != 0) gone |= p.pairs[(word * 64 + k) * p.words + other];
        p.gone[other] = gone;
      }
      simt::barrier_all(ctx);
    }
    for (int64_t i = ctx.tid(); i < p.n; i += ctx.bdim())
      p.keep[i * p.keep_stride] = uint8_t(p.kept[i / 64] >> uint32_t(i % 64) & 1u);
  }
};

}  // namespace baracuda::image
