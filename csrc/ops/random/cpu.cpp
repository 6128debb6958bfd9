// Random fills on the CPU: Philox blocks in groups that vectorise, written in logical order to any layout.
#include "backends/cpu/family.h"
#include "core/parallel.h"
#include "host/runs.h"
#include "ops/random/kernels.h"
#include "ops/random/math.h"
#include "ops/random/targets.h"
#include "ops/random/words.h"

namespace baracuda::random {
namespace {

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
  using Args = UniformArgs;
  const Scalar* s = launch.scalars;
  Interval<T> to;
  const Status status = interval_of(launch, s[Args::low].as_f64(), s[Args::high].as_f64(), to);
  if (status != Status::Ok) return status;
  fill<T>(launch[Args::y], to, s[Args::seed].as_u64(), s[Args::offset].as_u64());
  return Status::Ok;
}

template <class T>
Status run_normal(const Launch& launch) {
  using Args = NormalArgs;
  const Scalar* s = launch.scalars;
  Moments<T> to;
  const Status status = moments_of(launch, s[Args::mean].as_f64(), s[Args::std].as_f64(), to);
  if (status != Status::Ok) return status;
  fill<T>(launch[Args::y], to, s[Args::seed].as_u64(), s[Args::offset].as_u64());
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
