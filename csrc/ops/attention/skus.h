// The SKU table of attention and its key-value cache.
#pragma once
#include <algorithm>

#include "core/row.h"
#include "ops/attention/cudnn_rule.h"
#include "ops/attention/scratch.h"

namespace baracuda::attention {

// The window in effect; -1 where it has no end that any of the keys lies behind.
struct Window {
  int64_t left, right;
  template <class Attrs>
  Window(const Attrs& attrs, int64_t q_len, int64_t k_len) {
    const int64_t all = std::max(q_len, k_len);
    left = attrs.window_left < all ? attrs.window_left : -1;
    right = attrs.causal != 0 ? 0 : attrs.window_right < all ? attrs.window_right : -1;
  }
};

template <Direction kDirection>
struct Attend {};
using Forward = Attend<Direction::Forward>;
using Backward = Attend<Direction::Backward>;
struct AttendSquares {};
template <Direction kDirection>
struct AttendPacked {};
struct AttendPaged {};
struct CacheAppend {};
struct PagedAppend {};
struct SlotAppend {};
struct Merge {};
struct MergeBackward {};
// By cuDNN; kOrdered: sums of the backward in a fixed order.
struct CudnnForward {};
template <bool kOrdered>
struct CudnnBackward {};

constexpr auto forward_row(WorkspaceRule workspace) {
  return row<Forward>("scaled_dot_product_attention")
      .name("blocked")
      .takes(kFloats)
      .args_of<ForwardArgs>()
      .attrs_of<AttentionAttrs>()
      .sum(2)
      .scratch(workspace);
}
constexpr auto backward_row(WorkspaceRule workspace) {
  return row<Backward>("scaled_dot_product_attention")
      .backward()
      .name("blocked")
      .takes(kFloats)
      .args_of<BackwardArgs>()
      .attrs_of<AttentionAttrs>()
      .sum(2)
      .scratch(workspace);
}
inline constexpr auto kSimt = table(forward_row(simt_forward_workspace));
inline constexpr auto kSimtBackward = table(backward_row(simt_backward_workspace));

constexpr auto packed_forward_row() {
  return row<AttendPacked<Direction::Forward>>("varlen_attn")
      .name("blocked")
      .takes(kFloats)
      .args_of<PackedArgs>()
      .attrs_of<PackedAttrs>()
      .sum(2);
}
constexpr auto packed_backward_row(WorkspaceRule workspace) {
  return row<AttendPacked<Direction::Backward>>("varlen_attn")
      .backward()
      .name("blocked")
      .takes(kFloats)
      .args_of<PackedBackwardArgs>()
      .attrs_of<PackedAttrs>()
      .sum(2)
      .scratch(workspace);
}
inline constexpr auto kPackedTable = table(packed_forward_row().scratch(packed_forward_workspace));
inline constexpr auto kPackedBackward = table(packed_backward_row(packed_backward_workspace));
inline constexpr auto kSimtPacked = table(packed_forward_row().scratch(simt_packed_forward_workspace));
inline constexpr auto kSimtPackedBackward = table(packed_backward_row(simt_packed_backward_workspace));

// Of pages that hold codes, which their heads' scales are multiplied by.
inline constexpr Elements kCodes = Element::F8E4M3 | Element::I8;
inline constexpr Elements kCoded = kHalves | Element::F32;
template <class Args>
Reason without_codes(const Problem& p) {
  if (p.params[Args::k_pages].element == p.element) return {};
  return {"cache_element", "None", "the row of codes takes f8e4m3 and i8"};
}
constexpr auto coded(auto r) { return r.name("coded", "simt_coded").named_alone("coded_alone").takes(kCoded, kCodes); }

constexpr auto paged_row(WorkspaceRule workspace) {
  return row<AttendPaged>("paged_attention")
      .name("blocked")
      .takes(kFloats)
      .args_of<PagedArgs>()
      .attrs_of<PagedAttrs>()
      .sum(2)
      .scratch(workspace);
}
constexpr auto paged_table(WorkspaceRule workspace) {
  return table(paged_row(workspace).only_if(without_codes<PagedArgs>), coded(paged_row(workspace)));
}
inline constexpr auto kPagedTable = paged_table(paged_forward_workspace);
inline constexpr auto kSimtPaged = paged_table(simt_paged_forward_workspace);

// cuDNN rounds exp(score - highest) to the stored element before the product with v (in the backward also its slope,
// and the gradients of each head of a group): half an ulp of every term, in units of the accumulator's eps.
constexpr double half_ulp(Element e) { return e == Element::F16 ? 0x1p-11 / 0x1p-23 : 0x1p-8 / 0x1p-23; }
constexpr auto on_cudnn(auto r, Element e, double roundings) {
  return r.takes(set_of(e))
      .template attrs_of<AttentionAttrs>()
      .sum(2 + roundings * half_ulp(e))
      .not_batch_invariant()
      .only_in(kCudnnRanges)
      .with([](Row& row) { row.backend = Backend::Cuda, row.min_arch = kLeastCudaArch, row.proof = Proof::Compiled; });
}
constexpr auto cudnn_forward(Element e) {
  return on_cudnn(row<CudnnForward>("scaled_dot_product_attention").name("cudnn").args_of<ForwardArgs>(), e, 1)
      .scratch(simt_forward_workspace)
      .only_if(forward_by_cudnn)
      .prefer(10, "not measured");
}
template <bool kOrdered>
constexpr auto cudnn_backward(Element e) {
  const auto plain = row<CudnnBackward<kOrdered>>("scaled_dot_product_attention").backward();
  return on_cudnn(plain.template args_of<BackwardArgs>(), e, 2)
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

inline constexpr auto kAppend =
    table(row<CacheAppend>("kv_cache_append").name("copy").takes(kFloats).args_of<CacheAppendArgs>().exact());

template <class Tag, class Args>
constexpr auto append_table(const char* op) {
  const auto copy = row<Tag>(op).name("copy").takes(kFloats).template args_of<Args>().exact();
  return table(copy.only_if(without_codes<Args>), coded(copy));
}
inline constexpr auto kPagedAppend = append_table<PagedAppend, PagedAppendArgs>("paged_append") +
                                     append_table<SlotAppend, SlotAppendArgs>("paged_append_slots");

inline constexpr auto kMerge = table(
    row<Merge>("attention_merge").name("tiled").takes(kFloats).args_of<MergeArgs>().sum(2).in_place(),
    row<MergeBackward>("attention_merge").backward().name("rows").takes(kFloats).args_of<MergeBackwardArgs>().sum(2));

// By simdgroup matrices, whose additions are taken to cut off, as those of matrix products are (ops/matmul/skus.h): all
// of a score's, and those of 64 keys before they are added to what a row has.
inline constexpr int64_t kMostSquareDim = 256;
inline Reason square_enough(const Problem& p) {
  if (p.params[ForwardArgs::q].shape[3] <= kMostSquareDim) return {};
  return {"q_shape", "a head size of at most 256", "the row simt takes any"};
}
inline constexpr int kLeastSquareFamily = 7;  // of Apple's GPUs
constexpr auto squares() {
  auto t = and_alone(on_metal(table(row<AttendSquares>("scaled_dot_product_attention")
                                        .name("simdgroup", "simdgroup")
                                        .named_alone("simdgroup_alone")
                                        .takes(kFloats)
                                        .args_of<ForwardArgs>()
                                        .attrs_of<AttentionAttrs>()
                                        .sum(17)
                                        .scratch(simt_forward_workspace)
                                        .only_if(square_enough))));
  for (Row& r : t.rows) r.min_arch = kLeastSquareFamily, r.preference += 2;
  return t;
}

// Few queries, which share the keys of a chunk, are computed in another order than many.
template <class... Tags>
constexpr auto on_gpus(const Table<Tags...>& t) {
  return and_alone(on_cuda(t)) + and_alone(on_metal(t));
}
inline constexpr auto kTable =
    join(and_alone(table(forward_row(forward_workspace))), table(backward_row(backward_workspace)), everywhere(kAppend),
         everywhere(kMerge), squares(), on_gpus(kSimt), on_cuda(kSimtBackward), on_metal(kSimtBackward), kCudnn,
         and_alone(kPackedTable), kPackedBackward, on_gpus(kSimtPacked), on_cuda(kSimtPackedBackward),
         on_metal(kSimtPackedBackward), and_alone(kPagedTable), on_gpus(kSimtPaged), everywhere(kPagedAppend));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::attention
