// What the text of a fused expression is compiled behind: where operands lie, and how they are read and written. The
// program itself is written by source.cpp, as a struct
//
//   struct Program {
//     enum : int { kInputs = 2, kOutputs = 1, kPack = 8 };
//     BCU_DEVICE void element(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at);  // one of each operand
//     BCU_DEVICE void pack(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at);     // kPack that follow
//   };
//
// in which every function is called by its functor, in its compute type, as its own kernel calls it. Where outputs are
// reduced it has, in place of element and pack, all that is done to a row:
//
//     BCU_DEVICE void row(BCU_THREAD const simt::Context& ctx, BCU_THREAD const simt::Team& team,
//                         BCU_SHARED float* shared, BCU_CONSTANT FoldedParams& p, BCU_THREAD const Line<kInputs>&
//                         line);
#pragma once
#include "ops/expr/values.h"
#include "ops/reduce/simt_folds.h"
#include "simt/fold.h"
#include "simt/map.h"

namespace baracuda::expr {

enum : int { kMostIn = 16, kMostOut = 8, kMostNumbers = 32 };  // as in program.h

struct FusedParams {
  simt::MapFrame<kMostIn, kMostOut> frame;
  int64_t number[kMostNumbers];  // bits of the compute type
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
};

// Where the operands of the program lie in the frame: outputs first, then inputs.
template <class Program>
struct Places {
  enum : int { kCount = kMostOut + Program::kInputs };

  BCU_DEVICE void advance(BCU_CONSTANT FusedParams& p, int d, BCU_THREAD uint32_t& rest, BCU_THREAD int32_t* at) {
    uint32_t next = d + 1 < p.frame.rank ? simt::quotient(p.frame.shape[d], rest) : 0u;
    int32_t c = int32_t(rest - next * p.frame.shape[d].divisor);
    rest = next;
    BCU_UNROLL for (int k = 0; k < Program::kOutputs; ++k) at[k] += c * p.frame.stride[k][d];
    BCU_UNROLL for (int k = kMostOut; k < kCount; ++k) at[k] += c * p.frame.stride[k][d];
  }
  BCU_DEVICE void of_element(BCU_CONSTANT FusedParams& p, uint32_t index, BCU_THREAD int32_t* at) {
    BCU_UNROLL for (int k = 0; k < kCount; ++k) at[k] = 0;
    uint32_t rest = index;
    for (int d = 0; d < p.frame.rank; ++d) advance(p, d, rest, at);
  }
  BCU_DEVICE void of_pack(BCU_CONSTANT FusedParams& p, uint32_t index, BCU_THREAD int32_t* at) {
    uint32_t rest = p.frame.rank > 1 ? simt::quotient(p.frame.row, index) : 0u;
    int32_t c = int32_t(index - rest * p.frame.row.divisor) * Program::kPack;
    BCU_UNROLL for (int k = 0; k < kCount; ++k) at[k] = c * p.frame.stride[k][0];
    for (int d = 1; d < p.frame.rank; ++d) advance(p, d, rest, at);
  }
};

// An element that lies as T, as a C: integers have 64 bits, halves are f32, bool is bool.
template <class T, class C>
BCU_DEVICE C value_of(T stored) {
  return C(simt::Stored<T>::load(stored));
}

template <class T, class C, class P, class At>
BCU_DEVICE C read(BCU_CONSTANT P& p, int operand, BCU_THREAD const At* at) {
  return value_of<T, C>(((BCU_GLOBAL const T*)p.frame.data[operand])[at[operand]]);
}
template <class T, class As, class P, class At, class C>
BCU_DEVICE void write(BCU_CONSTANT P& p, int operand, BCU_THREAD const At* at, C v) {
  ((BCU_GLOBAL T*)p.frame.data[operand])[at[operand]] = simt::Convert<As>::to(v);
}

// Packs of operands that follow one another, in words of at most 16 bytes, or that are the same all along.
template <class T, int kPack>
struct Words {
  enum : int { kMost = 16 / int(sizeof(T)), kRun = kPack < kMost ? kPack : kMost };
};
template <class T, class C, int kPack, class P, class At>
BCU_DEVICE void read_pack(BCU_CONSTANT P& p, int operand, BCU_THREAD const At* at, BCU_THREAD C* v) {
  enum : int { kRun = Words<T, kPack>::kRun };
  BCU_GLOBAL const T* from = (BCU_GLOBAL const T*)p.frame.data[operand] + at[operand];
  if (p.frame.stride[operand][0] == 0) {
    C same = value_of<T, C>(*from);
    BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = same;
    return;
  }
  BCU_UNROLL for (int i = 0; i < kPack; i += kRun) {
    simt::Run<T, kRun> run = *(BCU_GLOBAL const simt::Run<T, kRun>*)(from + i);
    BCU_UNROLL for (int j = 0; j < kRun; ++j) v[i + j] = value_of<T, C>(run.v[j]);
  }
}
template <class T, class As, class C, int kPack, class P, class At>
BCU_DEVICE void write_pack(BCU_CONSTANT P& p, int operand, BCU_THREAD const At* at, BCU_THREAD const C* v) {
  enum : int { kRun = Words<T, kPack>::kRun };
  BCU_GLOBAL T* to = (BCU_GLOBAL T*)p.frame.data[operand] + at[operand];
  BCU_UNROLL for (int i = 0; i < kPack; i += kRun) {
    simt::Run<T, kRun> run;
    BCU_UNROLL for (int j = 0; j < kRun; ++j) run.v[j] = simt::Convert<As>::to(v[i + j]);
    *(BCU_GLOBAL simt::Run<T, kRun>*)(to + i) = run;
  }
}

// A number of the program, which its text does not say: programs that differ in numbers alone are one kernel.
template <class C, class P>
BCU_DEVICE C number(BCU_CONSTANT P& p, int index) {
  return simt::from_bits<C>(p.number[index]);
}

// Integer division: a divisor of zero is reported, and 1 taken in its place.
template <class F, class P, class C>
BCU_DEVICE C divide(BCU_CONSTANT P& p, C a, C b) {
  if (b == C(0)) simt::raise_division(p.fault, p.row, -1, 0);
  return F::f(a, b == C(0) ? C(1) : b);
}

template <class Program>
struct FusedMap {
  using Params = FusedParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int32_t at[Places<Program>::kCount];
    uint32_t step = ctx.gdim_x() * ctx.bdim(), me = ctx.bid_x() * ctx.bdim() + ctx.tid();
    for (uint32_t i = me; i < p.frame.packs; i += step) {
      Places<Program>::of_pack(p, i, at);
      Program::pack(p, at);
    }
    for (uint32_t i = p.frame.packs * Program::kPack + me; i < p.frame.count; i += step) {
      Places<Program>::of_element(p, i, at);
      Program::element(p, at);
    }
  }
};

// --- reductions over the last axes ----------------------------------------------------------------------------------

// Where operands lie that are folded row by row: dimensions innermost first, of which the first inner_rank run along
// the rows.
struct RowFrame {
  int64_t rows, length, per;  // per: positions of a strip
  int32_t rank, inner_rank;
  int32_t columns, team_size;  // as in simt::RowSpace
  int32_t packed;              // 1: packs along the rows are aligned, and whole
  simt::WideDivider divider[simt::kRowDims];
  int64_t shape[simt::kRowDims];
  int64_t stride[kMostOut + kMostIn][simt::kRowDims];  // in elements
  BCU_GLOBAL void* data[kMostOut + kMostIn];
  BCU_GLOBAL void* partial[kMostOut];  // not null: the value of row r and strip k goes to [k * rows + r]
};

struct FoldedParams {
  RowFrame frame;
  int64_t number[kMostNumbers];  // bits of the compute type
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
};

// A row, or a strip of it, and where its operands begin.
template <int kInputs>
struct Line {
  int64_t row, strip, begin, last;
  int64_t from[kMostOut + kInputs];
};

// Operands at position i of a row.
template <int kOutputs, int kInputs>
BCU_DEVICE void places(BCU_CONSTANT FoldedParams& p, BCU_THREAD const int64_t* from, int64_t i,
                       BCU_THREAD int64_t* at) {
  bool is_line = p.frame.inner_rank <= 1;
  int64_t first = is_line ? i : 0;
  BCU_UNROLL for (int k = 0; k < kOutputs; ++k) at[k] = from[k] + first * p.frame.stride[k][0];
  BCU_UNROLL for (int k = kMostOut; k < kMostOut + kInputs; ++k) at[k] = from[k] + first * p.frame.stride[k][0];
  if (is_line) return;
  int64_t rest = i;
  BCU_NO_UNROLL for (int d = 0; d < p.frame.inner_rank; ++d) {
    int64_t next = d + 1 < p.frame.inner_rank ? simt::quotient(p.frame.divider[d], rest) : 0;
    int64_t c = rest - next * p.frame.shape[d];
    rest = next;
    BCU_UNROLL for (int k = 0; k < kOutputs; ++k) at[k] += c * p.frame.stride[k][d];
    BCU_UNROLL for (int k = kMostOut; k < kMostOut + kInputs; ++k) at[k] += c * p.frame.stride[k][d];
  }
}

// The result of a row, or of a strip of it.
template <class T, bool kMean, int kInputs, class C>
BCU_DEVICE void put(BCU_CONSTANT FoldedParams& p, int output, BCU_THREAD const Line<kInputs>& line, C v) {
  if (p.frame.partial[output])
    ((BCU_GLOBAL C*)p.frame.partial[output])[line.strip * p.frame.rows + line.row] = v;
  else
    write<T, T>(p, output, line.from, kMean ? simt::quotient(v, p.frame.length) : v);
}

enum : int { kFoldThreads = 512 };  // at most

// In the order of simt::FoldRows, and of simt::FoldStates for products.
template <class Program>
struct FusedFold {
  using Params = FoldedParams;
  enum : int { kThreads = kFoldThreads, kShared = 1536, kInputs = Program::kInputs };

  BCU_DEVICE void begin_of(BCU_CONSTANT Params& p, BCU_THREAD Line<kInputs>& line) {
    BCU_UNROLL for (int k = 0; k < kMostOut + kInputs; ++k) line.from[k] = 0;
    int64_t rest = line.row;
    BCU_NO_UNROLL for (int d = p.frame.inner_rank; d < p.frame.rank; ++d) {
      int64_t next = d + 1 < p.frame.rank ? simt::quotient(p.frame.divider[d], rest) : 0;
      int64_t c = rest - next * p.frame.shape[d];
      rest = next;
      BCU_UNROLL for (int k = 0; k < Program::kOutputs; ++k) line.from[k] += c * p.frame.stride[k][d];
      BCU_UNROLL for (int k = kMostOut; k < kMostOut + kInputs; ++k) line.from[k] += c * p.frame.stride[k][d];
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.frame);
    Line<kInputs> line;
    line.strip = int64_t(ctx.bid_y());
    line.begin = line.strip * p.frame.per;
    int64_t end = line.begin + p.frame.per < p.frame.length ? line.begin + p.frame.per : p.frame.length;
    for (int64_t base = team.first; base < p.frame.rows; base += team.step) {
      line.row = base + team.index;
      line.last = line.row < p.frame.rows ? end : line.begin;
      if (line.row < p.frame.rows) begin_of(p, line);
      Program::row(ctx, team, shared, p, line);
    }
  }
};

}  // namespace baracuda::expr
