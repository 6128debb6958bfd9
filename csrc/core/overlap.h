// Do two strided views share a byte? Decided exactly by a bounded search, as NumPy's solver does.
#pragma once
#include "core/api.h"
#include "core/launch.h"

namespace baracuda {

enum class Overlap : uint8_t { None, Identical, Partial, Undecided };

// The byte range [begin, end) that a view can touch; empty views give begin == end.
struct Extent {
  intptr_t begin, end;
};
BCU_API Extent extent(const TensorView& t);

BCU_API Overlap overlap(const TensorView& a, const TensorView& b);
// Whether two different indices of one view reach the same byte (as with a zero stride).
BCU_API Overlap self_overlap(const TensorView& t);

}  // namespace baracuda
