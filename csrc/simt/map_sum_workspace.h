// The memory that sums of functions on GPUs need, for the rules of rows and for the launchers.
#pragma once
#include <cstdint>

namespace baracuda::simt {

inline constexpr int64_t kSumParts = 1024;
inline constexpr int64_t kSumWorkspace = kSumParts * 16;  // a sum and its rounding error, f64 at most

}  // namespace baracuda::simt
