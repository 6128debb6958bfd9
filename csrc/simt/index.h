// Indices in kernel bodies: read, checked, and told to the device's status word where they are out of range.
#pragma once
#include "simt/space.h"

namespace baracuda::simt {

struct IndexParams {
  BCU_GLOBAL const void* data;
  int64_t limit, row;
  BCU_GLOBAL Fault* fault;
  int32_t element, tensor, wrap;  // wrap: negative ones count from the end
};

// An index as it counts from the start; false, with the fault raised, where it is out of range.
BCU_DEVICE bool read_index(BCU_CONSTANT IndexParams& p, int64_t offset, int64_t position, BCU_THREAD int64_t& id) {
  int64_t given = load_element<int64_t>(p.data, p.element, offset);
  id = p.wrap && given < 0 ? given + p.limit : given;
  if (uint64_t(id) < uint64_t(p.limit)) return true;
  raise(p.fault, p.row, p.tensor, position, given, p.limit);
  return false;
}

struct CheckParams {
  Space<1> space;
  IndexParams index;
};

// For calls that read no element at them: all indices are checked in any case.
struct CheckIndices {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CheckParams;

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1], id;
      locate(p.space, i, offset);
      read_index(p.index, offset[0], i, id);
    }
  }
};

}  // namespace baracuda::simt
