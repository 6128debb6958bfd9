// Launches reading and writing by index on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/indexing/simt.h"
#include "ops/indexing/simt_bins_launch.h"
#include "ops/indexing/simt_compact.h"
#include "ops/indexing/simt_spread_launch.h"

namespace baracuda::indexing {

class CollectLaunch {
 public:
  // `index`: which tensor of the launch has the indices.
  CollectLaunch(const Launch& launch, By by, const CollectAttrs& attrs, const TensorView& plain,
                const TensorView& indexed, int index)
      : launch_(launch), places_(by, attrs.axis, plain, indexed, launch[index]), bytes_(size_of(indexed.element)) {
    p_.is_flat = by == By::Flat;
    if (p_.is_flat) p_.flat = simt::space_over<1>(space_of(indexed), {strides_of(indexed)});
    p_.index = simt::index_params(launch, index, places_.limit, attrs.wrap != 0);
  }

  Status read() {
    p_.to = places_.plain.data, p_.from = places_.indexed.data;
    widen();
    p_.step = places_.step;
    p_.space = simt::space_over<CollectParams::kTensors>(
        places_.space, {places_.plain, places_.indexed, places_.index, places_.position});
    // Where nothing is read, indices are checked all the same.
    if (p_.space.count == 0) return simt::check_indices(launch_, p_.index.tensor, p_.index.limit, p_.index.wrap != 0);
    return simt::with_bytes(bytes_, [&](auto bytes) {
      return simt::submit<CollectCells<bytes()>>(launch_, {simt::blocks_for(p_.space.count, 256)}, 256, p_);
    });
  }

 private:
  // Whether two neighbours along the last dimension can be taken as one.
  bool doubles() const {
    const int last = places_.space.rank - 1;
    const Places& s = places_;
    if (p_.is_flat || s.axis == last || s.space.shape[last] % 2 != 0 || s.step % 2 != 0) return false;
    if (s.index.strides[last] != 0 || s.plain.strides[last] != 1 || s.indexed.strides[last] != 1) return false;
    for (int d = 0; d < last; ++d)
      if (s.plain.strides[d] % 2 != 0 || s.indexed.strides[d] % 2 != 0) return false;
    return (reinterpret_cast<uintptr_t>(s.plain.data) | reinterpret_cast<uintptr_t>(s.indexed.data)) % (2 * bytes_) ==
           0;
  }
  void widen() {
    while (bytes_ < simt::kPackBytes && doubles()) {
      const int last = places_.space.rank - 1;
      places_.space.shape[last] /= 2, places_.step /= 2, bytes_ *= 2;
      for (int d = 0; d < last; ++d) places_.plain.strides[d] /= 2, places_.indexed.strides[d] /= 2;
      places_.position.strides[last] *= 2;
    }
  }

  const Launch& launch_;
  Places places_;
  int64_t bytes_;
  CollectParams p_{};
};

inline Status collect(const Launch& launch, By by) {
  using Args = CollectArgs;
  const CollectAttrs attrs = attributes<CollectAttrs>(launch);
  return CollectLaunch(launch, by, attrs, launch[Args::y], launch[Args::x], Args::index).read();
}

inline Status index_fill(const Launch& launch) {
  using Args = FillArgs;
  TensorView slices = as_vector(launch[Args::y]);  // what a source would look like
  slices.shape[attributes<SpreadAttrs>(launch).axis] = launch[Args::index].numel();
  return fill<Args>(launch, By::Axis, slices);
}

inline Status one_hot(const Launch& launch) {
  using Args = OneHotArgs;
  const TensorView &index = launch[Args::index], &y = launch[Args::y];
  OneHotParams p{};
  const int last = y.rank - 1;
  p.classes = y.shape[last];
  if (p.classes == 0) return simt::check_indices(launch, Args::index, 0, false);
  const Operand ids = strides_of(index), position = simt::counting(space_of(index));
  p.space = simt::space_over<OneHotParams::kTensors>(space_of(y), {strides_of(y), ids, position});
  p.index = simt::index_params(launch, Args::index, p.classes, false);
  p.y = y.data, p.element = static_cast<int32_t>(y.element);
  return simt::submit<OneHotCells>(launch, {simt::blocks_for(p.space.count, 256)}, 256, p);
}

// Elements of `values` where `tested` is not zero, or without values their coordinates.
inline Status compact(const Launch& launch, const TensorView& tested, const TensorView* values, const TensorView& y,
                      const TensorView& count) {
  if (Status s = simt::clear_tensor(launch, y); s != Status::Ok) return s;
  CompactParams p{};
  p.tested = simt::space_over<1>(space_of(tested), {strides_of(tested)});
  if (values) {
    p.values = simt::space_over<1>(space_of(*values), {strides_of(*values)});
    p.from = values->data, p.size = static_cast<int32_t>(size_of(y.element));
  }
  p.data = tested.data, p.to = y.data, p.count = count.as<int64_t>();
  p.places = static_cast<int64_t*>(launch.workspace);
  p.n = tested.numel(), p.chunks = (p.n + kSimtChunk - 1) / kSimtChunk;
  p.capacity = y.shape[0], p.row_stride = y.strides[0], p.column_stride = y.rank > 1 ? y.strides[1] : 0;
  p.element = static_cast<int32_t>(tested.element), p.rank = tested.rank;
  for (int d = 0; d < tested.rank; ++d) p.shape[d] = tested.shape[d];
  const simt::Grid grid{simt::blocks_for(p.chunks, CountKept::kThreads / 32)};
  Status s = simt::submit<CountKept>(launch, grid, CountKept::kThreads, p);
  if (s == Status::Ok) s = simt::submit<SumKept>(launch, {1}, SumKept::kThreads, p);
  if (s != Status::Ok || y.numel() == 0) return s;
  return simt::submit<MoveKept>(launch, grid, MoveKept::kThreads, p);
}

}  // namespace baracuda::indexing

namespace baracuda {

template <indexing::By kBy>
struct SimtKernel<indexing::Collect<kBy>> {
  static Status run(const Launch& launch) { return indexing::collect(launch, kBy); }
};
template <>
struct SimtKernel<indexing::Fill> {
  static Status run(const Launch& launch) { return indexing::index_fill(launch); }
};
template <>
struct SimtKernel<indexing::Assign<indexing::By::Element>> {
  static Status run(const Launch& launch) {
    using Args = indexing::ScatterArgs;
    if (launch[Args::source].present()) return indexing::assign<Args>(launch, indexing::By::Element);
    return indexing::fill<Args>(launch, indexing::By::Element, launch[Args::index]);
  }
};
template <>
struct SimtKernel<indexing::Assign<indexing::By::Axis>> {
  static Status run(const Launch& launch) { return indexing::assign<indexing::SpreadArgs>(launch, indexing::By::Axis); }
};
template <>
struct SimtKernel<indexing::Nonzero> {
  static Status run(const Launch& launch) {
    using Args = indexing::NonzeroArgs;
    return indexing::compact(launch, launch[Args::x], nullptr, launch[Args::y], launch[Args::count]);
  }
};
template <>
struct SimtKernel<indexing::MaskedSelect> {
  static Status run(const Launch& launch) {
    using Args = indexing::MaskedSelectArgs;
    return indexing::compact(launch, launch[Args::mask], &launch[Args::x], launch[Args::y], launch[Args::count]);
  }
};
template <>
struct SimtKernel<indexing::OneHot> {
  static Status run(const Launch& launch) { return indexing::one_hot(launch); }
};
template <>
struct SimtKernel<indexing::Bincount> {
  static Status run(const Launch& launch) { return indexing::bincount(launch); }
};
template <>
struct SimtKernel<indexing::Histc> {
  static Status run(const Launch& launch) { return indexing::histc(launch); }
};
template <indexing::By kBy>
struct SimtKernel<indexing::CollectBackward<kBy>> {
  static Status run(const Launch& launch) { return indexing::gradient(launch, kBy); }
};
template <>
struct SimtKernel<indexing::Reduce<indexing::By::Element>> {
  static Status run(const Launch& launch) {
    return indexing::reduce<indexing::SpreadArgs>(launch, indexing::By::Element, indexing::one());
  }
};
template <>
struct SimtKernel<indexing::Reduce<indexing::By::Axis>> {
  static Status run(const Launch& launch) {
    using Args = indexing::IndexAddArgs;
    return indexing::reduce<Args>(launch, indexing::By::Axis, simt::number_of(launch.scalars[Args::alpha]));
  }
};

}  // namespace baracuda
