// Attention forward on GPUs, with the softmax taken on the go; and what decoding adds: keys cut into splits whose
// partial results are merged in order.
#pragma once
#include "ops/attention/simt.h"

namespace baracuda::attention {

// The larger; NaN is passed over, as it shows in the sum.
struct Higher {
  template <class C>
  BCU_DEVICE C of(C a, C b) {
    return b > a ? b : a;
  }
};

// Highest score and sum of a split's row, then its result, not yet divided.
template <class C>
struct Partial {
  BCU_DEVICE BCU_GLOBAL C* at(BCU_CONSTANT SimtProblem& p, int64_t head, int64_t split, int64_t row) {
    return (BCU_GLOBAL C*)p.scratch + ((head * p.splits + split) * p.rows + row) * (p.dim_v + 2);
  }
};

template <class T, int kR, int kK, int kC, int kLayout, class KV = T>
struct ForwardTiles {
  using Params = SimtParams<kLayout>;
  using B = Blocks<T, kR, kK, kC, kLayout, KV>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 256, kShared = B::kShared };

  // What a thread knows of its rows.
  struct Rows {
    C highest[kR], total[kR];
  };

  // Scores become exp(score - highest so far); sums and kN results of each row are brought to the new highest score.
  template <int kN>
  BCU_DEVICE void softmax(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& keys,
                          BCU_THREAD Rows& rows, int32_t row, int32_t key, BCU_THREAD C* scores, BCU_THREAD C* result) {
    C none = -math::infinity<C>();
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int32_t inside = Keys::limit(p, keys, row + i) - key;
      C top = rows.highest[i], sum = C(0);
      BCU_UNROLL for (int j = 0; j < kK; ++j) {
        C s = j < inside ? scores[i * kK + j] : none;
        scores[i * kK + j] = s;
        top = s > top ? s : top;
      }
      top = row_reduce<Higher>(ctx, top);
      C base = top == none ? C(0) : top;
      BCU_UNROLL for (int j = 0; j < kK; ++j) {
        C weight = math::exp(scores[i * kK + j] - base);
        scores[i * kK + j] = weight;
        sum += weight;
      }
      sum = row_reduce<simt::Add>(ctx, sum);
      C change = top == rows.highest[i] ? C(1) : math::exp(rows.highest[i] - base);
      rows.total[i] = rows.total[i] * change + sum;
      rows.highest[i] = top;
      BCU_UNROLL for (int c = 0; c < kN; ++c) result[i * kN + c] *= change;
    }
  }

  // Softcap and ALiBi.
  BCU_DEVICE void shape(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, BCU_THREAD const Keys& keys,
                        int32_t row, int32_t key, BCU_THREAD C* scores) {
    if (p.capped) {
      C cap = simt::from_bits<C>(p.softcap);
      BCU_UNROLL for (int x = 0; x < B::kPairs; ++x) scores[x] = cap * math::tanh(scores[x] / cap);
    }
    if (!p.alibi) return;
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      if (row + i < head.rows) B::fall(p, head, keys, row + i, key, scores + i * kK);
    }
  }
  // What lies before a window becomes `outside`.
  BCU_DEVICE void begin_window(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& keys, int32_t row, int32_t key,
                               C outside, BCU_THREAD C* values) {
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int32_t start = Keys::start(p, keys, row + i) - key;
      BCU_UNROLL for (int j = 0; j < kK; ++j) values[i * kK + j] = j < start ? outside : values[i * kK + j];
    }
  }

  // Weights of keys that a row may not use become -1.
  BCU_DEVICE void mark(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& keys, int32_t row, int32_t key,
                       BCU_THREAD C* weights) {
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int32_t inside = Keys::limit(p, keys, row + i) - key;
      BCU_UNROLL for (int j = 0; j < kK; ++j) weights[i * kK + j] = j < inside ? weights[i * kK + j] : C(-1);
    }
    if (p.left >= 0) begin_window(p, keys, row, key, C(-1), weights);
  }

  BCU_DEVICE void add_mask(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, BCU_THREAD const Keys& keys,
                           int32_t row, int32_t key, BCU_THREAD C* scores) {
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int32_t inside = row + i < head.rows ? Keys::limit(p, keys, row + i) - key : 0;
      for (int j = 0; j < kK; ++j)
        if (j < inside) scores[i * kK + j] += Head::mask<C>(p, head, row + i, key + j);
    }
  }

  BCU_DEVICE void keep_lse(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, Lines lines, int tid,
                           int32_t column, BCU_THREAD const Rows& rows) {
    if (!p.lse || tid % kSide != 0 || column != 0) return;
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int n = tid / kSide * kR + i;
      if (n < lines.count)
        ((BCU_GLOBAL C*)p.lse)[Head::lse(p, head, lines.first + n)] =
            rows.total[i] == C(0) ? -math::infinity<C>() : rows.highest[i] + math::log(rows.total[i]);
    }
  }

  BCU_DEVICE void finish(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, Lines lines, int tid, int32_t column,
                         BCU_THREAD const Rows& rows, BCU_THREAD C* result) {
    keep_lse(p, head, lines, tid, column, rows);
    C unit = unit_of<C>(p.v_scale, p.v_scale_stride, head.kv_head);
    BCU_UNROLL for (int i = 0; i < kR; ++i) BCU_UNROLL for (int c = 0; c < kC; ++c) result[i * kC + c] =
        rows.total[i] == C(0) ? C(0) : result[i * kC + c] / rows.total[i] * unit;
    B::template store<kR>(p, p.out, lines, tid, column, p.dim_v, result);
  }

  BCU_DEVICE void keep(BCU_CONSTANT SimtProblem& p, int64_t head, int64_t split, Lines lines, int tid, int32_t column,
                       BCU_THREAD const Rows& rows, BCU_THREAD const C* result) {
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int n = tid / kSide * kR + i;
      if (n >= lines.count) continue;
      BCU_GLOBAL C* to = Partial<C>::at(p, head, split, lines.first + n);
      if (tid % kSide == 0 && column == 0) to[0] = rows.highest[i], to[1] = rows.total[i];
      BCU_UNROLL for (int c = 0; c < kC; ++c) {
        int32_t at = column + B::spread(c, tid % kSide);
        if (at < p.dim_v) to[2 + at] = result[i * kC + c];
      }
    }
  }

  // What a block computes: `count` rows from `first` on, of keys [begin, end), and columns of the result.
  struct Work {
    Head head;
    Keys keys;
    int64_t head_index;
    int32_t column, split, first, count;
    int32_t lowest, begin, end;  // all rows use keys below `lowest`
  };
  BCU_DEVICE Work work_of(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    Work w;
    // Heads side by side, the last rows first: with a causal mask they take longest.
    int64_t heads = int64_t(p.batch) * p.kv_heads, rest = int64_t(ctx.bid_x()) / heads;
    w.head_index = int64_t(ctx.bid_x()) - rest * heads;
    w.head = Place<kLayout>::of(all, w.head_index);
    w.column = int32_t(rest % p.chunks) * B::kColumns, w.split = int32_t(rest / p.chunks % p.splits);
    w.first = (p.tiles - 1 - int32_t(rest / p.chunks / p.splits)) * B::kRows;
    int32_t left = w.head.rows - w.first;
    w.count = left < B::kRows ? left : int32_t(B::kRows);
    if (kLayout == kPacked && left <= 0) return w;
    w.keys = Keys::of(p, w.head);
    // Of pages, a block may have no rows: to return for that costs registers that there are not.
    int32_t top = kLayout == kPaged && left <= 0 ? 0 : w.first;
    int32_t bottom = kLayout == kPaged && left <= 0 ? 0 : w.first + w.count - 1;
    w.lowest = Keys::limit(p, w.keys, top);
    int32_t last = Keys::limit(p, w.keys, bottom);
    w.begin = p.splits > 1 ? w.split * p.split_keys : 0;
    w.end = p.splits > 1 && w.begin + p.split_keys < last ? w.begin + p.split_keys : last;
    // Tiles of keys lie the same for all rows. Pages before a window may be gone: the first key in it stands for
    // theirs.
    int32_t start = Keys::start(p, w.keys, top), skipped = start / B::kKeys * B::kKeys;
    w.begin = w.begin < skipped ? skipped : w.begin;
    if (w.end <= start || (kLayout == kPaged && left <= 0)) w.end = w.begin;
    return w;
  }

  // Sinks are there from the start; of splits, those who merge them add them.
  BCU_DEVICE void start_rows(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Work& w, int tid, BCU_THREAD Rows& rows) {
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      C none = -math::infinity<C>();
      C sink = p.splits > 1 ? none : Head::sink<C>(p, w.head, w.first + tid / kSide * kR + i);
      rows.highest[i] = sink, rows.total[i] = sink == none ? C(0) : C(1);
    }
  }

  // Scores of n keys from `key` on become weights; whether some rows may not use some of them, whose weights are -1.
  template <int kN>
  BCU_DEVICE bool weigh(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& all, BCU_THREAD const Work& w,
                        BCU_THREAD Rows& rows, int32_t key, int32_t n, uint32_t dropped, BCU_THREAD C* scores,
                        BCU_THREAD C* result) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    int tid = int(ctx.tid());
    int32_t row = w.first + tid / kSide * kR, own = key + tid % kSide * kK;
    if (p.capped || p.alibi) shape(p, w.head, w.keys, row, own, scores);
    if (p.mask) add_mask(p, w.head, w.keys, row, own, scores);
    if (p.left >= 0) begin_window(p, w.keys, row, own, -math::infinity<C>(), scores);
    softmax<kN>(ctx, p, w.keys, rows, row, own, scores, result);
    if (drops(all)) Place<kLayout>::template drop<B::kPairs>(all, dropped, scores);
    bool limited = w.lowest < key + n || (p.left >= 0 && Keys::start(p, w.keys, w.first + w.count - 1) > key);
    if (limited) mark(p, w.keys, row, own, scores);
    return limited;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    Work w = work_of(ctx, all);
    if (kLayout == kPacked && w.count <= 0) return;
    C scale = scale_of<C>(p) * unit_of<C>(p.k_scale, p.k_scale_stride, w.head.kv_head), result[B::kRowResults];
    Rows rows;
    start_rows(p, w, tid, rows);
    BCU_UNROLL for (int x = 0; x < B::kRowResults; ++x) result[x] = C(0);
    Lines queries = lines_of<kLayout>(p, w.head, p.q, true, w.first, w.count);
    for (int32_t key = w.begin; key < w.end; key += B::kKeys) {
      int32_t n = w.end - key < B::kKeys ? w.end - key : int32_t(B::kKeys);
      // Before there are scores, which leave no registers for it.
      uint32_t dropped = 0u;
      if (drops(all)) dropped = Place<kLayout>::template dropped<kR, kK>(all, w.head, w.first + ty * kR, key + tx * kK);
      C scores[B::kPairs];
      BCU_UNROLL for (int x = 0; x < B::kPairs; ++x) scores[x] = C(0);
      if (kLayout == kPaged && tid < n)
        Place<kLayout>::find(all, w.head, Higher::of(key + tid, Keys::start(p, w.keys, w.first)),
                             B::places(shared) + 2 * tid);
      B::dots(ctx, shared, p, p.q, queries, p.k, lines_of<kLayout>(p, w.head, p.k, false, key, n), p.dim, scale,
              scores);
      bool limited = weigh<kC>(ctx, all, w, rows, key, n, dropped, scores, result);
      B::keep_by_key(shared, ty, tx, scores);
      B::template combine<kR>(ctx, shared, p, p.v, lines_of<kLayout>(p, w.head, p.v, false, key, n), w.column, p.dim_v,
                              C(1), limited, result);
    }
    Lines out = lines_of<kLayout>(p, w.head, p.out, true, w.first, w.count);
    if (p.splits > 1) {
      keep(p, w.head_index, w.split, out, tid, w.column, rows, result);
    } else {
      finish(p, w.head, out, tid, w.column, rows, result);
    }
  }
};

template <class T, int kR, int kK, int kC>
using ForwardTile = ForwardTiles<T, kR, kK, kC, kDense>;
template <class T, int kR, int kK, int kC>
using PackedForwardTile = ForwardTiles<T, kR, kK, kC, kPacked>;
template <class T, int kR, int kK, int kC>
using PagedForwardTile = ForwardTiles<T, kR, kK, kC, kPaged>;
template <class T, int kR, int kK, int kC>
using CodedForwardTile = ForwardTiles<T, kR, kK, kC, kPaged, Codes>;

// Partial results in the order of their keys: sum_s exp(highest_s - highest) * part_s. A block per query row.
template <class T, int kLayout>
struct MergeSplits {
  using Params = SimtParams<kLayout>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 128, kShared = 0, kBlocks = 8 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    int64_t head_index = int64_t(ctx.bid_x()) / p.rows;
    int32_t row = int32_t(int64_t(ctx.bid_x()) - head_index * p.rows);
    Head head = Place<kLayout>::of(all, head_index);
    if (row >= head.rows) return;
    C none = -math::infinity<C>(), sink = Head::sink<C>(p, head, row), top = sink;
    for (int32_t s = 0; s < p.splits; ++s) top = Higher::of(top, Partial<C>::at(p, head_index, s, row)[0]);
    C base = top == none ? C(0) : top;
    C total = sink == none ? C(0) : sink == top ? C(1) : math::exp(sink - base);
    for (int32_t s = 0; s < p.splits; ++s) {
      BCU_GLOBAL const C* part = Partial<C>::at(p, head_index, s, row);
      total += math::exp(part[0] - base) * part[1];
    }
    bool empty = total == C(0);
    C unit = unit_of<C>(p.v_scale, p.v_scale_stride, head.kv_head);
    int64_t to = Head::base(p, head, p.out, true) + Head::line(p, p.out, true, row);
    for (int32_t c = int32_t(ctx.tid()); c < p.dim_v; c += int32_t(ctx.bdim())) {
      C sum = C(0);
      for (int32_t s = 0; s < p.splits; ++s) {
        BCU_GLOBAL const C* part = Partial<C>::at(p, head_index, s, row);
        sum += math::exp(part[0] - base) * part[2 + c];
      }
      ((BCU_GLOBAL T*)p.out.data)[to + c * p.out.column] = simt::Stored<T>::store(empty ? C(0) : sum / total * unit);
    }
    if (p.lse && ctx.tid() == 0u)
      ((BCU_GLOBAL C*)p.lse)[Head::lse(p, head, row)] = empty ? none : top + math::log(total);
  }
};

}  // namespace baracuda::attention
