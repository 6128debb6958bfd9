// Launches bags of rows and their gradients on a GPU.
#pragma once
#include "ops/embedding/simt.h"
#include "ops/embedding/simt_bag.h"
#include "ops/embedding/skus.h"
#include "simt/index_launch.h"
#include "simt/sort_launch.h"

namespace baracuda::embedding {

template <class Unit>
Status clear_units(const Launch& launch, const TensorView& table, Operand rows, int64_t factor) {
  ClearParams p{};
  rows.strides[0] /= factor;
  p.space = simt::space_of_rows<1>(simt::leading(table), {rows}, table.shape[1] / factor);
  p.data = table.data, p.column = simt::last_stride(table);
  return simt::submit<Clear<Unit>>(launch, {simt::blocks_for(p.space.count, 256)}, 256, p);
}
inline Status clear_rows(const Launch& launch, const TensorView& table) {
  const Operand rows = simt::leading_operand(table);
  const int64_t size = size_of(table.element), pack = simt::kPackBytes / size, column = simt::last_stride(table);
  if (table.shape[1] % pack == 0 && simt::packs(rows, 1, column, size))
    return clear_units<simt::Pack<uint32_t>>(launch, table, rows, pack);
  if (size == 2) return clear_units<uint16_t>(launch, table, rows, 1);
  return size == 4 ? clear_units<uint32_t>(launch, table, rows, 1) : clear_units<uint64_t>(launch, table, rows, 1);
}

inline BagsParams bags_params(const Launch& launch, int ids, int offsets, const BagAttrs& attrs) {
  BagsParams p{};
  const TensorView& t = launch[offsets];
  if (t.present()) {
    p.offsets = simt::index_params(launch, offsets, launch[ids].numel(), false);
    p.step = t.strides[0], p.given = t.shape[0];
    p.count = p.given - (attrs.include_last_offset ? 1 : 0);
  } else {
    p.given = -1, p.count = launch[ids].shape[0], p.size = launch[ids].shape[1];
  }
  return p;
}
inline Status check_offsets(const Launch& launch, const BagsParams& p) {
  return p.given > 0 ? simt::submit<CheckOffsets>(launch, {simt::blocks_for(p.given, 256)}, 256, p) : Status::Ok;
}
// The operand of a tensor of ids' shape; an absent one does not move.
inline Operand beside_ids(const TensorView& t, const IterationSpace& space) {
  return t.present() ? operand(t, space) : Operand{};
}

inline Status bag_forward(const Launch& launch) {
  using Args = BagArgs;
  const TensorView &ids = launch[Args::ids], &weight = launch[Args::weight], &y = launch[Args::y];
  const BagAttrs attrs = attributes<BagAttrs>(launch);
  BagFoldParams p{};
  p.bags = bags_params(launch, Args::ids, Args::offsets, attrs);
  if (Status s = check_offsets(launch, p.bags); s != Status::Ok) return s;
  // Ids in no bag, or of rows without columns, are not read by the fold.
  if (attrs.include_last_offset || y.numel() == 0) {
    if (Status s = simt::check_indices(launch, Args::ids, weight.shape[0], false); s != Status::Ok) return s;
  }
  const IterationSpace space = space_of(ids);
  p.positions = simt::space_over<BagFoldParams::kTensors>(
      space, {operand(ids, space), beside_ids(launch[Args::per_sample_weights], space)});
  p.index = simt::index_params(launch, Args::ids, weight.shape[0], false);
  p.weight = weight.data, p.y = y.data;
  if (launch[Args::per_sample_weights].present()) p.scales = launch[Args::per_sample_weights].data;
  p.columns = weight.shape[1], p.padding = attrs.padding_idx, p.mode = static_cast<int32_t>(attrs.mode);
  p.weight_row = weight.strides[0], p.weight_column = weight.strides[1];
  p.y_row = y.strides[0], p.y_column = y.strides[1];
  if (const TensorView& chosen = launch[Args::max_indices]; chosen.present()) {
    p.chosen = chosen.as<int64_t>(), p.chosen_row = chosen.strides[0], p.chosen_column = chosen.strides[1];
  }
  return simt::with_float(launch.element, [&](auto t) {
    using Body = BagFold<decltype(t)>;
    return simt::submit<Body>(launch, {simt::blocks_for(y.numel(), Body::kThreads)}, Body::kThreads, p);
  });
}

class BagGradient {
  using Args = BagBackwardArgs;

 public:
  explicit BagGradient(const Launch& launch)
      : launch_(launch),
        dweight_(launch[Args::dweight]),
        attrs_(attributes<BagAttrs>(launch)),
        count_(launch[Args::ids].numel()),
        entries_(static_cast<simt::Entry*>(launch.workspace)) {}

  Status run() {
    Status s = clear_rows(launch_, dweight_);
    const BagsParams bags = bags_params(launch_, Args::ids, Args::offsets, attrs_);
    if (s == Status::Ok) s = check_offsets(launch_, bags);
    if (s != Status::Ok || count_ == 0) return s;
    const int64_t state = launch_.element == Element::F64 ? 16 : 8;
    char* runs = static_cast<char*>(launch_.workspace) + simt::sort_workspace(count_);
    bag_ = reinterpret_cast<int32_t*>(runs + simt::runs_workspace(count_, dweight_.shape[1], state));
    kept_ = bag_ + count_;
    if (s = read(bags); s != Status::Ok) return s;
    const simt::Entry* sorted = entries_;
    if (s = simt::sort_entries(launch_, entries_, count_, dweight_.shape[0], &sorted); s != Status::Ok) return s;
    BagRowsParams p = params();
    p.sorted = simt::sorted_params(sorted, count_, dweight_.shape[0], dweight_.shape[1], runs);
    return simt::with_float(launch_.element, [&](auto t) {
      using T = decltype(t);
      const Status status = simt::fold_sorted<BagRows<T>>(launch_, p);
      if (status != Status::Ok || !p.dscales) return status;
      return simt::submit<BagScales<T>>(launch_, {simt::blocks_for(count_, 8)}, 256, p);
    });
  }

 private:
  Status read(const BagsParams& bags) {
    BagEntriesParams p{};
    const IterationSpace space = space_of(launch_[Args::ids]);
    p.bags = bags, p.positions = simt::space_over<1>(space, {operand(launch_[Args::ids], space)});
    p.index = simt::index_params(launch_, Args::ids, dweight_.shape[0], false);
    p.out = entries_, p.bag = bag_, p.kept = kept_, p.padding = attrs_.padding_idx;
    const Status s = simt::submit<BagEntries>(launch_, {simt::blocks_for(count_, 256)}, 256, p);
    if (s != Status::Ok || attrs_.mode != kBagMean) return s;
    return simt::submit<BagCounts>(launch_, {simt::blocks_for(bags.count, 8)}, 256, p);
  }

  BagRowsParams params() const {
    const TensorView &ids = launch_[Args::ids], &dy = launch_[Args::dy], &scales = launch_[Args::per_sample_weights],
                     &weight = launch_[Args::weight], &chosen = launch_[Args::max_indices],
                     &dscales = launch_[Args::dper_sample_weights];
    BagRowsParams p{};
    const IterationSpace space = space_of(ids);
    p.positions = simt::space_over<BagRowsParams::kTensors>(
        space, {operand(ids, space), beside_ids(scales, space), beside_ids(dscales, space)});
    p.ids = ids.data, p.id_element = static_cast<int32_t>(ids.element);
    p.bag = bag_, p.kept = kept_, p.count = count_, p.columns = dweight_.shape[1];
    p.mode = static_cast<int32_t>(attrs_.mode);
    p.dy = dy.data, p.dy_row = dy.strides[0], p.dy_column = dy.strides[1];
    p.dweight = dweight_.data, p.dweight_row = dweight_.strides[0], p.dweight_column = dweight_.strides[1];
    if (scales.present()) p.scales = scales.data;
    if (dscales.present()) p.dscales = dscales.data;
    if (weight.present()) p.weight = weight.data, p.weight_row = weight.strides[0], p.weight_column = weight.strides[1];
    if (chosen.present())
      p.chosen = chosen.as<int64_t>(), p.chosen_row = chosen.strides[0], p.chosen_column = chosen.strides[1];
    return p;
  }

  const Launch& launch_;
  const TensorView& dweight_;
  BagAttrs attrs_;
  int64_t count_;
  simt::Entry* entries_;
  int32_t *bag_ = nullptr, *kept_ = nullptr;
};

}  // namespace baracuda::embedding
