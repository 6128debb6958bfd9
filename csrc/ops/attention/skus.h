// The SKU table of attention and its key-value cache.
#pragma once
#include "core/row.h"
#include "ops/attention/cudnn_rule.h"
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
// By cuDNN; kOrdered: sums of the backward in a fixed order.
struct CudnnForward {};
template <bool kOrdered>
struct CudnnBackward {};

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

// cuDNN rounds exp(score - highest) to the stored element before the product with v (in the backward also its slope,
// and the gradients of each head of a group): half an ulp of every term, in units of the accumulator's eps.
constexpr double half_ulp(Element e) { return e == Element::F16 ? 0x1p-11 / 0x1p-23 : 0x1p-8 / 0x1p-23; }
constexpr auto on_cudnn(auto r, Element e, double roundings) {
  return r.takes(set_of(e))
      .template attrs_of<AttentionAttrs>()
      .sum(2 + roundings * half_ulp(e))
      .not_batch_invariant()
      .with([](Row& row) { row.backend = Backend::Cuda, row.min_arch = kLeastCudaArch, row.proof = Proof::Compiled; });
}
constexpr auto cudnn_forward(Element e) {
  return on_cudnn(row<CudnnForward>("scaled_dot_product_attention").name("cudnn"), e, 1)
      .scratch(simt_forward_workspace)
      .only_if(forward_by_cudnn)
      .prefer(10, "not measured");
}
template <bool kOrdered>
constexpr auto cudnn_backward(Element e) {
  return on_cudnn(row<CudnnBackward<kOrdered>>("scaled_dot_product_attention").backward(), e, 2)
      .scratch(simt_backward_workspace)
      .only_if(backward_by_cudnn);
}
constexpr auto unordered(auto r) {
  return r.name("cudnn_unordered").prefer(-10, "not measured").with([](Row& row) {
    row.guarantee.deterministic = row.guarantee.bit_stable = false;
  });
}
inline constexpr auto kCudnn =
    table(cudnn_forward(Element::F16), cudnn_forward(Element::BF16),
          cudnn_backward<true>(Element::F16).name("cudnn").prefer(10, "not measured"),
          cudnn_backward<true>(Element::BF16).name("cudnn").prefer(10, "not measured"),
          unordered(cudnn_backward<false>(Element::F16)), unordered(cudnn_backward<false>(Element::BF16)));

inline constexpr auto kAppend = table(row<CacheAppend>("kv_cache_append").name("copy").takes(kFloats).exact());

inline constexpr auto kTable = join(table(forward_row(forward_workspace), backward_row(backward_workspace)),
                                    everywhere(kAppend), on_cuda(kSimt), on_metal(kSimt), kCudnn);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::attention
