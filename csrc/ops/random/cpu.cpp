// Random fills on the CPU: Philox blocks in groups that vectorise, written in logical order to any layout.
#include <cstring>

#include "backends/cpu/family.h"
#include "backends/cpu/parallel.h"
#include "core/runs.h"
#include "ops/random/math.h"
#include "ops/random/skus.h"
#include "ops/random/targets.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace baracuda::random {
namespace {

constexpr int kBlocks = 64;      // Philox blocks made together
constexpr int64_t kTile = 1024;  // elements; whole groups, so that bits do not depend on the layout
constexpr int64_t kTilesPerChunk = 32;

template <class T>
constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

struct WordGroup {
  uint64_t w[4][kBlocks];  // a word is the lower half of its lane
  uint32_t at(int word, int block) const { return static_cast<uint32_t>(w[word][block]); }
};

// Vectors of 64-bit lanes, because 32 x 32 -> 64 bits is one instruction for those, and none that GCC finds by itself.
#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX2__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
typedef uint64_t Lanes __attribute__((vector_size(8 * kLanes)));

// The product of the lower halves.
inline Lanes multiply_low(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  // The unmasked intrinsic trips -Wmaybe-uninitialized in GCC 12; with a full mask it is the same instruction.
  return reinterpret_cast<Lanes>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Lanes>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

// block_of() for kBlocks counters. Upper halves hold leftovers all the way, which no product reads.
void make_words(uint64_t seed, uint64_t counter, WordGroup& out) {
  Lanes count;
  for (int k = 0; k < kLanes; ++k) count[k] = counter + static_cast<uint64_t>(k);
  const Lanes none = count ^ count;
  for (int j = 0; j < kBlocks; j += kLanes, count += kLanes) {
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

void draw_group(const Interval<float>& to, const WordGroup& g, float (*out)[kBlocks]) {
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < kBlocks; ++j) out[k][j] = uniform(fraction(g.at(k, j)), to);
  }
}
void draw_group(const Interval<double>& to, const WordGroup& g, double (*out)[kBlocks]) {
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < kBlocks; ++j) out[k][j] = uniform(fraction(g.at(2 * k, j), g.at(2 * k + 1, j)), to);
  }
}

void draw_group(const Moments<float>& to, const WordGroup& g, float (*out)[kBlocks]) {
  for (int k = 0; k < 4; k += 2) {
    for (int j = 0; j < kBlocks; ++j) {
      Normals<float> z = normals(g.at(k, j), g.at(k + 1, j));
      out[k][j] = to.mean + to.std * z.first;
      out[k + 1][j] = to.mean + to.std * z.second;
    }
  }
}
void draw_group(const Moments<double>& to, const WordGroup& g, double (*out)[kBlocks]) {
  for (int j = 0; j < kBlocks; ++j) {
    Normals<double> z = normals(Words{g.at(0, j), g.at(1, j), g.at(2, j), g.at(3, j)});
    out[0][j] = to.mean + to.std * z.first;
    out[1][j] = to.mean + to.std * z.second;
  }
}

template <class T, class Target>
void draw_tile(const Target& to, uint64_t seed, uint64_t counter, T* out) {
  constexpr int kPer = kPerBlock<T>;
  for (int64_t done = 0; done < kTile; done += kBlocks * kPer) {
    WordGroup words;
    T values[kPer][kBlocks];
    make_words(seed, counter + static_cast<uint64_t>(done / kPer), words);
    draw_group(to, words, values);
    for (int j = 0; j < kBlocks; ++j) {
      for (int k = 0; k < kPer; ++k) out[done + j * kPer + k] = values[k][j];
    }
  }
}

template <class T, class Target>
void fill(const TensorView& y, const Target& to, uint64_t seed, uint64_t offset) {
  const int64_t n = y.numel();
  const MergedView view(y);
  const bool direct = view.contiguous() && y.element == (sizeof(T) == 8 ? Element::F64 : Element::F32);
  parallel_for((n + kTile - 1) / kTile, kTilesPerChunk, [&](int64_t first, int64_t last) {
    alignas(64) T buffer[kTile];
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t begin = tile * kTile, count = n - begin < kTile ? n - begin : kTile;
      const bool in_place = direct && count == kTile;
      T* out = in_place ? y.as<T>() + begin : buffer;
      draw_tile(to, seed, offset + static_cast<uint64_t>(begin / kPerBlock<T>), out);
      if (!in_place) store_span(view, begin, count, buffer);
    }
  });
}

template <class T>
Status run_uniform(const Launch& launch) {
  Interval<T> to;
  const Status status = interval_of(launch, launch.scalars[0].as_f64(), launch.scalars[1].as_f64(), to);
  if (status != Status::Ok) return status;
  fill<T>(launch[0], to, launch.scalars[2].as_u64(), launch.scalars[3].as_u64());
  return Status::Ok;
}

template <class T>
Status run_normal(const Launch& launch) {
  Moments<T> to;
  const Status status = moments_of(launch, launch.scalars[0].as_f64(), launch.scalars[1].as_f64(), to);
  if (status != Status::Ok) return status;
  fill<T>(launch[0], to, launch.scalars[2].as_u64(), launch.scalars[3].as_u64());
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::random

namespace baracuda {

template <>
struct CpuKernel<random::Uniform> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? random::run_uniform<double>(launch) : random::run_uniform<float>(launch);
  }
};

template <>
struct CpuKernel<random::Normal> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? random::run_normal<double>(launch) : random::run_normal<float>(launch);
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(random)
