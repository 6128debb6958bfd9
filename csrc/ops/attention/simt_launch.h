// Launches attention and its key-value cache on a GPU.
#pragma once
#include <bit>
#include <cmath>

#include "backends/simt/family.h"
#include "core/wanted.h"
#include "ops/attention/simt_append_launch.h"
#include "ops/attention/simt_backward.h"
#include "ops/attention/simt_forward.h"
#include "ops/attention/simt_merge_launch.h"
#include "ops/attention/simt_square.h"
#include "ops/attention/skus.h"
#include "ops/random/targets.h"

namespace baracuda::attention {

inline Tensor4 tensor4(const TensorView& t) {
  auto stride = [&](int d) { return t.shape[d] > 1 ? t.strides[d] : 0; };
  return {t.data, stride(0), stride(1), stride(2), stride(3)};
}

// Of [total, heads, dim].
inline Tensor4 packed_tensor(const TensorView& t) {
  return {t.data, 0, t.shape[1] > 1 ? t.strides[1] : 0, t.strides[0], t.shape[2] > 1 ? t.strides[2] : 0};
}

// Of [batch, lines, heads, dim], or of pages.
inline Tensor4 heads_inside(const TensorView& t) {
  const Tensor4 x = tensor4(t);
  return {x.data, x.batch, x.line, x.head, x.column};
}

// Which of an op's arguments a call has.
template <class Args>
struct Dense {};
template <class Args>
struct Packed {};

template <int kLayout>
class SimtCall {
 public:
  template <class Args>
  SimtCall(const Launch& launch, Dense<Args>) : launch_(launch), kv_len_(&launch.scalars[Args::kv_len]) {
    const TensorView &q = launch[Args::q], &k = launch[Args::k], &v = launch[Args::v];
    p.q = tensor4(q), p.k = tensor4(k), p.v = tensor4(v);
    read_mask(launch[Args::mask]), read_alibi(launch[Args::alibi]), read_sinks(launch[Args::sinks]);
    set_sizes({q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]});
    set_scores(attributes<AttentionAttrs>(launch), launch.scalars[Args::scale]);
    Sequences<kLayout>& s = params.sequences;
    s.kv_len = simt::number_of(*kv_len_), s.kv_len_scalar = Args::kv_len;
    s.drops = attributes<AttentionAttrs>(launch).dropout != 0;
    if (!s.drops) return;
    p_ = &launch.scalars[Args::dropout_p], s.p_scalar = Args::dropout_p;
    s.dropout_p = simt::number_of(*p_), s.seed = simt::number_of(launch.scalars[Args::seed]);
    s.offset = simt::number_of(launch.scalars[Args::offset]);
  }
  template <class Args>
  SimtCall(const Launch& launch, Packed<Args>) : launch_(launch) {
    const TensorView &q = launch[Args::q], &k = launch[Args::k], &v = launch[Args::v];
    const TensorView &cu_q = launch[Args::cu_seq_q], &cu_k = launch[Args::cu_seq_k];
    static_assert(Args::cu_seq_k == Args::cu_seq_q + 1, "as the kernels count");
    const PackedAttrs attrs = attributes<PackedAttrs>(launch);
    p.q = packed_tensor(q), p.k = packed_tensor(k), p.v = packed_tensor(v);
    Sequences<kLayout>& s = params.sequences;
    s.cu_q = cu_q.data, s.cu_k = cu_k.data, s.cu_q_stride = cu_q.strides[0], s.cu_k_stride = cu_k.strides[0];
    s.total_q = q.shape[0], s.total_k = k.shape[0];
    s.element = static_cast<int32_t>(cu_q.element), s.cu_q_tensor = Args::cu_seq_q;
    read_alibi(launch[Args::alibi]), read_sinks(launch[Args::sinks]);
    set_sizes({cu_q.shape[0] - 1, q.shape[1], k.shape[1], attrs.max_q, attrs.max_k, q.shape[2], v.shape[2]});
    fits_ = fits_ && std::max(q.shape[0], k.shape[0]) < kMostLines;
    set_scores(attrs, launch.scalars[Args::scale]);
  }

  explicit SimtCall(const Launch& launch) : launch_(launch) {
    using Args = PagedArgs;
    const TensorView &q = launch[Args::q], &k = launch[Args::k_pages], &v = launch[Args::v_pages];
    const TensorView &table = launch[Args::page_table], &lens = launch[Args::kv_len], &cu = launch[Args::cu_seq_q];
    static_assert(Args::kv_len == Args::page_table + 1 && Args::cu_seq_q == Args::page_table + 2,
                  "as the kernels count");
    const PagedAttrs attrs = attributes<PagedAttrs>(launch);
    const bool packed = cu.present();
    p.cache_element = static_cast<int32_t>(k.element);
    read_scale(launch[Args::k_scale], p.k_scale, p.k_scale_stride);
    read_scale(launch[Args::v_scale], p.v_scale, p.v_scale_stride);
    p.q = packed ? packed_tensor(q) : heads_inside(q), p.k = heads_inside(k), p.v = heads_inside(v);
    Sequences<kLayout>& s = params.sequences;
    s.table = table.data, s.table_stride[0] = table.strides[0], s.table_stride[1] = table.strides[1];
    s.lens = lens.data, s.lens_stride = lens.strides[0];
    s.pages = k.shape[0], s.page_size = simt::divider(k.shape[1]);
    s.element = static_cast<int32_t>(table.element), s.table_tensor = Args::page_table;
    if (packed) s.cu_q = cu.data, s.cu_q_stride = cu.strides[0], s.total_q = q.shape[0];
    read_alibi(launch[Args::alibi]), read_sinks(launch[Args::sinks]);
    // Without a page there is room for no key.
    const int64_t keys = s.pages > 0 ? table.shape[1] * k.shape[1] : 0;
    const int64_t queries = !packed ? q.shape[1] : attrs.max_q < 0 ? q.shape[0] : attrs.max_q;
    set_sizes({lens.shape[0], q.shape[q.rank - 2], k.shape[2], queries, keys, k.shape[3], v.shape[3]});
    fits_ = fits_ && std::max(s.pages, s.total_q) < kMostLines;
    set_scores(attrs, launch.scalars[Args::scale]);
  }

  // What is known of the problem before it runs.
  Status check() const {
    if (!fits_) return Status::InvalidProblem;
    if constexpr (kLayout == kDense) {
      if (p_ && !p_->data && !(p_->as_f64() >= 0 && p_->as_f64() <= 1))
        return random::wrong_scalar(launch_, params.sequences.p_scalar, ValueRange::Unit);
      const int64_t n = kv_len_->data ? -1 : kv_len_->as_i64();
      if (n >= -1 && n <= p.k_len) return Status::Ok;
      if (launch_.failure)
        *launch_.failure = {-1, params.sequences.kv_len_scalar, n, limit_of(Wanted::Length, int64_t(p.k_len) + 1)};
      return Status::IndexOutOfRange;
    }
    return Status::Ok;
  }

  void set_lse(const TensorView& lse) {
    if (!lse.present()) return;
    p.lse = lse.data;
    for (int i = 0; i < lse.rank; ++i) p.lse_stride[3 - lse.rank + i] = lse.strides[i];
  }

  // The gradient of the sinks, once the rows' deltas are there.
  template <class Body>
  Status submit_sinks(const TensorView& dsinks) {
    if (!dsinks.present() || dsinks.shape[0] == 0) return Status::Ok;
    p.dsinks = dsinks.data, p.dsink_stride = dsinks.strides[0];
    return simt::submit<Body>(launch_, {dsinks.shape[0]}, 256, params);
  }

  // A block per head, chunk of columns, split and tile.
  template <class Body>
  Status submit(int64_t tiles, int64_t columns) {
    p.tiles = int32_t(tiles);
    p.chunks = int32_t(std::max<int64_t>(1, blocks_of(columns, Body::B::kColumns)));
    const int64_t blocks = tiles * p.splits * p.chunks * p.batch * p.kv_heads;
    return blocks > simt::kMaxGridX ? Status::InvalidProblem : simt::submit<Body>(launch_, {blocks}, 256, params);
  }

  SimtParams<kLayout> params{};
  SimtProblem& p = params.problem;

 private:
  static constexpr int64_t kMostLines = int64_t{1} << 30;

  void set_sizes(const Extent& e) {
    p.scratch = launch_.workspace, p.fault = simt::fault_of(launch_), p.row = launch_.row;
    fits_ = std::max({e.batch, e.heads, e.rows(), e.k_len, e.d, e.dv}) < kMostLines &&
            (e.kv_heads > 0 ? e.heads % e.kv_heads == 0 : e.heads == 0);
    p.group = simt::divider(std::max<int64_t>(e.group(), 1));
    p.batch = int32_t(e.batch), p.kv_heads = int32_t(e.kv_heads), p.q_len = int32_t(e.q_len),
    p.k_len = int32_t(e.k_len);
    p.dim = int32_t(e.d), p.dim_v = int32_t(e.dv), p.rows = int32_t(e.rows());
    p.splits = 1;
  }
  template <class Attrs>
  void set_scores(const Attrs& attrs, const Scalar& scale) {
    p.scale = simt::number_of(scale);
    const Window window(attrs, p.q_len, p.k_len);
    p.left = int32_t(window.left), p.right = int32_t(window.right), p.top_left = attrs.causal_alignment != 0;
    p.capped = attrs.softcap != 0;
    p.softcap = launch_.element == Element::F64 ? std::bit_cast<int64_t>(attrs.softcap)
                                                : int64_t{std::bit_cast<uint32_t>(float(attrs.softcap))};
  }

  void read_mask(const TensorView& mask) {
    if (!mask.present()) return;
    p.mask = mask.data, p.mask_element = static_cast<int32_t>(mask.element);
    for (int i = 0; i < mask.rank; ++i) p.mask_stride[4 - mask.rank + i] = mask.shape[i] == 1 ? 0 : mask.strides[i];
  }

  void read_alibi(const TensorView& alibi) {
    if (!alibi.present()) return;
    p.alibi = alibi.data;
    p.alibi_stride[0] = alibi.rank == 2 && alibi.shape[0] > 1 ? alibi.strides[0] : 0;
    p.alibi_stride[1] = alibi.shape[alibi.rank - 1] > 1 ? alibi.strides[alibi.rank - 1] : 0;
  }

  void read_sinks(const TensorView& sinks) {
    if (sinks.present()) p.sinks = sinks.data, p.sink_stride = sinks.strides[0];
  }

  static void read_scale(const TensorView& scale, BCU_GLOBAL const void*& data, int64_t& stride) {
    if (scale.present()) data = scale.data, stride = scale.strides[0];
  }

  const Launch& launch_;
  const Scalar *kv_len_ = nullptr, *p_ = nullptr;  // of dense calls
  bool fits_;
};

// Sizes of tiles: 64 rows by 64 keys; few rows for decoding; f64 takes twice the room.
template <class T>
struct Tiles {
  template <template <class, int, int, int> class Body>
  using Narrow = Body<T, 4, 4, 4>;
  template <template <class, int, int, int> class Body>
  using Wide = Body<T, 4, 4, 8>;
  template <template <class, int, int, int> class Body>
  using Decode = Body<T, 1, 4, 8>;
};
#if BCU_HAS_F64
template <>
struct Tiles<double> {
  template <template <class, int, int, int> class Body>
  using Narrow = Body<double, 2, 2, 4>;
  template <template <class, int, int, int> class Body>
  using Wide = Body<double, 2, 2, 4>;
  template <template <class, int, int, int> class Body>
  using Decode = Body<double, 1, 2, 4>;
};
#endif

// Tiles of rows, or of keys.
template <class Body, int kLayout>
Status submit_rows(SimtCall<kLayout>& call, int64_t columns) {
  return call.template submit<Body>(blocks_of(call.p.rows, Body::B::kRows), columns);
}
template <class T, template <class, int, int, int> class Body>
Status submit_row_tiles(SimtCall<kDense>& call, int64_t columns) {
  if (columns <= 64) return submit_rows<typename Tiles<T>::template Narrow<Body>>(call, columns);
  return submit_rows<typename Tiles<T>::template Wide<Body>>(call, columns);
}
template <class Body, int kLayout>
Status submit_keys(SimtCall<kLayout>& call, int64_t columns) {
  return call.template submit<Body>(blocks_of(call.p.k_len, Body::B::kKeys), columns);
}

// Few rows against many keys: in splits that are merged.
template <class T, template <class, int, int, int> class Body, int kLayout>
Status decode_as(const Launch& launch, SimtCall<kLayout>& call) {
  SimtProblem& p = call.p;
  p.splits = int32_t(std::max<int64_t>(1, blocks_of(p.k_len, kDecodeKeys)));
  p.split_keys = kDecodeKeys;
  const Status status = submit_rows<typename Tiles<T>::template Decode<Body>>(call, p.dim_v);
  if (status != Status::Ok || p.splits == 1) return status;
  const int64_t rows = int64_t(p.batch) * p.kv_heads * p.rows;
  return rows > simt::kMaxGridX ? Status::InvalidProblem
                                : simt::submit<MergeSplits<T, kLayout>>(launch, {rows}, 128, call.params);
}

template <class T>
Status forward_as(const Launch& launch, SimtCall<kDense>& call) {
  if (!launch.batch_invariant && is_decode(call.p.rows, call.p.q_len))
    return decode_as<T, ForwardTile, kDense>(launch, call);
  return submit_row_tiles<T, ForwardTile>(call, call.p.dim_v);
}
// Of sequences that have their own lengths.
template <class T, template <class, int, int, int> class Body, int kLayout>
Status sequences_as(const Launch& launch, SimtCall<kLayout>& call) {
  if (!launch.batch_invariant && is_decode(call.p.rows, call.p.q_len)) return decode_as<T, Body, kLayout>(launch, call);
  return submit_rows<typename Tiles<T>::template Wide<Body>>(call, call.p.dim_v);
}

template <class T>
Status squares_as(const Launch& launch, SimtCall<kDense>& call) {
  if (!launch.batch_invariant && is_decode(call.p.rows, call.p.q_len))
    return decode_as<T, ForwardTile, kDense>(launch, call);
  if (call.p.dim_v <= 64) return submit_rows<SquareForward<T, 4>>(call, call.p.dim_v);
  return submit_rows<SquareForward<T, 8>>(call, call.p.dim_v);
}

template <class As>
Status dense_forward(const Launch& launch, As as) {
  using Args = ForwardArgs;
  SimtCall<kDense> call(launch, Dense<Args>());
  if (const Status status = call.check(); status != Status::Ok) return status;
  if (call.p.batch == 0 || call.p.rows == 0) return Status::Ok;
  call.p.out = tensor4(launch[Args::out]);
  call.set_lse(launch[Args::lse]);
  return simt::with_float(launch.element, [&](auto t) { return as(t, call); });
}

// Templates, so that a slice of the family compiles one direction's kernels only.
template <class L>
Status simt_attention(const L& launch, Attend<Direction::Forward>) {
  return dense_forward(launch, [&](auto t, auto& call) { return forward_as<decltype(t)>(launch, call); });
}
template <class L>
Status simt_attention(const L& launch, AttendSquares) {
  return dense_forward(launch, [&](auto t, auto& call) { return squares_as<decltype(t)>(launch, call); });
}

template <class T>
Status backward_as(const Launch& launch, SimtCall<kDense>& call) {
  SimtProblem& p = call.p;
  const int64_t rows = int64_t(p.batch) * p.kv_heads * p.rows, columns = std::max(p.dim, p.dim_v);
  Status status = simt::submit<RowDeltas<T>>(launch, {simt::blocks_for(rows, 8)}, 256, call.params);
  if (status == Status::Ok)
    status = call.template submit_sinks<SinkGradients<simt::ComputeOf<T>>>(launch[BackwardArgs::dsinks]);
  if (p.batch == 0) return status;
  // Narrow tiles of it would spill registers.
  if (status == Status::Ok) status = submit_rows<typename Tiles<T>::template Wide<QueryGradient>>(call, p.dim);
  if (status != Status::Ok) return status;
  if (columns <= 64) return submit_keys<typename Tiles<T>::template Narrow<KeyGradients>>(call, columns);
  return submit_keys<typename Tiles<T>::template Wide<KeyGradients>>(call, columns);
}

template <class L>
Status simt_attention(const L& launch, Attend<Direction::Backward>) {
  using Args = BackwardArgs;
  SimtCall<kDense> call(launch, Dense<Args>());
  if (const Status status = call.check(); status != Status::Ok) return status;
  if (call.p.kv_heads == 0) return Status::Ok;
  call.p.dout = tensor4(launch[Args::dout]), call.p.out = tensor4(launch[Args::out]);
  call.p.dq = tensor4(launch[Args::dq]), call.p.dk = tensor4(launch[Args::dk]), call.p.dv = tensor4(launch[Args::dv]);
  call.set_lse(launch[Args::lse]);
  return simt::with_float(launch.element, [&](auto t) { return backward_as<decltype(t)>(launch, call); });
}

template <class L>
Status simt_attention(const L& launch, AttendPacked<Direction::Forward>) {
  using Args = PackedArgs;
  SimtCall<kPacked> call(launch, Packed<Args>());
  if (const Status status = call.check(); status != Status::Ok) return status;
  if (call.p.batch == 0 || call.p.rows == 0) return Status::Ok;
  call.p.out = packed_tensor(launch[Args::out]);
  call.set_lse(launch[Args::lse]);
  return simt::with_float(launch.element,
                          [&](auto t) { return sequences_as<decltype(t), PackedForwardTile, kPacked>(launch, call); });
}

template <class T>
Status packed_backward_as(const Launch& launch, SimtCall<kPacked>& call) {
  SimtProblem& p = call.p;
  const int64_t rows = int64_t(p.batch) * p.kv_heads * p.rows;
  Status status = simt::submit<PackedRowDeltas<T>>(launch, {simt::blocks_for(rows, 8)}, 256, call.params);
  if (status == Status::Ok)
    status = call.template submit_sinks<PackedSinkGradients<simt::ComputeOf<T>>>(launch[PackedBackwardArgs::dsinks]);
  if (p.batch == 0) return status;
  if (status == Status::Ok) status = submit_rows<typename Tiles<T>::template Wide<PackedQueryGradient>>(call, p.dim);
  if (status != Status::Ok) return status;
  return submit_keys<typename Tiles<T>::template Narrow<PackedKeyGradients>>(call, std::max(p.dim, p.dim_v));
}

template <class L>
Status simt_attention(const L& launch, AttendPacked<Direction::Backward>) {
  using Args = PackedBackwardArgs;
  SimtCall<kPacked> call(launch, Packed<Args>());
  if (const Status status = call.check(); status != Status::Ok) return status;
  if (call.p.kv_heads == 0) return Status::Ok;
  call.p.dout = packed_tensor(launch[Args::dout]), call.p.out = packed_tensor(launch[Args::out]);
  call.p.dq = packed_tensor(launch[Args::dq]), call.p.dk = packed_tensor(launch[Args::dk]),
  call.p.dv = packed_tensor(launch[Args::dv]);
  call.set_lse(launch[Args::lse]);
  return simt::with_float(launch.element, [&](auto t) { return packed_backward_as<decltype(t)>(launch, call); });
}

template <class L>
Status simt_attention(const L& launch, AttendPaged) {
  using Args = PagedArgs;
  SimtCall<kPaged> call(launch);
  if (const Status status = call.check(); status != Status::Ok) return status;
  if (call.p.batch == 0 || call.p.rows == 0) return Status::Ok;
  call.p.out = launch[Args::q].rank == 3 ? packed_tensor(launch[Args::out]) : heads_inside(launch[Args::out]);
  call.set_lse(launch[Args::lse]);
  const bool codes = launch[Args::k_scale].present();
  return simt::with_float(launch.element, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) <= 4) {  // f64 has no codes
      if (codes) return sequences_as<T, CodedForwardTile, kPaged>(launch, call);
    }
    return sequences_as<T, PagedForwardTile, kPaged>(launch, call);
  });
}

}  // namespace baracuda::attention

namespace baracuda {

template <Direction kDirection>
inline constexpr int kSimtSlice<attention::Attend<kDirection>> = kDirection == Direction::Forward ? 0 : 1;
template <Direction kDirection>
struct SimtKernel<attention::Attend<kDirection>> {
  static Status run(const Launch& launch) { return attention::simt_attention(launch, attention::Attend<kDirection>{}); }
};
template <>
struct SimtKernel<attention::AttendSquares> {
  template <class L>
  static Status run(const L& launch) {
    return attention::simt_attention(launch, attention::AttendSquares{});
  }
};
template <Direction kDirection>
inline constexpr int kSimtSlice<attention::AttendPacked<kDirection>> = kDirection == Direction::Forward ? 0 : 1;
template <Direction kDirection>
struct SimtKernel<attention::AttendPacked<kDirection>> {
  static Status run(const Launch& launch) {
    return attention::simt_attention(launch, attention::AttendPacked<kDirection>{});
  }
};
template <>
inline constexpr int kSimtSlice<attention::AttendPaged> = 1;
template <>
struct SimtKernel<attention::AttendPaged> {
  static Status run(const Launch& launch) { return attention::simt_attention(launch, attention::AttendPaged{}); }
};
template <>
struct SimtKernel<attention::PagedAppend> {
  static Status run(const Launch& launch) { return attention::simt_paged_append(launch); }
};
template <>
struct SimtKernel<attention::SlotAppend> {
  static Status run(const Launch& launch) { return attention::simt_slot_append(launch); }
};
template <>
struct SimtKernel<attention::CacheAppend> {
  static Status run(const Launch& launch) { return attention::simt_append(launch); }
};
template <>
inline constexpr int kSimtSlice<attention::MergeBackward> = 1;
template <>
struct SimtKernel<attention::MergeBackward> {
  static Status run(const Launch& launch) { return attention::simt_merge_backward(launch); }
};
template <>
struct SimtKernel<attention::Merge> {
  static Status run(const Launch& launch) { return attention::simt_merge(launch); }
};

}  // namespace baracuda
