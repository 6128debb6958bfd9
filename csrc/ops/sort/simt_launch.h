// Launches sorting on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/sort/simt.h"
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
inline LineParams line_params(const TensorView& x, bool descending) {
  LineParams p{};
  const IterationSpace space = space_of(x);
  p.x = simt::space_over<1>(space, {operand(x, space)});
  p.data = x.data, p.count = x.numel(), p.length = x.rank == 0 ? 1 : x.shape[x.rank - 1];
  p.size = static_cast<int32_t>(size_of(x.element)), p.truth = x.element == Element::Bool;
  p.mask = ~uint64_t{0} >> (64 - 8 * p.size), p.flip = descending ? ~uint64_t{0} : 0;
  p.sign = is_float(x.element) || kSigned.has(x.element) ? uint64_t{1} << (8 * p.size - 1) : 0;
  if (x.element == Element::F16) p.infinity = 0x7c00;
  if (x.element == Element::BF16) p.infinity = 0x7f80;
  if (x.element == Element::F32) p.infinity = 0x7f800000;
  if (x.element == Element::F64) p.infinity = uint64_t{0x7ff} << 52;
  return p;
}
// Sorts all lines into the workspace; p.from is where.
inline Status sort_all(const Launch& launch, LineParams& p) {
  simt::Entry* entries = static_cast<simt::Entry*>(launch.workspace);
  const simt::Grid grid{simt::blocks_for(p.count, 256)};
  const int64_t most = static_cast<int64_t>(p.mask >> (p.size == 8 ? 1 : 0));  // ids are counted as int64_t
  p.to = entries;
  Status s = simt::submit<MakeEntries>(launch, grid, 256, p);
  if (s == Status::Ok) s = simt::sort_entries(launch, entries, p.count, most, &p.from);
  if (s != Status::Ok || p.count == p.length) return s;
  s = simt::submit<NumberLines>(launch, grid, 256, p);
  if (s == Status::Ok) s = simt::sort_entries(launch, entries, p.count, p.count / p.length - 1, &p.from);
  return s;
}

}  // namespace baracuda::sort

namespace baracuda {

template <>
struct SimtKernel<sort::Sort> {
  static Status run(const Launch& launch) {
    using Args = sort::SortArgs;
    const auto attrs = attributes<sort::SortAttrs>(launch);
    sort::LineParams p = sort::line_params(sort::axis_last(launch[Args::x], attrs.axis), attrs.descending != 0);
    if (p.count == 0) return Status::Ok;
    const TensorView values = sort::axis_last(launch[Args::values], attrs.axis);
    const TensorView indices = sort::axis_last(launch[Args::indices], attrs.axis);
    const IterationSpace space = space_of(values);
    p.results = simt::space_over<2>(space, {operand(values, space), operand(indices, space)});
    p.values = values.data, p.indices = indices.as<int64_t>();
    if (const Status s = sort::sort_all(launch, p); s != Status::Ok) return s;
    return simt::submit<sort::WriteSorted>(launch, {simt::blocks_for(p.count, 256)}, 256, p);
  }
};

}  // namespace baracuda
