// Launches counting on a GPU.
#pragma once
#include "ops/indexing/simt_bins.h"
#include "ops/indexing/simt_places.h"
#include "simt/index_launch.h"
#include "simt/sort_launch.h"
#include "simt/space_launch.h"

namespace baracuda::indexing {

// Of `count` entries in the workspace, whose ids are bins.
inline Status count_bins(const Launch& launch, int64_t count, const TensorView& y) {
  if (y.shape[0] == 0) return Status::Ok;  // only the number of bins is asked for
  CountBinsParams p{};
  p.bins = y.shape[0], p.stride = y.strides[0], p.y = y.data, p.element = static_cast<int32_t>(y.element);
  const simt::Entry* sorted = nullptr;
  simt::Entry* entries = static_cast<simt::Entry*>(launch.workspace);
  if (Status s = simt::sort_entries(launch, entries, count, p.bins, &sorted); s != Status::Ok) return s;
  p.sorted = simt::sorted_params(sorted, count, p.bins, 1, nullptr);
  return simt::submit<CountBins>(launch, {simt::blocks_for(p.bins, 256)}, 256, p);
}

inline Status bincount(const Launch& launch) {
  using Args = BincountArgs;
  static_assert(int{kLargest} <= int{SizeBins::kThreads});
  const TensorView &index = launch[Args::index], &y = launch[Args::y];
  const int64_t count = index.numel(), blocks = simt::blocks_for(count, 256);
  ReadBinsParams p{};
  p.space = simt::space_over<1>(space_of(index), {strides_of(index)});
  p.index = simt::index_params(launch, Args::index, INT64_MAX, false);
  p.out = static_cast<simt::Entry*>(launch.workspace), p.bins = y.shape[0];
  p.largest = reinterpret_cast<int64_t*>(static_cast<char*>(launch.workspace) + simt::sort_workspace(count));
  p.size = launch[Args::size].as<int64_t>(), p.blocks = std::min<int64_t>(blocks, kLargest);
  Status s = Status::Ok;
  if (count > 0) s = simt::submit<ReadBins>(launch, {p.blocks}, 256, p);
  if (s == Status::Ok) s = simt::submit<SizeBins>(launch, {1}, 256, p);
  return s == Status::Ok ? count_bins(launch, count, y) : s;
}

inline Status histc(const Launch& launch) {
  using Args = HistcArgs;
  const TensorView &x = launch[Args::x], &y = launch[Args::y];
  MakeBinsParams p{};
  p.x = simt::space_over<1>(space_of(x), {strides_of(x)});
  p.low = simt::number_of(launch.scalars[Args::low]), p.high = simt::number_of(launch.scalars[Args::high]);
  p.data = x.data, p.out = static_cast<simt::Entry*>(launch.workspace), p.bins = y.shape[0];
  p.element = static_cast<int32_t>(x.element);
  const int64_t count = x.numel();
  const simt::Grid grid{simt::blocks_for(count, 256)};
  Status s = Status::Ok;
#if BCU_HAS_F64
  if (count > 0 && x.element == Element::F64) s = simt::submit<MakeBins<double>>(launch, grid, 256, p);
#endif
  if (count > 0 && x.element != Element::F64) s = simt::submit<MakeBins<float>>(launch, grid, 256, p);
  return s == Status::Ok ? count_bins(launch, count, y) : s;
}

}  // namespace baracuda::indexing
