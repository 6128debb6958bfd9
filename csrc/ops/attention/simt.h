// Attention on GPUs: what its kernels share. A block has a tile of query rows against tiles of keys; 16 x 16 threads
// own kR rows by kK keys of a tile each. The heads of a group are rows side by side, as they use the same keys. Slices
// of 16 columns (or 16 lines) of the operands go through shared memory, so that any head size will do.
#pragma once
#include "baracuda/math/math.h"
#include "simt/simt.h"

// Loops that nvcc would unroll into more values than there are registers.
#if defined(__CUDACC__)
#define BCU_ROLLED _Pragma("unroll 1")
#else
#define BCU_ROLLED
#endif

namespace baracuda::attention {

// A [batch, heads, seq, dim] tensor by strides, in elements.
struct Tensor4 {
  BCU_GLOBAL void* data;
  int64_t batch, head, line, column;
};

struct SimtProblem {
  Tensor4 q, k, v, out, dout, dq, dk, dv;
  BCU_GLOBAL void* lse;  // f32, or f64 for f64; null: not wanted
  int64_t lse_stride[3];
  BCU_GLOBAL const void* mask;  // null: none
  int64_t mask_stride[4];
  BCU_GLOBAL const void* alibi;  // slopes of the heads, as lse; null: none
  int64_t alibi_stride[2];
  int64_t softcap;  // the bits of a number of the compute type
  simt::Number scale, kv_len;
  BCU_GLOBAL const void* cu_q;  // packed sequences: where they begin, and the last one's end
  BCU_GLOBAL const void* cu_k;
  int64_t cu_q_stride, cu_k_stride;
  int64_t total_q, total_k;
  BCU_GLOBAL const void* table;  // a paged cache: its table, and how many keys each sequence has
  BCU_GLOBAL const void* lens;
  int64_t table_stride[2], lens_stride;
  int64_t pages;
  simt::Divider page_size;
  BCU_GLOBAL void* scratch;  // partial results of splits, or delta of the backward
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  simt::Divider group;                    // query heads per kv head
  int32_t batch, kv_heads, q_len, k_len;  // of packed sequences the largest lengths
  int32_t cu_element, cu_q_tensor;        // of cu or of the table; cu_k, or lens, is the next tensor
  int32_t dim, dim_v;                     // of queries and keys, and of values
  int32_t rows;                           // query rows per kv head
  int32_t left, right;                    // keys before and after its own that a query uses, -1: all
  int32_t capped, top_left, mask_element, k_tensor;
  int32_t tiles, chunks;  // of rows (or of keys), of columns
  int32_t splits, split_keys;
};

template <class C>
BCU_DEVICE C scale_of(BCU_CONSTANT SimtProblem& p) {
  C scale = simt::number<C>(p.scale);
  return scale == scale ? scale : p.dim > 0 ? C(1) / math::sqrt(C(p.dim)) : C(1);
}

// Four values that are read from shared memory at once.
template <class C>
struct alignas(16) Quad {
  C v[4];
};
template <int kN>
struct Group {
  template <class C>
  BCU_DEVICE void read(BCU_SHARED const C* from, BCU_THREAD C* to) {
    BCU_UNROLL for (int i = 0; i < kN; ++i) to[i] = from[i];
  }
};
template <>
struct Group<4> {
  template <class C>
  BCU_DEVICE void read(BCU_SHARED const C* from, BCU_THREAD C* to) {
    Quad<C> q = *(BCU_SHARED const Quad<C>*)from;
    BCU_UNROLL for (int i = 0; i < 4; ++i) to[i] = q.v[i];
  }
};

// One kv head of a batch entry, or of a sequence of packed ones.
struct Head {
  int32_t batch, kv_head;
  int32_t rows, q_len, k_len;  // query rows, queries and keys
  int32_t q_start, k_start;    // lines before the sequence

  BCU_DEVICE Head of(BCU_CONSTANT SimtProblem& p, int64_t index) {
    Head h;
    h.batch = int32_t(index / p.kv_heads);
    h.kv_head = int32_t(index - int64_t(h.batch) * p.kv_heads);
    h.rows = p.rows, h.q_len = p.q_len, h.k_len = p.k_len, h.q_start = h.k_start = 0;
    return h;
  }
  // Where its lines begin, in a tensor that has the query's heads (`queries`) or the keys'.
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    int64_t head = queries ? int64_t(h.kv_head) * p.group.divisor : int64_t(h.kv_head);
    return h.batch * t.batch + head * t.head + int64_t(queries ? h.q_start : h.k_start) * t.line;
  }
  // Line n from there: a key, or a query row.
  BCU_DEVICE int64_t line(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, bool queries, int32_t n) {
    if (!queries) return n * t.line;
    uint32_t position = simt::quotient(p.group, uint32_t(n));
    return position * t.line + (uint32_t(n) - position * p.group.divisor) * t.head;
  }
  BCU_DEVICE int64_t lse(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, int32_t r) {
    uint32_t position = simt::quotient(p.group, uint32_t(r));
    int64_t head = int64_t(h.kv_head) * p.group.divisor + (uint32_t(r) - position * p.group.divisor);
    return h.batch * p.lse_stride[0] + head * p.lse_stride[1] + (int64_t(position) + h.q_start) * p.lse_stride[2];
  }
  // How much a score falls per key between it and the query's own.
  template <class C>
  BCU_DEVICE C alibi(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, int32_t r) {
    uint32_t position = simt::quotient(p.group, uint32_t(r));
    int64_t head = int64_t(h.kv_head) * p.group.divisor + (uint32_t(r) - position * p.group.divisor);
    return ((BCU_GLOBAL const C*)p.alibi)[h.batch * p.alibi_stride[0] + head * p.alibi_stride[1]];
  }
  // What a mask adds to a score; a boolean one keeps the keys where it is true.
  template <class C>
  BCU_DEVICE C mask(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, int32_t r, int32_t key) {
    uint32_t position = simt::quotient(p.group, uint32_t(r));
    int64_t head = int64_t(h.kv_head) * p.group.divisor + (uint32_t(r) - position * p.group.divisor);
    int64_t at =
        h.batch * p.mask_stride[0] + head * p.mask_stride[1] + position * p.mask_stride[2] + key * p.mask_stride[3];
    C value = simt::load_element<C>(p.mask, p.mask_element, at);
    if (p.mask_element != simt::kBool) return value;
    return value != C(0) ? C(0) : -math::infinity<C>();
  }
};

// A stretch of lines of a tensor.
struct Lines {
  int64_t base;
  int32_t first, count, batch;
  bool queries;
};

// How sequences lie: in a batch of one shape, one behind the other, or in pages.
enum : int { kDense, kPacked, kPaged };
template <int kLayout>
struct Place {
  BCU_DEVICE Head of(BCU_CONSTANT SimtProblem& p, int64_t index) { return Head::of(p, index); }
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    return Head::base(p, h, t, queries);
  }
  BCU_DEVICE int64_t line(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, BCU_THREAD const Lines& l, int32_t n,
                          BCU_SHARED const int32_t*) {
    return Head::line(p, t, l.queries, l.first + n);
  }
};
// Sequences lie one behind the other. One that is not where it should be is empty, and a fault.
template <>
struct Place<kPacked> {
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    return Head::base(p, h, t, queries);
  }
  BCU_DEVICE int64_t line(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, BCU_THREAD const Lines& l, int32_t n,
                          BCU_SHARED const int32_t*) {
    return Head::line(p, t, l.queries, l.first + n);
  }
  // Where a sequence begins; its length, or -1.
  struct Stretch {
    int32_t start, length;
  };
  BCU_DEVICE Stretch stretch(BCU_CONSTANT SimtProblem& p, BCU_GLOBAL const void* cu, int64_t stride, int32_t tensor,
                             int32_t at, int64_t total, int32_t most) {
    int64_t begin = simt::load_element<int64_t>(cu, p.cu_element, at * stride);
    int64_t end = simt::load_element<int64_t>(cu, p.cu_element, (at + 1) * stride);
    int64_t limit = begin + most < total ? begin + most : total;
    if (begin < 0 || begin > total || (at == 0 && begin != 0)) {
      simt::raise(p.fault, p.row, tensor, at, begin, at == 0 ? 1 : total + 1);
    } else if (end < begin || end > limit || (at + 1 == p.batch && end != total)) {
      simt::raise(p.fault, p.row, tensor, at + 1, end, limit + 1);
    } else {
      return {int32_t(begin), int32_t(end - begin)};
    }
    return {0, -1};
  }
  BCU_DEVICE Head of(BCU_CONSTANT SimtProblem& p, int64_t index) {
    Head h = Head::of(p, index);
    Stretch q = stretch(p, p.cu_q, p.cu_q_stride, p.cu_q_tensor, h.batch, p.total_q, p.q_len);
    Stretch k = stretch(p, p.cu_k, p.cu_k_stride, p.cu_q_tensor + 1, h.batch, p.total_k, p.k_len);
    bool good = q.length >= 0 && k.length >= 0;
    h.q_start = q.start, h.k_start = k.start;
    h.q_len = good ? q.length : 0, h.k_len = good ? k.length : 0;
    h.rows = h.q_len * int32_t(p.group.divisor);
    return h;
  }
};
// A key's line is in the page that the table names: a block looks its keys' places up, tile by tile. A page that is not
// there is a fault, and the first one is read.
template <>
struct Place<kPaged> {
  BCU_DEVICE Head of(BCU_CONSTANT SimtProblem& p, int64_t index) {
    Head h = Head::of(p, index);
    int64_t n = simt::load_element<int64_t>(p.lens, p.cu_element, h.batch * p.lens_stride);
    if (n < 0 || n > p.k_len) {
      simt::raise(p.fault, p.row, p.cu_q_tensor + 1, h.batch, n, int64_t(p.k_len) + 1);
      n = 0;
    }
    h.k_len = int32_t(n);
    return h;
  }
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    return queries ? Head::base(p, h, t, true) : h.kv_head * t.head;
  }
  // Page and line of a key of the sequence.
  BCU_DEVICE void find(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, int32_t key, BCU_SHARED int32_t* place) {
    uint32_t slot = simt::quotient(p.page_size, uint32_t(key));
    int64_t page =
        simt::load_element<int64_t>(p.table, p.cu_element, h.batch * p.table_stride[0] + slot * p.table_stride[1]);
    if (uint64_t(page) >= uint64_t(p.pages)) {
      int64_t entries = int64_t(simt::quotient(p.page_size, uint32_t(p.k_len)));
      simt::raise(p.fault, p.row, p.cu_q_tensor, h.batch * entries + slot, page, p.pages);
      page = 0;
    }
    place[0] = int32_t(page), place[1] = key - int32_t(slot * p.page_size.divisor);
  }
  BCU_DEVICE int64_t line(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, BCU_THREAD const Lines& l, int32_t n,
                          BCU_SHARED const int32_t* places) {
    if (l.queries) return Head::line(p, t, true, l.first + n);
    return places[2 * n] * t.batch + places[2 * n + 1] * t.line;
  }
};

// Which keys rows may use: those from a start to below a limit.
struct Keys {
  int32_t valid, diagonal;

  BCU_DEVICE Keys of(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h) {
    int64_t n = simt::number<int64_t>(p.kv_len);
    if (n < -1 || n > h.k_len) simt::raise(p.fault, p.row, p.k_tensor, 0, n, int64_t(h.k_len) + 1);
    Keys k;
    k.valid = n < 0 || n > h.k_len ? h.k_len : int32_t(n);
    k.diagonal = p.top_left ? 0 : k.valid - h.q_len;
    return k;
  }
  // The own key of query row r of a kv head: there may be none of that number.
  BCU_DEVICE int32_t own(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& k, int32_t r) {
    return int32_t(simt::quotient(p.group, uint32_t(r))) + k.diagonal;
  }
  BCU_DEVICE int32_t inside(BCU_THREAD const Keys& k, int32_t n) { return n < 0 ? 0 : n < k.valid ? n : k.valid; }
  BCU_DEVICE int32_t start(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& k, int32_t r) {
    return p.left < 0 ? 0 : inside(k, own(p, k, r) - p.left);
  }
  BCU_DEVICE int32_t limit(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Keys& k, int32_t r) {
    return p.right < 0 ? k.valid : inside(k, own(p, k, r) + p.right + 1);
  }
};

template <int kLayout>
BCU_DEVICE Lines lines_of(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t, bool queries,
                          int32_t first, int32_t count) {
  Lines l;
  l.base = Place<kLayout>::base(p, h, t, queries), l.first = first, l.count = count, l.batch = h.batch;
  l.queries = queries;
  return l;
}

template <class T, int kR, int kK, int kC, int kLayout>
struct Blocks {
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  // Shared memory: slices of two operands (or of one, with all columns), then a tile of weights.
  enum : int {
    kThreads = 256,
    kSlice = 16,
    kRows = 16 * kR,
    kKeys = 16 * kK,
    kColumns = 16 * kC,
    kColumnPitch = kColumns + 4,
    kPairs = kR * kK,
    kRowResults = kR * kC,
    kKeyResults = kK * kC,
    kTwo = kSlice * (kRows + kKeys + 8),
    kOne = kSlice * kColumnPitch,
    kSlices = kTwo > kOne ? kTwo : kOne,
    kWeights = (kRows + 4) * kKeys > (kKeys + 4) * kRows ? (kRows + 4) * kKeys : (kKeys + 4) * kRows,
    kPlaces = kLayout == kPaged ? 2 * kKeys : 0,
    kShared = (kSlices + kWeights) * int(sizeof(C) / 4) + kPlaces
  };

  BCU_DEVICE BCU_SHARED C* weights(BCU_SHARED C* shared) { return shared + kSlices; }
  // Of a tile's keys in pages: page and line of each.
  BCU_DEVICE BCU_SHARED int32_t* places(BCU_SHARED C* shared) {
    return (BCU_SHARED int32_t*)(shared + kSlices + kWeights);
  }

  // Columns [column, column + 16) of 16 * kL lines, as [column][line]; zero beyond the last.
  template <int kL>
  BCU_DEVICE void stage(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, Lines lines, int tid, int32_t column,
                        int32_t columns, C factor, BCU_SHARED C* slice, BCU_SHARED const int32_t* places) {
    int32_t c = column + tid % kSlice;
    BCU_UNROLL for (int l = 0; l < kL; ++l) {
      int n = tid / kSlice + 16 * l;
      C value = C(0);
      if (n < lines.count && c < columns)
        value =
            factor *
            S::load((
                (BCU_GLOBAL const T*)t.data)[lines.base + c * t.column + Place<kLayout>::line(p, t, lines, n, places)]);
      slice[tid % kSlice * (16 * kL + 4) + n] = value;
    }
  }

  // sum[row][key] += x[row] . y[key] over `columns`.
  BCU_DEVICE void dots(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p,
                       BCU_CONSTANT Tensor4& xt, Lines x, BCU_CONSTANT Tensor4& yt, Lines y, int32_t columns, C factor,
                       BCU_THREAD C* sum) {
    BCU_SHARED C* xs = shared;
    BCU_SHARED C* ys = shared + kSlice * (kRows + 4);
    int tid = int(ctx.tid()), tx = tid % 16, ty = tid / 16;
    for (int32_t c0 = 0; c0 < columns; c0 += kSlice) {
      simt::barrier(ctx);
      stage<kR>(p, xt, x, tid, c0, columns, factor, xs, places(shared));
      stage<kK>(p, yt, y, tid, c0, columns, C(1), ys, places(shared));
      simt::barrier(ctx);
      BCU_ROLLED for (int c = 0; c < kSlice; c += 4) {
        BCU_UNROLL for (int u = 0; u < 4; ++u) {
          C a[kR], b[kK];
          Group<kR>::read(xs + (c + u) * (kRows + 4) + ty * kR, a);
          Group<kK>::read(ys + (c + u) * (kKeys + 4) + tx * kK, b);
          BCU_UNROLL for (int i = 0; i < kR; ++i) BCU_UNROLL for (int j = 0; j < kK; ++j) sum[i * kK + j] +=
              a[i] * b[j];
        }
      }
    }
  }

  // Column c of a thread's: in groups of 4, which lie together.
  BCU_DEVICE int spread(int c, int tx) { return c / 4 * 64 + tx * 4 + c % 4; }

  // sum[o][c] += over lines n of w[n][o] z[n][column c]: w in shared memory with `kO` outputs per thread. If `limited`,
  // lines do not reach outputs for which their weight is negative, whatever they hold.
  template <int kO>
  BCU_DEVICE void combine(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p,
                          BCU_CONSTANT Tensor4& t, Lines z, int32_t column, int32_t columns, C factor, bool limited,
                          BCU_THREAD C* sum) {
    BCU_SHARED const C* w = weights(shared);
    int tid = int(ctx.tid()), tx = tid % 16, ty = tid / 16;
    for (int32_t n0 = 0; n0 < z.count; n0 += kSlice) {
      simt::barrier(ctx);
      BCU_UNROLL for (int l = 0; l < kC; ++l) {
        int at = tid + l * kThreads, n = at / kColumns, c = at % kColumns;
        C value = C(0);
        if (n0 + n < z.count && column + c < columns)
          value =
              factor * S::load(((BCU_GLOBAL const T*)t.data)[z.base + (column + c) * t.column +
                                                             Place<kLayout>::line(p, t, z, n0 + n, places(shared))]);
        shared[n * kColumnPitch + c] = value;
      }
      simt::barrier(ctx);
      for (int n = 0; n < kSlice; ++n) {
        C a[kO], b[kC];
        Group<kO>::read(w + (n0 + n) * (16 * kO + 4) + ty * kO, a);
        BCU_UNROLL for (int c = 0; c < kC; c += 4) Group<4>::read(shared + n * kColumnPitch + spread(c, tx), b + c);
        if (!limited) {
          BCU_UNROLL for (int o = 0; o < kO; ++o) BCU_UNROLL for (int c = 0; c < kC; ++c) sum[o * kC + c] +=
              a[o] * b[c];
        } else {
          BCU_UNROLL for (int o = 0; o < kO; ++o) BCU_UNROLL for (int c = 0; c < kC; ++c) sum[o * kC + c] +=
              a[o] < C(0) ? C(0) : a[o] * b[c];
        }
      }
    }
    simt::barrier(ctx);
  }

  // A thread's values into the tile of weights: with keys outside ([key][row]), or with rows outside.
  BCU_DEVICE void keep_by_key(BCU_SHARED C* shared, int ty, int tx, BCU_THREAD const C* values) {
    BCU_SHARED C* w = weights(shared);
    BCU_UNROLL for (int j = 0; j < kK; ++j) BCU_UNROLL for (int i = 0; i < kR; ++i)
        w[(tx * kK + j) * (kRows + 4) + ty * kR + i] = values[i * kK + j];
  }
  BCU_DEVICE void keep_by_row(BCU_SHARED C* shared, int ty, int tx, BCU_THREAD const C* values) {
    BCU_SHARED C* w = weights(shared);
    BCU_UNROLL for (int i = 0; i < kR; ++i) BCU_UNROLL for (int j = 0; j < kK; ++j)
        w[(ty * kR + i) * (kKeys + 4) + tx * kK + j] = values[i * kK + j];
  }

  // ALiBi of a row's scores from key `key` on.
  BCU_DEVICE void fall(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, BCU_THREAD const Keys& keys,
                       int32_t row, int32_t key, BCU_THREAD C* scores) {
    C slope = Head::alibi<C>(p, head, row);
    int32_t place = Keys::own(p, keys, row) - key;
    BCU_UNROLL for (int j = 0; j < kK; ++j) scores[j] -= slope * C(place < j ? j - place : place - j);
  }

  // Lines first + ty * kO + o of an output.
  template <int kO>
  BCU_DEVICE void store(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, Lines lines, int tid, int32_t column,
                        int32_t columns, BCU_THREAD const C* values) {
    int tx = tid % 16, ty = tid / 16;
    BCU_UNROLL for (int o = 0; o < kO; ++o) {
      int n = ty * kO + o;
      if (n >= lines.count) continue;
      int64_t at = lines.base + Head::line(p, t, lines.queries, lines.first + n);
      BCU_UNROLL for (int c = 0; c < kC; ++c) {
        int32_t to = column + spread(c, tx);
        if (to < columns) ((BCU_GLOBAL T*)t.data)[at + to * t.column] = S::store(values[o * kC + c]);
      }
    }
  }
};

// Over the 16 threads that share a row.
template <class Op, class C>
BCU_DEVICE C row_reduce(BCU_THREAD const simt::Context& ctx, C v) {
  BCU_UNROLL for (uint32_t mask = 8; mask > 0; mask >>= 1) v = Op::of(v, simt::shuffle_xor(ctx, v, mask));
  return v;
}

}  // namespace baracuda::attention
