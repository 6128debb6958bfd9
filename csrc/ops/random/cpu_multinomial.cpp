// Samples of categories on the CPU. Probabilities become integers, which add up exactly; a sample is the category in
// which a number below their sum falls. Without replacement, weights that are drawn are taken out.
#include <bit>
#include <cstring>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "ops/random/discrete.h"
#include "ops/random/kernels.h"

namespace baracuda::random {
namespace {

static_assert(kGroup == kGroupSize);

typedef uint64_t Weights __attribute__((vector_size(64)));
typedef int64_t Shifts __attribute__((vector_size(64)));
typedef uint32_t Singles __attribute__((vector_size(32)));
constexpr int64_t kWide = 8;
static_assert(kGroup % kWide == 0);

// By reference: how such a vector is returned depends on the level.
void read_bits(const float* v, Weights& to) {
  Singles bits;
  std::memcpy(&bits, v, sizeof bits);
  to = __builtin_convertvector(bits, Weights);
}
void read_bits(const double* v, Weights& to) { std::memcpy(&to, v, sizeof to); }

// weight_of() for kWide values; compilers find no vectors in a loop of it.
template <class C>
void read_weights(const C* v, int32_t most, int32_t bits, Weights& to) {
  constexpr int kFraction = Parts<C>::kBits - 1;
  constexpr uint64_t kImplied = uint64_t{1} << kFraction, kExponents = sizeof(C) == 8 ? 0x7ff : 0xff;
  Weights b;
  read_bits(v, b);
  const Weights e = b >> kFraction & kExponents, none{};
  const Weights significand = (b & (kImplied - 1)) | (e == 0 ? none : none + kImplied);
  const Shifts zero{}, up = reinterpret_cast<Shifts>(e == 0 ? none + 1 : e) + (bits - Parts<C>::kBits - most);
  const Shifts down = up < 0 ? -up : zero;
  const Weights left = reinterpret_cast<Weights>(up > 0 ? up : zero);
  const Weights right = reinterpret_cast<Weights>(down > 63 ? zero + 63 : down);
  to = ((significand << left) + ((none + 1) << right >> 1)) >> right;
}

// The weights of n <= kGroup values.
template <class C>
void group_weights(const C* v, int64_t n, int32_t most, int32_t bits, uint64_t* to) {
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide) {
    Weights w;
    read_weights(v + i, most, bits, w);
    std::memcpy(to + i, &w, sizeof w);
  }
  for (; i < n; ++i) to[i] = weight_of(v[i], most, bits);
}

// A row's probabilities as weights.
struct RowState {
  uint64_t sum;
  int32_t most;  // the largest exponent
};

template <class C>
class Sampler {
  using Args = MultinomialArgs;

 public:
  explicit Sampler(const Launch& launch)
      : launch_(launch),
        p_(row_map(launch[Args::p], 1u << (launch[Args::p].rank - 1))),
        y_(row_map(launch[Args::y], 1u << (launch[Args::y].rank - 1))),
        replacement_(attributes<MultinomialAttrs>(launch).replacement != 0),
        scratch_(p_.rows(), p_.length(), replacement_),
        bits_(weight_bits(p_.length())),
        seed_(launch.scalars[Args::seed].as_u64()),
        offset_(launch.scalars[Args::offset].as_u64()) {
    char* at = static_cast<char*>(launch.workspace);
    rows_ = reinterpret_cast<RowState*>(at), at += whole_lines(p_.rows() * 16);
    groups_ = reinterpret_cast<uint64_t*>(at), at += whole_lines(p_.rows() * scratch_.groups * 8);
    marks_ = reinterpret_cast<uint8_t*>(at);
  }

  Status run() {
    if (p_.rows() == 0) return Status::Ok;
    parallel_for(p_.rows(), row_grain(p_.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) weigh(r);
    });
    const int64_t samples = y_.length();
    for (int64_t r = 0; r < p_.rows(); ++r)
      if (rows_[r].most < 0 || (rows_[r].sum == 0 && samples > 0)) return wrong(r);
    if (replacement_) {
      parallel_for(p_.rows() * samples, 256, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) put_sample(k / samples, k % samples, draw(k / samples, k).category);
      });
      return Status::Ok;
    }
    parallel_for(p_.rows(), row_grain(p_.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) take(r);
    });
    for (int64_t r = 0; r < p_.rows(); ++r)
      if (rows_[r].most < 0) return exhausted(r);
    return Status::Ok;
  }

 private:
  struct Found {
    int64_t category;
    uint64_t weight;
  };

  static constexpr int64_t kTile = kRowTile<C>;
  static_assert(kTile % kGroup == 0);

  // Checks a row and adds up its groups; groups_ holds sums from the start of the row on. A row that holds something
  // else than weights has most = -1.
  void weigh(int64_t r) {
    C in[kTile];
    RowState& row = rows_[r];
    row = {0, largest_exponent(r, in)};
    if (row.most < 0) return;
    uint64_t* sums = groups_ + r * scratch_.groups;
    for (int64_t at = 0; at < p_.length(); at += kTile) {
      const int64_t n = std::min(kTile, p_.length() - at);
      const C* v = read(p_, p_.row(r), at, n, in);
      for (int64_t i = 0; i < n; i += kGroup)
        *sums++ = row.sum += group_sum(v + i, std::min<int64_t>(kGroup, n - i), row.most);
    }
    if (!replacement_) std::fill_n(marks_ + r * scratch_.marks, scratch_.marks, uint8_t{0});
  }

  // Numbers that are not negative are ordered as their bits are; those below -0 are the least once -0's bits are taken
  // from all, and 1, as that makes -0 the largest.
  int32_t largest_exponent(int64_t r, C* in) const {
    using Bits = typename math::FloatTraits<C>::Uint;
    constexpr Bits kSign = Bits(1) << (8 * sizeof(C) - 1);
    Bits largest = 0, least = kSign;
    for (int64_t at = 0; at < p_.length(); at += kTile) {
      const int64_t n = std::min(kTile, p_.length() - at);
      const C* v = read(p_, p_.row(r), at, n, in);
      for (int64_t i = 0; i < n; ++i) {
        const Bits b = math::bit_cast<Bits>(v[i]), size = b & ~kSign;
        const Bits rank = b - kSign - 1;
        least = rank < least ? rank : least;
        largest = size > largest ? size : largest;
      }
    }
    const C value = math::bit_cast<C>(largest);
    return least >= kSign - 1 && is_weight(value) ? Parts<C>::exponent(value) : -1;
  }

  uint64_t group_sum(const C* v, int64_t n, int32_t most) const {
    Weights sums{};
    int64_t i = 0;
    for (; i + kWide <= n; i += kWide) {
      Weights w;
      read_weights(v + i, most, bits_, w);
      sums += w;
    }
    uint64_t sum = 0;
    for (; i < n; ++i) sum += weight_of(v[i], most, bits_);
    for (int k = 0; k < kWide; ++k) sum += sums[k];
    return sum;
  }

  uint64_t& group(int64_t r, int64_t g) { return groups_[r * scratch_.groups + g]; }

  // Sample `index` of the call, counted over all rows.
  Found draw(int64_t r, int64_t index) {
    const RowState& row = rows_[r];
    uint64_t left = below(seed_, offset_, static_cast<uint64_t>(index), row.sum);
    const uint64_t* sums = groups_ + r * scratch_.groups;
    int64_t low = 0;  // the first group that goes beyond
    for (int64_t range = scratch_.groups; range > 1;) {
      const int64_t half = range / 2;
      low += sums[low + half - 1] <= left ? half : 0;
      range -= half;
    }
    if (low > 0) left -= sums[low - 1];
    C in[kGroup];
    uint64_t weights[kGroup];
    const int64_t n = std::min<int64_t>(kGroup, p_.length() - low * kGroup);
    const C* v = read(p_, p_.row(r), low * kGroup, n, in);
    group_weights(v, n, row.most, bits_, weights);
    if (!replacement_) {
      const uint8_t* drawn = marks_ + r * scratch_.marks + low * kGroup;
      for (int64_t i = 0; i < n; ++i) weights[i] = drawn[i] ? 0 : weights[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      if (left < weights[i]) return {low * kGroup + i, weights[i]};
      left -= weights[i];
    }
    return {0, 0};  // not reached: the group's sum is larger
  }

  // All samples of a row, each taken out of what is left.
  void take(int64_t r) {
    RowState& row = rows_[r];
    const int64_t samples = y_.length();
    for (int64_t j = 0; j < samples; ++j) {
      if (row.sum == 0) {
        row.most = -1;
        return;
      }
      const Found found = draw(r, r * samples + j);
      put_sample(r, j, found.category);
      marks_[r * scratch_.marks + found.category] = 1;
      row.sum -= found.weight;
      for (int64_t g = found.category / kGroup; g < scratch_.groups; ++g) group(r, g) -= found.weight;
    }
  }

  void put_sample(int64_t r, int64_t j, int64_t category) {
    store<int64_t>(y_.element, y_.row(r) + y_.inner.offset(j) * size_of(y_.element), 1, &category, 1);
  }

  Status failed(int64_t position, double value, ValueRange range) {
    if (launch_.failure)
      *launch_.failure = {Args::p, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
    return Status::ValueOutOfRange;
  }
  Status exhausted(int64_t r) { return failed(r * p_.length(), 0, ValueRange::PositiveSum); }
  Status wrong(int64_t r) {
    for (int64_t i = 0; i < p_.length(); ++i) {
      C buffer;
      const C v = *read(p_, p_.row(r), i, 1, &buffer);
      if (!is_weight(v)) return failed(r * p_.length() + i, v, ValueRange::NotNegative);
    }
    return exhausted(r);
  }

  const Launch& launch_;
  RowMap p_, y_;
  bool replacement_;
  SampleScratch scratch_;
  int32_t bits_;
  uint64_t seed_, offset_;
  RowState* rows_;
  uint64_t* groups_;
  uint8_t* marks_;
};

}  // namespace
}  // namespace baracuda::random

namespace baracuda {

Status CpuKernel<random::Multinomial>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) { return random::Sampler<decltype(c)>(launch).run(); });
}

}  // namespace baracuda
