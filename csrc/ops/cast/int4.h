// Where the halves of bytes lie that hold two 4-bit integers each, on every backend: elements 2i and 2i + 1 of a row
// are the low and the high half of byte i.
#pragma once
#include "host/tile.h"

namespace baracuda::cast {

struct Halves {
  IterationSpace space;
  Operand low, high, bytes;  // high: without data where rows end with the low half of a byte
};

inline Operand moved(const TensorView& t, int64_t steps) {
  const int last = t.rank - 1;
  Operand o{t.data, t.element, {}};
  for (int i = 0; i < t.rank; ++i) o.strides[i] = t.shape[i] == 1 ? 0 : t.strides[i];
  o.data = t.as<char>() + steps * o.strides[last] * size_of(t.element);
  return o;
}

// Bytes of two elements of `wide` or, `ends`, those of one.
inline Halves halves_of(const TensorView& wide, const TensorView& bytes, bool ends) {
  const int last = wide.rank - 1;
  const int64_t n = wide.shape[last], first = ends ? n - 1 : 0;
  Halves h{space_of(bytes), moved(wide, first), {}, moved(bytes, ends ? n / 2 : 0)};
  h.space.shape[last] = ends ? n % 2 : n / 2;
  if (ends || n < 2) return h;
  h.high = moved(wide, 1);
  h.low.strides[last] *= 2, h.high.strides[last] *= 2;
  return h;
}

// Calls run(halves) for the bytes of two elements and, where rows are odd, for their last ones.
template <class Run>
Status both_halves(const TensorView& wide, const TensorView& bytes, Run&& run) {
  for (const bool ends : {false, true}) {
    const Halves h = halves_of(wide, bytes, ends);
    if (h.space.numel() == 0) continue;
    if (const Status status = run(h); status != Status::Ok) return status;
  }
  return Status::Ok;
}

}  // namespace baracuda::cast
