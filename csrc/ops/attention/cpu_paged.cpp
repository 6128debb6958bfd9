// Attention over a paged cache: each sequence is a problem of a batch of one, whose keys lie where its row of the page
// table says.
#include "ops/attention/sequences.h"

namespace baracuda::attention {
namespace {

// [batch, queries, heads, dim] as [1, heads, queries, dim] of one sequence.
TensorView piece(const TensorView& t, int64_t b) {
  TensorView out = t;
  out.data = t.as<char>() + b * t.strides[0] * size_of(t.element);
  out.shape[0] = 1;
  std::swap(out.shape[1], out.shape[2]), std::swap(out.strides[1], out.strides[2]);
  return out;
}
TensorView lse_piece(const TensorView& t, int64_t b) {
  TensorView out = t;
  out.data = t.as<char>() + b * t.strides[0] * size_of(t.element);
  return out;
}
// Pages as keys of a batch of one: as many as its table has room for.
TensorView keys(const TensorView& pages, int64_t entries) {
  TensorView out = pages;
  out.shape[2] = entries * pages.shape[1], out.shape[1] = pages.shape[2];
  out.strides[1] = pages.strides[2], out.strides[2] = pages.strides[pages.shape[1] == 1 ? 0 : 1];
  return out;
}

// Where a sequence's queries begin among packed ones, and how many it has.
struct Queries {
  int64_t begin, count;
};
Queries queries_of(const Launch& launch, int64_t b) {
  const TensorView &q = launch[PagedArgs::q], &cu = launch[PagedArgs::cu_seq_q];
  if (!cu.present()) return {0, q.shape[1]};
  const int64_t begin = place(cu, b);
  return {begin, place(cu, b + 1) - begin};
}

ForwardProblem problem(const Launch& launch, int64_t b) {
  using Args = PagedArgs;
  const PagedAttrs attrs = attributes<PagedAttrs>(launch);
  const TensorView &table = launch[Args::page_table], &lens = launch[Args::kv_len], &lse = launch[Args::lse];
  const bool packed = launch[Args::cu_seq_q].present();
  const Queries at = queries_of(launch, b);
  const auto own = [&](int arg) {
    return packed ? packed_piece(launch[arg], at.begin, at.count) : piece(launch[arg], b);
  };
  const TensorView q = own(Args::q), k = keys(launch[Args::k_pages], table.shape[1]),
                   v = keys(launch[Args::v_pages], table.shape[1]);
  Sizes sizes = set_sizes(q, k, v, attrs, launch.scalars[Args::scale].as_f64());
  sizes.set_keys(read_whole(lens, b * lens.strides[0]), attrs.causal_alignment == 0);
  const auto own_lse = [&] { return packed ? packed_lse(lse, at.begin, at.count) : lse_piece(lse, b); };
  return {sizes,
          Rows4(q),
          Rows4(k),
          Rows4(v),
          Rows4(own(Args::out)),
          Mask(),
          Alibi(launch[Args::alibi], b),
          Sinks(launch[Args::sinks]),
          Lse(lse.present() ? own_lse() : lse),
          Pages{&table, b, launch[Args::k_pages].shape[1], launch[Args::k_pages].shape[0]},
          Dropout(),
          Scales(launch[Args::k_scale]),
          Scales(launch[Args::v_scale])};
}

// The largest number of queries of a sequence.
int64_t most_queries(const Launch& launch) {
  const int64_t given = attributes<PagedAttrs>(launch).max_q;
  const TensorView& q = launch[PagedArgs::q];
  return q.rank == 4 ? q.shape[1] : given < 0 ? q.shape[0] : given;
}

// Places of queries and lengths first, then the pages that some query uses a key of.
Status check(const Launch& launch) {
  using Args = PagedArgs;
  const TensorView &lens = launch[Args::kv_len], &pages = launch[Args::k_pages];
  const int64_t batch = lens.shape[0], size = pages.shape[1], room = launch[Args::page_table].shape[1] * size;
  if (launch[Args::cu_seq_q].present()) {
    const Status status = check_places(launch, Args::cu_seq_q, launch[Args::q].shape[0], most_queries(launch));
    if (status != Status::Ok) return status;
  }
  for (int64_t b = 0; b < batch; ++b)
    if (const int64_t n = read_whole(lens, b * lens.strides[0]); n < 0 || n > room)
      return out_of_range(launch, Args::kv_len, b, n, limit_of(Wanted::Length, room + 1));
  for (int64_t b = 0; b < batch; ++b) {
    const Sizes s = problem(launch, b).sizes;
    if (s.rows == 0) continue;
    const int64_t first = s.start(0), last = s.limit(s.q_len - 1);
    if (first >= last) continue;
    const Status status = check_pages(launch, Args::page_table, b, first / size, blocks_of(last, size), pages.shape[0]);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

}  // namespace

Status paged_forward(const Launch& launch) {
  using Args = PagedArgs;
  if (const Status status = check(launch); status != Status::Ok) return status;
  const TensorView &q = launch[Args::q], &k = launch[Args::k_pages];
  const int64_t keys = launch[Args::page_table].shape[1] * k.shape[1];
  const int64_t heads = q.shape[q.rank - 2], dim = q.shape[q.rank - 1];
  const Extent largest{1, heads, k.shape[2], most_queries(launch), keys, dim, launch[Args::v_pages].shape[3]};
  forward(Problems<ForwardProblem>{launch, launch[Args::kv_len].shape[0], problem, largest});
  return Status::Ok;
}

}  // namespace baracuda::attention
