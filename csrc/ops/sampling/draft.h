// Draft tokens judged by a target's probabilities, the same on every backend.
#pragma once
#include "ops/random/discrete.h"

namespace baracuda::sampling {

// Whether a token is kept: with probability min(1, target / draft). One product, rounded, is compared.
BCU_FN bool accepts(float target, float draft, uint32_t word) {
  float u = float(int32_t(word >> 8)) * 5.9604644775390625e-8f;
  return target >= draft || u * draft < target;
}
// Each place of each row, counted from the call's first, has a block: its first word decides on the draft's token, its
// upper half draws a token.
BCU_FN uint32_t deciding_word(uint64_t seed, uint64_t offset, int64_t place) {
  return random::block_of(seed, offset + uint64_t(place)).x;
}
BCU_FN uint64_t drawn_below(uint64_t seed, uint64_t offset, int64_t place, uint64_t sum) {
  return random::below(seed, offset, 2u * uint64_t(place) + 1u, sum);
}
// What is drawn from instead of a token that is not kept: what the target has beyond the draft.
BCU_FN float beyond(float target, float draft) { return target > draft ? target - draft : 0.0f; }

}  // namespace baracuda::sampling
