// The SKU table of random numbers.
#pragma once
#include "core/row.h"

namespace baracuda::random {

// replacement: whether a category may be drawn again.
BCU_ATTRS(MultinomialAttrs, (i64, replacement))

// The last scalars of all are seed and offset.
//   uniform, normal (y): low and high, mean and std
//   bernoulli ([p], y): p where it is no tensor. The second element is p's.
//   randint (y): low, high;  randperm (y)
//   dropout (x, y): p;  backward (dy, dx): p
//   multinomial (p, y)
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
  return SampleScratch(sample_rows(p.params[0]), categories_of(p.params[0]), p.attrs[0] != 0).bytes;
}

template <class Tag>
constexpr auto philox_row(const char* op) {
  return row<Tag>(op).name("philox");
}

inline constexpr auto kLocal =
    table(philox_row<Uniform>("uniform").takes(kFloats).exact(), philox_row<Normal>("normal").takes(kFloats).sum(6),
          philox_row<Bernoulli>("bernoulli").takes(kReal, kFloats).exact(),
          philox_row<Randint>("randint").takes(kReal).exact(), philox_row<Randperm>("randperm").takes(kNumeric).exact(),
          philox_row<Dropout>("dropout").takes(kFloats).in_place().ulp(2),
          philox_row<DropoutBackward>("dropout").backward().takes(kFloats).in_place().ulp(2),
          philox_row<Multinomial>("multinomial")
              .takes(kFloats)
              .exact()
              .attrs_of<MultinomialAttrs>()
              .scratch(&sample_scratch)
              .not_batch_invariant());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::random
