// What is kept, in order, on GPUs: nonzero and masked_select. Chunks are counted, the counts become the places where
// chunks begin, and then the elements are moved.
#pragma once
#include "ops/indexing/modes.h"
#include "simt/chosen.h"
#include "simt/copy_cells.h"
#include "simt/space.h"

namespace baracuda::indexing {

struct CompactParams {
  simt::Space<1> tested;
  simt::Space<1> values;  // masked_select: what is moved
  BCU_GLOBAL const void* data;
  BCU_GLOBAL const void* from;
  BCU_GLOBAL void* to;
  BCU_GLOBAL int64_t* places;  // of chunks
  BCU_GLOBAL int64_t* count;
  int64_t shape[simt::kMaxDims];  // of what is tested, outermost dimension first
  int64_t n, chunks, capacity, row_stride, column_stride;
  int32_t element, rank, size;  // size: of what is moved, in bytes; 0: coordinates are written
};

// NaN is kept, -0 is not.
struct Kept {
  using Params = CompactParams;
  enum : int { kChunk = kSimtChunk };

  BCU_DEVICE bool has(BCU_CONSTANT Params& p, int64_t at) {
    int64_t offset[1];
    simt::locate(p.tested, at, offset);
    switch (p.element) {
      case simt::kF16:
      case simt::kBF16:
        return (((BCU_GLOBAL const uint16_t*)p.data)[offset[0]] & 0x7fffu) != 0;
      case simt::kF32:
        return (((BCU_GLOBAL const uint32_t*)p.data)[offset[0]] & 0x7fffffffu) != 0;
#if BCU_HAS_F64
      case simt::kF64:
        return (((BCU_GLOBAL const uint64_t*)p.data)[offset[0]] << 1u) != 0;
#endif
    }
    return simt::load_element<uint64_t>(p.data, p.element, offset[0]) != 0;
  }
};

struct WriteKept {
  using Params = CompactParams;

  BCU_DEVICE void write(BCU_CONSTANT Params& p, int64_t to, int64_t at, bool kept) {
    if (kept && to < p.capacity) put(p, to, at);
  }
  template <int kBytes>
  BCU_DEVICE void move(BCU_CONSTANT Params& p, int64_t to, int64_t from) {
    using Element = simt::Cell<kBytes>;
    ((BCU_GLOBAL Element*)p.to)[to] = ((BCU_GLOBAL const Element*)p.from)[from];
  }
  BCU_DEVICE void put_coordinates(BCU_CONSTANT Params& p, int64_t to, int64_t at) {
    for (int d = p.rank - 1; d >= 0; --d) {
      int64_t next = at / p.shape[d];
      ((BCU_GLOBAL int64_t*)p.to)[to + d * p.column_stride] = at - next * p.shape[d];
      at = next;
    }
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t place, int64_t at) {
    int64_t to = place * p.row_stride, from[1];
    if (p.size == 0) return put_coordinates(p, to, at);
    simt::locate(p.values, at, from);
    switch (p.size) {
      case 1:
        return move<1>(p, to, from[0]);
      case 2:
        return move<2>(p, to, from[0]);
      case 4:
        return move<4>(p, to, from[0]);
      case 8:
        return move<8>(p, to, from[0]);
      default:
        return move<16>(p, to, from[0]);
    }
  }
};

using CountKept = simt::CountChosen<Kept>;
using SumKept = simt::PlaceChosen<Kept>;
using MoveKept = simt::WriteChosen<Kept, WriteKept>;

}  // namespace baracuda::indexing
