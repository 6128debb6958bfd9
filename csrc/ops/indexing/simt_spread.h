// Writing and folding by index on GPUs: what is written is sorted by its place, and every place has one writer.
#pragma once
#include "ops/indexing/modes.h"
#include "simt/copy_cells.h"
#include "simt/index.h"
#include "simt/pair_sum.h"
#include "simt/sorted_fold.h"

namespace baracuda::indexing {

struct ReadPlacesParams {
  simt::Space<2> space;  // of indices: theirs, and the place in the target but for the axis
  simt::IndexParams index;
  BCU_GLOBAL simt::Entry* out;
  int64_t step, places;  // of one index; how many places there are, which is what a bad index gets
};

struct ReadPlaces {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = ReadPlacesParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[2], id;
      simt::locate(p.space, i, offset);
      bool good = simt::read_index(p.index, offset[0], i, id);
      simt::Entry e;
      e.id = good ? offset[1] + id * p.step : p.places;
      e.position = i;
      p.out[i] = e;
    }
  }
};

struct WriteParams {
  simt::SortedParams sorted;
  simt::Space<2> columns;         // what one index writes: target, source
  simt::Space<1> target, source;  // by place, by position
  BCU_GLOBAL const void* from;    // null: one number is written
  BCU_GLOBAL void* to;
  simt::Number number;                // that number, or what terms are multiplied by
  uint32_t pattern[4];                // that number as a cell, repeated
  int32_t element, mode, keeps_self;  // keeps_self: what is there counts
};

// Where piece i of the work writes, if it is the last for its place: cells of the target and of the source.
BCU_DEVICE bool find_last(BCU_CONSTANT WriteParams& p, int64_t i, BCU_THREAD int64_t* cells) {
  int64_t entry = simt::sorted_row(p.sorted, i), place = p.sorted.entries[entry].id;
  if (place >= p.sorted.ids || simt::has_id(p.sorted, entry + 1, place)) return false;
  int64_t to[1], from[1];
  simt::locate(p.columns, i - entry * p.sorted.columns, cells);
  simt::locate(p.target, place, to);
  simt::locate(p.source, p.sorted.entries[entry].position, from);
  cells[0] += to[0], cells[1] += from[0];
  return true;
}

// The last term of every place is written.
template <int kBytes>
struct AssignCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = WriteParams;
  using Element = simt::Cell<kBytes>;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Words4 pattern;
    for (int k = 0; k < 4; ++k) pattern.w[k] = p.pattern[k];
    Element same = *(BCU_THREAD const Element*)&pattern;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), work = p.sorted.count * p.sorted.columns;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < work; i += step) {
      int64_t cells[2];
      if (!find_last(p, i, cells)) continue;
      Element cell = same;
      if (p.from) cell = ((BCU_GLOBAL const Element*)p.from)[cells[1]];
      ((BCU_GLOBAL Element*)p.to)[cells[0]] = cell;
    }
  }
};

// A number that only the device knows.
template <class C>
struct AssignNumber {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = WriteParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    C value = simt::number<C>(p.number);
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), work = p.sorted.count * p.sorted.columns;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < work; i += step) {
      int64_t cells[2];
      if (find_last(p, i, cells)) simt::store_element(p.to, p.element, cells[0], value);
    }
  }
};

// Terms of one place in twice the precision of C.
template <class C>
struct Folds {
  using State = math::detail::Pair<C>;
  using Sums = simt::PairSum<C>;
  BCU_DEVICE State start(C first) { return Sums::start(first); }
  BCU_DEVICE void multiply(BCU_THREAD State& s, C hi, C lo) {
    State product = math::detail::two_prod(s.hi, hi);
    C rest = product.lo + (s.hi * lo + s.lo * hi), value = product.hi + rest, lost = rest - (value - product.hi);
    bool finite = rest - rest == C(0);
    s.hi = finite ? value : product.hi;
    s.lo = finite && lost - lost == C(0) ? lost : C(0);
  }
  BCU_DEVICE void choose(int32_t mode, BCU_THREAD State& s, C v) {
    if (v != v || (mode == kMax ? v > s.hi : v < s.hi)) s.hi = v;
  }
  BCU_DEVICE void add(int32_t mode, BCU_THREAD State& s, C v) {
    if (mode == kProd)
      multiply(s, v, C(0));
    else if (mode == kMax || mode == kMin)
      choose(mode, s, v);
    else
      Sums::add(s, v);
  }
  BCU_DEVICE void merge(int32_t mode, BCU_THREAD State& s, BCU_THREAD const State& other) {
    if (mode == kProd)
      multiply(s, other.hi, other.lo);
    else if (mode == kMax || mode == kMin)
      choose(mode, s, other.hi);
    else
      Sums::merge(s, other);
  }
  BCU_DEVICE C value(BCU_THREAD const State& s) { return Sums::value(s); }
  BCU_DEVICE C scaled(C v, C alpha) { return v * alpha; }
  BCU_DEVICE C mean(C sum, int64_t n) { return sum / C(n); }
};

// Integers wrap around.
template <class C>
struct WholeFolds {
  using State = C;
  BCU_DEVICE State start(C first) { return first; }
  BCU_DEVICE void add(int32_t mode, BCU_THREAD State& s, C v) {
    if (mode == kProd)
      s = C(uint64_t(s) * uint64_t(v));
    else if (mode == kMax || mode == kMin)
      s = (mode == kMax ? v > s : v < s) ? v : s;
    else
      s = C(uint64_t(s) + uint64_t(v));
  }
  BCU_DEVICE void merge(int32_t mode, BCU_THREAD State& s, BCU_THREAD const State& other) { add(mode, s, other); }
  BCU_DEVICE C value(BCU_THREAD const State& s) { return s; }
  BCU_DEVICE C scaled(C v, C alpha) { return C(uint64_t(v) * uint64_t(alpha)); }
  // Rounded down.
  BCU_DEVICE C mean(C sum, int64_t n) {
    C q = sum / C(n);
    return sum < C(0) && q * C(n) != sum ? q - C(1) : q;
  }
};
template <class C>
struct FoldsOf {
  using Type = Folds<C>;
};
template <>
struct FoldsOf<int64_t> {
  using Type = WholeFolds<int64_t>;
};
template <>
struct FoldsOf<uint64_t> {
  using Type = WholeFolds<uint64_t>;
};

// The job of simt::fold_sorted.
template <class C>
struct FoldTerms {
  using Params = WriteParams;
  using Term = C;
  using Fold = typename FoldsOf<C>::Type;
  using State = typename Fold::State;
  enum : int { kAhead = 4 };
  struct Column {
    int64_t to, from;
    C alpha;
  };

  BCU_DEVICE Column column(BCU_CONSTANT Params& p, int64_t at) {
    int64_t offset[2];
    simt::locate(p.columns, at, offset);
    Column c;
    c.to = offset[0], c.from = offset[1], c.alpha = simt::number<C>(p.number);
    return c;
  }
  BCU_DEVICE C term(BCU_CONSTANT Params& p, int64_t entry, BCU_THREAD const Column& c) {
    int64_t from[1];
    simt::locate(p.source, p.sorted.entries[entry].position, from);
    C v = simt::load_element<C>(p.from, p.element, from[0] + c.from);
    return c.alpha == C(1) ? v : Fold::scaled(v, c.alpha);
  }
  BCU_DEVICE State start(BCU_CONSTANT Params&, C v) { return Fold::start(v); }
  BCU_DEVICE void add(BCU_CONSTANT Params& p, BCU_THREAD State& s, C v) { Fold::add(p.mode, s, v); }
  BCU_DEVICE void merge(BCU_CONSTANT Params& p, BCU_THREAD State& s, BCU_THREAD const State& run) {
    Fold::merge(p.mode, s, run);
  }
  BCU_DEVICE int64_t place(BCU_CONSTANT Params& p, int64_t id, BCU_THREAD const Column& c) {
    int64_t to[1];
    simt::locate(p.target, id, to);
    return to[0] + c.to;
  }
  // Sums of other terms alone start with 0, as torch's do: -0 becomes 0.
  BCU_DEVICE bool own(BCU_CONSTANT Params& p, int64_t id, BCU_THREAD const Column& c, BCU_THREAD State& s) {
    bool sums = p.mode == kSum || p.mode == kMean;
    C self = C(0);
    if (p.keeps_self) self = simt::load_element<C>(p.to, p.element, place(p, id, c));
    s = Fold::start(self);
    return p.keeps_self || sums;
  }
  BCU_DEVICE void store(BCU_CONSTANT Params& p, int64_t entry, BCU_THREAD const Column& c, BCU_THREAD const State& s) {
    int64_t id = p.sorted.entries[entry].id;
    C v = Fold::value(s);
    if (p.mode == kMean) {
      int64_t end = simt::first_entry(p.sorted, id + 1, entry, p.sorted.count);
      v = Fold::mean(v, end - entry + (p.keeps_self ? 1 : 0));
    }
    simt::store_element(p.to, p.element, place(p, id, c), v);
  }
};

}  // namespace baracuda::indexing
