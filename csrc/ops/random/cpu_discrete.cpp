// Coin tosses, integers, permutations and dropout on the CPU.
#include <atomic>
#include <bit>

#include "backends/cpu/parallel.h"
#include "core/compute.h"
#include "core/runs.h"
#include "ops/random/discrete.h"
#include "ops/random/kernels.h"
#include "ops/random/targets.h"
#include "ops/random/words.h"

namespace baracuda::random {
namespace {

static_assert(kTile == kStretch);

// f(begin, n) for tiles of y's elements.
template <class F>
void over_tiles(int64_t total, F&& f) {
  parallel_for((total + kTile - 1) / kTile, kTilesPerChunk, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * kTile; begin < std::min(total, last * kTile); begin += kTile)
      f(begin, std::min(kTile, total - begin));
  });
}

Status wrong_value(const Launch& launch, int tensor, int64_t position, double value, ValueRange range) {
  if (launch.failure) *launch.failure = {tensor, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
  return Status::ValueOutOfRange;
}

// One word for each element, two for those with probabilities in f64.
void toss(const float* p, uint64_t seed, uint64_t offset, int64_t begin, float* out) {
  uint32_t words[kTile];
  tile_words(seed, offset + static_cast<uint64_t>(begin / 4), words);
  for (int64_t i = 0; i < kTile; ++i) out[i] = heads(p[i], words[i]) ? 1.0f : 0.0f;
}
void toss(const double* p, uint64_t seed, uint64_t offset, int64_t begin, double* out) {
  uint32_t words[2 * kTile];
  tile_words(seed, offset + static_cast<uint64_t>(begin / 2), words);
  tile_words(seed, offset + static_cast<uint64_t>(begin / 2 + kTile / 4), words + kTile);
  for (int64_t i = 0; i < kTile; ++i) out[i] = heads(p[i], uint64_t{words[2 * i + 1]} << 32 | words[2 * i]) ? 1.0 : 0.0;
}

// The place of the first value that is no probability.
template <class C>
Status not_a_probability(const Launch& launch) {
  const TensorView& p = launch[0];
  Stretch<C> values(p);
  for (int64_t begin = 0, total = p.numel(); begin < total; begin += kStretch) {
    const int64_t n = std::min(kStretch, total - begin);
    const C* v = values.get(begin, n);
    for (int64_t i = 0; i < n; ++i)
      if (!(v[i] >= C(0) && v[i] <= C(1))) return wrong_value(launch, 0, begin + i, v[i], ValueRange::Unit);
  }
  return Status::Ok;
}

template <class C>
Status bernoulli(const Launch& launch) {
  const TensorView &p = launch[0], &y = launch[1];
  const bool number = !p.present();
  const Scalar* rest = launch.scalars + (number ? 1 : 0);
  const uint64_t seed = rest[0].as_u64(), offset = rest[1].as_u64();
  C constant = 0;
  TensorView same;  // without a dimension
  if (number) {
    const double v = launch.scalars[0].as_f64();
    if (!(v >= 0 && v <= 1)) return wrong_scalar(launch, 0);
    constant = static_cast<C>(v), same.data = &constant, same.element = element_of<C>;
  } else if (const Status s = not_a_probability<C>(launch); s != Status::Ok) {
    return s;
  }
  const MergedView view(y), from(number ? same : p);
  over_tiles(y.numel(), [&](int64_t begin, int64_t n) {
    C chances[kTile], out[kTile];
    if (number)
      std::fill_n(chances, kTile, constant);
    else
      load_span(from, begin, n, chances), std::fill(chances + n, chances + kTile, C(0));
    toss(chances, seed, offset, begin, out);
    store_span(view, begin, n, out);
  });
  return Status::Ok;
}

Status randint(const Launch& launch) {
  const int64_t low = launch.scalars[0].as_i64(), high = launch.scalars[1].as_i64();
  const uint64_t seed = launch.scalars[2].as_u64(), offset = launch.scalars[3].as_u64();
  const TensorView& y = launch[0];
  if (low >= high) return wrong_scalar(launch, 1);
  if (!holds(y.element, low, low)) return wrong_scalar(launch, 0);
  if (!holds(y.element, low, high - 1)) return wrong_scalar(launch, 1);
  const uint64_t n = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const MergedView view(y);
  over_tiles(y.numel(), [&](int64_t begin, int64_t count) {
    uint32_t words[2 * kTile];
    int64_t out[kTile];
    const uint64_t block = offset + static_cast<uint64_t>(begin / 2);
    tile_words(seed, block, words);
    tile_words(seed, block + kTile / 4, words + kTile);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t x = uint64_t{words[2 * i + 1]} << 32 | words[2 * i];
      // Words that may have to be passed over are rare.
      const uint64_t found = x * n >= n ? high_product(x, n) : below(seed, offset, static_cast<uint64_t>(begin + i), n);
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + found);
    }
    store_span(view, begin, count, out);
  });
  return Status::Ok;
}

Status randperm(const Launch& launch) {
  const TensorView& y = launch[0];
  const int64_t n = y.numel();
  if (n == 0) return Status::Ok;
  Shuffle s;
  make_shuffle(launch.scalars[0].as_u64(), launch.scalars[1].as_u64(), static_cast<uint64_t>(n), s);
  const MergedView view(y);
  over_tiles(n, [&](int64_t begin, int64_t count) {
    int64_t out[kTile];
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(once(s, static_cast<uint64_t>(begin + i)));
    for (int64_t i = 0; i < count; ++i)
      if (out[i] >= n) out[i] = static_cast<int64_t>(shuffled(s, static_cast<uint64_t>(out[i])));
    store_span(view, begin, count, out);
  });
  return Status::Ok;
}

template <class C>
Status dropout(const Launch& launch) {
  const double p = launch.scalars[0].as_f64();
  const uint64_t seed = launch.scalars[1].as_u64(), offset = launch.scalars[2].as_u64();
  if (!(p >= 0 && p <= 1)) return wrong_scalar(launch, 0);
  const uint64_t dropped = heads_of(static_cast<float>(p));
  const C scale = static_cast<C>(p < 1 ? 1 / (1 - p) : 0);
  const MergedView from(launch[0]), to(launch[1]);
  const bool direct = from.contiguous() && to.contiguous() && from.element == element_of<C>;
  over_tiles(launch[1].numel(), [&](int64_t begin, int64_t n) {
    uint32_t words[kTile];
    C in[kTile], out[kTile];
    tile_words(seed, offset + static_cast<uint64_t>(begin / 4), words);
    const C* x = direct ? reinterpret_cast<const C*>(from.at(begin)) : in;
    C* y = direct ? reinterpret_cast<C*>(to.at(begin)) : out;
    if (!direct) load_span(from, begin, n, in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = words[i] < dropped ? C(0) : x[i] * scale;
    if (!direct) store_span(to, begin, n, out);
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::random

namespace baracuda {

using namespace random;

Status CpuKernel<Bernoulli>::run(const Launch& launch) {
  return launch.aux == Element::F64 ? bernoulli<double>(launch) : bernoulli<float>(launch);
}
Status CpuKernel<Randint>::run(const Launch& launch) { return randint(launch); }
Status CpuKernel<Randperm>::run(const Launch& launch) { return randperm(launch); }
Status CpuKernel<Dropout>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) { return dropout<decltype(c)>(launch); });
}
Status CpuKernel<DropoutBackward>::run(const Launch& launch) { return CpuKernel<Dropout>::run(launch); }

}  // namespace baracuda
