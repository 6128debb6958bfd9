// The SKU table of attention and its key-value cache.
#pragma once
#include "core/row.h"
#include "ops/attention/scratch.h"

namespace baracuda::attention {

// causal: keys after the query are not used. alignment: where the causal diagonal ends, 0 = at the last query and the
// last valid key (bottom right), 1 = it starts at the first query and the first key (top left).
BCU_ATTRS(AttentionAttrs, (i64, causal), (i64, causal_alignment))

struct Forward {};
struct Backward {};
struct CacheAppend {};

inline constexpr auto kTable = table(row<Forward>("scaled_dot_product_attention")
                                         .name("blocked")
                                         .takes(kFloats)
                                         .attrs_of<AttentionAttrs>()
                                         .sum(2)
                                         .scratch(forward_workspace),
                                     row<Backward>("scaled_dot_product_attention")
                                         .backward()
                                         .name("blocked")
                                         .takes(kFloats)
                                         .attrs_of<AttentionAttrs>()
                                         .sum(2)
                                         .scratch(backward_workspace),
                                     row<CacheAppend>("kv_cache_append").name("copy").takes(kFloats).exact());

inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::attention
