// Reductions over the last axes inside of a fused expression: the values of some rows at a time stay in the caches, and
// are folded in the order in which the reduce family folds a contiguous row. Functions of what was folded go over the
// same rows again.
#include "core/parallel.h"
#include "host/tile.h"
#include "ops/expr/epilogue.h"
#include "ops/expr/input_space.h"
#include "ops/expr/interpret.h"
#include "ops/expr/skus.h"
#include "ops/reduce/fold.h"
#include "ops/reduce/kernels.h"

namespace baracuda::expr {
namespace {

// Of one value.
template <class C>
inline constexpr int64_t kHeld = kHeldBytes / sizeof(C);
static_assert(kHeld<float> == 4 * Lanes<float>::kBlock && kHeld<double> == 4 * Lanes<double>::kBlock);
inline constexpr int64_t kFarBlocks = 16;  // from so many blocks on sums are read from four places, see reduce/fold.h

// A reduction of one value over a row, or over a part of it.
template <class C>
class Folded {
 public:
  Folded(Reduction how = Reduction::Sum) : how_(how) {}

  void add(const C* p, int64_t n) {
    if (n > kHeld<C>) __builtin_unreachable();
    switch (how_) {
      case Reduction::Amax:
        return greatest_.add(p, n);
      case Reduction::Amin:
        return least_.add(p, n);
      case Reduction::Prod:
        return product_.add(p, n);
      default:
        return sum_.add(p, n);
    }
  }
  // Four blocks of values that are far apart in the row.
  void add_far(const C* p) {
    C sums[4];
    reduce::sum_far_blocks(p, Lanes<C>::kBlock, sums);
    for (const C sum : sums) sum_.total.add(sum);
  }
  // States of at most 64 parts.
  void merge(const C* p, int64_t n) {
    if (n > reduce::kMaxStrips) __builtin_unreachable();
    add(p, n);
  }
  C state() const {
    switch (how_) {
      case Reduction::Amax:
        return greatest_.state();
      case Reduction::Amin:
        return least_.state();
      case Reduction::Prod:
        return product_.state();
      default:
        return sum_.state();
    }
  }

 private:
  Reduction how_;
  reduce::SumRow<C> sum_;
  reduce::ExtremeRow<true, C> greatest_;
  reduce::ExtremeRow<false, C> least_;
  reduce::ProductRow<C> product_;
};

// Calls f(start, shape, offset) for boxes of a space that make up the linear range [from, from + n); offset counts from
// the range's start.
template <class F>
void each_box(const IterationSpace& space, int dim, int64_t from, int64_t n, int64_t* start, int64_t offset, F&& f) {
  int64_t inner = 1;
  for (int d = dim + 1; d < space.rank; ++d) inner *= space.shape[d];
  while (n > 0) {
    IterationSpace box = space;
    for (int d = 0; d < dim; ++d) box.shape[d] = 1;
    start[dim] = from / inner;
    int64_t taken = n / inner * inner;
    if (from % inner == 0 && taken > 0) {
      for (int d = dim + 1; d < space.rank; ++d) start[d] = 0;
      box.shape[dim] = taken / inner;
      f(start, box, offset);
    } else {
      taken = std::min(inner - from % inner, n);
      each_box(space, dim + 1, from % inner, taken, start, offset, f);
    }
    from += taken, n -= taken, offset += taken;
  }
}

inline constexpr int64_t kRowsAtOnce = 256;

// Some rows, and what is known of them.
template <class C>
struct Rows {
  int64_t first = 0, count = 0;
  alignas(64) char held[kMaxHeld * kHeldBytes];
  C values[kMaxRowValues][kRowsAtOnce];

  C* of(int held_value) { return reinterpret_cast<C*>(held + held_value * kHeldBytes); }
};

template <class C>
class Reducing {
 public:
  Reducing(const Launch& launch, const Fusion& f)
      : launch_(launch), f_(f), space_(input_space(launch, f.program.inputs)) {
    kept_ = space_.rank - f.program.axes;
    for (int d = 0; d < space_.rank; ++d) (d < kept_ ? outputs_ : length_) *= space_.shape[d];
    strips_ = outputs_ == 0 ? 1 : reduce::strips_for(outputs_, length_, Lanes<C>::kBlock, outputs_ * length_);
    const int64_t block = Lanes<C>::kBlock;
    per_ = ((length_ + strips_ - 1) / strips_ + block - 1) / block * block;
  }

  void run() {
    if (outputs_ == 0) return;
    if (f_.sweeps.size() == 1 && strips_ > 1) return run_strips();
    const int64_t at_once = std::clamp<int64_t>(kHeld<C> / std::max<int64_t>(1, length_), 1, kRowsAtOnce);
    parallel_for((outputs_ + at_once - 1) / at_once, 1, [&](int64_t begin, int64_t end) {
      Rows<C> rows;
      for (rows.first = begin * at_once; rows.first < std::min(outputs_, end * at_once); rows.first += at_once) {
        rows.count = std::min(at_once, outputs_ - rows.first);
        run_rows(rows);
      }
    });
  }

 private:
  const Compiled<C>& code(const AnyRegion& region) const { return std::get<Compiled<C>>(region); }

  void run_rows(Rows<C>& rows) {
    for (const Sweep& sweep : f_.sweeps) {
      if (length_ > kHeld<C>) {
        C states[kMaxRowValues];
        fold_range(rows, sweep, rows.first * length_, length_, states);
        for (size_t k = 0; k < sweep.folds.size(); ++k)
          rows.values[sweep.folds[k].row][0] = result(sweep.folds[k], states[k]);
      } else {
        fill(rows, sweep, rows.first * length_, rows.count * length_, 0);
        for (const Fold& fold : sweep.folds)
          for (int64_t r = 0; r < rows.count; ++r)
            rows.values[fold.row][r] = result(fold, folded(fold.how, rows.of(fold.held) + r * length_));
      }
      of_rows(rows, sweep);
    }
    put(rows);
  }

  // A row that is held.
  C folded(Reduction how, const C* row) const {
    if (length_ == 0) return Folded<C>(how).state();
    C states[reduce::kMaxStrips];
    for (int64_t s = 0; s < strips_; ++s) {
      Folded<C> part(how);
      const int64_t from = std::min(length_, s * per_), n = std::min(length_, from + per_) - from;
      if (n > 0) part.add(row + from, n);
      states[s] = part.state();
    }
    return merged(how, states);
  }
  // Not inlined: GCC for aarch64 would warn of reads behind the states, which there are not.
  [[gnu::noinline]] C merged(Reduction how, const C* states) const {
    if (strips_ == 1) return states[0];
    Folded<C> whole(how);
    whole.merge(states, strips_);
    return whole.state();
  }
  C result(const Fold& fold, C state) const {
    return fold.how == Reduction::Mean ? state / static_cast<C>(length_) : state;
  }

  // Few long rows, whose parts are folded by themselves.
  void run_strips() {
    const Sweep& sweep = f_.sweeps[0];
    std::vector<C> partial(sweep.folds.size() * outputs_ * strips_);
    parallel_for(outputs_ * strips_, 1, [&](int64_t begin, int64_t end) {
      Rows<C> rows;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t from = std::min(length_, t % strips_ * per_), to = std::min(length_, from + per_);
        C states[kMaxRowValues];
        fold_range(rows, sweep, t / strips_ * length_ + from, to - from, states);
        for (size_t k = 0; k < sweep.folds.size(); ++k) partial[k * outputs_ * strips_ + t] = states[k];
      }
    });
    Rows<C> rows;
    for (rows.first = 0; rows.first < outputs_; rows.first += kRowsAtOnce) {
      rows.count = std::min(kRowsAtOnce, outputs_ - rows.first);
      for (size_t k = 0; k < sweep.folds.size(); ++k) {
        const Fold& fold = sweep.folds[k];
        const C* states = partial.data() + (k * outputs_ + rows.first) * strips_;
        for (int64_t r = 0; r < rows.count; ++r, states += strips_)
          rows.values[fold.row][r] = result(fold, merged(fold.how, states));
      }
      of_rows(rows, sweep);
      put(rows);
    }
  }

  // Folds n values of one row, of which more than are held are sums.
  void fold_range(Rows<C>& rows, const Sweep& sweep, int64_t from, int64_t n, C* states) {
    constexpr int64_t kBlock = Lanes<C>::kBlock;
    const size_t n_folds = sweep.folds.size();
    Folded<C> folds[kMaxRowValues];
    for (size_t k = 0; k < n_folds; ++k) folds[k] = Folded<C>(sweep.folds[k].how);
    if (n >= kFarBlocks * kBlock) {
      const int64_t quarter = n / (4 * kBlock) * kBlock;
      for (int64_t at = 0; at < quarter; at += kBlock) {
        for (int64_t q = 0; q < 4; ++q) fill(rows, sweep, from + q * quarter + at, kBlock, q * kBlock);
        for (size_t k = 0; k < n_folds; ++k) folds[k].add_far(rows.of(sweep.folds[k].held));
      }
      from += 4 * quarter, n -= 4 * quarter;
    }
    for (; n > 0; from += kHeld<C>, n -= kHeld<C>) {
      const int64_t piece = std::min(n, kHeld<C>);
      fill(rows, sweep, from, piece, 0);
      for (size_t k = 0; k < n_folds; ++k) folds[k].add(rows.of(sweep.folds[k].held), piece);
    }
    for (size_t k = 0; k < n_folds; ++k) states[k] = folds[k].state();
  }

  // Functions of what is one value for a row.
  void of_rows(Rows<C>& rows, const Sweep& sweep) {
    if (sweep.row_out.empty()) return;
    const C* in[kMaxInputs];
    C* out[kMaxOutputs];
    for (size_t k = 0; k < sweep.row_in.size(); ++k) in[k] = rows.values[sweep.row_in[k]];
    for (size_t k = 0; k < sweep.row_out.size(); ++k) out[k] = rows.values[sweep.row_out[k]];
    const Running<Compiled<C>> running{code(sweep.row_code), zero_};
    interpret<C>(in, out, rows.count, &running);
  }

  // Computes the values [from, from + n) of the space, and holds what is held from place `to` on.
  void fill(Rows<C>& rows, const Sweep& sweep, int64_t from, int64_t n, int64_t to) {
    int64_t start[kMaxRank] = {};
    if (space_.rank == 0) return fill_box(rows, sweep, start, space_, to);
    each_box(space_, 0, from, n, start, to, [&](const int64_t* at, const IterationSpace& box, int64_t offset) {
      fill_box(rows, sweep, at, box, offset);
    });
  }

  void fill_box(Rows<C>& rows, const Sweep& sweep, const int64_t* start, const IterationSpace& box, int64_t to) {
    Operand in[kMaxInputs], out[kMaxOutputs];
    const auto operand_at = [&](Place place) {
      if (place.of == Place::Of::Tensor) return part_of_tensor(place.at, start);
      return place.of == Place::Of::Held ? part_held(rows, place.at, box, to) : part_of_rows(rows, place.at, start);
    };
    for (size_t k = 0; k < sweep.in.size(); ++k) in[k] = operand_at(sweep.in[k]);
    for (size_t k = 0; k < sweep.out.size(); ++k) out[k] = operand_at(sweep.out[k]);
    const Running<Compiled<C>> running{code(sweep.code), zero_};
    run_tiles<C>(box, {in, sweep.in.size()}, {out, sweep.out.size()}, &interpret<C>, &running);
  }

  Operand part_of_tensor(int param, const int64_t* start) const {
    Operand o = operand(launch_[param], space_);
    int64_t offset = 0;
    for (int d = 0; d < space_.rank; ++d) offset += start[d] * o.strides[d];
    o.data = static_cast<char*>(o.data) + offset * size_of(o.element);
    return o;
  }
  static Operand part_held(Rows<C>& rows, int value, const IterationSpace& box, int64_t to) {
    Operand o{rows.of(value) + to, element_of<C>, {}};
    for (int64_t d = box.rank - 1, step = 1; d >= 0; step *= box.shape[d--]) o.strides[d] = step;
    return o;
  }
  Operand part_of_rows(Rows<C>& rows, int value, const int64_t* start) const {
    Operand o{nullptr, element_of<C>, {}};
    int64_t row = 0;
    for (int64_t d = kept_ - 1, step = 1; d >= 0; step *= space_.shape[d--])
      o.strides[d] = space_.shape[d] == 1 ? 0 : step, row += start[d] * step;
    o.data = rows.values[value] + (row - rows.first);
    return o;
  }

  void put(const Rows<C>& rows) {
    for (const RowOutput& made : f_.row_outputs) {
      const TensorView& y = launch_[ExprArgs::y0 + made.output];
      for (int64_t r = 0; r < rows.count; ++r) {
        int64_t rest = rows.first + r, offset = 0;
        for (int d = kept_ - 1; d >= 0; --d) {
          offset += rest % space_.shape[d] * y.strides[d];
          rest /= space_.shape[d];
        }
        store<C>(y.element, y.as<char>() + offset * size_of(y.element), 1, &rows.values[made.row][r], 1);
      }
    }
  }

  const Launch& launch_;
  const Fusion& f_;
  std::atomic<bool> zero_ = false;  // of integers, which no reduction computes in
  IterationSpace space_;
  int kept_ = 0;
  int64_t outputs_ = 1, length_ = 1, strips_ = 1, per_ = 0;
};

}  // namespace

const char* refuse_reduction(const Fusion& f, const Problem& problem) {
  const Space full = space_of(problem, f.program);
  const int64_t length = folded_length(full, f.program.axes);
  const int64_t size = std::holds_alternative<Compiled<float>>(f.sweeps[0].code) ? sizeof(float) : sizeof(double);
  if (f.sweeps.size() > 1 && length * size > kHeldBytes)
    return "rows of at most 16384 elements, of f64 8192, for functions of what is reduced";
  for (const Sweep& sweep : f.sweeps) {
    for (const Fold& fold : sweep.folds) {
      const bool extreme = fold.how == Reduction::Amax || fold.how == Reduction::Amin;
      if (extreme && length == 0) return "at least one element along the reduced axes";
      const bool any_length = fold.how == Reduction::Sum || fold.how == Reduction::Mean;
      if (!any_length && length * 8 > kHeldBytes) return "rows of at most 8192 elements for amax, amin and prod";
    }
  }
  return nullptr;
}

void run_reducing(const Launch& launch, const Fusion& fusion) {
  if (std::holds_alternative<Compiled<float>>(fusion.sweeps[0].code))
    Reducing<float>(launch, fusion).run();
  else
    Reducing<double>(launch, fusion).run();
}

}  // namespace baracuda::expr
