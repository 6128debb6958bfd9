// Makes the row spaces of simt/rows.h from tensors, and picks teams for them.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/operand.h"
#include "simt/launch.h"
#include "simt/rows.h"

namespace baracuda::simt {

// Exact for numerators below 2^63.
inline WideDivider wide_divider(int64_t divisor) {
  if (divisor <= 1) return {0, -1};
  int64_t shift = 0;
  while ((uint64_t{1} << shift) < static_cast<uint64_t>(divisor)) ++shift;
  shift -= 1;  // divisor > 2^shift, so that the magic number fits in 64 bits
  using Wide = unsigned __int128;
  return {static_cast<uint64_t>(((Wide{1} << (64 + shift)) + divisor - 1) / divisor), shift};
}

// Dimensions of one side of a row space, merged where every tensor steps evenly; innermost first.
template <int kTensors>
struct RowSide {
  int32_t rank = 0;
  int64_t count = 1, shape[kRowDims] = {}, stride[kTensors][kRowDims] = {};

  RowSide(const IterationSpace& space, uint32_t dims, const Operand (&tensors)[kTensors]) {
    for (int d = space.rank - 1; d >= 0; --d) {
      if (!((dims >> d) & 1u)) continue;
      count *= space.shape[d];
      if (space.shape[d] == 1) continue;
      bool joins = rank > 0;
      for (int k = 0; joins && k < kTensors; ++k)
        joins = !tensors[k].data || tensors[k].strides[d] == stride[k][rank - 1] * shape[rank - 1];
      if (joins) {
        shape[rank - 1] *= space.shape[d];
        continue;
      }
      shape[rank] = space.shape[d];
      for (int k = 0; k < kTensors; ++k) stride[k][rank] = tensors[k].strides[d];
      ++rank;
    }
  }
};

// `inner`: bit i is set when dimension i of the space runs along the rows.
template <int kTensors>
RowSpace<kTensors> row_space(const IterationSpace& space, uint32_t inner, const Operand (&tensors)[kTensors]) {
  RowSpace<kTensors> s{};
  const RowSide<kTensors> out(space, ~inner, tensors), in(space, inner, tensors);
  s.rows = out.count, s.length = in.count;
  s.outer_rank = out.rank, s.inner_rank = in.rank;
  for (int d = 0; d < kRowDims; ++d) {
    s.outer_shape[d] = out.shape[d], s.inner_shape[d] = in.shape[d];
    s.outer_divider[d] = wide_divider(out.shape[d]);
    s.inner_divider[d] = wide_divider(in.shape[d]);
  }
  for (int k = 0; k < kTensors; ++k) {
    std::copy_n(out.stride[k], kRowDims, s.outer_stride[k]);
    std::copy_n(in.stride[k], kRowDims, s.inner_stride[k]);
    s.data[k] = tensors[k].data;
    s.element[k] = static_cast<int32_t>(tensors[k].element);
  }
  s.team_size = 32;
  return s;
}

// Whether PackedRows<T> may be used: tensors whose bit in `rowwise` is set lie in 16-byte packs along the rows.
template <class T, int kTensors>
bool packed_rows(const RowSpace<kTensors>& s, uint32_t rowwise) {
  constexpr int64_t kPack = Pack<T>::kCount;
  if (s.inner_rank != 1 || s.length % kPack != 0) return false;
  for (int k = 0; k < kTensors; ++k) {
    if (!s.data[k] || !((rowwise >> k) & 1u)) continue;
    if (s.inner_stride[k][0] != 1 || reinterpret_cast<uintptr_t>(s.data[k]) % kPackBytes != 0) return false;
    for (int d = 0; d < s.outer_rank; ++d)
      if (s.outer_stride[k][d] % kPack != 0) return false;
  }
  return true;
}

// Whether neighbours in memory of tensor k belong to different rows, or rows are so short that each is one thread's.
template <int kTensors>
bool side_by_side(const RowSpace<kTensors>& s, int k = 0) {
  constexpr int64_t kShort = 16;
  if (s.length <= kShort) return true;
  return s.outer_rank > 0 && s.inner_rank > 0 && std::abs(s.outer_stride[k][0]) < std::abs(s.inner_stride[k][0]);
}

// Threads of one row whose every thread takes about `per_thread` of `length` elements: a warp, or a block.
inline int32_t team_threads(int64_t length, int64_t per_thread, int32_t most) {
  if (length <= 32 * per_thread) return 32;
  const int64_t wanted = (length + per_thread - 1) / per_thread;
  return wanted >= most ? most : static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(wanted)));
}

inline constexpr int32_t kColumnThreads = 256, kWarpRowThreads = 128;

struct TeamGrid {
  int64_t blocks;
  int threads;
};

// A lane of several warps for each row.
template <int kTensors>
TeamGrid column_teams(RowSpace<kTensors>& s) {
  s.columns = 1;
  s.team_size = 1;
  while (s.team_size < 8 && s.length >= 32 * s.team_size) s.team_size *= 2;
  return {blocks_for(s.rows, kColumnThreads / s.team_size), kColumnThreads};
}

// A warp or a block for each row.
template <int kTensors>
TeamGrid row_teams(RowSpace<kTensors>& s, int64_t per_thread, int32_t most) {
  s.columns = 0;
  s.team_size = team_threads(s.length, per_thread, most);
  const int threads = s.team_size == 32 ? kWarpRowThreads : s.team_size;
  return {blocks_for(s.rows, threads / s.team_size), threads};
}

// Whichever fits the layout of tensor k.
template <int kTensors>
TeamGrid teams(RowSpace<kTensors>& s, int64_t per_thread, int32_t most, int k = 0) {
  return side_by_side(s, k) ? column_teams(s) : row_teams(s, per_thread, most);
}

}  // namespace baracuda::simt
