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
// Whether the bytes that a view reaches fit the address space, so that no arithmetic on them can overflow. Every real
// tensor does; strides made up with as_strided, or given to from_pointer, may not.
BCU_API bool addressable(const TensorView& t);

BCU_API Overlap overlap(const TensorView& a, const TensorView& b);
// Whether two different indices of one view reach the same byte (as with a zero stride).
BCU_API Overlap self_overlap(const TensorView& t);

}  // namespace baracuda
