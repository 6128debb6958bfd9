// Attention of packed sequences: each is a problem of a batch of one.
#include "ops/attention/cpu.h"

namespace baracuda::attention {
namespace {

// Lines [begin, begin + n) of [total, heads, dim] as [1, heads, n, dim].
TensorView piece(const TensorView& t, int64_t begin, int64_t n) {
  TensorView out = t;
  out.rank = 4;
  out.data = t.as<char>() + begin * t.strides[0] * size_of(t.element);
  const int64_t shape[] = {1, t.shape[1], n, t.shape[2]}, strides[] = {0, t.strides[1], t.strides[0], t.strides[2]};
  std::copy(shape, shape + 4, out.shape), std::copy(strides, strides + 4, out.strides);
  return out;
}
// The same of lse: [heads, total] as [1, heads, n].
TensorView lse_piece(const TensorView& t, int64_t begin, int64_t n) {
  TensorView out = t;
  out.rank = 3;
  out.data = t.as<char>() + begin * t.strides[1] * size_of(t.element);
  const int64_t shape[] = {1, t.shape[0], n}, strides[] = {0, t.strides[0], t.strides[1]};
  std::copy(shape, shape + 3, out.shape), std::copy(strides, strides + 3, out.strides);
  return out;
}

int64_t place(const TensorView& cu, int64_t i) { return read_whole(cu, i * cu.strides[0]); }

// Sequences lie one behind the other, from the first line to the last, none longer than `most`.
Status check_places(const Launch& launch, int arg, int64_t total, int64_t most) {
  const TensorView& cu = launch[arg];
  const int64_t batch = cu.shape[0] - 1;
  for (int64_t i = 0, before = 0; i <= batch; ++i) {
    const int64_t at = place(cu, i), limit = i == 0 ? 0 : std::min(before + most, total);
    if (at < before || at > limit || (i == batch && at != total)) {
      *launch.failure = {arg, i, at, limit + 1};
      return Status::IndexOutOfRange;
    }
    before = at;
  }
  return Status::Ok;
}

// Where a sequence lies among the queries and among the keys.
struct Sequence {
  int64_t q, q_len, k, k_len;
};
template <class Args>
Sequence sequence(const Launch& launch, int64_t i) {
  const TensorView &cu_q = launch[Args::cu_seq_q], &cu_k = launch[Args::cu_seq_k];
  const int64_t q = place(cu_q, i), k = place(cu_k, i);
  return {q, place(cu_q, i + 1) - q, k, place(cu_k, i + 1) - k};
}

template <class Args>
Status check(const Launch& launch, const PackedAttrs& attrs) {
  const Status status = check_places(launch, Args::cu_seq_q, launch[Args::q].shape[0], attrs.max_q);
  return status == Status::Ok ? check_places(launch, Args::cu_seq_k, launch[Args::k].shape[0], attrs.max_k) : status;
}

// The largest sequence there may be.
template <class Args>
Extent largest(const Launch& launch, const PackedAttrs& attrs) {
  const TensorView &q = launch[Args::q], &k = launch[Args::k];
  return {1, q.shape[1], k.shape[1], attrs.max_q, attrs.max_k, q.shape[2], launch[Args::v].shape[2]};
}

ForwardProblem forward_problem(const Launch& launch, int64_t b) {
  using Args = PackedArgs;
  const Sequence at = sequence<Args>(launch, b);
  const TensorView q = piece(launch[Args::q], at.q, at.q_len), k = piece(launch[Args::k], at.k, at.k_len);
  const TensorView v = piece(launch[Args::v], at.k, at.k_len);
  const TensorView lse = launch[Args::lse].present() ? lse_piece(launch[Args::lse], at.q, at.q_len) : launch[Args::lse];
  return {set_sizes(q, k, v, attributes<PackedAttrs>(launch), launch.scalars[Args::scale].as_f64()),
          Rows4(q),
          Rows4(k),
          Rows4(v),
          Rows4(piece(launch[Args::out], at.q, at.q_len)),
          Mask(),
          Alibi(launch[Args::alibi], b),
          Lse(lse)};
}

BackwardProblem backward_problem(const Launch& launch, int64_t b) {
  using Args = PackedBackwardArgs;
  const Sequence at = sequence<Args>(launch, b);
  const auto queries = [&](int arg) { return piece(launch[arg], at.q, at.q_len); };
  const auto keys = [&](int arg) { return piece(launch[arg], at.k, at.k_len); };
  const TensorView q = queries(Args::q), k = keys(Args::k), v = keys(Args::v);
  return {set_sizes(q, k, v, attributes<PackedAttrs>(launch), launch.scalars[Args::scale].as_f64()),
          Rows4(queries(Args::dout)),
          Rows4(q),
          Rows4(k),
          Rows4(v),
          Rows4(queries(Args::out)),
          Rows4(queries(Args::dq)),
          Rows4(keys(Args::dk)),
          Rows4(keys(Args::dv)),
          Mask(),
          Alibi(launch[Args::alibi], b),
          Lse(lse_piece(launch[Args::lse], at.q, at.q_len))};
}

}  // namespace

Status packed_forward(const Launch& launch) {
  using Args = PackedArgs;
  const PackedAttrs attrs = attributes<PackedAttrs>(launch);
  if (const Status status = check<Args>(launch, attrs); status != Status::Ok) return status;
  const int64_t count = launch[Args::cu_seq_q].shape[0] - 1;
  forward(Problems<ForwardProblem>{launch, count, forward_problem, largest<Args>(launch, attrs)});
  return Status::Ok;
}

Status packed_backward(const Launch& launch) {
  using Args = PackedBackwardArgs;
  const PackedAttrs attrs = attributes<PackedAttrs>(launch);
  if (const Status status = check<Args>(launch, attrs); status != Status::Ok) return status;
  const int64_t count = launch[Args::cu_seq_q].shape[0] - 1;
  backward(Problems<BackwardProblem>{launch, count, backward_problem, largest<Args>(launch, attrs)});
  return Status::Ok;
}

}  // namespace baracuda::attention
