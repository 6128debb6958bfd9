// Launches what appends to caches on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/attention/simt_append.h"
#include "ops/attention/skus.h"
#include "simt/copy_rows_launch.h"
#include "simt/space_launch.h"

namespace baracuda::attention {

// How new tokens become lines of pages: strides, and scales of codes.
inline PagedAppendProblem append_problem(const Launch& launch, const TensorView& x, const TensorView& pages,
                                         const TensorView& scale) {
  using Params = PagedAppendProblem;
  Params p{};
  const IterationSpace space = space_of(x);
  const bool packed = x.rank == 3;
  Operand to{pages.data, pages.element, {}}, sequence{}, token{}, own_scale{};
  to.strides[x.rank - 2] = pages.shape[2] > 1 ? pages.strides[2] : 0;
  to.strides[x.rank - 1] = pages.shape[3] > 1 ? pages.strides[3] : 0;
  if (!packed) sequence.strides[0] = 1;
  token.strides[packed ? 0 : 1] = 1;
  if (scale.present()) p.scale = scale.as<float>(), own_scale.strides[x.rank - 2] = scale.strides[0];
  p.space = simt::space_over<Params::kTensors>(space, {operand(x, space), to, sequence, token, own_scale});
  p.from = x.data, p.to = pages.data;
  p.to_page = pages.shape[0] > 1 ? pages.strides[0] : 0, p.to_line = pages.shape[1] > 1 ? pages.strides[1] : 0;
  p.pages = pages.shape[0], p.page_size = pages.shape[1];
  p.total = packed ? x.shape[0] : x.shape[0] * x.shape[1];
  p.fault = simt::fault_of(launch), p.row = launch.row;
  p.cache_element = static_cast<int32_t>(pages.element);
  return p;
}

inline void find_by_table(const Launch& launch, const TensorView& x, PagedAppendProblem& p) {
  using Args = PagedAppendArgs;
  const TensorView &table = launch[Args::page_table], &lens = launch[Args::kv_len], &cu = launch[Args::cu_seq];
  p.table = table.data, p.lens = lens.data;
  p.table_stride[0] = table.strides[0], p.table_stride[1] = table.strides[1], p.lens_stride = lens.strides[0];
  if (cu.present()) p.cu = cu.data, p.cu_stride = cu.strides[0];
  p.entries = table.shape[1], p.sequences = lens.shape[0], p.tokens = cu.present() ? 0 : x.shape[1];
  p.element = static_cast<int32_t>(table.element), p.table_tensor = Args::page_table;
  static_assert(Args::kv_len == Args::page_table + 1 && Args::cu_seq == Args::page_table + 2, "as the kernel counts");
}

template <class From, class To>
Status submit_append(const Launch& launch, const PagedAppendProblem& p) {
  const int64_t blocks = simt::blocks_for(std::max(p.space.count, p.sequences + 1), 256);
  return simt::submit<PagedAppendTokens<From, To>>(launch, {blocks}, 256, p);
}

// Copies of units of the elements' size, or codes.
inline Status submit_append(const Launch& launch, const PagedAppendProblem& p) {
  if (p.scale != nullptr) {
    return simt::with_float(launch.element, [&](auto t) {
      using T = decltype(t);
      if constexpr (sizeof(T) <= 4) return submit_append<T, Codes>(launch, p);
      return Status::InvalidProblem;
    });
  }
  const int64_t size = size_of(launch.element);
  if (size == 2) return submit_append<uint16_t, uint16_t>(launch, p);
  return size == 4 ? submit_append<uint32_t, uint32_t>(launch, p) : submit_append<uint64_t, uint64_t>(launch, p);
}

// Keys, then values; `find` says how their places are known.
template <class Args, class Find>
Status append_both(const Launch& launch, Find&& find) {
  const auto append = [&](int part, int pages, int scale) {
    PagedAppendProblem p = append_problem(launch, launch[part], launch[pages], launch[scale]);
    find(launch[part], p);
    return submit_append(launch, p);
  };
  const Status status = append(Args::k, Args::k_pages, Args::k_scale);
  return status == Status::Ok ? append(Args::v, Args::v_pages, Args::v_scale) : status;
}

inline Status simt_paged_append(const Launch& launch) {
  return append_both<PagedAppendArgs>(launch,
                                      [&](const TensorView& x, PagedAppendProblem& p) { find_by_table(launch, x, p); });
}

inline Status simt_slot_append(const Launch& launch) {
  const TensorView& slots = launch[SlotAppendArgs::slots];
  return append_both<SlotAppendArgs>(launch, [&](const TensorView&, PagedAppendProblem& p) {
    p.slots = slots.data, p.slot_stride = slots.strides[0];
    p.element = static_cast<int32_t>(slots.element), p.table_tensor = SlotAppendArgs::slots;
  });
}

inline Status simt_append(const Launch& launch) {
  using Args = CacheAppendArgs;
  const TensorView &x = launch[Args::x], &positions = launch[Args::positions], &cache = launch[Args::cache];
  const int64_t limit = std::max<int64_t>(cache.shape[2] - x.shape[2] + 1, 0);
  simt::RowCopy copy{};
  copy.rows = simt::leading(x);
  copy.from = simt::leading_operand(x), copy.to = simt::leading_operand(cache);
  copy.columns = x.shape[3];
  copy.from_column = simt::last_stride(x), copy.to_column = simt::last_stride(cache);
  copy.to_step = cache.shape[2] > 1 ? cache.strides[2] : 0;
  copy.limit = limit;
  static_assert(Args::position == 0, "as a fault of no tensor names it");
  copy.position.strides[0] = positions.present() && x.shape[0] > 1 ? 1 : 0;
  copy.tensor = positions.present() ? Args::positions : -1;
  if (positions.present()) {
    copy.index = {positions.data, positions.element, {positions.shape[0] > 1 ? positions.strides[0] : 0}};
  } else {
    const Scalar& start = launch.scalars[Args::position];
    const int64_t at = start.data ? 0 : start.as_i64();
    if (!start.data && x.shape[0] > 0 && (at < 0 || at >= limit)) {
      if (launch.failure) *launch.failure = {-1, Args::position, at, limit};
      return Status::IndexOutOfRange;
    }
    copy.start = simt::number_of(start);
  }
  return copy.rows.numel() == 0 || copy.columns == 0 ? Status::Ok : copy.run(launch);
}

}  // namespace baracuda::attention
