// What attention and its caches ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/attention/skus.h"

namespace baracuda::attention {

using Tensor = Shapes::Tensor;

inline constexpr Elements kPlaces = Element::I64 | Element::I32;

// Windows and caps that there are.
template <class Attrs>
void scores(Shapes& s) {
  const Attrs attrs = s.attrs<Attrs>();
  s.flag(attrs.causal, "causal");
  s.flag(attrs.causal_alignment, "causal_alignment");
  s.attribute(attrs.window_left >= -1, "window_left", "a number of keys, or -1");
  s.attribute(attrs.window_right >= -1, "window_right", "a number of keys, or -1");
  const double cap = attrs.softcap;
  s.attribute(cap == 0 || (cap >= 1e-30 && cap <= 1e30), "softcap", "0, or a number from 1e-30 to 1e30");
}
inline void grouped(Shapes& s, int64_t heads, int64_t kv_heads, int param) {
  s.want(heads == kv_heads || (kv_heads > 0 && heads % kv_heads == 0), param, "heads that divide those of q");
}
// Slopes of heads.
inline void slopes(Shapes& s, int param, int64_t batch, int64_t heads) {
  const auto alibi = s.may_in(param, s.wide()).ranks(1, 2);
  alibi.is(alibi.rank() == 2 ? Sizes{batch, heads} : Sizes{heads});
}

// A logit per head; in the backward its gradient.
inline void sinks(Shapes& s, int param, int64_t heads) { s.may_in(param, s.wide()).is({heads}); }
template <class Args>
void sinks_and_gradients(Shapes& s, int64_t heads) {
  const bool there = bool(s.may_in(Args::sinks, s.wide()).is({heads}));
  s.may_out(Args::dsinks, s.wide()).when(there).is({heads});
}

template <class Args>
void attended(Shapes& s, const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor& x : {q, k, v}) x.ranks(4);
  k.is({q.at(0), k.at(1), k.at(2), q.at(3)});
  v.is({q.at(0), k.at(1), k.at(2), v.at(3)});
  grouped(s, q.at(1), k.at(1), Args::k);
  s.may_in(Args::mask, kFloats | Element::Bool).fits({q.at(0), q.at(1), q.at(2), k.at(2)});
  slopes(s, Args::alibi, q.at(0), q.at(1));
  scores<AttentionAttrs>(s);
  s.flag(s.attrs<AttentionAttrs>().dropout, "dropout");
}
inline void forward_shapes(Shapes& s) {
  using Args = ForwardArgs;
  const auto q = s.in(Args::q), k = s.in(Args::k), v = s.in(Args::v);
  attended<Args>(s, q, k, v);
  sinks(s, Args::sinks, q.at(1));
  s.out(Args::out).is(q.sizes().lead(1).then(v.at(3)));
  s.may_out(Args::lse, s.wide()).is(q.sizes().lead(1));
}
inline void backward_shapes(Shapes& s) {
  using Args = BackwardArgs;
  const auto q = s.in(Args::q), k = s.in(Args::k), v = s.in(Args::v);
  attended<Args>(s, q, k, v);
  for (const int out : {Args::dout, Args::out}) s.in(out).is(q.sizes().lead(1).then(v.at(3)));
  s.in(Args::lse, s.wide()).is(q.sizes().lead(1));
  sinks_and_gradients<Args>(s, q.at(1));
  s.out(Args::dq).is(q);
  s.out(Args::dk).is(k);
  s.out(Args::dv).is(v);
}

inline constexpr int64_t kMost = int64_t{1} << 31;  // of lengths that rooms follow

template <class Args>
void packed(Shapes& s, const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor& x : {q, k, v}) x.ranks(3);
  k.is({k.at(0), k.at(1), q.at(2)});
  v.is({k.at(0), k.at(1), v.at(2)});
  grouped(s, q.at(1), k.at(1), Args::k);
  const auto starts = s.in(Args::cu_seq_q, kPlaces).ranks(1), others = s.in(Args::cu_seq_k, kPlaces).is(starts);
  s.want(starts.at(0) >= 1, Args::cu_seq_q, "the number of sequences and one more");
  s.want(starts.element() == others.element(), Args::cu_seq_k, "the element of cu_seq_q");
  slopes(s, Args::alibi, starts.at(0) - 1, q.at(1));
  scores<PackedAttrs>(s);
  const auto [max_q, max_k] = std::pair(s.attrs<PackedAttrs>().max_q, s.attrs<PackedAttrs>().max_k);
  s.attribute(max_q >= 0 && max_q < kMost, "max_q", "the largest length of a sequence, below 2^31");
  s.attribute(max_k >= 0 && max_k < kMost, "max_k", "the largest length of a sequence, below 2^31");
}
inline void packed_shapes(Shapes& s) {
  using Args = PackedArgs;
  const auto q = s.in(Args::q), k = s.in(Args::k), v = s.in(Args::v);
  packed<Args>(s, q, k, v);
  sinks(s, Args::sinks, q.at(1));
  s.out(Args::out).is({q.at(0), q.at(1), v.at(2)});
  s.may_out(Args::lse, s.wide()).is({q.at(1), q.at(0)});
}
inline void packed_backward_shapes(Shapes& s) {
  using Args = PackedBackwardArgs;
  const auto q = s.in(Args::q), k = s.in(Args::k), v = s.in(Args::v);
  packed<Args>(s, q, k, v);
  for (const int out : {Args::dout, Args::out}) s.in(out).is({q.at(0), q.at(1), v.at(2)});
  s.in(Args::lse, s.wide()).is({q.at(1), q.at(0)});
  sinks_and_gradients<Args>(s, q.at(1));
  s.out(Args::dq).is(q);
  s.out(Args::dk).is(k);
  s.out(Args::dv).is(v);
}

// The pages of a cache: of the element of what is appended and asked, or of codes with a scale for each head.
inline Elements cached(const Shapes& s) { return set_of(s.aux() == Element::Any ? s.element() : s.aux()); }
template <class Args>
void pages(Shapes& s, const Tensor& k, const Tensor& v) {
  for (const Tensor& x : {k, v}) x.ranks(4);
  s.want(k.at(1) >= 1, Args::k_pages, "a page size above 0");
  s.want(v.sizes().lead(1) == k.sizes().lead(1), Args::v_pages, "the pages, page size and heads of k_pages");
  s.want(v.element() == k.element(), Args::v_pages, "the element of k_pages");
  for (const int scale : {Args::k_scale, Args::v_scale})
    s.may_in(scale, Element::F32).when(k.element() != s.element()).is({k.at(2)});
}
// Their table.
inline void page_table(Shapes& s, const Tensor& table, const Tensor& lengths, int kv_len) {
  table.ranks(2);
  lengths.is({table.at(0)});
  s.want(table.element() == lengths.element(), kv_len, "the element of page_table");
}
inline void paged_shapes(Shapes& s) {
  using Args = PagedArgs;
  const auto q = s.in(Args::q).ranks(3, 4), k = s.in(Args::k_pages, cached(s)), v = s.in(Args::v_pages, cached(s));
  const auto table = s.in(Args::page_table, kPlaces), lengths = s.in(Args::kv_len, kPlaces);
  pages<Args>(s, k, v);
  page_table(s, table, lengths, Args::kv_len);
  const bool joined = q.rank() == 3;
  s.want(q.at(-1) == k.at(3) && (joined || q.at(0) == table.at(0)), Args::q,
         "the sequences of page_table, and the pages' dim");
  const auto starts = s.may_in(Args::cu_seq_q, kPlaces).when(joined).is({table.at(0) + 1});
  s.want(!starts || starts.element() == table.element(), Args::cu_seq_q, "the element of page_table");
  const int64_t most = s.attrs<PagedAttrs>().max_q;
  s.attribute(most >= -1 && most < (joined ? kMost : 0), "max_q", "the most packed queries of a sequence, or -1");
  grouped(s, q.at(-2), k.at(2), Args::k_pages);
  slopes(s, Args::alibi, table.at(0), q.at(-2));
  sinks(s, Args::sinks, q.at(-2));
  scores<PagedAttrs>(s);
  s.attribute(s.attrs<PagedAttrs>().causal_alignment == 0, "causal_alignment", "0: the last query sees all keys");
  s.out(Args::out).is(q.sizes().lead(1).then(v.at(3)));
  s.may_out(Args::lse, s.wide()).is(joined ? Sizes{q.at(1), q.at(0)} : Sizes{q.at(0), q.at(2), q.at(1)});
}
inline void cache_append_shapes(Shapes& s) {
  using Args = CacheAppendArgs;
  const auto cache = s.inout(Args::cache).ranks(4), x = s.in(Args::x).ranks(4);
  x.is(cache.sizes().with(2, x.at(2)));
  s.may_in(Args::positions, kPlaces).is({cache.at(0)});
}
inline void paged_append_shapes(Shapes& s) {
  using Args = PagedAppendArgs;
  const auto k_pages = s.inout(Args::k_pages, cached(s)), v_pages = s.inout(Args::v_pages, cached(s));
  const auto table = s.in(Args::page_table, kPlaces), lengths = s.in(Args::kv_len, kPlaces);
  pages<Args>(s, k_pages, v_pages);
  page_table(s, table, lengths, Args::kv_len);
  const auto k = s.in(Args::k).ranks(3, 4), v = s.in(Args::v);
  const bool joined = k.rank() == 3;
  k.is((joined ? k.sizes().lead(2) : Sizes{table.at(0), k.at(1)}).then(k_pages.sizes().tail(2)));
  v.is(k.sizes().lead(1).then(v_pages.at(3)));
  const auto starts = s.may_in(Args::cu_seq, kPlaces).when(joined).is({table.at(0) + 1});
  s.want(!starts || starts.element() == table.element(), Args::cu_seq, "the element of page_table");
}

inline void slot_append_shapes(Shapes& s) {
  using Args = SlotAppendArgs;
  const auto k_pages = s.inout(Args::k_pages, cached(s)), v_pages = s.inout(Args::v_pages, cached(s));
  pages<Args>(s, k_pages, v_pages);
  const auto k = s.in(Args::k).ranks(3), v = s.in(Args::v);
  k.is(Sizes{k.at(0)}.then(k_pages.sizes().tail(2)));
  v.is(k.sizes().lead(1).then(v_pages.at(3)));
  s.in(Args::slots, kPlaces).is({k.at(0)});
}

inline void merge_shapes(Shapes& s) {
  using Args = MergeArgs;
  const auto out = s.out(Args::out).ranks(1, kMaxRank);
  const Sizes sums = out.sizes().lead(1);
  for (const int part : {Args::out_a, Args::out_b}) s.in(part).is(out);
  for (const int part : {Args::lse_a, Args::lse_b}) s.in(part, s.wide()).is(sums);
  s.out(Args::lse, s.wide()).is(sums);
}
inline void merge_backward_shapes(Shapes& s) {
  using Args = MergeBackwardArgs;
  const auto dout = s.in(Args::dout).ranks(1, kMaxRank);
  const Sizes sums = dout.sizes().lead(1);
  for (const int part : {Args::out_a, Args::out_b}) s.in(part).is(dout);
  for (const int part : {Args::lse_a, Args::lse_b, Args::dlse}) s.in(part, s.wide()).is(sums);
  for (const int part : {Args::dout_a, Args::dout_b}) s.out(part).is(dout);
  for (const int part : {Args::dlse_a, Args::dlse_b}) s.out(part, s.wide()).is(sums);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "scaled_dot_product_attention") return back ? backward_shapes : forward_shapes;
  if (op == "varlen_attn") return back ? packed_backward_shapes : packed_shapes;
  if (op == "attention_merge") return back ? merge_backward_shapes : merge_shapes;
  return op == "paged_attention"      ? paged_shapes
         : op == "paged_append"       ? paged_append_shapes
         : op == "paged_append_slots" ? slot_append_shapes
         : op == "kv_cache_append"    ? cache_append_shapes
                                      : nullptr;
}

}  // namespace baracuda::attention
