// Launches a copy of rows with the widest unit that both tensors allow.
#pragma once
#include "simt/copy_rows.h"
#include "simt/space_launch.h"

namespace baracuda::simt {

struct RowCopy {
  IterationSpace rows;
  Operand from, to, index, position;  // over `rows`
  int64_t columns, from_column, to_column;
  int64_t from_step, to_step;  // elements that one index moves by
  int64_t limit;
  Number start;
  int32_t tensor;  // which one a fault names

  // In units of `factor` elements, or of one.
  CopyRowsParams params(const Launch& launch, int64_t factor) const {
    CopyRowsParams p{};
    std::array<Operand, CopyRowsParams::kTensors> all = {from, to, index, position};
    for (int d = 0; d < rows.rank; ++d) all[0].strides[d] /= factor, all[1].strides[d] /= factor;
    p.space = space_of_rows(rows, all, columns / factor);
    p.from = from.data, p.to = to.data, p.index = index.data;
    p.start = start;
    p.from_column = from_column, p.to_column = to_column;
    p.from_step = from_step / factor, p.to_step = to_step / factor;
    p.limit = limit;
    p.fault = fault_of(launch);
    p.row = launch.row;
    p.tensor = tensor, p.index_element = static_cast<int32_t>(index.element);
    return p;
  }

  template <class Unit>
  Status launch_as(const Launch& launch, int64_t factor) const {
    const CopyRowsParams p = params(launch, factor);
    return submit<CopyRows<Unit>>(launch, {blocks_for(p.space.count, 256)}, 256, p);
  }

  Status run(const Launch& launch) const {
    const int64_t size = size_of(from.element), pack = kPackBytes / size;
    const bool wide = columns % pack == 0 && from_step % pack == 0 && to_step % pack == 0 &&
                      packs(from, rows.rank, from_column, size) && packs(to, rows.rank, to_column, size);
    if (wide) return launch_as<Pack<uint32_t>>(launch, pack);
    if (size == 2) return launch_as<uint16_t>(launch, 1);
    return size == 4 ? launch_as<uint32_t>(launch, 1) : launch_as<uint64_t>(launch, 1);
  }
};

}  // namespace baracuda::simt
