// The SKU table of attention and its key-value cache.
#pragma once
#include "core/row.h"
#include "ops/attention/scratch.h"

namespace baracuda::attention {

// causal: keys after the query are not used. alignment: where the causal diagonal ends, 0 = at the last query and the
// last valid key (bottom right), 1 = it starts at the first query and the first key (top left).
BCU_ATTRS(AttentionAttrs, (i64, causal), (i64, causal_alignment))

template <Direction kDirection>
struct Attend {};
using Forward = Attend<Direction::Forward>;
using Backward = Attend<Direction::Backward>;
struct CacheAppend {};

constexpr auto forward_row(WorkspaceRule workspace) {
  return row<Forward>("scaled_dot_product_attention")
      .name("blocked")
      .takes(kFloats)
      .attrs_of<AttentionAttrs>()
      .sum(2)
      .scratch(workspace);
}
constexpr auto backward_row(WorkspaceRule workspace) {
  return row<Backward>("scaled_dot_product_attention")
      .backward()
      .name("blocked")
      .takes(kFloats)
      .attrs_of<AttentionAttrs>()
      .sum(2)
      .scratch(workspace);
}
inline constexpr auto kSimt = table(forward_row(simt_forward_workspace), backward_row(simt_backward_workspace));
inline constexpr auto kAppend = table(row<CacheAppend>("kv_cache_append").name("copy").takes(kFloats).exact());

inline constexpr auto kTable = join(table(forward_row(forward_workspace), backward_row(backward_workspace)),
                                    everywhere(kAppend), on_cuda(kSimt), on_metal(kSimt));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::attention
