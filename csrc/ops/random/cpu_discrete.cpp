// Coin tosses, integers, permutations and dropout on the CPU.
#include <atomic>
#include <bit>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/runs.h"
#include "host/stream.h"
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
    stream_fence();
  });
}

// Where integers go: past the caches where the result is too large for them.
class IntegerWriter {
 public:
  explicit IntegerWriter(const TensorView& y)
      : to_(y), streams_(to_.contiguous() && y.element == Element::I64 && y.numel() * 8 >= kStreamBytes) {}
  void put(int64_t begin, int64_t n, const int64_t* values) const {
    if (streams_)
      stream_bytes(to_.at(begin), reinterpret_cast<const char*>(values), n * 8);
    else
      store_span(to_, begin, n, values);
  }

 private:
  MergedView to_;
  bool streams_;
};

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
  const TensorView& p = launch[BernoulliArgs::p];
  Stretch<C> values(p);
  for (int64_t begin = 0, total = p.numel(); begin < total; begin += kStretch) {
    const int64_t n = std::min(kStretch, total - begin);
    const C* v = values.get(begin, n);
    for (int64_t i = 0; i < n; ++i)
      if (!(v[i] >= C(0) && v[i] <= C(1)))
        return wrong_value(launch, BernoulliArgs::p, begin + i, v[i], ValueRange::Unit);
  }
  return Status::Ok;
}

template <class C>
Status bernoulli(const Launch& launch) {
  using Args = BernoulliArgs;
  const TensorView &p = launch[Args::p], &y = launch[Args::y];
  const bool number = !p.present();
  const uint64_t seed = launch.scalars[Args::seed].as_u64(), offset = launch.scalars[Args::offset].as_u64();
  C constant = 0;
  TensorView same;  // without a dimension
  if (number) {
    const double v = launch.scalars[Args::p].as_f64();
    if (!(v >= 0 && v <= 1)) return wrong_scalar(launch, Args::p, ValueRange::Unit);
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

// high_product() in vectors, and the lower half of the product.
Lanes high_product(Lanes a, Lanes b, Lanes& low) {
  constexpr uint64_t kLow = 0xFFFFFFFFu;
  const Lanes a1 = a >> 32, b1 = b >> 32, lower = multiply_low(a, b), left = multiply_low(a1, b);
  const Lanes right = multiply_low(a, b1), middle = (lower >> 32) + (left & kLow) + (right & kLow);
  low = middle << 32 | (lower & kLow);
  return multiply_low(a1, b1) + (left >> 32) + (right >> 32) + (middle >> 32);
}

// Numbers below n.
class Integers {
 public:
  Integers(uint64_t seed, uint64_t offset, uint64_t n)
      : seed_(seed), offset_(offset), n_(n), passed_over_((uint64_t{0} - n) % n) {}

  // Those of whole groups for `count` elements from `begin` on, plus `low`.
  void draw(int64_t begin, int64_t count, uint64_t low, int64_t* out) const {
    for (int64_t done = 0; done < count; done += kPer) draw_group(begin + done, low, out + done);
  }

 private:
  static constexpr int64_t kPer = 2 * kBlocks;

  void draw_group(int64_t begin, uint64_t low, int64_t* out) const {
    WordGroup words;
    uint64_t found[2][kBlocks], rest[2][kBlocks];
    make_words(seed_, offset_ + static_cast<uint64_t>(begin / 2), words);
    Lanes any{};
    for (int half = 0; half < 2; ++half) {
      for (int j = 0; j < kBlocks; j += kLanes) {
        Lanes lower, upper, left;
        std::memcpy(&lower, &words.w[2 * half][j], sizeof lower);
        std::memcpy(&upper, &words.w[2 * half + 1][j], sizeof upper);
        const Lanes got = high_product(upper << 32 | (lower & 0xFFFFFFFFu), Lanes{} + n_, left) + low;
        any |= reinterpret_cast<Lanes>(left < passed_over_);
        std::memcpy(&found[half][j], &got, sizeof got);
        std::memcpy(&rest[half][j], &left, sizeof left);
      }
    }
    for (int j = 0; j < kBlocks; ++j) {
      for (int half = 0; half < 2; ++half) out[2 * j + half] = static_cast<int64_t>(found[half][j]);
    }
    uint64_t again = 0;
    for (int k = 0; k < kLanes; ++k) again |= any[k];
    for (int64_t i = 0; i < kPer && again != 0; ++i) {
      if (rest[i % 2][i / 2] < passed_over_)
        out[i] = static_cast<int64_t>(low + below(seed_, offset_, static_cast<uint64_t>(begin + i), n_));
    }
  }

  uint64_t seed_, offset_, n_, passed_over_;
};

Status randint(const Launch& launch) {
  using Args = RandintArgs;
  const Scalar* s = launch.scalars;
  const int64_t low = s[Args::low].as_i64(), high = s[Args::high].as_i64();
  const uint64_t seed = s[Args::seed].as_u64(), offset = s[Args::offset].as_u64();
  const TensorView& y = launch[Args::y];
  if (low >= high) return wrong_scalar(launch, Args::high);
  if (!holds(y.element, low, low)) return wrong_scalar(launch, Args::low);
  if (!holds(y.element, low, high - 1)) return wrong_scalar(launch, Args::high);
  const Integers numbers(seed, offset, static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  const IntegerWriter to(y);
  over_tiles(y.numel(), [&](int64_t begin, int64_t count) {
    alignas(kStreamLine) int64_t out[kTile];
    numbers.draw(begin, count, static_cast<uint64_t>(low), out);
    to.put(begin, count, out);
  });
  return Status::Ok;
}

constexpr int kWordLanes = 2 * kLanes, kShuffled = 4 * kWordLanes;  // numbers that are sent on together
typedef uint32_t WordLanes __attribute__((vector_size(4 * kWordLanes)));

// once() for kShuffled numbers, in place.
void once_together(const Shuffle& s, uint64_t* numbers) {
  alignas(64) uint32_t lefts[kShuffled], rights[kShuffled];
  for (int i = 0; i < kShuffled; ++i) {
    const uint64_t v = numbers[i] < 2 ? numbers[i] ^ s.coin : numbers[i];
    lefts[i] = static_cast<uint32_t>(v >> s.right), rights[i] = static_cast<uint32_t>(v) & s.right_mask;
  }
  WordLanes left[4], right[4];
  std::memcpy(left, lefts, sizeof left), std::memcpy(right, rights, sizeof right);
  for (int k = 0; k < kRounds; k += 2) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) left[j] ^= mixed(right[j], s.key[k]) & s.left_mask;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) right[j] ^= mixed(left[j], s.key[k + 1]) & s.right_mask;
  }
  std::memcpy(lefts, left, sizeof left), std::memcpy(rights, right, sizeof right);
  for (int i = 0; i < kShuffled; ++i) numbers[i] = uint64_t{lefts[i]} << s.right | rights[i];
}

// shuffled() for `count` <= kTile numbers from `begin` on. Those that have to be sent on are moved together first.
void shuffle_tile(const Shuffle& s, int64_t begin, int64_t count, int64_t* out) {
  uint64_t numbers[kTile + kShuffled];
  int32_t places[kTile + kShuffled];
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<uint64_t>(begin + i), places[i] = static_cast<int32_t>(i);
  for (int64_t left = count; left > 0;) {
    for (int64_t i = left; i % kShuffled != 0; ++i) numbers[i] = 0;
    for (int64_t i = 0; i < left; i += kShuffled) once_together(s, numbers + i);
    int64_t kept = 0;
    for (int64_t i = 0; i < left; ++i) {
      const uint64_t v = numbers[i];
      const int32_t place = places[i];
      out[place] = static_cast<int64_t>(v);
      numbers[kept] = v, places[kept] = place;
      kept += v >= s.n;
    }
    left = kept;
  }
}

Status randperm(const Launch& launch) {
  using Args = RandpermArgs;
  const TensorView& y = launch[Args::y];
  const int64_t n = y.numel();
  if (n == 0) return Status::Ok;
  const uint64_t seed = launch.scalars[Args::seed].as_u64(), offset = launch.scalars[Args::offset].as_u64();
  Shuffle s;
  make_shuffle(seed, offset, static_cast<uint64_t>(n), s);
  const IntegerWriter to(y);
  over_tiles(n, [&](int64_t begin, int64_t count) {
    alignas(kStreamLine) int64_t out[kTile];
    shuffle_tile(s, begin, count, out);
    to.put(begin, count, out);
  });
  return Status::Ok;
}

template <class Args, class C>
Status dropout(const Launch& launch, const TensorView& given, const TensorView& result) {
  const double p = launch.scalars[Args::p].as_f64();
  const uint64_t seed = launch.scalars[Args::seed].as_u64(), offset = launch.scalars[Args::offset].as_u64();
  if (!(p >= 0 && p <= 1)) return wrong_scalar(launch, Args::p, ValueRange::Unit);
  const uint64_t dropped = heads_of(static_cast<float>(p));
  const C scale = static_cast<C>(p < 1 ? 1 / (1 - p) : 0);
  const MergedView from(given), to(result);
  const bool direct = from.contiguous() && to.contiguous() && from.element == element_of<C>;
  over_tiles(result.numel(), [&](int64_t begin, int64_t n) {
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
  using Args = DropoutArgs;
  return with_float_type(launch.element,
                         [&](auto c) { return dropout<Args, decltype(c)>(launch, launch[Args::x], launch[Args::y]); });
}
Status CpuKernel<DropoutBackward>::run(const Launch& launch) {
  using Args = DropoutBackwardArgs;
  return with_float_type(
      launch.element, [&](auto c) { return dropout<Args, decltype(c)>(launch, launch[Args::dy], launch[Args::dx]); });
}

}  // namespace baracuda
