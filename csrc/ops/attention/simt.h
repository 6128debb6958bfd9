// Attention on GPUs: what its kernels share. A block has a tile of query rows against tiles of keys; kSide x kSide
// threads own kR rows by kK keys of a tile each. The heads of a group are rows side by side, as they use the same keys.
// Slices of kSide columns (or kSide lines) of the operands go through shared memory, so that any head size will do.
#pragma once
#include "baracuda/math/math.h"
#include "core/f8.h"
#include "ops/attention/simt_problem.h"
#include "ops/random/discrete.h"

// Loops that nvcc would unroll into more values than there are registers.
#if defined(__CUDACC__)
#define BCU_ROLLED _Pragma("unroll 1")
#else
#define BCU_ROLLED
#endif

namespace baracuda::attention {

enum : int { kSide = 16 };

template <class C>
BCU_DEVICE C scale_of(BCU_CONSTANT SimtProblem& p) {
  C scale = simt::number<C>(p.scale);
  return scale == scale ? scale : p.dim > 0 ? C(1) / math::sqrt(C(p.dim)) : C(1);
}

// What the codes of a kv head are multiplied by, where there are scales.
template <class C>
BCU_DEVICE C unit_of(BCU_GLOBAL const void* scales, int64_t stride, int32_t kv_head) {
  return scales ? C(((BCU_GLOBAL const float*)scales)[kv_head * stride]) : C(1);
}

// Keys and values as they are stored: of the queries' element, or codes, of which the problem says what they are.
template <class T>
struct Cached {
  using C = simt::ComputeOf<T>;
  BCU_DEVICE C load(BCU_CONSTANT SimtProblem&, BCU_GLOBAL const void* data, int64_t at) {
    return simt::Stored<T>::load(((BCU_GLOBAL const T*)data)[at]);
  }
};
template <>
struct Cached<Codes> {
  BCU_DEVICE float load(BCU_CONSTANT SimtProblem& p, BCU_GLOBAL const void* data, int64_t at) {
    uint32_t code = ((BCU_GLOBAL const uint8_t*)data)[at];
    return p.cache_element == simt::kI8 ? float(code > 127u ? int32_t(code) - 256 : int32_t(code))
                                        : F8<3>::decode(code);
  }
};

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
  int32_t valid;               // keys that hold data
  int32_t q_start, k_start;    // lines before the sequence

  BCU_DEVICE Head of(BCU_CONSTANT SimtProblem& p, int64_t index) {
    Head h;
    h.batch = int32_t(index / p.kv_heads);
    h.kv_head = int32_t(index - int64_t(h.batch) * p.kv_heads);
    h.rows = p.rows, h.q_len = p.q_len, h.k_len = h.valid = p.k_len, h.q_start = h.k_start = 0;
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
  // The sink of a query row's head.
  template <class C>
  BCU_DEVICE C sink(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, int32_t r) {
    if (!p.sinks) return -math::infinity<C>();
    uint32_t position = simt::quotient(p.group, uint32_t(r));
    int64_t head = int64_t(h.kv_head) * p.group.divisor + (uint32_t(r) - position * p.group.divisor);
    return ((BCU_GLOBAL const C*)p.sinks)[head * p.sink_stride];
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

// Where the heads and lines of sequences are.
template <int kLayout>
struct Place {
  BCU_DEVICE Head of(BCU_CONSTANT SimtParams<kLayout>& all, int64_t index) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    Head h = Head::of(p, index);
    int64_t n = simt::number<int64_t>(all.sequences.kv_len);
    if (n < -1 || n > h.k_len)
      simt::raise(p.fault, p.row, -1, all.sequences.kv_len_scalar, n,
                  simt::limit_of(simt::kWantLength, int64_t(h.k_len) + 1));
    if (n >= 0 && n <= h.k_len) h.valid = int32_t(n);
    return h;
  }
  BCU_DEVICE void find(BCU_CONSTANT SimtParams<kLayout>&, BCU_THREAD const Head&, int32_t, BCU_SHARED int32_t*) {}
  // Which of kR rows' weights of kK keys are dropped, as dropout.h says: bit i * kK + j. Some may lie past the end.
  template <int kR, int kK>
  BCU_DEVICE uint32_t dropped(BCU_CONSTANT SimtParams<kLayout>& all, BCU_THREAD const Head& h, int32_t row,
                              int32_t key) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_CONSTANT Sequences<kLayout>& s = all.sequences;
    float probability = simt::number<float>(s.dropout_p);
    if (!(probability >= 0.0f && probability <= 1.0f))
      simt::raise_value(p.fault, p.row, -1, s.p_scalar, probability, simt::kUnit);
    uint64_t least = random::heads_of(probability), seed = simt::number<uint64_t>(s.seed);
    uint64_t offset = simt::number<uint64_t>(s.offset);
    int64_t heads = int64_t(p.kv_heads) * p.group.divisor;
    uint32_t bits = 0u;
    BCU_ROLLED for (int i = 0; i < kR; ++i) {
      uint32_t position = simt::quotient(p.group, uint32_t(row + i));
      int64_t head = int64_t(h.kv_head) * p.group.divisor + (uint32_t(row + i) - position * p.group.divisor);
      int64_t at = ((h.batch * heads + head) * p.q_len + position) * p.k_len + key;
      random::Words words = random::block_of(seed, offset + uint64_t(at) / 4);
      BCU_ROLLED for (int j = 0; j < kK; ++j, ++at) {
        if (j > 0 && at % 4 == 0) words = random::block_of(seed, offset + uint64_t(at) / 4);
        if (uint64_t(random::word_of(words, at)) < least) bits |= 1u << (i * kK + j);
      }
    }
    return bits;
  }
  // Multiplies weights, or their gradients, by 0 or by what is kept.
  template <int kPairs, class C>
  BCU_DEVICE void drop(BCU_CONSTANT SimtParams<kLayout>& all, uint32_t bits, BCU_THREAD C* values) {
    float probability = simt::number<float>(all.sequences.dropout_p);
    C kept = probability < 1.0f ? C(1) / (C(1) - simt::number<C>(all.sequences.dropout_p)) : C(0);
    BCU_UNROLL for (int x = 0; x < kPairs; ++x) values[x] *= ((bits >> x) & 1u) != 0u ? C(0) : kept;
  }
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    return Head::base(p, h, t, queries);
  }
  BCU_DEVICE int64_t line(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, BCU_THREAD const Lines& l, int32_t n,
                          BCU_SHARED const int32_t*) {
    return Head::line(p, t, l.queries, l.first + n);
  }
};
// Where a sequence of packed ones begins; its length, or -1.
struct Stretch {
  int32_t start, length;

  // By cu, which is `tensor` and ends with `total`; none is longer than `most`. What is wrong is a fault.
  BCU_DEVICE Stretch of(BCU_CONSTANT SimtProblem& p, BCU_GLOBAL const void* cu, int32_t element, int64_t stride,
                        int32_t tensor, int32_t at, int64_t total, int32_t most) {
    int64_t begin = simt::load_element<int64_t>(cu, element, at * stride);
    int64_t end = simt::load_element<int64_t>(cu, element, (at + 1) * stride);
    int64_t limit = begin + most < total ? begin + most : total;
    if (begin < 0 || begin > total || (at == 0 && begin != 0)) {
      simt::raise(p.fault, p.row, tensor, at, begin, simt::limit_of(simt::kWantPlace, at == 0 ? 1 : total + 1));
    } else if (at + 1 == p.batch && end != total) {
      simt::raise(p.fault, p.row, tensor, at + 1, end, simt::limit_of(simt::kWantEnd, total));
    } else if (end < begin || end > limit) {
      simt::raise(p.fault, p.row, tensor, at + 1, end, simt::limit_of(simt::kWantPlace, limit + 1));
    } else {
      return {int32_t(begin), int32_t(end - begin)};
    }
    return {0, -1};
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
  BCU_DEVICE Head of(BCU_CONSTANT SimtParams<kPacked>& all, int64_t index) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_CONSTANT Sequences<kPacked>& s = all.sequences;
    Head h = Head::of(p, index);
    Stretch q = Stretch::of(p, s.cu_q, s.element, s.cu_q_stride, s.cu_q_tensor, h.batch, s.total_q, p.q_len);
    Stretch k = Stretch::of(p, s.cu_k, s.element, s.cu_k_stride, s.cu_q_tensor + 1, h.batch, s.total_k, p.k_len);
    bool good = q.length >= 0 && k.length >= 0;
    h.q_start = q.start, h.k_start = k.start;
    h.q_len = good ? q.length : 0, h.k_len = h.valid = good ? k.length : 0;
    h.rows = h.q_len * int32_t(p.group.divisor);
    return h;
  }
  BCU_DEVICE void find(BCU_CONSTANT SimtParams<kPacked>&, BCU_THREAD const Head&, int32_t, BCU_SHARED int32_t*) {}
  template <int kR, int kK>
  BCU_DEVICE uint32_t dropped(BCU_CONSTANT SimtParams<kPacked>&, BCU_THREAD const Head&, int32_t, int32_t) {
    return 0u;
  }
  template <int kPairs, class C>
  BCU_DEVICE void drop(BCU_CONSTANT SimtParams<kPacked>&, uint32_t, BCU_THREAD C*) {}
};
// A key's line is in the page that the table names: a block looks its keys' places up, tile by tile. A page that is not
// there is a fault, and the first one is read.
template <>
struct Place<kPaged> {
  BCU_DEVICE Head of(BCU_CONSTANT SimtParams<kPaged>& all, int64_t index) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_CONSTANT Sequences<kPaged>& s = all.sequences;
    Head h = Head::of(p, index);
    int64_t n = simt::load_element<int64_t>(s.lens, s.element, h.batch * s.lens_stride);
    if (n < 0 || n > p.k_len) {
      simt::raise(p.fault, p.row, s.table_tensor + 1, h.batch, n,
                  simt::limit_of(simt::kWantLength, int64_t(p.k_len) + 1));
      n = 0;
    }
    h.k_len = h.valid = int32_t(n);
    if (s.cu_q) {
      Stretch q = Stretch::of(p, s.cu_q, s.element, s.cu_q_stride, s.table_tensor + 2, h.batch, s.total_q, p.q_len);
      h.q_start = q.start, h.q_len = q.length < 0 ? 0 : q.length;
      h.rows = h.q_len * int32_t(p.group.divisor);
    }
    return h;
  }
  BCU_DEVICE int64_t base(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& h, BCU_CONSTANT Tensor4& t,
                          bool queries) {
    return queries ? Head::base(p, h, t, true) : h.kv_head * t.head;
  }
  template <int kR, int kK>
  BCU_DEVICE uint32_t dropped(BCU_CONSTANT SimtParams<kPaged>&, BCU_THREAD const Head&, int32_t, int32_t) {
    return 0u;
  }
  template <int kPairs, class C>
  BCU_DEVICE void drop(BCU_CONSTANT SimtParams<kPaged>&, uint32_t, BCU_THREAD C*) {}
  // Page and line of a key of the sequence.
  BCU_DEVICE void find(BCU_CONSTANT SimtParams<kPaged>& all, BCU_THREAD const Head& h, int32_t key,
                       BCU_SHARED int32_t* place) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_CONSTANT Sequences<kPaged>& s = all.sequences;
    uint32_t slot = simt::quotient(s.page_size, uint32_t(key));
    int64_t page =
        simt::load_element<int64_t>(s.table, s.element, h.batch * s.table_stride[0] + slot * s.table_stride[1]);
    if (uint64_t(page) >= uint64_t(s.pages)) {
      int64_t entries = int64_t(simt::quotient(s.page_size, uint32_t(p.k_len)));
      simt::raise(p.fault, p.row, s.table_tensor, h.batch * entries + slot, page, s.pages);
      page = 0;
    }
    place[0] = int32_t(page), place[1] = key - int32_t(slot * s.page_size.divisor);
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
    Keys k;
    k.valid = h.valid;
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

template <class T, int kR, int kK, int kC, int kLayout, class KV = T>
struct Blocks {
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  // Shared memory: slices of two operands (or of one, with all columns), then a tile of weights.
  enum : int {
    kThreads = 256,
    kSlice = kSide,
    kRows = kSide * kR,
    kKeys = kSide * kK,
    kColumns = kSide * kC,
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

  // Columns [column, column + kSlice) of kSide * kL lines, as [column][line]; zero beyond the last.
  template <int kL, class From>
  BCU_DEVICE void stage(BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, Lines lines, int tid, int32_t column,
                        int32_t columns, C factor, BCU_SHARED C* slice, BCU_SHARED const int32_t* places) {
    int32_t c = column + tid % kSlice;
    BCU_UNROLL for (int l = 0; l < kL; ++l) {
      int n = tid / kSlice + kSide * l;
      C value = C(0);
      if (n < lines.count && c < columns)
        value = factor *
                Cached<From>::load(p, t.data, lines.base + c * t.column + Place<kLayout>::line(p, t, lines, n, places));
      slice[tid % kSlice * (kSide * kL + 4) + n] = value;
    }
  }

  // sum[row][key] += x[row] . y[key] over `columns`.
  BCU_DEVICE void dots(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p,
                       BCU_CONSTANT Tensor4& xt, Lines x, BCU_CONSTANT Tensor4& yt, Lines y, int32_t columns, C factor,
                       BCU_THREAD C* sum) {
    BCU_SHARED C* xs = shared;
    BCU_SHARED C* ys = shared + kSlice * (kRows + 4);
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    for (int32_t c0 = 0; c0 < columns; c0 += kSlice) {
      simt::barrier(ctx);
      stage<kR, T>(p, xt, x, tid, c0, columns, factor, xs, places(shared));
      stage<kK, KV>(p, yt, y, tid, c0, columns, C(1), ys, places(shared));
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
  BCU_DEVICE int spread(int c, int tx) { return c / 4 * (4 * kSide) + tx * 4 + c % 4; }

  // Lines [n0, n0 + kSlice) as [line][column]; zero beyond the last.
  BCU_DEVICE void stage_lines(BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p, BCU_CONSTANT Tensor4& t, Lines z,
                              int tid, int32_t n0, int32_t column, int32_t columns, C factor) {
    BCU_UNROLL for (int l = 0; l < kC; ++l) {
      int at = tid + l * kThreads, n = at / kColumns, c = at % kColumns;
      C value = C(0);
      if (n0 + n < z.count && column + c < columns)
        value = factor * Cached<KV>::load(
                             p, t.data,
                             z.base + (column + c) * t.column + Place<kLayout>::line(p, t, z, n0 + n, places(shared)));
      shared[n * kColumnPitch + c] = value;
    }
  }

  // sum[o][c] += over lines n of w[n][o] z[n][column c]: w in shared memory with `kO` outputs per thread. If `limited`,
  // lines do not reach outputs for which their weight is negative, whatever they hold.
  template <int kO>
  BCU_DEVICE void combine(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p,
                          BCU_CONSTANT Tensor4& t, Lines z, int32_t column, int32_t columns, C factor, bool limited,
                          BCU_THREAD C* sum) {
    BCU_SHARED const C* w = weights(shared);
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    for (int32_t n0 = 0; n0 < z.count; n0 += kSlice) {
      simt::barrier(ctx);
      stage_lines(shared, p, t, z, tid, n0, column, columns, factor);
      simt::barrier(ctx);
      for (int n = 0; n < kSlice; ++n) {
        C a[kO], b[kC];
        Group<kO>::read(w + (n0 + n) * (kSide * kO + 4) + ty * kO, a);
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
    int tx = tid % kSide, ty = tid / kSide;
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

// Over the threads that share a row.
template <class Op, class C>
BCU_DEVICE C row_reduce(BCU_THREAD const simt::Context& ctx, C v) {
  BCU_UNROLL for (uint32_t mask = kSide / 2; mask > 0; mask >>= 1) v = Op::of(v, simt::shuffle_xor(ctx, v, mask));
  return v;
}

}  // namespace baracuda::attention
