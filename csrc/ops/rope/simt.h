// Rotary position embeddings on GPUs: a thread turns a few pairs of one row, or copies columns that pass through.
#pragma once
#include "baracuda/math/math.h"
#include "simt/space.h"

namespace baracuda::rope {

struct RotateParams {
  enum : int { kX, kY, kAt, kNumber, kTensors };  // kAt: positions, or the row of the sequence where they are a number
  simt::Space<4> space;                           // of rows and, in dimension 0, a row's work items
  BCU_GLOBAL const void* x;
  BCU_GLOBAL void* y;
  BCU_GLOBAL const void* cos;
  BCU_GLOBAL const void* sin;
  BCU_GLOBAL const void* positions;  // null: start + row of the sequence
  simt::Number start;
  int64_t x_column, y_column;
  int64_t cos_row, cos_column, sin_row, sin_column;
  int64_t pairs, limit;  // limit: rows of the tables
  int64_t turned;        // work items of a row that rotate; the others copy
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  float sign;
  int32_t interleaved, tensor;
  int32_t x_element, cos_element, sin_element, positions_element;
};

// A row's position; -1, and a fault, where it is outside of the tables.
template <class P>
BCU_DEVICE int64_t position_of(BCU_CONSTANT P& p, BCU_THREAD const int64_t* offset) {
  int64_t at = offset[P::kAt];
  at = p.positions ? simt::load_element<int64_t>(p.positions, p.positions_element, at)
                   : simt::number<int64_t>(p.start) + at;
  if (uint64_t(at) < uint64_t(p.limit)) return at;
  simt::raise(p.fault, p.row, p.tensor, offset[P::kNumber], at, p.limit);
  return -1;
}

// Any strides and elements; a work item is a pair or one element to copy. C: what is computed in.
template <class C>
struct RotateAny {
  using Params = RotateParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void item(BCU_CONSTANT Params& p, int64_t i) {
    int64_t offset[Params::kTensors];
    int64_t unit = simt::locate(p.space, i, offset);
    int64_t at = position_of(p, offset);
    if (at < 0) return;
    int64_t x = offset[Params::kX], y = offset[Params::kY];
    if (unit >= p.turned) {
      int64_t column = unit + p.pairs;
      simt::store_element(p.y, p.x_element, y + column * p.y_column,
                          simt::load_element<C>(p.x, p.x_element, x + column * p.x_column));
      return;
    }
    int64_t first = p.interleaved ? 2 * unit : unit, second = p.interleaved ? first + 1 : unit + p.pairs;
    C a = simt::load_element<C>(p.x, p.x_element, x + first * p.x_column);
    C b = simt::load_element<C>(p.x, p.x_element, x + second * p.x_column);
    C c = simt::load_element<C>(p.cos, p.cos_element, at * p.cos_row + unit * p.cos_column);
    C s = C(p.sign) * simt::load_element<C>(p.sin, p.sin_element, at * p.sin_row + unit * p.sin_column);
    simt::store_element(p.y, p.x_element, y + first * p.y_column, a * c - b * s);
    simt::store_element(p.y, p.x_element, y + second * p.y_column, b * c + a * s);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) item(p, i);
  }
};

// Rows of T in packs of 16 bytes, tables in the compute type with contiguous, aligned rows. A work item is a pack of
// pairs (two packs of a row's halves, or one of interleaved pairs) or a pack to copy.
template <class T>
struct RotatePacks {
  using Params = RotateParams;
  using Values = simt::Pack<T>;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  enum : int { kThreads = 256, kShared = 0, kCount = Values::kCount };

  BCU_DEVICE void halves(BCU_CONSTANT Params& p, int64_t unit, BCU_GLOBAL const T* x, BCU_GLOBAL T* y,
                         BCU_GLOBAL const C* cos, BCU_GLOBAL const C* sin) {
    enum : int { kWide = simt::Pack<C>::kCount };
    int64_t column = unit * kCount;
    Values a = *(BCU_GLOBAL const Values*)(x + column), b = *(BCU_GLOBAL const Values*)(x + p.pairs + column);
    BCU_UNROLL for (int i = 0; i < kCount; i += kWide) {
      simt::Pack<C> c = *(BCU_GLOBAL const simt::Pack<C>*)(cos + column + i);
      simt::Pack<C> s = *(BCU_GLOBAL const simt::Pack<C>*)(sin + column + i);
      BCU_UNROLL for (int j = 0; j < kWide; ++j) {
        C v = S::load(a.v[i + j]), w = S::load(b.v[i + j]), turn = C(p.sign) * s.v[j];
        a.v[i + j] = S::store(v * c.v[j] - w * turn);
        b.v[i + j] = S::store(w * c.v[j] + v * turn);
      }
    }
    *(BCU_GLOBAL Values*)(y + column) = a;
    *(BCU_GLOBAL Values*)(y + p.pairs + column) = b;
  }

  BCU_DEVICE void neighbours(BCU_CONSTANT Params& p, int64_t unit, BCU_GLOBAL const T* x, BCU_GLOBAL T* y,
                             BCU_GLOBAL const C* cos, BCU_GLOBAL const C* sin) {
    int64_t column = unit * kCount, pair = unit * (kCount / 2);
    Values a = *(BCU_GLOBAL const Values*)(x + column);
    BCU_UNROLL for (int j = 0; j < kCount / 2; ++j) {
      C v = S::load(a.v[2 * j]), w = S::load(a.v[2 * j + 1]), c = cos[pair + j], turn = C(p.sign) * sin[pair + j];
      a.v[2 * j] = S::store(v * c - w * turn);
      a.v[2 * j + 1] = S::store(w * c + v * turn);
    }
    *(BCU_GLOBAL Values*)(y + column) = a;
  }

  BCU_DEVICE void item(BCU_CONSTANT Params& p, int64_t i) {
    int64_t offset[Params::kTensors];
    int64_t unit = simt::locate(p.space, i, offset);
    int64_t at = position_of(p, offset);
    if (at < 0) return;
    BCU_GLOBAL const T* x = (BCU_GLOBAL const T*)p.x + offset[Params::kX];
    BCU_GLOBAL T* y = (BCU_GLOBAL T*)p.y + offset[Params::kY];
    BCU_GLOBAL const C* cos = (BCU_GLOBAL const C*)p.cos + at * p.cos_row;
    BCU_GLOBAL const C* sin = (BCU_GLOBAL const C*)p.sin + at * p.sin_row;
    if (unit >= p.turned) {
      int64_t column = 2 * p.pairs + (unit - p.turned) * kCount;
      *(BCU_GLOBAL Values*)(y + column) = *(BCU_GLOBAL const Values*)(x + column);
    } else if (p.interleaved) {
      neighbours(p, unit, x, y, cos, sin);
    } else {
      halves(p, unit, x, y, cos, sin);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) item(p, i);
  }
};

}  // namespace baracuda::rope
