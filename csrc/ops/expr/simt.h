// What the text of a fused expression is compiled behind: where operands lie, and how they are read and written. The
// program itself is written by source.cpp, as a struct
//
//   struct Program {
//     enum : int { kInputs = 2, kOutputs = 1, kPack = 8 };
//     BCU_DEVICE void element(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at);  // one of each operand
//     BCU_DEVICE void pack(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at);     // kPack that follow
//   };
//
// in which every function is called by its functor, in its compute type, as its own kernel calls it.
#pragma once
#include "ops/expr/values.h"
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

template <class T, class C>
BCU_DEVICE C read(BCU_CONSTANT FusedParams& p, int operand, BCU_THREAD const int32_t* at) {
  return value_of<T, C>(((BCU_GLOBAL const T*)p.frame.data[operand])[at[operand]]);
}
template <class T, class As, class C>
BCU_DEVICE void write(BCU_CONSTANT FusedParams& p, int operand, BCU_THREAD const int32_t* at, C v) {
  ((BCU_GLOBAL T*)p.frame.data[operand])[at[operand]] = simt::Convert<As>::to(v);
}

// Packs of operands that follow one another, in words of at most 16 bytes, or that are the same all along.
template <class T, int kPack>
struct Words {
  enum : int { kMost = 16 / int(sizeof(T)), kRun = kPack < kMost ? kPack : kMost };
};
template <class T, class C, int kPack>
BCU_DEVICE void read_pack(BCU_CONSTANT FusedParams& p, int operand, BCU_THREAD const int32_t* at, BCU_THREAD C* v) {
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
template <class T, class As, class C, int kPack>
BCU_DEVICE void write_pack(BCU_CONSTANT FusedParams& p, int operand, BCU_THREAD const int32_t* at,
                           BCU_THREAD const C* v) {
  enum : int { kRun = Words<T, kPack>::kRun };
  BCU_GLOBAL T* to = (BCU_GLOBAL T*)p.frame.data[operand] + at[operand];
  BCU_UNROLL for (int i = 0; i < kPack; i += kRun) {
    simt::Run<T, kRun> run;
    BCU_UNROLL for (int j = 0; j < kRun; ++j) run.v[j] = simt::Convert<As>::to(v[i + j]);
    *(BCU_GLOBAL simt::Run<T, kRun>*)(to + i) = run;
  }
}

// A number of the program, which its text does not say: programs that differ in numbers alone are one kernel.
template <class C>
BCU_DEVICE C number(BCU_CONSTANT FusedParams& p, int index) {
  return simt::from_bits<C>(p.number[index]);
}

// Integer division: a divisor of zero is reported, and 1 taken in its place.
template <class F, class C>
BCU_DEVICE C divide(BCU_CONSTANT FusedParams& p, C a, C b) {
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

}  // namespace baracuda::expr
