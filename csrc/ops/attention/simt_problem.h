// What a call of attention hands to its kernels on GPUs.
#pragma once
#include "simt/simt.h"

namespace baracuda::attention {

// A [batch, heads, seq, dim] tensor by strides, in elements.
struct Tensor4 {
  BCU_GLOBAL void* data;
  int64_t batch, head, line, column;
};

// What all calls have in common.
struct SimtProblem {
  Tensor4 q, k, v, out, dout, dq, dk, dv;
  BCU_GLOBAL void* lse;  // f32, or f64 for f64; null: not wanted
  int64_t lse_stride[3];
  BCU_GLOBAL const void* mask;  // null: none
  int64_t mask_stride[4];
  BCU_GLOBAL const void* alibi;  // slopes of the heads, as lse; null: none
  int64_t alibi_stride[2];
  BCU_GLOBAL const void* sinks;  // a logit per head, as lse; null: none
  BCU_GLOBAL void* dsinks;
  int64_t sink_stride, dsink_stride;
  BCU_GLOBAL const void* k_scale;  // f32 per kv head, of codes; null: keys and values are no codes
  BCU_GLOBAL const void* v_scale;
  int64_t k_scale_stride, v_scale_stride;
  int64_t softcap;  // the bits of a number of the compute type
  simt::Number scale;
  BCU_GLOBAL void* scratch;  // partial results of splits, or delta of the backward
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  simt::Divider group;                    // query heads per kv head
  int32_t batch, kv_heads, q_len, k_len;  // of packed sequences the largest lengths
  int32_t dim, dim_v;                     // of queries and keys, and of values
  int32_t rows;                           // query rows per kv head
  int32_t left, right;                    // keys before and after its own that a query uses, -1: all
  int32_t capped, top_left, mask_element, cache_element;
  int32_t tiles, chunks;  // of rows (or of keys), of columns
  int32_t splits, split_keys;
};

// Stands for the type of stored codes, f8e4m3 or i8.
struct Codes {};

// How sequences lie: in a batch of one shape, one behind the other, or in pages; and what is known of that.
enum : int { kDense, kPacked, kPaged };
template <int kLayout>
struct Sequences {
  simt::Number kv_len;  // keys that hold data, -1: all
  int32_t kv_len_scalar;
  int32_t drops;  // whether weights are dropped, and by which numbers
  simt::Number dropout_p, seed, offset;
  int32_t p_scalar;
};
template <>
struct Sequences<kPacked> {
  BCU_GLOBAL const void* cu_q;  // where they begin, and the last one's end
  BCU_GLOBAL const void* cu_k;
  int64_t cu_q_stride, cu_k_stride;
  int64_t total_q, total_k;
  int32_t element, cu_q_tensor;  // cu_k is the next tensor
};
template <>
struct Sequences<kPaged> {
  BCU_GLOBAL const void* table;
  BCU_GLOBAL const void* lens;  // how many keys each sequence has
  BCU_GLOBAL const void* cu_q;  // of packed queries: where a sequence's begin, and the last one's end; null: not packed
  int64_t table_stride[2], lens_stride, cu_q_stride;
  int64_t pages, total_q;
  simt::Divider page_size;
  int32_t element, table_tensor;  // lens and cu_q are the next tensors
};
template <int kLayout>
struct SimtParams {
  SimtProblem problem;
  Sequences<kLayout> sequences;
};
// Whether weights are dropped.
BCU_DEVICE bool drops(BCU_CONSTANT SimtParams<kDense>& all) { return all.sequences.drops != 0; }
template <int kLayout>
BCU_DEVICE bool drops(BCU_CONSTANT SimtParams<kLayout>&) {
  return false;
}

}  // namespace baracuda::attention
