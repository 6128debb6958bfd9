// Launches sorting on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/sort/simt_unique.h"
#include "ops/sort/skus.h"
#include "simt/sort_launch.h"
#include "simt/space_launch.h"

namespace baracuda::sort {

// The tensor with its axis as the last one, so that positions go line by line.
inline TensorView axis_last(const TensorView& t, int64_t axis) {
  TensorView seen = t;
  if (t.rank == 0) return seen;
  const int last = t.rank - 1;
  for (int d = static_cast<int>(axis); d < last; ++d)
    seen.shape[d] = t.shape[d + 1], seen.strides[d] = t.strides[d + 1];
  seen.shape[last] = t.shape[axis], seen.strides[last] = t.strides[axis];
  return seen;
}
inline uint64_t sign_of(Element e) { return is_float(e) || kSigned.has(e) ? uint64_t{1} << (8 * size_of(e) - 1) : 0; }
inline uint64_t infinity_of(Element e) {
  if (e == Element::F16) return 0x7c00;
  if (e == Element::BF16) return 0x7f80;
  if (e == Element::F32) return 0x7f800000;
  return e == Element::F64 ? uint64_t{0x7ff} << 52 : 0;
}
inline LineParams line_params(const TensorView& x, bool descending) {
  LineParams p{};
  const IterationSpace space = space_of(x);
  p.x = simt::space_over<1>(space, {operand(x, space)});
  p.data = x.data, p.count = x.numel(), p.length = x.rank == 0 ? 1 : x.shape[x.rank - 1];
  p.size = static_cast<int32_t>(size_of(x.element)), p.truth = x.element == Element::Bool;
  p.mask = ~uint64_t{0} >> (64 - 8 * p.size), p.flip = descending ? ~uint64_t{0} : 0;
  p.sign = sign_of(x.element), p.infinity = infinity_of(x.element);
  return p;
}
// Makes the entries of all lines in the workspace.
inline Status make_entries(const Launch& launch, LineParams& p) {
  p.from = p.to = static_cast<simt::Entry*>(launch.workspace);
  return simt::submit<MakeEntries>(launch, {simt::blocks_for(p.count, 256)}, 256, p);
}
// Sorts all lines into the workspace; p.from is where.
inline Status sort_all(const Launch& launch, LineParams& p) {
  simt::Entry* entries = static_cast<simt::Entry*>(launch.workspace);
  const simt::Grid grid{simt::blocks_for(p.count, 256)};
  const int64_t most = static_cast<int64_t>(p.mask >> (p.size == 8 ? 1 : 0));  // ids are counted as int64_t
  Status s = make_entries(launch, p);
  if (s == Status::Ok) s = simt::sort_entries(launch, entries, p.count, most, &p.from);
  if (s != Status::Ok || p.count == p.length) return s;
  s = simt::submit<NumberLines>(launch, grid, 256, p);
  if (s == Status::Ok) s = simt::sort_entries(launch, entries, p.count, p.count / p.length - 1, &p.from);
  return s;
}

// Sorts, and writes the results: views with the axis last, or without it.
inline Status write_results(const Launch& launch, LineParams& p, const TensorView& values, const TensorView& indices) {
  const IterationSpace space = space_of(values);
  p.results = simt::space_over<2>(space, {operand(values, space), operand(indices, space)});
  p.values = values.data, p.indices = indices.as<int64_t>(), p.made = values.numel();
  if (p.made == 0) return Status::Ok;
  p.width = p.made / (p.count / p.length);
  if (const Status s = sort_all(launch, p); s != Status::Ok) return s;
  return simt::submit<WriteSorted>(launch, {simt::blocks_for(p.made, 256)}, 256, p);
}
inline Status first_places(const Launch& launch, int64_t axis, bool descending) {
  using Args = SortArgs;
  LineParams p = line_params(axis_last(launch[Args::x], axis), descending);
  return write_results(launch, p, axis_last(launch[Args::values], axis), axis_last(launch[Args::indices], axis));
}
inline Status rank(const Launch& launch, Which which) {
  using Args = SortArgs;
  const auto attrs = attributes<RankAttrs>(launch);
  LineParams p = line_params(axis_last(launch[Args::x], attrs.axis), false);
  p.ranked = 1, p.which = which, p.k = attrs.k - 1;
  return write_results(launch, p, launch[Args::values], launch[Args::indices]);
}
inline UniqueParams unique_params(const Launch& launch, const LineParams& line) {
  using Args = UniqueArgs;
  const TensorView &values = launch[Args::values], &indices = launch[Args::indices];
  const TensorView &inverse = launch[Args::inverse], &counts = launch[Args::counts];
  UniqueParams p{};
  p.x = line.x, p.data = line.data, p.from = line.from, p.n = line.count, p.size = line.size;
  p.has_nan = line.infinity != 0, p.nan = line.mask;
  p.values = values.data, p.capacity = values.shape[0], p.value_stride = values.strides[0];
  if (indices.present()) p.indices = indices.as<int64_t>(), p.index_stride = indices.strides[0];
  if (inverse.present()) p.inverse = inverse.as<int64_t>(), p.inverse_stride = inverse.strides[0];
  if (counts.present()) p.counts = counts.as<int64_t>(), p.count_stride = counts.strides[0];
  p.count = launch[Args::count].as<int64_t>();
  p.chunks = (p.n + kSimtRunChunk - 1) / kSimtRunChunk;
  p.places = reinterpret_cast<int64_t*>(static_cast<char*>(launch.workspace) + simt::sort_workspace(p.n));
  p.starts = p.places + p.chunks;
  return p;
}
inline Status unique(const Launch& launch, bool sorted) {
  LineParams line = line_params(launch[UniqueArgs::x], false);
  Status s = line.count == 0 ? Status::Ok : sorted ? sort_all(launch, line) : make_entries(launch, line);
  const UniqueParams p = unique_params(launch, line);
  const simt::Grid grid{simt::blocks_for(p.chunks * 32, 256)};
  if (s == Status::Ok && p.n > 0) s = simt::submit<CountRuns>(launch, grid, 256, p);
  if (s == Status::Ok) s = simt::submit<SumRuns>(launch, {1}, SumRuns::kThreads, p);
  if (s == Status::Ok && p.n > 0) s = simt::submit<WriteRuns>(launch, grid, 256, p);
  if (s != Status::Ok || p.capacity == 0) return s;
  return simt::submit<FinishRuns>(launch, {simt::blocks_for(p.capacity, 256)}, 256, p);
}
inline Status search(const Launch& launch) {
  using Args = SearchArgs;
  const TensorView &sequence = launch[Args::sequence], &values = launch[Args::values], &y = launch[Args::y];
  const IterationSpace space = space_of(values);
  Operand rows{sequence.data, sequence.element, {}};
  for (int d = 0; sequence.rank > 1 && d + 1 < sequence.rank; ++d)
    rows.strides[d] = sequence.shape[d] == 1 ? 0 : sequence.strides[d];
  SearchParams p{};
  p.space = simt::space_over<3>(space, {operand(y, space), operand(values, space), rows});
  p.y = y.data, p.values = values.data, p.sequence = sequence.data;
  p.sign = sign_of(values.element), p.infinity = infinity_of(values.element);
  p.length = sequence.shape[sequence.rank - 1], p.stride = sequence.strides[sequence.rank - 1];
  p.element = static_cast<int32_t>(y.element), p.size = static_cast<int32_t>(size_of(values.element));
  p.truth = values.element == Element::Bool, p.right = attributes<SearchAttrs>(launch).right != 0;
  return simt::submit<SearchSorted>(launch, {simt::blocks_for(p.space.count, 256)}, 256, p);
}

}  // namespace baracuda::sort

namespace baracuda {

template <>
struct SimtKernel<sort::Sort> {
  static Status run(const Launch& launch) {
    const auto attrs = attributes<sort::SortAttrs>(launch);
    return sort::first_places(launch, attrs.axis, attrs.descending != 0);
  }
};
template <>
struct SimtKernel<sort::Topk> {
  static Status run(const Launch& launch) {
    const auto attrs = attributes<sort::TopkAttrs>(launch);
    return sort::first_places(launch, attrs.axis, attrs.largest != 0);
  }
};
template <sort::Which kWhich>
struct SimtKernel<sort::Rank<kWhich>> {
  static Status run(const Launch& launch) { return sort::rank(launch, kWhich); }
};
template <bool kSorted>
struct SimtKernel<sort::Unique<kSorted>> {
  static Status run(const Launch& launch) { return sort::unique(launch, kSorted); }
};
template <>
struct SimtKernel<sort::Search> {
  static Status run(const Launch& launch) { return sort::search(launch); }
};

}  // namespace baracuda
