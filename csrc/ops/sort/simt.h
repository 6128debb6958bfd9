// Sorting on GPUs: all lines at once. Elements become entries by their keys, which simt/sort.h sorts; a second sort, by
// line, keeps that order within each.
#pragma once
#include "ops/sort/order.h"
#include "ops/sort/places.h"
#include "simt/copy_cells.h"
#include "simt/sort.h"
#include "simt/space.h"

namespace baracuda::sort {

struct LineParams {
  simt::Space<1> x;        // elements of all lines, one line after another
  simt::Space<2> results;  // values and indices, likewise
  BCU_GLOBAL const void* data;
  BCU_GLOBAL void* values;
  BCU_GLOBAL int64_t* indices;
  BCU_GLOBAL const simt::Entry* from;
  BCU_GLOBAL simt::Entry* to;
  uint64_t sign, infinity, mask,
      flip;  // as order.h has them; the bits of an element; those where the largest come first
  int64_t count, length;
  int64_t made, width;  // results, of all lines and of one
  int64_t k;            // of a rank, from 0 on
  Which which;
  int32_t ranked;       // whether results are ranks, not the first places
  int32_t size, truth;  // bytes of an element; whether it is bool
};

// The bits of an element, as uint64_t.
BCU_DEVICE uint64_t bits_of_element(BCU_GLOBAL const void* data, int64_t at, int32_t size, int32_t truth) {
  switch (size) {
    case 1: {
      uint64_t v = ((BCU_GLOBAL const uint8_t*)data)[at];
      return truth != 0 ? (v != 0 ? uint64_t(1) : uint64_t(0)) : v;
    }
    case 2:
      return ((BCU_GLOBAL const uint16_t*)data)[at];
    case 4:
      return ((BCU_GLOBAL const uint32_t*)data)[at];
  }
  return ((BCU_GLOBAL const uint64_t*)data)[at];
}
// Its key in the lower end: that of its bits in the upper end is shifted back.
BCU_DEVICE uint64_t key_at(BCU_GLOBAL const void* data, int64_t at, int32_t size, int32_t truth, uint64_t sign,
                           uint64_t infinity) {
  uint32_t up = 64u - 8u * uint32_t(size);
  return key_of<uint64_t>(bits_of_element(data, at, size, truth) << up, sign << up, infinity << up) >> up;
}
BCU_DEVICE uint64_t bits_at(BCU_CONSTANT LineParams& p, int64_t at) {
  return bits_of_element(p.data, at, p.size, p.truth);
}

struct MakeEntries {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.count; i += step) {
      int64_t offset[1];
      simt::locate(p.x, i, offset);
      simt::Entry e;
      e.id = int64_t((key_at(p.data, offset[0], p.size, p.truth, p.sign, p.infinity) ^ p.flip) & p.mask);
      e.position = i;
      p.to[i] = e;
    }
  }
};

// The same entries by the lines that they are of.
struct NumberLines {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.count; i += step) {
      simt::Entry e = p.from[i];
      e.id = e.position / p.length;
      p.to[i] = e;
    }
  }
};

// Moves an element of so many bytes from one tensor's memory to another's.
struct ElementMove {
  template <int kBytes>
  BCU_DEVICE void cell(BCU_GLOBAL void* values, int64_t to, BCU_GLOBAL const void* data, int64_t from) {
    using Element = simt::Cell<kBytes>;
    ((BCU_GLOBAL Element*)values)[to] = ((BCU_GLOBAL const Element*)data)[from];
  }
  BCU_DEVICE void run(int32_t size, BCU_GLOBAL void* values, int64_t to, BCU_GLOBAL const void* data, int64_t from) {
    switch (size) {
      case 1:
        return cell<1>(values, to, data, from);
      case 2:
        return cell<2>(values, to, data, from);
      case 4:
        return cell<4>(values, to, data, from);
    }
    return cell<8>(values, to, data, from);
  }
};

struct WriteSorted {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  BCU_DEVICE bool is_nan(BCU_CONSTANT Params& p, int64_t position) {
    int64_t at[1];
    simt::locate(p.x, position, at);
    return p.infinity != 0 && (bits_at(p, at[0]) & (p.mask >> 1)) > p.infinity;
  }
  // Where in the line that begins at `first` a rank is: NaN are at its end.
  BCU_DEVICE int64_t place(BCU_CONSTANT Params& p, int64_t first) {
    int64_t low = 0, high = p.length;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (is_nan(p, p.from[first + middle].position))
        high = middle;
      else
        low = middle + 1;
    }
    return place_of(p.which, p.k, p.length, p.length - low);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.made; i += step) {
      int64_t line = i / p.width, first = line * p.length, from[1], to[2];
      int64_t position = p.from[first + (p.ranked != 0 ? place(p, first) : i - line * p.width)].position;
      simt::locate(p.x, position, from);
      simt::locate(p.results, i, to);
      ElementMove::run(p.size, p.values, to[0], p.data, from[0]);
      p.indices[to[1]] = position % p.length;
    }
  }
};

struct SearchParams {
  simt::Space<3> space;  // of values: y, values, and the sequence of each
  BCU_GLOBAL void* y;
  BCU_GLOBAL const void* values;
  BCU_GLOBAL const void* sequence;
  uint64_t sign, infinity;
  int64_t length, stride;  // of a sequence
  int32_t element, size, truth, right;
};

// A search by each thread.
struct SearchSorted {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = SearchParams;

  BCU_DEVICE uint64_t key(BCU_CONSTANT Params& p, BCU_GLOBAL const void* data, int64_t at) {
    return key_at(data, at, p.size, p.truth, p.sign, p.infinity);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t at[3], low = 0, high = p.length;
      simt::locate(p.space, i, at);
      uint64_t v = key(p, p.values, at[1]);
      while (low < high) {
        int64_t middle = (low + high) / 2;
        uint64_t k = key(p, p.sequence, at[2] + middle * p.stride);
        if (k < v || (p.right != 0 && k == v))
          low = middle + 1;
        else
          high = middle;
      }
      simt::store_element(p.y, p.element, at[0], low);
    }
  }
};

}  // namespace baracuda::sort
