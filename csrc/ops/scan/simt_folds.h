// Scans on GPUs whose running state is two numbers: extremes with their positions, logarithms of sums of exponentials
// and their gradient. A fold says what a position adds, how what was before is joined with it, and what is written
// there.
#pragma once
#include "ops/scan/math.h"
#include "simt/rows.h"

namespace baracuda::scan {

template <int kTensors>
struct FoldParams {
  simt::RowSpace<kTensors> s;
};

template <class A, class B>
struct Pair {
  A a;
  B b;
};
template <class A, class B>
BCU_DEVICE Pair<A, B> pair_of(A a, B b) {
  Pair<A, B> p;
  p.a = a, p.b = b;
  return p;
}

// Where a line begins in each tensor.
template <int kTensors>
struct Starts {
  int64_t at[kTensors];
};

template <class C, class Params>
BCU_DEVICE C value_at(BCU_CONSTANT Params& p, int k, int64_t start, int64_t i) {
  return simt::load_element<C>(p.s.data[k], p.s.element[k], start + simt::position_offset(p.s, k, i));
}
template <class C, class Params>
BCU_DEVICE void put_at(BCU_CONSTANT Params& p, int k, int64_t start, int64_t i, C v) {
  simt::store_element(p.s.data[k], p.s.element[k], start + simt::position_offset(p.s, k, i), v);
}

template <bool kMax, class C>
struct Least {
  BCU_DEVICE C of() { return kMax ? -math::infinity<C>() : math::infinity<C>(); }
};
template <bool kMax>
struct Least<kMax, int64_t> {
  BCU_DEVICE int64_t of() { return int64_t(kMax ? uint64_t(1) << 63 : ~uint64_t(0) >> 1); }
};
template <bool kMax>
struct Least<kMax, uint64_t> {
  BCU_DEVICE uint64_t of() { return kMax ? uint64_t(0) : ~uint64_t(0); }
};

// x, values, indices: a value and where it was.
template <bool kMax, class Compute>
struct ExtremeFold {
  using C = Compute;
  using A = C;
  using B = int64_t;
  enum : int { kTensors = 3 };
  using Params = FoldParams<3>;
  using State = Pair<A, B>;

  BCU_DEVICE State neutral() { return pair_of<A, B>(Least<kMax, C>::of(), 0); }
  BCU_DEVICE State read(BCU_CONSTANT Params& p, BCU_THREAD const Starts<3>& line, int64_t i) {
    return pair_of<A, B>(value_at<C>(p, 0, line.at[0], i), i);
  }
  BCU_DEVICE State joined(BCU_THREAD const State& before, BCU_THREAD const State& then) {
    bool later = replaces<kMax>(then.a, before.a);
    return pair_of<A, B>(later ? then.a : before.a, later ? then.b : before.b);
  }
  BCU_DEVICE void write(BCU_CONSTANT Params& p, BCU_THREAD const Starts<3>& line, int64_t i,
                        BCU_THREAD const State& s) {
    put_at(p, 1, line.at[1], i, s.a);
    put_at(p, 2, line.at[2], i, s.b);
  }
};

// x, y: the largest value, and the sum in units of its exponential.
template <class Compute>
struct LogSumFold {
  using C = Compute;
  using A = C;
  using B = C;
  enum : int { kTensors = 2 };
  using Params = FoldParams<2>;
  using State = Pair<A, B>;

  BCU_DEVICE State neutral() { return pair_of<A, B>(-math::infinity<C>(), C(0)); }
  BCU_DEVICE State read(BCU_CONSTANT Params& p, BCU_THREAD const Starts<2>& line, int64_t i) {
    return pair_of<A, B>(value_at<C>(p, 0, line.at[0], i), C(1));
  }
  BCU_DEVICE State joined(BCU_THREAD const State& before, BCU_THREAD const State& then) {
    C smaller = math::exp(before.a == then.a ? C(0) : -math::fabs(then.a - before.a));
    bool later = then.a > before.a;
    C sum = later ? before.b * smaller + then.b : before.b + then.b * smaller;
    return pair_of<A, B>(larger(before.a, then.a), sum);
  }
  BCU_DEVICE void write(BCU_CONSTANT Params& p, BCU_THREAD const Starts<2>& line, int64_t i,
                        BCU_THREAD const State& s) {
    put_at(p, 1, line.at[1], i, s.a + math::log(s.b));
  }
};

// dy, x, y, dx, backwards: total -> a total + b is what positions do to the sum of dy_j exp(y_i - y_j).
template <class Compute>
struct LogSumGradientFold {
  using C = Compute;
  using A = C;
  using B = C;
  enum : int { kTensors = 4 };
  using Params = FoldParams<4>;
  using State = Pair<A, B>;

  BCU_DEVICE State neutral() { return pair_of<A, B>(C(1), C(0)); }
  BCU_DEVICE State read(BCU_CONSTANT Params& p, BCU_THREAD const Starts<4>& line, int64_t i) {
    C y = value_at<C>(p, 2, line.at[2], i), next = i > 0 ? value_at<C>(p, 2, line.at[2], i - 1) : y;
    return pair_of<A, B>(exp_of_difference(y, next), value_at<C>(p, 0, line.at[0], i));
  }
  BCU_DEVICE State joined(BCU_THREAD const State& before, BCU_THREAD const State& then) {
    return pair_of<A, B>(before.a * then.a, then.a * before.b + then.b);
  }
  BCU_DEVICE void write(BCU_CONSTANT Params& p, BCU_THREAD const Starts<4>& line, int64_t i,
                        BCU_THREAD const State& s) {
    C x = value_at<C>(p, 1, line.at[1], i), y = value_at<C>(p, 2, line.at[2], i);
    put_at(p, 3, line.at[3], i, s.b * exp_of_difference(x, y));
  }
};

template <class Fold>
BCU_DEVICE Starts<Fold::kTensors> line_at(BCU_CONSTANT typename Fold::Params& p, int64_t row) {
  Starts<Fold::kTensors> line;
  BCU_UNROLL for (int k = 0; k < Fold::kTensors; ++k) line.at[k] = simt::row_offset(p.s, k, row);
  return line;
}

// A block goes along a line in tiles.
template <class Fold>
struct FoldLines {
  using Params = typename Fold::Params;
  using A = typename Fold::A;
  using B = typename Fold::B;
  using State = typename Fold::State;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 1024, kEach = 4, kTile = kThreads * kEach };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& p) {
    BCU_SHARED A* first = (BCU_SHARED A*)memory;
    BCU_SHARED B* second = (BCU_SHARED B*)(memory + kShared / 2);
    for (int64_t row = ctx.bid_x(); row < p.s.rows; row += ctx.gdim_x()) {
      Starts<Fold::kTensors> line = line_at<Fold>(p, row);
      State carry = Fold::neutral();
      for (int64_t base = 0; base < p.s.length; base += kTile) {
        int64_t begin = base + int64_t(ctx.tid()) * kEach;
        State v[kEach];
        BCU_UNROLL for (int j = 0; j < kEach; ++j) {
          v[j] = begin + j < p.s.length ? Fold::read(p, line, begin + j) : Fold::neutral();
          if (j > 0) v[j] = Fold::joined(v[j - 1], v[j]);
        }
        State total = v[kEach - 1];
        first[ctx.tid()] = total.a, second[ctx.tid()] = total.b;
        simt::barrier(ctx);
        BCU_NO_UNROLL for (uint32_t w = 1; w < kThreads; w *= 2) {
          if (ctx.tid() >= w) {
            State before = pair_of<A, B>(first[ctx.tid() - w], second[ctx.tid() - w]);
            total = Fold::joined(before, total);
          }
          simt::barrier(ctx);
          first[ctx.tid()] = total.a, second[ctx.tid()] = total.b;
          simt::barrier(ctx);
        }
        State all = pair_of<A, B>(first[kThreads - 1], second[kThreads - 1]), before = carry;
        if (ctx.tid() > 0u) {
          State others = pair_of<A, B>(first[ctx.tid() - 1u], second[ctx.tid() - 1u]);
          before = Fold::joined(carry, others);
        }
        simt::barrier(ctx);
        BCU_UNROLL for (int j = 0; j < kEach; ++j) {
          State out = Fold::joined(before, v[j]);
          if (begin + j < p.s.length) Fold::write(p, line, begin + j, out);
        }
        carry = Fold::joined(carry, all);
      }
    }
  }
};

// Each thread goes along a line of its own.
template <class Fold>
struct FoldColumns {
  using Params = typename Fold::Params;
  using State = typename Fold::State;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); row < p.s.rows; row += step) {
      Starts<Fold::kTensors> line = line_at<Fold>(p, row);
      State total = Fold::neutral();
      for (int64_t i = 0; i < p.s.length; ++i) {
        State v = Fold::read(p, line, i);
        total = Fold::joined(total, v);
        Fold::write(p, line, i, total);
      }
    }
  }
};

}  // namespace baracuda::scan
