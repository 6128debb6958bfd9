// Which bin of a histogram a value belongs to. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::indexing {

// Of so many bins of one width from `low` to `high`, which the last one holds, too; `bins` itself for what lies beside
// them, and for NaN.
template <class C>
BCU_FN int64_t bin_of(C x, C low, C high, int64_t bins) {
  if (bins == 0 || !(x >= low && x <= high)) return bins;
  C at = (x - low) * C(bins) / (high - low);
  return at < C(bins) ? int64_t(at) : bins - 1;
}

}  // namespace baracuda::indexing
