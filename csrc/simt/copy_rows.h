// Copies rows between two tensors, one of which is entered at a row that an index tensor or a number says. Bits are
// moved as they are, in units of 2 to 16 bytes.
#pragma once
#include "simt/space.h"

namespace baracuda::simt {

struct CopyRowsParams {
  enum : int { kFrom, kTo, kIndex, kPosition, kTensors };
  Space<4> space;  // of units; strides of the data in units, of the index in elements
  BCU_GLOBAL const void* from;
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* index;  // null: `start`
  Number start;
  int64_t from_column, to_column;  // from one unit of a row to the next
  int64_t from_step, to_step;      // by one index
  int64_t limit;
  BCU_GLOBAL Fault* fault;
  int64_t row;
  int32_t tensor, index_element;  // which tensor a fault names
};

template <class Unit>
struct CopyRows {
  using Params = CopyRowsParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors];
      int64_t unit = locate(p.space, i, offset);
      int64_t at =
          p.index ? load_element<int64_t>(p.index, p.index_element, offset[Params::kIndex]) : number<int64_t>(p.start);
      if (uint64_t(at) >= uint64_t(p.limit)) {
        raise(p.fault, p.row, p.tensor, offset[Params::kPosition], at, p.limit);
        continue;
      }
      ((BCU_GLOBAL Unit*)p.to)[offset[Params::kTo] + at * p.to_step + unit * p.to_column] =
          ((BCU_GLOBAL const Unit*)p.from)[offset[Params::kFrom] + at * p.from_step + unit * p.from_column];
    }
  }
};

}  // namespace baracuda::simt
