// The SKU table of random numbers.
#pragma once
#include "core/row.h"

namespace baracuda::random {

// replacement: whether a category may be drawn again.
BCU_ATTRS(MultinomialAttrs, (i64, replacement))

BCU_ARGS(UniformArgs, (y), (low, high, seed, offset))
BCU_ARGS(NormalArgs, (y), (mean, std, seed, offset))
BCU_ARGS(RandintArgs, (y), (low, high, seed, offset))
BCU_ARGS(RandpermArgs, (y), (seed, offset))
BCU_ARGS(DropoutArgs, (x, y), (p, seed, offset))
BCU_ARGS(DropoutBackwardArgs, (dy, dx), (p, seed, offset))
BCU_ARGS(MultinomialArgs, (p, y), (seed, offset))
// p is a tensor, whose element is the second one, or a number: the first of either.
struct BernoulliArgs {
  enum : int { p, y };
  enum : int { seed = p + 1, offset };
  static constexpr ArgList kArgs{"p, y", "p, seed, offset"};
};

BCU_ARGS(GammaArgs, (concentration, y), (seed, offset))
BCU_ARGS(BetaArgs, (concentration1, concentration0, y), (seed, offset))
BCU_ARGS(PoissonArgs, (rate, y), (seed, offset))
BCU_ARGS(BinomialArgs, (count, prob, y), (seed, offset))

struct GammaDraw;
struct BetaDraw;
struct PoissonDraw;
struct BinomialDraw;
template <class Draw>
struct Rejection {};  // by tries of which one is taken

struct Uniform {};
struct Normal {};
struct Bernoulli {};
struct Randint {};
struct Randperm {};
struct Dropout {};
struct DropoutBackward {};
struct Multinomial {};

// Weights are added up in groups of so many.
inline constexpr int64_t kGroupSize = 64;
constexpr int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t categories_of(const ParamMeta& p) { return p.rank > 0 ? p.shape[p.rank - 1] : 1; }
inline int64_t sample_rows(const ParamMeta& p) { return p.rank > 1 ? p.shape[0] : 1; }

// Of each row: the largest exponent and the sum; sums of groups; and marks of categories that are drawn already.
struct SampleScratch {
  int64_t groups, marks, bytes;
  constexpr SampleScratch(int64_t rows, int64_t categories, bool replacement)
      : groups((categories + kGroupSize - 1) / kGroupSize),
        marks(replacement ? 0 : categories),
        bytes(whole_lines(rows * 16) + whole_lines(rows * groups * 8) + whole_lines(rows * marks)) {}
};
inline int64_t sample_scratch(const Problem& p) {
  const ParamMeta& chances = p.params[MultinomialArgs::p];
  const bool replacement = attributes<MultinomialAttrs>(p).replacement != 0;
  return SampleScratch(sample_rows(chances), categories_of(chances), replacement).bytes;
}

template <class Tag, class Args>
constexpr auto philox_row(const char* op) {
  return row<Tag>(op).name("philox").template args_of<Args>();
}

// Not the same bits on every backend: an element whose comparison rounding decides may be another draw.
template <class Draw, class Args>
constexpr auto rejection_row(const char* op) {
  return philox_row<Rejection<Draw>, Args>(op).takes(kFloats);
}

inline constexpr auto kRejections =
    table(rejection_row<GammaDraw, GammaArgs>("gamma").sum(1.5), rejection_row<BetaDraw, BetaArgs>("beta").sum(2.5),
          rejection_row<PoissonDraw, PoissonArgs>("poisson").ulp(0.5),
          rejection_row<BinomialDraw, BinomialArgs>("binomial").ulp(0.5));

inline constexpr auto kLocal =
    table(philox_row<Uniform, UniformArgs>("uniform").takes(kFloats).exact(),
          philox_row<Normal, NormalArgs>("normal").takes(kFloats).sum(6),
          philox_row<Bernoulli, BernoulliArgs>("bernoulli").takes(kReal, kFloats).exact(),
          philox_row<Randint, RandintArgs>("randint").takes(kReal).exact(),
          philox_row<Randperm, RandpermArgs>("randperm").takes(kNumeric).exact(),
          philox_row<Dropout, DropoutArgs>("dropout").takes(kFloats).in_place().ulp(2),
          philox_row<DropoutBackward, DropoutBackwardArgs>("dropout").backward().takes(kFloats).in_place().ulp(2),
          philox_row<Multinomial, MultinomialArgs>("multinomial")
              .takes(kFloats)
              .exact()
              .attrs_of<MultinomialAttrs>()
              .scratch(&sample_scratch)
              .not_batch_invariant());

inline constexpr auto kTable = everywhere(kLocal + kRejections);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::random
