// The memory that folds on GPUs need, for the rules of rows and for the launchers.
#pragma once
#include <cstdint>

namespace baracuda::simt {

// Most partial results of a fold that is cut into strips, and the least elements of one that is.
inline constexpr int64_t kFoldPartials = 65536, kFoldStrips = 512, kFoldSplitFrom = 65536;
// Workspace for results of `bytes` each, for every size up to these.
constexpr int64_t fold_workspace(int64_t elements, int64_t results, int64_t bytes) {
  if (elements < kFoldSplitFrom) return 0;
  return (results < kFoldPartials / kFoldStrips ? results * kFoldStrips : kFoldPartials) * bytes;
}

}  // namespace baracuda::simt
