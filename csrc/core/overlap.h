// Do two strided views share a byte? Decided exactly by a bounded search, as NumPy's solver does.
#pragma once
#include <functional>
#include <vector>

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

// A view among many, with a number of the caller's.
struct Mark {
  const TensorView* view;
  int id;
  bool written;
};
// Calls meet(id, id) for the pairs of which one is written and that overlap() has to look at, until it returns true;
// that is the answer. Extents are sorted, and of views that step by the same distance, such as the columns of a matrix,
// the places within it, so that thousands of views that share no memory cost no more than sorting them.
BCU_API bool each_meeting(std::vector<Mark> marks, const std::function<bool(int, int)>& meet);

BCU_API Overlap overlap(const TensorView& a, const TensorView& b);
// Whether two different indices of one view reach the same byte (as with a zero stride).
BCU_API Overlap self_overlap(const TensorView& t);

}  // namespace baracuda
