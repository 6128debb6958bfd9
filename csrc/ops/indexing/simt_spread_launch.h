// Launches writing and folding by index on a GPU.
#pragma once
#include "ops/indexing/simt_places.h"
#include "ops/indexing/simt_spread.h"
#include "simt/copy_cells_launch.h"
#include "simt/sort_launch.h"

namespace baracuda::indexing {

// Terms of a source sorted by the place of y that they are for. Places are counted along the axis, or in y's logical
// order.
class SpreadLaunch {
 public:
  // `indices`: which tensor of the launch has them.
  SpreadLaunch(const Launch& launch, By by, const CollectAttrs& attrs, const TensorView& source, const TensorView& y,
               int indices)
      : launch_(launch), count_(launch[indices].numel()), element_(y.element) {
    const TensorView index = as_vector(launch[indices]), target = as_vector(y), from = as_vector(source);
    const Places places(by, attrs.axis, source, y, launch[indices]);
    read_.index = simt::index_params(launch, indices, places.limit, attrs.wrap != 0);
    read_.places = by == By::Axis ? places.limit : target.numel(), read_.step = 1;
    Operand beside;
    if (by == By::Element) {
      const Operand counted = simt::counting(space_of(target));
      for (int d = 0; d < index.rank; ++d) beside.strides[d] = d == places.axis ? 0 : counted.strides[d];
      read_.step = counted.strides[places.axis];
    }
    read_.space = simt::space_over<2>(space_of(index), {strides_of(index), beside});
    const Operand to = strides_of(target), terms = strides_of(from);
    IterationSpace columns;
    if (by == By::Axis) {
      columns = space_of(target);
      columns.shape[places.axis] = 1;
      write_.target = along(places.limit, to.strides[places.axis]);
      write_.source = along(count_, terms.strides[places.axis]);
    } else {
      write_.target = simt::space_over<1>(space_of(target), {to});
      write_.source = simt::space_over<1>(space_of(index), {terms});
    }
    write_.columns = simt::space_over<2>(columns, {to, terms});
    write_.from = source.data, write_.to = y.data;
    write_.element = static_cast<int32_t>(element_);
  }

  Status assign() {
    if (Status s = sort(); s != Status::Ok || count_ == 0) return s;
    return simt::with_bytes(size_of(element_), [&](auto bytes) { return submit<AssignCells<bytes()>>(); });
  }

  // One number; the source only lent its shape.
  Status fill(const Scalar& value) {
    write_.from = nullptr, write_.number = simt::number_of(value);
    if (value.data) return fill_from_device();
    alignas(16) char cell[16] = {};
    simt::stored_number(value, element_, cell);
    for (int64_t i = 0; i < 16; i += size_of(element_))
      std::memcpy(reinterpret_cast<char*>(write_.pattern) + i, cell, size_of(element_));
    return assign();
  }

  Status fold(int64_t mode, bool keeps_self, const simt::Number& alpha) {
    if (Status s = sort(); s != Status::Ok || count_ == 0) return s;
    write_.mode = static_cast<int32_t>(mode), write_.keeps_self = keeps_self, write_.number = alpha;
#if BCU_HAS_F64
    if (element_ == Element::F64) return simt::fold_sorted<FoldTerms<double>>(launch_, write_);
#endif
    if (is_float(element_)) return simt::fold_sorted<FoldTerms<float>>(launch_, write_);
    if (kSigned.has(element_)) return simt::fold_sorted<FoldTerms<int64_t>>(launch_, write_);
    return simt::fold_sorted<FoldTerms<uint64_t>>(launch_, write_);
  }

 private:
  template <class Body>
  Status submit() {
    return simt::submit<Body>(launch_, {simt::blocks_for(count_ * write_.columns.count, 256)}, 256, write_);
  }
  Status fill_from_device() {
    if (Status s = sort(); s != Status::Ok || count_ == 0) return s;
#if BCU_HAS_F64
    if (element_ == Element::F64) return submit<AssignNumber<double>>();
#endif
    // Any number but zero is true, also one below 1.
    if (is_float(element_) || element_ == Element::Bool) return submit<AssignNumber<float>>();
    if (kSigned.has(element_)) return submit<AssignNumber<int64_t>>();
    return submit<AssignNumber<uint64_t>>();
  }

  static simt::Space<1> along(int64_t size, int64_t stride) {
    Operand line;
    line.strides[0] = stride;
    return simt::space_over<1>(IterationSpace{1, {size}}, {line});
  }

  Status sort() {
    if (count_ == 0) return Status::Ok;
    simt::Entry* entries = static_cast<simt::Entry*>(launch_.workspace);
    read_.out = entries;
    Status s = simt::submit<ReadPlaces>(launch_, {simt::blocks_for(count_, 256)}, 256, read_);
    const simt::Entry* sorted = entries;
    if (s == Status::Ok) s = simt::sort_entries(launch_, entries, count_, read_.places, &sorted);
    void* runs = static_cast<char*>(launch_.workspace) + simt::sort_workspace(count_);
    write_.sorted = simt::sorted_params(sorted, count_, read_.places, write_.columns.count, runs);
    return s;
  }

  const Launch& launch_;
  ReadPlacesParams read_{};
  WriteParams write_{};
  int64_t count_;
  Element element_;
};

inline simt::Number one() {
  simt::Number n{};
  n.f = 1, n.whole = 1, n.real = math::bit_cast<int64_t>(1.0);
  return n;
}

// y = x, then the terms of the source.
template <class Args>
Status assign(const Launch& launch, By by) {
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  const TensorView& y = launch[Args::y];
  if (Status s = simt::copy_tensor(launch, y, launch[Args::x]); s != Status::Ok) return s;
  return SpreadLaunch(launch, by, {attrs.axis, attrs.wrap}, launch[Args::source], y, Args::index).assign();
}
template <class Args>
Status fill(const Launch& launch, By by, const TensorView& shape) {
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  const TensorView& y = launch[Args::y];
  if (Status s = simt::copy_tensor(launch, y, launch[Args::x]); s != Status::Ok) return s;
  SpreadLaunch spread(launch, by, {attrs.axis, attrs.wrap}, shape, y, Args::index);
  return spread.fill(launch.scalars[Args::value]);
}
template <class Args>
Status reduce(const Launch& launch, By by, const simt::Number& alpha) {
  const SpreadAttrs attrs = attributes<SpreadAttrs>(launch);
  const TensorView& y = launch[Args::y];
  if (Status s = simt::copy_tensor(launch, y, launch[Args::x]); s != Status::Ok) return s;
  SpreadLaunch spread(launch, by, {attrs.axis, attrs.wrap}, launch[Args::source], y, Args::index);
  return spread.fold(attrs.mode, attrs.include_self != 0, alpha);
}

inline Status gradient(const Launch& launch, By by) {
  using Args = CollectBackwardArgs;
  const TensorView &dy = launch[Args::dy], &dx = launch[Args::dx];
  if (Status s = simt::clear_tensor(launch, dx); s != Status::Ok) return s;
  return SpreadLaunch(launch, by, attributes<CollectAttrs>(launch), dy, dx, Args::index).fold(kSum, false, one());
}

}  // namespace baracuda::indexing
