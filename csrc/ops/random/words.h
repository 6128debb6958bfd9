// Philox words in groups that vectorise, on the CPU.
#pragma once
#include <cstring>

#include "host/level.h"
#include "ops/random/math.h"

namespace baracuda::random {

inline constexpr int kBlocks = 64;      // Philox blocks made together
inline constexpr int64_t kTile = 1024;  // elements; whole groups, so that bits do not depend on the layout
inline constexpr int64_t kTilesPerChunk = 32;

template <class T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

struct WordGroup {
  uint64_t w[4][kBlocks];  // a word is the lower half of its lane
  uint32_t at(int word, int block) const { return static_cast<uint32_t>(w[word][block]); }
};

// Vectors of 64-bit lanes, because 32 x 32 -> 64 bits is one instruction for those, and none that GCC finds by itself.
using Lanes = level::Wides;
inline constexpr int kLanes = level::kVectorBytes / 8;
using level::multiply_low;

// block_of() for the first `blocks` counters. Upper halves hold leftovers all the way, which no product reads.
inline void make_words(uint64_t seed, uint64_t counter, WordGroup& out, int blocks = kBlocks) {
  Lanes count;
  for (int k = 0; k < kLanes; ++k) count[k] = counter + static_cast<uint64_t>(k);
  const Lanes none = count ^ count;
  for (int j = 0; j < blocks; j += kLanes, count += kLanes) {
    Lanes x = count, y = count >> 32, z = none, w = none;
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Lanes p0 = multiply_low(x, none + uint64_t{kPhiloxM0}), p1 = multiply_low(z, none + uint64_t{kPhiloxM1});
      x = (p1 >> 32) ^ y ^ key0, y = p1;
      z = (p0 >> 32) ^ w ^ key1, w = p0;
      key0 += kPhiloxW0, key1 += kPhiloxW1;
    }
    std::memcpy(&out.w[0][j], &x, sizeof x), std::memcpy(&out.w[1][j], &y, sizeof y);
    std::memcpy(&out.w[2][j], &z, sizeof z), std::memcpy(&out.w[3][j], &w, sizeof w);
  }
}

// The words of kTile / 4 blocks in their order.
inline void tile_words(uint64_t seed, uint64_t counter, uint32_t* out) {
  for (int64_t done = 0; done < kTile; done += 4 * kBlocks) {
    WordGroup words;
    make_words(seed, counter + static_cast<uint64_t>(done / 4), words);
    for (int j = 0; j < kBlocks; ++j) {
      for (int k = 0; k < 4; ++k) out[done + j * 4 + k] = words.at(k, j);
    }
  }
}

}  // namespace baracuda::random
