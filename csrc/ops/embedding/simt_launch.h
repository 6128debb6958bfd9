// Launches the embedding lookup and its gradient on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/embedding/simt.h"
#include "ops/embedding/simt_bag_launch.h"
#include "ops/embedding/skus.h"
#include "simt/copy_rows_launch.h"
#include "simt/index_launch.h"
#include "simt/sort_launch.h"

namespace baracuda::embedding {

inline Status look_up(const Launch& launch) {
  using Args = EmbeddingArgs;
  const TensorView &ids = launch[Args::ids], &weight = launch[Args::weight], &y = launch[Args::y];
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
  copy.tensor = Args::ids;
  return copy.run(launch);
}

// The gradient by sorting, or atomic.
class Gradient {
  using Args = EmbeddingBackwardArgs;

 public:
  explicit Gradient(const Launch& launch)
      : launch_(launch),
        dy_(launch[Args::dy]),
        ids_(launch[Args::ids]),
        dweight_(launch[Args::dweight]),
        attrs_(attributes<EmbeddingBackwardAttrs>(launch)),
        count_(ids_.numel()),
        entries_(static_cast<simt::Entry*>(launch.workspace)) {}

  Status add() {
    if (Status s = start(); s != Status::Ok || count_ == 0) return s;
    AddRowsParams p{};
    const IterationSpace space = space_of(ids_);
    std::array<Operand, AddRowsParams::kTensors> all = {simt::leading_operand(dy_), operand(ids_, space),
                                                        simt::counting(space)};
    p.columns = dweight_.shape[1];
    p.space = simt::space_of_rows(space, all, std::max<int64_t>(p.columns, 1));  // ids are checked in any case
    p.gradient = dy_.data, p.weight = dweight_.data;
    p.padding = attrs_.padding_idx;
    p.dy_column = simt::last_stride(dy_);
    p.weight_row = dweight_.strides[0], p.weight_column = simt::last_stride(dweight_);
    p.index = simt::index_params(launch_, Args::ids, dweight_.shape[0], false);
    return simt::submit<AddRows>(launch_, {simt::blocks_for(p.space.count, 256)}, 256, p);
  }

  Status run() {
    if (Status s = start(); s != Status::Ok || count_ == 0) return s;
    if (Status s = read(); s != Status::Ok) return s;
    const simt::Entry* sorted = entries_;
    if (Status s = simt::sort_entries(launch_, entries_, count_, dweight_.shape[0], &sorted); s != Status::Ok) return s;
    return simt::with_float(launch_.element, [&](auto t) { return sum<decltype(t)>(sorted); });
  }

 private:
  Status start() { return attrs_.accumulate ? Status::Ok : clear_rows(launch_, dweight_); }

  Status read() {
    ReadIdsParams p{};
    const IterationSpace space = space_of(ids_);
    p.space = simt::space_over<1>(space, {operand(ids_, space)});
    p.index = simt::index_params(launch_, Args::ids, dweight_.shape[0], false);
    p.out = entries_, p.padding = attrs_.padding_idx;
    return simt::submit<ReadIds>(launch_, {simt::blocks_for(count_, 256)}, 256, p);
  }

  template <class T>
  Status sum(const simt::Entry* sorted) {
    SumRowsParams p{};
    void* runs = static_cast<char*>(launch_.workspace) + simt::sort_workspace(count_);
    p.sorted = simt::sorted_params(sorted, count_, dweight_.shape[0], dweight_.shape[1], runs);
    p.dy = simt::space_over<1>(simt::leading(dy_), {simt::leading_operand(dy_)});
    p.gradient = dy_.data, p.weight = dweight_.data;
    p.dy_column = simt::last_stride(dy_);
    p.weight_row = dweight_.strides[0], p.weight_column = simt::last_stride(dweight_);
    p.accumulate = attrs_.accumulate != 0;
    return simt::fold_sorted<SumRows<T>>(launch_, p);
  }

  const Launch& launch_;
  const TensorView &dy_, &ids_, &dweight_;
  EmbeddingBackwardAttrs attrs_;
  int64_t count_;
  simt::Entry* entries_;
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

template <>
struct SimtKernel<embedding::BagForward> {
  static Status run(const Launch& launch) { return embedding::bag_forward(launch); }
};

template <>
struct SimtKernel<embedding::BagBackward> {
  static Status run(const Launch& launch) { return embedding::BagGradient(launch).run(); }
};

}  // namespace baracuda
