// Tensors as rows of elements, for reductions, softmax, norms and losses on GPUs: the dimensions of an iteration space
// are outer ones, which pick a row, and inner ones, which run along it. rows_launch.h makes these from tensors.
//
// A team of threads works on one row: a warp, a block, or, where neighbours in memory belong to different rows, the
// threads of one lane in several warps, so that lanes read side by side. What a thread reads, and the order in which
// partial results are combined, depend on the row's length and the team alone.
#pragma once
#include "simt/simt.h"

namespace baracuda::simt {

enum : int { kRowDims = 8 };

// Division by a number that is the same for all threads: q = (x * magic) >> 64 >> shift, exact for x < 2^63.
struct WideDivider {
  uint64_t magic;
  int64_t shift;  // -1: by 1
};
BCU_DEVICE uint64_t mul_hi_wide(uint64_t a, uint64_t b) {
  uint64_t low = uint64_t(uint32_t(a)) * uint32_t(b), left = (a >> 32) * uint32_t(b);
  uint64_t right = uint64_t(uint32_t(a)) * (b >> 32), high = (a >> 32) * (b >> 32);
  uint64_t middle = (low >> 32) + uint32_t(left) + uint32_t(right);
  return high + (left >> 32) + (right >> 32) + (middle >> 32);
}
BCU_DEVICE int64_t quotient(BCU_CONSTANT WideDivider& d, int64_t x) {
  return d.shift < 0 ? x : int64_t(mul_hi_wide(uint64_t(x), d.magic) >> d.shift);
}

// Dimensions innermost first. Null data marks a tensor that the call does not have.
template <int kTensors>
struct RowSpace {
  int64_t rows, length;
  int32_t outer_rank, inner_rank;
  WideDivider outer_divider[kRowDims], inner_divider[kRowDims];
  int64_t outer_shape[kRowDims], inner_shape[kRowDims];
  int64_t outer_stride[kTensors][kRowDims], inner_stride[kTensors][kRowDims];  // in elements
  BCU_GLOBAL void* data[kTensors];
  int32_t element[kTensors];
  int32_t columns;  // 1: a team is one lane of team_size warps; 0: team_size threads in a row
  int32_t team_size;
};

// Where row `row` of tensor k starts, in elements.
template <class S>
BCU_DEVICE int64_t row_offset(BCU_CONSTANT S& s, int k, int64_t row) {
  int64_t at = 0, rest = row;
  BCU_NO_UNROLL for (int d = 0; d < s.outer_rank; ++d) {
    int64_t next = d + 1 < s.outer_rank ? quotient(s.outer_divider[d], rest) : 0;
    at += (rest - next * s.outer_shape[d]) * s.outer_stride[k][d];
    rest = next;
  }
  return at;
}

// Where position i of a row lies, from the row's start.
template <class S>
BCU_DEVICE int64_t position_offset(BCU_CONSTANT S& s, int k, int64_t i) {
  if (s.inner_rank <= 1) return i * s.inner_stride[k][0];
  int64_t at = 0, rest = i;
  BCU_NO_UNROLL for (int d = 0; d < s.inner_rank; ++d) {
    int64_t next = d + 1 < s.inner_rank ? quotient(s.inner_divider[d], rest) : 0;
    at += (rest - next * s.inner_shape[d]) * s.inner_stride[k][d];
    rest = next;
  }
  return at;
}

// Ways to read and write kPack values of a row at once, from position i, a multiple of kPack, on.

// Every tensor is of T, contiguous along rows of whole packs, which start at multiples of 16 bytes.
template <class Stored_>
struct PackedRows {
  using T = Stored_;
  using C = ComputeOf<T>;
  enum : int { kPack = Pack<T>::kCount };
  template <class S>
  BCU_DEVICE bool has(BCU_CONSTANT S&, int64_t) {
    return true;
  }
  // A pack as it is stored, which takes fewer registers than its values do.
  template <class S>
  BCU_DEVICE Pack<T> raw(BCU_CONSTANT S& s, int k, int64_t row, int64_t i) {
    return *(BCU_GLOBAL const Pack<T>*)((BCU_GLOBAL const T*)s.data[k] + row + i);
  }
  BCU_DEVICE void unpack(BCU_THREAD const Pack<T>& p, BCU_THREAD C* v) {
    BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = Stored<T>::load(p.v[j]);
  }
  template <class S>
  BCU_DEVICE void load(BCU_CONSTANT S& s, int k, int64_t row, int64_t i, C, BCU_THREAD C* v) {
    Pack<T> p = raw(s, k, row, i);
    unpack(p, v);
  }
  template <class S>
  BCU_DEVICE void store(BCU_CONSTANT S& s, int k, int64_t row, int64_t i, BCU_THREAD const C* v) {
    Pack<T> p;
    BCU_UNROLL for (int j = 0; j < kPack; ++j) p.v[j] = Stored<T>::store(v[j]);
    *(BCU_GLOBAL Pack<T>*)((BCU_GLOBAL T*)s.data[k] + row + i) = p;
  }
  template <class S>
  BCU_DEVICE C one(BCU_CONSTANT S& s, int k, int64_t row, int64_t i) {
    return Stored<T>::load(((BCU_GLOBAL const T*)s.data[k])[row + i]);
  }
};

// Any strides; every tensor is of T. Positions past the end are read as `fill`. kLine: rows have one inner dimension.
template <class Stored_, bool kLine = false>
struct StridedRows {
  using T = Stored_;
  using C = ComputeOf<T>;
  enum : int { kPack = sizeof(T) < 8 ? 4 : 2 };
  template <class S>
  BCU_DEVICE int64_t place(BCU_CONSTANT S& s, int k, int64_t i) {
    return kLine ? i * s.inner_stride[k][0] : position_offset(s, k, i);
  }
  template <class S>
  BCU_DEVICE bool has(BCU_CONSTANT S& s, int64_t i) {
    return i < s.length;
  }
  template <class S>
  BCU_DEVICE void load(BCU_CONSTANT S& s, int k, int64_t row, int64_t i, C fill, BCU_THREAD C* v) {
    BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = i + j < s.length ? one(s, k, row, i + j) : fill;
  }
  template <class S>
  BCU_DEVICE void store(BCU_CONSTANT S& s, int k, int64_t row, int64_t i, BCU_THREAD const C* v) {
    BCU_GLOBAL T* to = (BCU_GLOBAL T*)s.data[k] + row;
    BCU_UNROLL for (int j = 0; j < kPack; ++j) if (i + j < s.length) to[place(s, k, i + j)] = Stored<T>::store(v[j]);
  }
  template <class S>
  BCU_DEVICE C one(BCU_CONSTANT S& s, int k, int64_t row, int64_t i) {
    return Stored<T>::load(((BCU_GLOBAL const T*)s.data[k])[row + place(s, k, i)]);
  }
};

template <class T>
using LineRows = StridedRows<T, true>;

// Any strides and any stored elements, read as C.
template <class Compute>
struct CodedRows {
  using C = Compute;
  enum : int { kPack = 4 };
  template <class S>
  BCU_DEVICE bool has(BCU_CONSTANT S& s, int64_t i) {
    return i < s.length;
  }
  template <class S>
  BCU_DEVICE void load(BCU_CONSTANT S& s, int k, int64_t row, int64_t i, C fill, BCU_THREAD C* v) {
    BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = i + j < s.length ? one(s, k, row, i + j) : fill;
  }
  template <class S>
  BCU_DEVICE C one(BCU_CONSTANT S& s, int k, int64_t row, int64_t i) {
    return load_element<C>(s.data[k], s.element[k], row + position_offset(s, k, i));
  }
};

// One value per row of a tensor of any element.
template <class C, class S>
BCU_DEVICE C row_value(BCU_CONSTANT S& s, int k, int64_t row) {
  return load_element<C>(s.data[k], s.element[k], row_offset(s, k, row));
}
template <class C, class S>
BCU_DEVICE void put_row_value(BCU_CONSTANT S& s, int k, int64_t row, C v) {
  store_element(s.data[k], s.element[k], row_offset(s, k, row), v);
}

// A thread's place: rank `rank` of the `size` threads of a team that works on row first + index, + step, ...
struct Team {
  uint32_t size, rank, columns;
  int64_t index, first, step;  // the team's row in the block; the block's first row; from block to block
};
template <class S>
BCU_DEVICE Team team_of(BCU_THREAD const Context& ctx, BCU_CONSTANT S& s) {
  Team t;
  t.size = uint32_t(s.team_size);
  t.columns = uint32_t(s.columns);
  uint32_t teams = ctx.bdim() / t.size;
  if (t.columns) {
    t.rank = ctx.warp() % t.size;
    t.index = int64_t(ctx.warp() / t.size * 32u + ctx.lane());
  } else {
    t.rank = ctx.tid() % t.size;
    t.index = int64_t(ctx.tid() / t.size);
  }
  t.first = int64_t(ctx.bid_x()) * teams;
  t.step = int64_t(ctx.gdim_x()) * teams;
  return t;
}

// The result over the team, for every thread of it. `shared` holds a T per thread for columns, per warp otherwise; all
// threads of the block call this together.
template <class Op, class T>
BCU_DEVICE T team_reduce(BCU_THREAD const Context& ctx, BCU_THREAD const Team& t, T v, T identity,
                         BCU_SHARED float* memory) {
  BCU_SHARED T* shared = (BCU_SHARED T*)memory;
  if (t.columns) {
    if (t.size == 1u) return v;
    shared[ctx.tid()] = v;
    barrier(ctx);
    uint32_t at = ctx.tid() - t.rank * 32u;
    v = shared[at];
    for (uint32_t k = 1; k < t.size; ++k) v = Op::of(v, shared[at + k * 32u]);
    barrier(ctx);
    return v;
  }
  if (t.size == 32u) return warp_reduce<Op>(ctx, v);
  return block_reduce<Op>(ctx, v, identity, shared);
}

// Sums.

// The sum of a pack, as a tree.
template <int kCount, class C>
BCU_DEVICE C pack_sum(BCU_THREAD const C* v) {
  C part[kCount];
  BCU_UNROLL for (int j = 0; j < kCount; ++j) part[j] = v[j];
  BCU_UNROLL for (int w = kCount / 2; w > 0; w /= 2) { BCU_UNROLL for (int j = 0; j < w; ++j) part[j] += part[j + w]; }
  return part[0];
}

// A running sum with its rounding error kept beside it (two-sum).
template <class C>
struct LongSum {
  C sum, error;
};
template <class C>
BCU_DEVICE LongSum<C> empty_sum() {
  LongSum<C> s;
  s.sum = s.error = C(0);
  return s;
}
template <class C>
BCU_DEVICE void accumulate(BCU_THREAD LongSum<C>& s, C x) {
  C total = s.sum + x, back = total - s.sum;
  s.error += (s.sum - (total - back)) + (x - back);
  s.sum = total;
}
// An infinite sum leaves NaN in the error term, which says nothing.
template <class C>
BCU_DEVICE C value_of(BCU_THREAD const LongSum<C>& s) {
  return s.error == s.error ? s.sum + s.error : s.sum;
}

}  // namespace baracuda::simt
