// Attention of packed sequences: each is a problem of a batch of one.
#include "ops/attention/sequences.h"

namespace baracuda::attention {
namespace {

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
  const TensorView q = packed_piece(launch[Args::q], at.q, at.q_len), k = packed_piece(launch[Args::k], at.k, at.k_len);
  const TensorView v = packed_piece(launch[Args::v], at.k, at.k_len);
  const TensorView lse =
      launch[Args::lse].present() ? packed_lse(launch[Args::lse], at.q, at.q_len) : launch[Args::lse];
  return {set_sizes(q, k, v, attributes<PackedAttrs>(launch), launch.scalars[Args::scale].as_f64()),
          Rows4(q),
          Rows4(k),
          Rows4(v),
          Rows4(packed_piece(launch[Args::out], at.q, at.q_len)),
          Mask(),
          Alibi(launch[Args::alibi], b),
          Sinks(launch[Args::sinks]),
          Lse(lse)};
}

BackwardProblem backward_problem(const Launch& launch, int64_t b) {
  using Args = PackedBackwardArgs;
  const Sequence at = sequence<Args>(launch, b);
  const auto queries = [&](int arg) { return packed_piece(launch[arg], at.q, at.q_len); };
  const auto keys = [&](int arg) { return packed_piece(launch[arg], at.k, at.k_len); };
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
          Lse(packed_lse(launch[Args::lse], at.q, at.q_len))};
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
  if (!launch[Args::dsinks].present()) return Status::Ok;
  const int64_t total = launch[Args::q].shape[0];
  const auto all = [&](int arg) { return packed_piece(launch[arg], 0, total); };
  sink_gradients({Rows4(all(Args::dout)), Rows4(all(Args::out)), Lse(packed_lse(launch[Args::lse], 0, total)),
                  Sinks(launch[Args::sinks]), launch[Args::dsinks], 1, launch[Args::q].shape[1], total,
                  launch[Args::out].shape[2]});
  return Status::Ok;
}

}  // namespace baracuda::attention
