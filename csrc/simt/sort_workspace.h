// The memory that GPUs need to sort entries and to fold them in runs, for the rules of rows and for the launchers.
#pragma once
#include <cstdint>

namespace baracuda::simt {

inline constexpr int64_t kEntryBytes = 16, kSortTile = 2048, kSortDigits = 64;
// The entries, as many again to sort them with, and the digits that each tile counts. A multiple of 16.
constexpr int64_t sort_workspace(int64_t entries) {
  return 2 * entries * kEntryBytes + (entries + kSortTile - 1) / kSortTile * kSortDigits * 4;
}
// Of the entries of one id every kFoldRun but the first are folded apart, for each column, to a state of so many bytes.
inline constexpr int64_t kFoldRun = 512;
constexpr int64_t runs_workspace(int64_t entries, int64_t columns, int64_t bytes) {
  return (entries + kFoldRun - 1) / kFoldRun * columns * bytes;
}

}  // namespace baracuda::simt
