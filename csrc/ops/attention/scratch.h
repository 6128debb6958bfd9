// How attention cuts its problem into blocks and what memory that takes. Block sizes are the same at every CPU level
// and depend on neither threads nor batch, and so do the bits.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/parallel.h"
#include "core/row.h"
#include "ops/attention/args.h"

namespace baracuda::attention {

inline constexpr int64_t kPanel = 32;        // query rows that are computed side by side
inline constexpr int64_t kPanels = 4;        // panels that share a block of keys
inline constexpr int64_t kKeys = 64;         // keys per block
inline constexpr int64_t kDecodeKeys = 256;  // keys per partial result of the decode path
inline constexpr int64_t kDecodeRows = 16;   // the decode path takes up to this many query rows per kv head
inline constexpr int64_t kBackRows = 64;     // query rows per step of the backward
inline constexpr int64_t kBackSplit = 1024;  // query rows per partial sum of dk and dv
inline constexpr int64_t kBackSplits = 8;    // at most so many partial sums

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
inline int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Query rows per kv head: the `group` heads that share it, for every query position.
inline bool is_decode(int64_t rows, int64_t q_len) { return rows <= kDecodeRows || q_len == 1; }
inline int64_t backward_splits(int64_t rows) {
  return std::clamp<int64_t>(blocks_of(rows, kBackSplit), 1, kBackSplits);
}

// Hands out 64-byte aligned arrays; with a null base it only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <class C>
  C* take(int64_t n) {
    C* p = base_ == nullptr ? nullptr : reinterpret_cast<C*>(base_ + used_);
    used_ += round_up(n * static_cast<int64_t>(sizeof(C)), 64);
    return p;
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

// Per thread. Q, P and the result are kept with the queries side by side, so that every step of the softmax is
// vertical.
template <class C>
struct ForwardScratch {
  C *queries, *result, *scores, *keys, *values, *lines;
  C *highest, *total, *change;
  ForwardScratch(Carver& from, int64_t d, int64_t dv) {
    queries = from.take<C>(kPanels * d * kPanel);
    result = from.take<C>(kPanels * dv * kPanel);
    scores = from.take<C>(kKeys * kPanel);
    keys = from.take<C>(kKeys * d);
    values = from.take<C>(kKeys * dv);
    lines = from.take<C>(kPanel * std::max({d, dv, kKeys}));
    highest = from.take<C>(kPanels * kPanel);
    total = from.take<C>(kPanels * kPanel);
    change = from.take<C>(kPanel);
  }
};

// One per kv head and chunk of keys: highest score, sum and unnormalised result of every query row.
inline int64_t partial_size(int64_t rows, int64_t dv) { return round_up(rows * (dv + 2), 16); }

// Per thread, for `rows` query rows of one kv head.
template <class C>
struct DecodeScratch {
  C *queries, *scores, *block, *line, *partial;
  DecodeScratch(Carver& from, int64_t rows, int64_t d, int64_t dv) {
    queries = from.take<C>(rows * d);
    scores = from.take<C>(rows * kDecodeKeys);
    block = from.take<C>(kKeys * std::max(d, dv));
    line = from.take<C>(std::max(dv, kDecodeKeys));
    partial = from.take<C>(partial_size(rows, dv));
  }
};

template <class C>
struct BackwardScratch {
  C *queries, *gradients;         // [d][kBackRows], [dv][kBackRows]
  C *query_rows, *gradient_rows;  // [kBackRows][wide(d)], [kBackRows][wide(dv)]
  C* dqueries;                    // [d][kBackRows]
  C *scores, *dscores;            // [kKeys][kBackRows]
  C *slopes, *factors;            // the same: of capped scores, and of dropped weights
  C *keys, *values, *lines;
  C *lse, *delta, *starts, *limits;
  BackwardScratch(Carver& from, int64_t d, int64_t dv) {
    queries = from.take<C>(d * kBackRows);
    gradients = from.take<C>(dv * kBackRows);
    query_rows = from.take<C>(kBackRows * round_up(d, kPanel));
    gradient_rows = from.take<C>(kBackRows * round_up(dv, kPanel));
    dqueries = from.take<C>(d * kBackRows);
    scores = from.take<C>(kKeys * kBackRows);
    dscores = from.take<C>(kKeys * kBackRows);
    slopes = from.take<C>(kKeys * kBackRows);
    factors = from.take<C>(kKeys * kBackRows);
    keys = from.take<C>(kKeys * d);
    values = from.take<C>(kKeys * dv);
    lines = from.take<C>(kBackRows * std::max({d, dv, kKeys}));
    lse = from.take<C>(kBackRows);
    delta = from.take<C>(kBackRows);
    starts = from.take<C>(kBackRows);
    limits = from.take<C>(kBackRows);
  }
};

template <class C>
int64_t forward_thread_bytes(int64_t d, int64_t dv, int64_t decode_rows) {
  Carver blocked(nullptr), decode(nullptr);
  ForwardScratch<C>{blocked, d, dv};
  DecodeScratch<C>{decode, decode_rows, d, dv};
  return std::max(blocked.used(), decode.used());
}
template <class C>
int64_t backward_thread_bytes(int64_t d, int64_t dv) {
  Carver count(nullptr);
  BackwardScratch<C>{count, d, dv};
  return count.used();
}

// Partial sums of dk and dv of one kv head and split.
inline int64_t gradient_partial_size(int64_t keys, int64_t d, int64_t dv) {
  return round_up(keys * (round_up(d, kPanel) + round_up(dv, kPanel)), 16);
}

// What the sizes of a problem say: of the tensors, or of packed sequences at most.
struct Extent {
  int64_t batch, heads, kv_heads, q_len, k_len, d, dv;
  int64_t group() const { return kv_heads > 0 ? heads / kv_heads : 0; }
  int64_t rows() const { return group() * q_len; }
  Extent one() const { return {1, heads, kv_heads, q_len, k_len, d, dv}; }
};
// Query rows per kv head that the decode path may get.
inline int64_t decode_rows(const Extent& e) { return std::min(e.rows(), std::max(kDecodeRows, e.group())); }

template <class Args>
Extent extent_of(const Problem& p) {
  const int64_t *q = p.params[Args::q].shape, *k = p.params[Args::k].shape;
  return {q[0], q[1], k[1], q[2], k[2], q[3], p.params[Args::v].shape[3]};
}
// q, k and v [total, heads, dim].
template <class Args>
Extent packed_extent(const Problem& p) {
  const int64_t *q = p.params[Args::q].shape, *k = p.params[Args::k].shape, *cu = p.params[Args::cu_seq_q].shape;
  const auto attrs = attributes<PackedAttrs>(p);
  return {cu[0] - 1, q[1], k[1], attrs.max_q, attrs.max_k, q[2], p.params[Args::v].shape[2]};
}
// q [batch, queries, heads, dim] or [total, heads, dim], k and v [pages, size, heads, dim], table [batch, pages].
inline Extent paged_extent(const Problem& p) {
  using Args = PagedArgs;
  const int64_t *q = p.params[Args::q].shape, *k = p.params[Args::k_pages].shape;
  const int64_t *table = p.params[Args::page_table].shape, most = attributes<PagedAttrs>(p).max_q;
  const bool packed = p.params[Args::q].rank == 3;
  const int64_t queries = packed ? (most < 0 ? q[0] : most) : q[1];
  return {table[0], q[packed ? 1 : 2], k[2], queries, table[1] * k[1], k[3], p.params[Args::v_pages].shape[3]};
}

// The CPU's memory: scratch per thread, places of `problems` problems, partial results. chunks: of the keys of all
// problems together.
inline constexpr int64_t kPlaceBytes = 24;
template <class C>
int64_t forward_bytes(const Extent& e, int64_t problems, int64_t chunks) {
  const int64_t partials = e.kv_heads * chunks * partial_size(decode_rows(e), e.dv);
  return max_threads() * forward_thread_bytes<C>(e.d, e.dv, decode_rows(e)) +
         round_up((problems + 1) * kPlaceBytes, 64) + partials * static_cast<int64_t>(sizeof(C));
}
inline int64_t forward_bytes_of(Element e, const Extent& x, int64_t problems, int64_t chunks) {
  return e == Element::F64 ? forward_bytes<double>(x, problems, chunks) : forward_bytes<float>(x, problems, chunks);
}

// Partial sums of the gradients: of the largest problem at least, of several where they fit.
inline constexpr int64_t kGradientBytes = int64_t{64} << 20;
template <class C>
int64_t gradient_room(const Extent& e, int64_t problems) {
  const int64_t size = gradient_partial_size(e.k_len, e.d, e.dv) * static_cast<int64_t>(sizeof(C));
  const int64_t one = e.batch * e.kv_heads * backward_splits(e.rows()) * size;
  return std::max(one, std::min(one * problems, kGradientBytes)) / static_cast<int64_t>(sizeof(C));
}
template <class C>
int64_t backward_bytes(const Extent& e, int64_t problems) {
  return max_threads() * backward_thread_bytes<C>(e.d, e.dv) + round_up((problems + 1) * kPlaceBytes, 64) +
         gradient_room<C>(e, problems) * static_cast<int64_t>(sizeof(C));
}
inline int64_t backward_bytes_of(Element e, const Extent& x, int64_t problems) {
  return e == Element::F64 ? backward_bytes<double>(x, problems) : backward_bytes<float>(x, problems);
}

inline int64_t forward_workspace(const Problem& p) {
  const Extent e = extent_of<ForwardArgs>(p);
  return forward_bytes_of(p.element, e, 1, e.batch * blocks_of(e.k_len, kDecodeKeys));
}
inline int64_t backward_workspace(const Problem& p) {
  return backward_bytes_of(p.element, extent_of<BackwardArgs>(p), 1);
}
// A problem per sequence; of k > 256 keys it has at most k / 128 chunks, of fewer it needs no partial results.
inline int64_t packed_forward_workspace(const Problem& p) {
  const Extent e = packed_extent<PackedArgs>(p);
  return forward_bytes_of(p.element, e, e.batch, blocks_of(2 * p.params[PackedArgs::k].shape[0], kDecodeKeys));
}
inline int64_t packed_backward_workspace(const Problem& p) {
  const Extent e = packed_extent<PackedBackwardArgs>(p);
  return backward_bytes_of(p.element, e.one(), e.batch);
}
inline int64_t paged_forward_workspace(const Problem& p) {
  const Extent e = paged_extent(p);
  return forward_bytes_of(p.element, e, e.batch, e.batch * blocks_of(e.k_len, kDecodeKeys));
}

// GPUs: partial results of a decode's splits (highest score, sum and result of every query row); a number per query
// row for the backward.
inline int64_t simt_backward_bytes(Element element, const Extent& e) {
  return e.batch * e.heads * e.q_len * (element == Element::F64 ? 8 : 4);
}
inline int64_t simt_forward_bytes(Element element, const Extent& e) {
  const int64_t splits = blocks_of(e.k_len, kDecodeKeys);
  return splits > 1 ? e.batch * e.kv_heads * splits * decode_rows(e) * (e.dv + 2) * (element == Element::F64 ? 8 : 4)
                    : 0;
}
inline int64_t simt_forward_workspace(const Problem& p) {
  return simt_forward_bytes(p.element, extent_of<ForwardArgs>(p));
}
inline int64_t simt_packed_forward_workspace(const Problem& p) {
  const Extent e = packed_extent<PackedArgs>(p);
  return is_decode(e.rows(), e.q_len) ? simt_forward_bytes(p.element, e) : 0;
}
inline int64_t simt_paged_forward_workspace(const Problem& p) { return simt_forward_bytes(p.element, paged_extent(p)); }
inline int64_t simt_backward_workspace(const Problem& p) {
  return simt_backward_bytes(p.element, extent_of<BackwardArgs>(p));
}
inline int64_t simt_packed_backward_workspace(const Problem& p) {
  return simt_backward_bytes(p.element, packed_extent<PackedBackwardArgs>(p));
}

}  // namespace baracuda::attention
