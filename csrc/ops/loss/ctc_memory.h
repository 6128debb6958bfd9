// Where the kernels of connectionist temporal classification keep what they need on their way.
#pragma once
#include "ops/loss/linear.h"

namespace baracuda::loss {

// Of samples whose labels start anywhere in [0, labels): a row of states at each of some steps, one sample behind
// another.
struct CtcMemory {
  int64_t steps, samples, classes, labels, rows;
  int64_t states, starts, counts, lengths, ids, next, skips, scores, losses, bytes;  // where each begins, in bytes

  // Shapes [steps, samples, classes] and [samples, most labels] or [labels of all].
  CtcMemory(const int64_t* of_scores, int rank, const int64_t* of_targets, bool back, bool wide)
      : steps(of_scores[0]), samples(of_scores[1]), classes(of_scores[2]) {
    labels = rank == 2 ? of_targets[0] * of_targets[1] : of_targets[0];
    rows = back ? steps + 2 : 2;  // a gradient keeps them all, and two from the other end
    const int64_t size = wide ? 8 : 4;
    int64_t end = 0;
    const auto take = [&](int64_t n) {
      const int64_t at = end;
      end += whole_lines(n);
      return at;
    };
    states = take(rows * (2 * labels + samples) * size);
    starts = take(samples * 8), counts = take(samples * 8), lengths = take(samples * 8);
    ids = take(labels * 8), next = take(labels * 8);
    skips = take(labels * size), scores = take(labels * size), losses = take(samples * size);
    bytes = end;
  }
};

}  // namespace baracuda::loss
