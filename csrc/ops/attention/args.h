// What the calls of attention are given.
#pragma once
#include "core/args.h"
#include "core/attrs.h"

namespace baracuda::attention {

// causal: keys after the query's own are not used. alignment: where the diagonal of own keys ends, 0 = at the last
// query and the last valid key (bottom right), 1 = it starts at the first query and the first key (top left). window:
// keys before and after the own one, -1 = all. softcap: 0 = none. dropout: whether weights are dropped.
BCU_ATTRS(AttentionAttrs, (i64, causal), (i64, causal_alignment), (i64, window_left), (i64, window_right),
          (f64, softcap), (i64, dropout))
// max_q: the largest number of queries of a sequence, where they are packed; -1 = all of them.
BCU_ATTRS(PagedAttrs, (i64, causal), (i64, causal_alignment), (i64, window_left), (i64, window_right), (f64, softcap),
          (i64, max_q))

// Of packed sequences; most: the largest lengths.
BCU_ATTRS(PackedAttrs, (i64, causal), (i64, causal_alignment), (i64, window_left), (i64, window_right), (f64, softcap),
          (i64, max_q), (i64, max_k))

BCU_ARGS(ForwardArgs, (q, k, v, mask, alibi, sinks, out, lse), (scale, kv_len, dropout_p, seed, offset))
BCU_ARGS(BackwardArgs, (dout, q, k, v, mask, alibi, sinks, out, lse, dq, dk, dv, dsinks),
         (scale, kv_len, dropout_p, seed, offset))
BCU_ARGS(PackedArgs, (q, k, v, cu_seq_q, cu_seq_k, alibi, sinks, out, lse), (scale))
BCU_ARGS(PackedBackwardArgs, (dout, q, k, v, cu_seq_q, cu_seq_k, alibi, sinks, out, lse, dq, dk, dv, dsinks), (scale))
BCU_ARGS(PagedArgs, (q, k_pages, v_pages, page_table, kv_len, cu_seq_q, alibi, sinks, k_scale, v_scale, out, lse),
         (scale))
BCU_ARGS(CacheAppendArgs, (x, positions, cache), (position))
BCU_ARGS(PagedAppendArgs, (k, v, page_table, kv_len, cu_seq, k_scale, v_scale, k_pages, v_pages), ())
BCU_ARGS(SlotAppendArgs, (k, v, slots, k_scale, v_scale, k_pages, v_pages), ())
BCU_ARGS(MergeArgs, (out_a, lse_a, out_b, lse_b, out, lse), ())
BCU_ARGS(MergeBackwardArgs, (dout, dlse, out_a, lse_a, out_b, lse_b, dout_a, dlse_a, dout_b, dlse_b), ())

}  // namespace baracuda::attention
