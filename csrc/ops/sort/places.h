// Which place of a line's order a rank is, on every backend.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::sort {

// Entries that a warp of a GPU looks through for runs.
enum : int { kSimtRunChunk = 1024 };

enum class Which : int32_t { Kth, Median, NanMedian };

// Of n values of which so many are NaN, which come last: a median is the lower one of two, NaN where there is any, or
// that of the numbers alone. k counts from 0.
BCU_FN int64_t place_of(Which which, int64_t k, int64_t n, int64_t nans) {
  if (which == Which::Kth) return k;
  if (which == Which::Median) return nans > 0 ? n - nans : (n - 1) / 2;
  return nans == n ? 0 : (n - nans - 1) / 2;
}

}  // namespace baracuda::sort
