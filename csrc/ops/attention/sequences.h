// Sequences that lie one behind the other, as cu_seq says, on the CPU.
#pragma once
#include "ops/attention/cpu.h"

namespace baracuda::attention {

// Lines [begin, begin + n) of [total, heads, dim] as [1, heads, n, dim].
inline TensorView packed_piece(const TensorView& t, int64_t begin, int64_t n) {
  TensorView out = t;
  out.rank = 4;
  out.data = t.as<char>() + begin * t.strides[0] * size_of(t.element);
  const int64_t shape[] = {1, t.shape[1], n, t.shape[2]}, strides[] = {0, t.strides[1], t.strides[0], t.strides[2]};
  std::copy(shape, shape + 4, out.shape), std::copy(strides, strides + 4, out.strides);
  return out;
}
// The same of lse: [heads, total] as [1, heads, n].
inline TensorView packed_lse(const TensorView& t, int64_t begin, int64_t n) {
  TensorView out = t;
  out.rank = 3;
  out.data = t.as<char>() + begin * t.strides[1] * size_of(t.element);
  const int64_t shape[] = {1, t.shape[0], n}, strides[] = {0, t.strides[0], t.strides[1]};
  std::copy(shape, shape + 3, out.shape), std::copy(strides, strides + 3, out.strides);
  return out;
}

inline int64_t place(const TensorView& cu, int64_t i) { return read_whole(cu, i * cu.strides[0]); }

// Sequences lie one behind the other, from the first line to the last, none longer than `most`.
inline Status check_places(const Launch& launch, int arg, int64_t total, int64_t most) {
  const TensorView& cu = launch[arg];
  const int64_t batch = cu.shape[0] - 1;
  for (int64_t i = 0, before = 0; i <= batch; ++i) {
    const int64_t at = place(cu, i), limit = i == 0 ? 0 : std::min(before + most, total);
    if (i == batch && at != total) return out_of_range(launch, arg, i, at, limit_of(Wanted::End, total));
    if (at < before || at > limit) return out_of_range(launch, arg, i, at, limit_of(Wanted::Place, limit + 1));
    before = at;
  }
  return Status::Ok;
}

}  // namespace baracuda::attention
