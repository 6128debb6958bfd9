// Launches the embedding lookup and its gradient on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/embedding/simt.h"
#include "ops/embedding/skus.h"
#include "simt/copy_rows_launch.h"

namespace baracuda::embedding {

inline Status look_up(const Launch& launch) {
  const TensorView &ids = launch[0], &weight = launch[1], &y = launch[2];
  const IterationSpace rows = space_of(ids);
  if (rows.numel() == 0) return Status::Ok;
  simt::RowCopy copy{};
  copy.rows = rows;
  copy.from = {weight.data, weight.element, {}};
  copy.to = simt::leading_operand(y);
  copy.index = operand(ids, rows);
  copy.position = simt::counting(rows);
  copy.columns = weight.shape[1];
  copy.from_column = simt::last_stride(weight), copy.to_column = simt::last_stride(y);
  copy.from_step = weight.shape[0] > 1 ? weight.strides[0] : 0;
  copy.limit = weight.shape[0];
  copy.tensor = 0;
  return copy.run(launch);
}

static_assert(sizeof(Entry) == sizeof(Occurrence) && kTile == kSimtTile && kDigits == kSimtDigits);
static_assert(RowSums<float>::kRun == kSimtRun);

// The way by sorting, or atomic.
class Gradient {
 public:
  explicit Gradient(const Launch& launch)
      : launch_(launch),
        dy_(launch[0]),
        ids_(launch[1]),
        dweight_(launch[2]),
        attrs_(attributes<EmbeddingBackwardAttrs>(launch)),
        count_(ids_.numel()),
        entries_(static_cast<Entry*>(launch.workspace)) {
    sort_.count = count_, sort_.tiles = (count_ + kTile - 1) / kTile;
    sort_.counts = reinterpret_cast<uint32_t*>(entries_ + 2 * count_);
  }

  Status add() {
    if (Status s = start(); s != Status::Ok || count_ == 0) return s;
    AddRowsParams p{};
    const IterationSpace space = space_of(ids_);
    std::array<Operand, AddRowsParams::kTensors> all = {simt::leading_operand(dy_), operand(ids_, space),
                                                        simt::counting(space)};
    p.columns = dweight_.shape[1];
    p.space = simt::space_of_rows(space, all, std::max<int64_t>(p.columns, 1));  // ids are checked in any case
    p.gradient = dy_.data, p.ids = ids_.data, p.weight = dweight_.data;
    p.rows = dweight_.shape[0], p.padding = attrs_.padding_idx;
    p.dy_column = simt::last_stride(dy_);
    p.weight_row = dweight_.strides[0], p.weight_column = simt::last_stride(dweight_);
    p.fault = simt::fault_of(launch_), p.row = launch_.row, p.tensor = 1;
    p.element = static_cast<int32_t>(ids_.element);
    return simt::submit<AddRows>(launch_, {simt::blocks_for(p.space.count, 256)}, 256, p);
  }

  Status run() {
    if (Status s = start(); s != Status::Ok) return s;
    if (count_ == 0 || count_ >= (int64_t{1} << 31)) return count_ ? Status::Unsupported : Status::Ok;
    if (Status s = read(); s != Status::Ok) return s;
    const Entry* sorted = entries_;
    if (Status s = sort(&sorted); s != Status::Ok) return s;
    return simt::with_float(launch_.element, [&](auto t) { return sum<decltype(t)>(sorted); });
  }

 private:
  Status start() { return attrs_.accumulate ? Status::Ok : clear(); }
  Status clear() {
    const Operand rows = simt::leading_operand(dweight_);
    const int64_t size = size_of(dweight_.element), pack = 16 / size, column = simt::last_stride(dweight_);
    if (dweight_.shape[1] % pack == 0 && simt::packs(rows, 1, column, size))
      return clear_as<simt::Pack<uint32_t>>(rows, pack);
    if (size == 2) return clear_as<uint16_t>(rows, 1);
    return size == 4 ? clear_as<uint32_t>(rows, 1) : clear_as<uint64_t>(rows, 1);
  }
  template <class Unit>
  Status clear_as(Operand rows, int64_t factor) {
    ClearParams p{};
    rows.strides[0] /= factor;
    p.space = simt::space_of_rows<1>(simt::leading(dweight_), {rows}, dweight_.shape[1] / factor);
    p.data = dweight_.data, p.column = simt::last_stride(dweight_);
    return simt::submit<Clear<Unit>>(launch_, {simt::blocks_for(p.space.count, 256)}, 256, p);
  }

  Status read() {
    ReadIdsParams p{};
    const IterationSpace space = space_of(ids_);
    p.space = simt::space_of_rows<1>(space, {operand(ids_, space)}, 1);
    p.ids = ids_.data, p.out = entries_;
    p.rows = dweight_.shape[0], p.padding = attrs_.padding_idx;
    p.fault = simt::fault_of(launch_), p.row = launch_.row, p.tensor = 1;
    p.element = static_cast<int32_t>(ids_.element);
    return simt::submit<ReadIds>(launch_, {simt::blocks_for(count_, 256)}, 256, p);
  }

  // Stable, by the digits of ids from 0 to the number of rows; sets where the result is.
  Status sort(const Entry** sorted) {
    Entry *from = entries_, *to = entries_ + count_;
    for (int shift = 0; shift < 63 && (dweight_.shape[0] >> shift) > 0; shift += kDigitBits) {
      sort_.from = from, sort_.to = to, sort_.shift = shift;
      Status s = simt::submit<CountDigits>(launch_, {sort_.tiles}, kSortThreads, sort_);
      if (s == Status::Ok) s = simt::submit<SumCounts>(launch_, {1}, SumCounts::kThreads, sort_);
      if (s == Status::Ok) s = simt::submit<MoveEntries>(launch_, {sort_.tiles}, kSortThreads, sort_);
      if (s != Status::Ok) return s;
      std::swap(from, to);
    }
    *sorted = from;
    return Status::Ok;
  }

  template <class T>
  Status sum(const Entry* sorted) {
    SumRowsParams p{};
    p.dy = simt::space_of_rows<1>(simt::leading(dy_), {simt::leading_operand(dy_)}, 1);
    p.sorted = sorted;
    p.gradient = dy_.data, p.weight = dweight_.data;
    p.count = count_, p.rows = dweight_.shape[0], p.columns = dweight_.shape[1];
    p.dy_column = simt::last_stride(dy_);
    p.weight_row = dweight_.strides[0], p.weight_column = simt::last_stride(dweight_);
    p.stripes = (p.columns + SumRows<T>::kThreads - 1) / SumRows<T>::kThreads;
    p.accumulate = attrs_.accumulate != 0;
    p.runs = reinterpret_cast<char*>(sort_.counts) + simt_counts_bytes(count_);
    if (count_ > kSimtRun) {
      const int64_t slots = (count_ + kSimtRun - 1) / kSimtRun;
      const Status s =
          simt::submit<SumRuns<T>>(launch_, {simt::blocks_for(slots * p.stripes, 1)}, SumRuns<T>::kThreads, p);
      if (s != Status::Ok) return s;
    }
    return simt::submit<SumRows<T>>(launch_, {simt::blocks_for(count_ * p.stripes, 1)}, SumRows<T>::kThreads, p);
  }

  const Launch& launch_;
  const TensorView &dy_, &ids_, &dweight_;
  EmbeddingBackwardAttrs attrs_;
  int64_t count_;
  Entry* entries_;
  SortParams sort_{};
};

}  // namespace baracuda::embedding

namespace baracuda {

template <>
struct SimtKernel<embedding::Forward> {
  static Status run(const Launch& launch) { return embedding::look_up(launch); }
};

template <>
struct SimtKernel<embedding::Backward> {
  static Status run(const Launch& launch) { return embedding::Gradient(launch).run(); }
};

template <>
struct SimtKernel<embedding::AtomicBackward> {
  static Status run(const Launch& launch) { return embedding::Gradient(launch).add(); }
};

}  // namespace baracuda
