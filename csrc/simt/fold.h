// Folds rows into one value each: sums, maxima and minima, and where those lie. Long rows of few are cut into strips
// (blocks along y) whose partial results a second launch of the same body folds.
#pragma once
#include "simt/rows.h"

namespace baracuda::simt {

template <class C>
struct FoldParams {
  RowSpace<2> s;          // what is folded, and the results: one value per row
  int64_t per;            // positions of a strip, a multiple of 8
  BCU_GLOBAL C* partial;  // not null: the result of row r and strip k goes to [k * rows + r]
  BCU_GLOBAL int64_t* partial_positions;
  BCU_GLOBAL const int64_t* positions;  // of what is folded, which lies like it; null: its place in the row
  int64_t divisor;                      // results are divided by it; negative: they are not
  BCU_GLOBAL const C* divisor_at;       // not null: the divisor lies here
};

template <class Compute>
struct SumFold {
  using C = Compute;
  using State = LongSum<C>;
  enum : int { kPositions = 0 };
  BCU_DEVICE C fill() { return C(0); }
  BCU_DEVICE State start() { return empty_sum<C>(); }
  template <int kPack>
  BCU_DEVICE void add(BCU_THREAD State& s, BCU_THREAD const C* v, int64_t, int64_t) {
    accumulate(s, pack_sum<kPack>(v));
  }
  BCU_DEVICE State team(BCU_THREAD const Context& ctx, BCU_THREAD const Team& t, BCU_THREAD const State& s,
                        BCU_SHARED float* shared) {
    State all = empty_sum<C>();
    all.sum = team_reduce<Add>(ctx, t, value_of(s), C(0), shared);
    return all;
  }
  BCU_DEVICE C value(BCU_THREAD const State& s) { return s.sum; }
  BCU_DEVICE int64_t position(BCU_THREAD const State&) { return 0; }
};

// What a maximum or minimum starts with.
template <class C>
struct Ends {
  BCU_DEVICE C low() { return -math::infinity<C>(); }
  BCU_DEVICE C high() { return math::infinity<C>(); }
};
template <>
struct Ends<int64_t> {
  BCU_DEVICE int64_t low() { return int64_t(uint64_t(1) << 63); }
  BCU_DEVICE int64_t high() { return int64_t(~uint64_t(0) >> 1); }
};
template <>
struct Ends<uint64_t> {
  BCU_DEVICE uint64_t low() { return 0; }
  BCU_DEVICE uint64_t high() { return ~uint64_t(0); }
};

template <bool kMax>
struct Further;  // the value further up or down; NaN wins
template <>
struct Further<true> {
  using Op = Larger;
};
template <>
struct Further<false> {
  using Op = Smaller;
};

template <bool kMax, class Compute>
struct ExtremeFold {
  using C = Compute;
  using State = C;
  using Op = typename Further<kMax>::Op;
  enum : int { kPositions = 0 };
  BCU_DEVICE C fill() { return kMax ? Ends<C>::low() : Ends<C>::high(); }
  BCU_DEVICE State start() { return fill(); }
  template <int kPack>
  BCU_DEVICE void add(BCU_THREAD State& s, BCU_THREAD const C* v, int64_t, int64_t) {
    BCU_UNROLL for (int j = 0; j < kPack; ++j) s = Op::of(s, v[j]);
  }
  BCU_DEVICE State team(BCU_THREAD const Context& ctx, BCU_THREAD const Team& t, BCU_THREAD const State& s,
                        BCU_SHARED float* shared) {
    return team_reduce<Op>(ctx, t, s, fill(), shared);
  }
  BCU_DEVICE C value(BCU_THREAD const State& s) { return s; }
  BCU_DEVICE int64_t position(BCU_THREAD const State&) { return 0; }
};

// A value and where it lies; nothing yet where position is -1.
template <class C>
struct Found {
  C value;
  int64_t position;
};

// The first position of the extremum; the first NaN wins.
template <bool kMax, class Compute>
struct SearchFold {
  using C = Compute;
  using State = Found<C>;
  enum : int { kPositions = 1 };
  BCU_DEVICE C fill() { return C(0); }
  BCU_DEVICE State start() {
    State s;
    s.value = C(0), s.position = -1;
    return s;
  }
  BCU_DEVICE bool beats(C x, C best) {
    bool better = kMax ? x > best : x < best;
    return better || (x != x && best == best);
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    if (b.position < 0) return a;
    if (a.position < 0 || beats(b.value, a.value)) return b;
    return !beats(a.value, b.value) && b.position < a.position ? b : a;
  }
  template <int kPack>
  BCU_DEVICE void add(BCU_THREAD State& s, BCU_THREAD const C* v, int64_t i, int64_t end) {
    BCU_UNROLL for (int j = 0; j < kPack; ++j) {
      if (i + j < end && (s.position < 0 || beats(v[j], s.value))) s.value = v[j], s.position = i + j;
    }
  }
  BCU_DEVICE State warp(BCU_THREAD const Context& ctx, State s) {
    BCU_UNROLL for (uint32_t mask = 16; mask > 0; mask >>= 1) {
      State other;
      other.value = shuffle_xor(ctx, s.value, mask);
      other.position = shuffle_xor(ctx, s.position, mask);
      s = merged(s, other);
    }
    return s;
  }
  // Positions lie 512 floats behind the values.
  BCU_DEVICE State team(BCU_THREAD const Context& ctx, BCU_THREAD const Team& t, BCU_THREAD const State& own,
                        BCU_SHARED float* shared) {
    BCU_SHARED C* values = (BCU_SHARED C*)shared;
    BCU_SHARED int64_t* positions = (BCU_SHARED int64_t*)(shared + 512);
    State s = own;
    if (!t.columns) s = warp(ctx, s);
    if (t.columns ? t.size == 1u : t.size == 32u) return s;
    uint32_t slot = t.columns ? ctx.tid() : ctx.warp();
    if (t.columns || ctx.lane() == 0u) values[slot] = s.value, positions[slot] = s.position;
    barrier(ctx);
    uint32_t at = t.columns ? ctx.tid() - t.rank * 32u : ctx.lane();
    s = start();
    if (t.columns || ctx.lane() < ctx.warps()) s.value = values[at], s.position = positions[at];
    if (t.columns) {
      for (uint32_t k = 1; k < t.size; ++k) {
        State other;
        other.value = values[at + k * 32u], other.position = positions[at + k * 32u];
        s = merged(s, other);
      }
    } else {
      s = warp(ctx, s);
    }
    barrier(ctx);
    return s;
  }
  BCU_DEVICE C value(BCU_THREAD const State& s) { return s.value; }
  BCU_DEVICE int64_t position(BCU_THREAD const State& s) { return s.position; }
};

// Integer results are never divided: a division there would cost registers.
BCU_DEVICE float quotient(float v, int64_t by) { return v / float(by); }
#if BCU_HAS_F64
BCU_DEVICE double quotient(double v, int64_t by) { return v / double(by); }
#endif
BCU_DEVICE float ratio(float v, float by) { return v / by; }
#if BCU_HAS_F64
BCU_DEVICE double ratio(double v, double by) { return v / by; }
#endif
BCU_DEVICE int64_t ratio(int64_t v, int64_t) { return v; }
BCU_DEVICE uint64_t ratio(uint64_t v, uint64_t) { return v; }
BCU_DEVICE int64_t quotient(int64_t v, int64_t) { return v; }
BCU_DEVICE uint64_t quotient(uint64_t v, int64_t) { return v; }

template <class Rows, class Fold>
struct FoldRows {
  using C = typename Rows::C;
  using Params = FoldParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 1024, kPack = Rows::kPack };

  // The result of a row: `at` is where the row starts.
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t strip, int64_t row, int64_t at, C value, int64_t position) {
    if (Fold::kPositions && p.positions) position = p.positions[at + position_offset(p.s, 0, position)];
    if (p.partial) {
      p.partial[strip * p.s.rows + row] = value;
      if (Fold::kPositions) p.partial_positions[strip * p.s.rows + row] = position;
    } else if (Fold::kPositions) {
      put_row_value(p.s, 1, row, position);
    } else {
      if (p.divisor_at)
        value = ratio(value, *p.divisor_at);
      else if (p.divisor >= 0)
        value = quotient(value, p.divisor);
      put_row_value(p.s, 1, row, value);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    Team team = team_of(ctx, p.s);
    int64_t begin = int64_t(ctx.bid_y()) * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, last = row < p.s.rows ? end : begin;
      int64_t at = row < p.s.rows ? row_offset(p.s, 0, row) : 0;
      C v[kPack];
      typename Fold::State own = Fold::start();
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        Rows::load(p.s, 0, at, i, Fold::fill(), v);
        Fold::template add<kPack>(own, v, i, last);
      }
      own = Fold::team(ctx, team, own, shared);
      if (team.rank == 0u && row < p.s.rows)
        put(p, int64_t(ctx.bid_y()), row, at, Fold::value(own), Fold::position(own));
    }
  }
};

}  // namespace baracuda::simt
