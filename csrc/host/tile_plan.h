// How an iteration space is cut into tiles: which dimensions a tile covers, and how each operand is reached inside one.
// A tile is `rows` runs of `columns` elements. Columns go along the dimensions in which the first output moves fastest;
// where an input moves fastest along others, rows go along those, so that the tile can be read by that input's cache
// lines.
#pragma once
#include <cstdint>
#include <span>

#include "host/tile.h"

namespace baracuda::tile {

inline constexpr int kMaxOperands = 24;     // 16 inputs and 8 outputs of a fused expression
inline constexpr int64_t kLine = 64;        // bytes
inline constexpr int64_t kRowBytes = 4096;  // one operand's run in the compute type
// The same where an operand lies densely and is converted: in longer runs, fetching the next one and computing take
// turns (addcmul of 16M bf16: 10.4 ms by 4 KB, 6.4 by 2 KB, 6.4 by 1 KB, which costs in caches).
inline constexpr int64_t kConvertedBytes = 2048;
inline constexpr int64_t kMaxTable = 512;
inline constexpr int64_t kMaxRows = 128;
inline constexpr int64_t kTileBytes = 32768;  // all transposed operands of a tile together
inline constexpr int64_t kGrain = 32768;      // elements below which more threads do not pay
// Of results that are streamed: each thread stays longer in one place (exp of 64M f32: 14.1 ms; 14.7 by kGrain).
inline constexpr int64_t kStreamGrain = 262144;

enum class Access : uint8_t {
  Direct,      // the loop works on the caller's memory
  Repeated,    // one value for the whole run, which the loop reads once
  Discard,     // an output that nobody wants
  Strided,     // one stride for the whole run: converted or gathered into a buffer
  Table,       // several dimensions without a common stride: a table of offsets
  Transposed,  // unit stride along the rows: the whole tile is transposed into a buffer
};

struct PlannedOperand {
  char* data = nullptr;
  int64_t size = 1;           // bytes of one element
  int64_t strides[kMaxRank];  // bytes
  Access access = Access::Direct;
  bool native = false;  // stored in the compute type
  bool output = false;
  bool stream = false;  // a large output in runs of whole lines: written past the caches
  bool irregular_columns = false;
  bool apart = false;  // a row neither follows the one before it nor is the same
  int64_t column = 0;  // bytes between columns where they are regular
};

struct TilePlan {
  int rank = 0;
  int n_operands = 0;       // outputs first
  bool turns = false;       // a copy of native elements: it can be turned straight into the output
  uint32_t repeatable = 0;  // bit k: a loop takes input k as one value for the whole run
  int repeated = -1;        // the operand for which that loop is taken
  int primary = 0;          // the output that gives the order
  int64_t shape[kMaxRank];
  int64_t step[kMaxRank];  // extent of a tile in each dimension
  int64_t tiles = 0;
  int column_split = 0, row_split = -1;   // the one dimension of each group that a tile may cover in part; -1: one row
  int64_t column_unit = 1, row_unit = 1;  // elements per step of that dimension
  int64_t columns = 1, rows = 1;          // of a full tile
  bool streams = false;                   // some output is streamed straight from the loop
  bool fences = false;                    // some output is streamed
  int64_t run = 1;                        // columns in a row that every operand reaches with one stride
  PlannedOperand operands[kMaxOperands];
  int64_t row_offset[kMaxOperands][kMaxRows];
  int64_t column_offset[kMaxOperands][kMaxTable];  // filled for operands with irregular columns
};

// Elements of one thread's turn; also of a run when nothing is converted.
inline int64_t grain_of(const TilePlan& plan) { return plan.streams ? kStreamGrain : kGrain; }

// False when there is nothing to do. `compute_size` is the size of the compute type; native[k] says that operand k
// (outputs first) is stored in it.
bool make_plan(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
               const bool* native, int64_t compute_size, TilePlan& plan);

}  // namespace baracuda::tile
