// Reductions over the last axes behind a fused expression: the values of some rows at a time stay in the caches, and
// are folded in the order in which the reduce family folds a contiguous row.
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

template <class C>
class Reducing {
 public:
  Reducing(const Launch& launch, const Fusion& f, const Compiled<C>& code)
      : launch_(launch), f_(f), code_{code, zero_}, space_(input_space(launch, f.program.inputs)) {
    kept_ = space_.rank - f.axes;
    for (int d = 0; d < space_.rank; ++d) (d < kept_ ? outputs_ : length_) *= space_.shape[d];
    for (int k = 0; k < f.program.inputs; ++k) in_[k] = operand(launch[ExprArgs::x0 + k], space_);
    for (size_t k = 0; k < f.elementwise.size(); ++k)
      out_[k] = operand(launch[ExprArgs::y0 + f.elementwise[k]], space_);
  }

  void run() {
    if (outputs_ == 0) return;
    const int64_t strips = reduce::strips_for(outputs_, length_, Lanes<C>::kBlock, outputs_ * length_);
    if (strips == 1) return run_rows();
    const int64_t block = Lanes<C>::kBlock;
    const int64_t per = ((length_ + strips - 1) / strips + block - 1) / block * block;
    C partial[kMaxOutputs][2 * reduce::kMaxStrips];
    parallel_for(outputs_ * strips, 1, [&](int64_t begin, int64_t end) {
      alignas(64) char held[kMaxReduced * kHeldBytes];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t from = std::min(length_, t % strips * per), to = std::min(length_, from + per);
        C states[kMaxOutputs];
        fold_range(t / strips * length_ + from, to - from, held, states);
        for (size_t k = 0; k < f_.reduced.size(); ++k) partial[k][t] = states[k];
      }
    });
    for (int64_t o = 0; o < outputs_; ++o) {
      C states[kMaxOutputs];
      for (size_t k = 0; k < f_.reduced.size(); ++k) {
        Folded<C> whole(f_.reduced[k].how);
        whole.merge(partial[k] + o * strips, strips);
        states[k] = whole.state();
      }
      put(o, states);
    }
  }

 private:
  // As many whole rows at once as are held.
  void run_rows() {
    const int64_t rows = std::max<int64_t>(1, kHeld<C> / std::max<int64_t>(1, length_));
    parallel_for((outputs_ + rows - 1) / rows, 1, [&](int64_t begin, int64_t end) {
      alignas(64) char held[kMaxReduced * kHeldBytes];
      C states[kMaxOutputs];
      for (int64_t o = begin * rows; o < std::min(outputs_, end * rows); o += rows) {
        const int64_t n = std::min(rows, outputs_ - o);
        if (length_ > kHeld<C>) {
          fold_range(o * length_, length_, held, states);
          put(o, states);
          continue;
        }
        fill(o * length_, n * length_, held, 0);
        for (int64_t r = 0; r < n; ++r) {
          for (size_t k = 0; k < f_.reduced.size(); ++k) {
            Folded<C> row(f_.reduced[k].how);
            if (length_ > 0) row.add(value(held, k) + r * length_, length_);
            states[k] = row.state();
          }
          put(o + r, states);
        }
      }
    });
  }

  // Folds n values of one row, of which more than are held are sums.
  void fold_range(int64_t from, int64_t n, char* held, C* states) {
    constexpr int64_t kBlock = Lanes<C>::kBlock;
    const size_t n_folds = f_.reduced.size();
    Folded<C> folds[kMaxOutputs];
    for (size_t k = 0; k < n_folds; ++k) folds[k] = Folded<C>(f_.reduced[k].how);
    if (n >= kFarBlocks * kBlock) {
      const int64_t quarter = n / (4 * kBlock) * kBlock;
      for (int64_t at = 0; at < quarter; at += kBlock) {
        for (int64_t q = 0; q < 4; ++q) fill(from + q * quarter + at, kBlock, held, q * kBlock);
        for (size_t k = 0; k < n_folds; ++k) folds[k].add_far(value(held, k));
      }
      from += 4 * quarter, n -= 4 * quarter;
    }
    for (; n > 0; from += kHeld<C>, n -= kHeld<C>) {
      const int64_t piece = std::min(n, kHeld<C>);
      fill(from, piece, held, 0);
      for (size_t k = 0; k < n_folds; ++k) folds[k].add(value(held, k), piece);
    }
    for (size_t k = 0; k < n_folds; ++k) states[k] = folds[k].state();
  }

  const C* value(char* held, size_t k) const { return reinterpret_cast<C*>(held + f_.reduced[k].value * kHeldBytes); }

  // Computes the values [from, from + n) of the space, and holds what is reduced from place `to` on.
  void fill(int64_t from, int64_t n, char* held, int64_t to) {
    int64_t start[kMaxRank] = {};
    if (space_.rank == 0) return fill_box(start, space_, to, held);
    each_box(space_, 0, from, n, start, to,
             [&](const int64_t* at, const IterationSpace& box, int64_t offset) { fill_box(at, box, offset, held); });
  }

  void fill_box(const int64_t* start, const IterationSpace& box, int64_t to, char* held) {
    const auto moved = [&](Operand o) {
      int64_t offset = 0;
      for (int d = 0; d < box.rank; ++d) offset += start[d] * o.strides[d];
      o.data = static_cast<char*>(o.data) + offset * size_of(o.element);
      return o;
    };
    Operand in[kMaxInputs], out[kMaxOutputs + kMaxReduced];
    for (int k = 0; k < f_.program.inputs; ++k) in[k] = moved(in_[k]);
    size_t n_out = 0;
    for (; n_out < f_.elementwise.size(); ++n_out) out[n_out] = moved(out_[n_out]);
    for (int v = 0; v < f_.reduced_values; ++v, ++n_out) {
      out[n_out] = {held + v * kHeldBytes + to * sizeof(C), element_of<C>, {}};
      int64_t step = 1;
      for (int d = box.rank - 1; d >= 0; --d) out[n_out].strides[d] = step, step *= box.shape[d];
    }
    run_tiles<C>(box, {in, size_t(f_.program.inputs)}, {out, n_out}, &interpret<C>, &code_);
  }

  void put(int64_t row, const C* states) {
    for (size_t k = 0; k < f_.reduced.size(); ++k) {
      const TensorView& y = launch_[ExprArgs::y0 + f_.reduced[k].output];
      int64_t rest = row, offset = 0;
      for (int d = kept_ - 1; d >= 0; --d) {
        offset += rest % space_.shape[d] * y.strides[d];
        rest /= space_.shape[d];
      }
      const C result = f_.reduced[k].how == Reduction::Mean ? states[k] / static_cast<C>(length_) : states[k];
      store<C>(y.element, y.as<char>() + offset * size_of(y.element), 1, &result, 1);
    }
  }

  const Launch& launch_;
  const Fusion& f_;
  std::atomic<bool> zero_ = false;  // of integers, which no reduction computes in
  const Running<Compiled<C>> code_;
  IterationSpace space_;
  Operand in_[kMaxInputs], out_[kMaxOutputs];
  int kept_ = 0;
  int64_t outputs_ = 1, length_ = 1;
};

}  // namespace

const char* refuse_reduction(const Fusion& f, const Problem& problem) {
  const Space full = space_of(problem, f.program);
  int64_t length = 1;
  for (int d = full.rank - f.axes; d < full.rank; ++d) length *= full.shape[d];
  for (const Reduced& r : f.reduced) {
    const bool extreme = r.how == Reduction::Amax || r.how == Reduction::Amin;
    if (extreme && length == 0) return "at least one element along the reduced axes";
    const bool any_length = r.how == Reduction::Sum || r.how == Reduction::Mean;
    if (!any_length && length * 8 > kHeldBytes) return "rows of at most 8192 elements for amax, amin and prod";
  }
  return nullptr;
}

void run_reducing(const Launch& launch, const Fusion& fusion) {
  if (const auto* code = std::get_if<Compiled<float>>(&*fusion.single)) Reducing<float>(launch, fusion, *code).run();
  if (const auto* code = std::get_if<Compiled<double>>(&*fusion.single)) Reducing<double>(launch, fusion, *code).run();
}

}  // namespace baracuda::expr
