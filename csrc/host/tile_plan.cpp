#include "host/tile_plan.h"

#include <algorithm>
#include <numeric>

#include "host/stream.h"

namespace baracuda::tile {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// Drops dimensions of size 1, turns those that the first output walks backwards, orders by its strides and merges
// neighbours that every operand reaches with one stride. By a loop of its own: core/collapse.h takes 0.2 us longer
// here, a tenth of a small launch.
bool collapse(const IterationSpace& space, TilePlan& plan) {
  PlannedOperand* ops = plan.operands;
  const int n = plan.n_operands;
  int rank = 0;
  for (int d = 0; d < space.rank; ++d) {
    const int64_t extent = space.shape[d];
    if (extent == 0) return false;
    if (extent == 1) continue;
    if (ops[plan.primary].strides[d] < 0) {
      for (int k = 0; k < n; ++k) {
        ops[k].data += (extent - 1) * ops[k].strides[d];
        ops[k].strides[d] = -ops[k].strides[d];
      }
    }
    // Insertion keeps the caller's order where it is sorted already, which is the usual case.
    int64_t moved[kMaxOperands];
    for (int k = 0; k < n; ++k) moved[k] = ops[k].strides[d];
    int at = rank++;
    for (; at > 0 && ops[plan.primary].strides[at - 1] < moved[plan.primary]; --at) {
      plan.shape[at] = plan.shape[at - 1];
      for (int k = 0; k < n; ++k) ops[k].strides[at] = ops[k].strides[at - 1];
    }
    plan.shape[at] = extent;
    for (int k = 0; k < n; ++k) ops[k].strides[at] = moved[k];
  }
  if (rank == 0) {
    plan.rank = 1;
    plan.shape[0] = 1;
    for (int k = 0; k < n; ++k) ops[k].strides[0] = ops[k].size;
    return true;
  }
  int last = 0;
  for (int d = 1; d < rank; ++d) {
    bool merges = true;
    for (int k = 0; k < n; ++k) merges &= ops[k].strides[last] == ops[k].strides[d] * plan.shape[d];
    if (merges) {
      plan.shape[last] *= plan.shape[d];
    } else {
      plan.shape[++last] = plan.shape[d];
    }
    for (int k = 0; k < n; ++k) ops[k].strides[last] = ops[k].strides[d];
  }
  plan.rank = last + 1;
  return true;
}

// The dimension in which an input moves through its cache lines, if the runs of columns would touch a new line at every
// element; -1 otherwise.
int crossing_dimension(const TilePlan& plan, const PlannedOperand& op) {
  const int inner = plan.rank - 1;
  if (op.output || plan.shape[inner] < 4 || magnitude(op.strides[inner]) < kLine) return -1;
  int best = -1;
  for (int d = 0; d < inner; ++d) {
    const int64_t stride = magnitude(op.strides[d]);
    if (stride == 0 || stride >= kLine || plan.shape[d] < 4) continue;
    if (best < 0 || stride < magnitude(op.strides[best])) best = d;
  }
  return best;
}

// Outputs that are too large for the caches, lie in long runs, and are not read by this launch.
void choose_streams(TilePlan& plan, int n_outputs) {
  const int inner = plan.rank - 1;
  int64_t numel = 1;
  for (int d = 0; d < plan.rank; ++d) numel *= plan.shape[d];
  for (int k = 0; k < n_outputs; ++k) {
    PlannedOperand& op = plan.operands[k];
    op.stream =
        numel * op.size >= kStreamBytes && op.strides[inner] == op.size && plan.shape[inner] * op.size >= 16 * kLine;
    for (int i = n_outputs; i < plan.n_operands; ++i) op.stream &= plan.operands[i].data != op.data;
    plan.streams |= op.stream && op.native;
    plan.fences |= op.stream;
  }
}

struct Group {
  int dims[kMaxRank];
  int n = 0;
  int64_t unit = 1;  // product of all but the last dimension
  bool has(int d) const { return std::find(dims, dims + n, d) != dims + n; }
};

// Extends a group until a tile of `want` elements fits, and sets the steps of its dimensions.
void set_steps(TilePlan& plan, const Group& group, int64_t want) {
  for (int i = 0; i + 1 < group.n; ++i) plan.step[group.dims[i]] = plan.shape[group.dims[i]];
  const int split = group.dims[group.n - 1];
  plan.step[split] = std::clamp<int64_t>(want / group.unit, 1, plan.shape[split]);
}

void append(TilePlan& plan, Group& group, int d) {
  if (group.n > 0) group.unit *= plan.shape[group.dims[group.n - 1]];
  group.dims[group.n++] = d;
}

int64_t extent_of(const TilePlan& plan, const Group& group) { return group.unit * plan.shape[group.dims[group.n - 1]]; }

// Offsets of the first `n` positions of a group, its first dimension moving fastest.
void fill_offsets(const TilePlan& plan, const Group& group, const PlannedOperand& op, int64_t n, int64_t* offsets) {
  int64_t digit[kMaxRank] = {};
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    offsets[i] = offset;
    for (int g = 0; g < group.n; ++g) {
      const int d = group.dims[g];
      offset += op.strides[d];
      if (++digit[g] < plan.shape[d]) break;
      offset -= digit[g] * op.strides[d];
      digit[g] = 0;
    }
  }
}

bool regular(const TilePlan& plan, const Group& group, const PlannedOperand& op) {
  for (int g = 1; g < group.n; ++g) {
    const int inner = group.dims[g - 1];
    if (op.strides[group.dims[g]] != op.strides[inner] * plan.shape[inner]) return false;
  }
  return true;
}

void group_in_order(TilePlan& plan, int64_t row_elements, Group& columns, Group& rows) {
  const int inner = plan.rank - 1;
  append(plan, columns, inner);
  bool direct = true, converts = false;
  int64_t widest = 1;
  for (int k = 0; k < plan.n_operands; ++k) {
    const PlannedOperand& op = plan.operands[k];
    if (k == plan.repeated) continue;
    direct &= op.native && op.strides[inner] == op.size && !(plan.turns && op.stream);
    converts |= !op.native && op.size > 1 && op.strides[inner] == op.size;
    widest = std::max(widest, op.size);
  }
  int next = inner - 1;
  // Runs of the caller's own memory are worth a call from two lines on, others are first packed together.
  const int64_t shortest = direct ? 2 * kLine / widest : 128;
  if (plan.shape[inner] < shortest) {
    const int64_t limit = std::min(row_elements, kMaxTable);
    while (next >= 0 && 2 * extent_of(plan, columns) <= limit) append(plan, columns, next--);
    set_steps(plan, columns, limit);
    // Tiles that are whole lines: every one is aligned as the first, and leaves no rest behind its vectors.
    int64_t& step = plan.step[columns.dims[columns.n - 1]];
    const int64_t line = kLine / widest, even = line / std::gcd(columns.unit, line);
    if (step >= even && plan.shape[columns.dims[columns.n - 1]] > step) step -= step % even;
  } else {
    set_steps(plan, columns,
              direct     ? grain_of(plan)
              : converts ? row_elements * kConvertedBytes / kRowBytes
                         : row_elements);
  }
  if (next < 0) return;
  append(plan, rows, next);
  // Several rows per tile only where a row is short: memory is best read in one direction.
  const int64_t width = columns.unit * plan.step[columns.dims[columns.n - 1]];
  set_steps(plan, rows, std::clamp<int64_t>((direct ? 4096 : 1024) / width, 1, kMaxRows));
}

void group_crossing(TilePlan& plan, const PlannedOperand& odd, int crossing, int64_t tile_elements,
                    int64_t row_elements, Group& columns, Group& rows) {
  append(plan, columns, plan.rank - 1);
  append(plan, rows, crossing);
  constexpr int64_t kSide = 64;
  // Wide tiles where each row is a call of the loop, high ones where a tile is only turned.
  const int64_t height_limit = std::min(plan.turns ? kMaxRows : kSide, tile_elements / kSide);
  for (int d = plan.rank - 2; d >= 0 && extent_of(plan, columns) < kSide && !rows.has(d); --d) append(plan, columns, d);
  for (bool grew = true; grew && extent_of(plan, rows) < height_limit;) {
    grew = false;
    const int last = rows.dims[rows.n - 1];
    for (int d = 0; d < plan.rank && !grew; ++d) {
      if (columns.has(d) || rows.has(d) || odd.strides[d] != odd.strides[last] * plan.shape[last]) continue;
      append(plan, rows, d);
      grew = true;
    }
  }
  set_steps(plan, rows, height_limit);
  const int64_t height = rows.unit * plan.step[rows.dims[rows.n - 1]];
  const int64_t width_limit = std::min(columns.n > 1 ? kMaxTable : row_elements, row_elements);
  set_steps(plan, columns, std::clamp(tile_elements / height, int64_t{1}, width_limit));
}

}  // namespace

bool make_plan(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
               const bool* native, int64_t compute_size, TilePlan& plan) {
  plan.n_operands = static_cast<int>(inputs.size() + outputs.size());
  for (int k = 0; k < plan.n_operands; ++k) {
    const bool output = k < static_cast<int>(outputs.size());
    const Operand& from = output ? outputs[k] : inputs[k - outputs.size()];
    PlannedOperand& op = plan.operands[k];
    op.data = static_cast<char*>(from.data);
    op.size = size_of(from.element);
    op.native = native[k];
    op.output = output;
    for (int d = 0; d < space.rank; ++d) op.strides[d] = from.strides[d] * op.size;
  }
  plan.primary = 0;
  while (!plan.operands[plan.primary].data && plan.primary + 1 < static_cast<int>(outputs.size())) ++plan.primary;
  if (!collapse(space, plan)) return false;
  std::fill_n(plan.step, plan.rank, 1);

  choose_streams(plan, static_cast<int>(outputs.size()));
  for (int k = plan.n_operands; k-- > static_cast<int>(outputs.size());)
    if (plan.repeatable >> (k - outputs.size()) & 1 && plan.operands[k].strides[plan.rank - 1] == 0) plan.repeated = k;

  int odd = -1, crossing = -1, n_crossing = 0;
  for (int k = static_cast<int>(outputs.size()); k < plan.n_operands && plan.rank > 1; ++k) {
    const int d = crossing_dimension(plan, plan.operands[k]);
    if (d < 0 || (crossing >= 0 && d != crossing)) continue;
    if (crossing < 0) odd = k, crossing = d;
    ++n_crossing;
  }
  Group columns, rows;
  const int64_t row_elements = kRowBytes / compute_size;
  if (crossing < 0)
    group_in_order(plan, row_elements, columns, rows);
  else
    group_crossing(plan, plan.operands[odd], crossing, kTileBytes / (compute_size * n_crossing), row_elements, columns,
                   rows);

  plan.column_split = columns.dims[columns.n - 1];
  plan.column_unit = columns.unit;
  plan.columns = columns.unit * plan.step[plan.column_split];
  plan.run = std::min(plan.shape[plan.rank - 1], plan.columns);
  plan.row_split = rows.n > 0 ? rows.dims[rows.n - 1] : -1;
  plan.row_unit = rows.unit;
  plan.rows = rows.n > 0 ? rows.unit * plan.step[plan.row_split] : 1;
  for (int k = 0; k < plan.n_operands; ++k) {
    PlannedOperand& op = plan.operands[k];
    op.column = op.strides[plan.rank - 1];
    op.irregular_columns = !regular(plan, columns, op);
    const bool crosses = crossing >= 0 && crossing_dimension(plan, op) == crossing && regular(plan, rows, op);
    op.access = op.output && !op.data                                             ? Access::Discard
                : crosses                                                         ? Access::Transposed
                : op.irregular_columns                                            ? Access::Table
                : k == plan.repeated                                              ? Access::Repeated
                : op.native && op.column == op.size && !(plan.turns && op.stream) ? Access::Direct
                                                                                  : Access::Strided;
    if (plan.rows > 1)
      fill_offsets(plan, rows, op, plan.rows, plan.row_offset[k]);
    else
      plan.row_offset[k][0] = 0;
    op.apart = plan.rows > 1 && plan.row_offset[k][1] != 0 && plan.row_offset[k][1] != plan.columns * op.size;
    if (k == plan.repeated && op.access != Access::Repeated) plan.repeated = -1;
    if (op.irregular_columns) fill_offsets(plan, columns, op, plan.columns, plan.column_offset[k]);
  }
  plan.tiles = 1;
  for (int d = 0; d < plan.rank; ++d) plan.tiles *= (plan.shape[d] + plan.step[d] - 1) / plan.step[d];
  return true;
}

}  // namespace baracuda::tile
