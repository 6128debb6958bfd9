// Samples of categories on the CPU. Probabilities become integers, which add up exactly; a sample is the category in
// which a number below their sum falls. Without replacement, weights that are drawn are taken out.
#include <bit>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "core/compute.h"
#include "ops/random/discrete.h"
#include "ops/random/kernels.h"

namespace baracuda::random {
namespace {

static_assert(kGroup == kGroupSize);

// A row's probabilities as weights.
struct RowState {
  uint64_t sum;
  int32_t most;  // the largest exponent
};

template <class C>
class Sampler {
 public:
  explicit Sampler(const Launch& launch)
      : launch_(launch),
        p_(row_map(launch[0], 1u << (launch[0].rank - 1))),
        y_(row_map(launch[1], 1u << (launch[1].rank - 1))),
        replacement_(attributes<MultinomialAttrs>(launch).replacement != 0),
        scratch_(p_.rows(), p_.length(), replacement_),
        bits_(weight_bits(p_.length())),
        seed_(launch.scalars[0].as_u64()),
        offset_(launch.scalars[1].as_u64()) {
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

  // Checks a row and adds up its groups; groups_ holds sums from the start of the row on. A row that holds something
  // else than weights has most = -1.
  void weigh(int64_t r) {
    C in[kGroup];
    C largest = 0;
    bool good = true;
    for (int64_t at = 0; at < p_.length(); at += kGroup) {
      const int64_t n = std::min<int64_t>(kGroup, p_.length() - at);
      const C* v = read(p_, p_.row(r), at, n, in);
      for (int64_t i = 0; i < n; ++i) good &= is_weight(v[i]), largest = v[i] > largest ? v[i] : largest;
    }
    RowState& row = rows_[r];
    row = {0, good ? Parts<C>::exponent(largest) : -1};
    if (!good) return;
    for (int64_t g = 0; g < scratch_.groups; ++g) {
      row.sum += group_sum(r, g);
      group(r, g) = row.sum;
    }
    if (!replacement_) std::fill_n(marks_ + r * scratch_.marks, scratch_.marks, uint8_t{0});
  }

  uint64_t group_sum(int64_t r, int64_t g) {
    C in[kGroup];
    const int64_t n = std::min<int64_t>(kGroup, p_.length() - g * kGroup);
    const C* v = read(p_, p_.row(r), g * kGroup, n, in);
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += weight_of(v[i], rows_[r].most, bits_);
    return sum;
  }

  uint64_t& group(int64_t r, int64_t g) { return groups_[r * scratch_.groups + g]; }

  // Sample `index` of the call, counted over all rows.
  Found draw(int64_t r, int64_t index) {
    const RowState& row = rows_[r];
    uint64_t left = below(seed_, offset_, static_cast<uint64_t>(index), row.sum);
    int64_t low = 0, high = scratch_.groups - 1;  // the first group that goes beyond
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (group(r, middle) > left)
        high = middle;
      else
        low = middle + 1;
    }
    if (low > 0) left -= group(r, low - 1);
    C in[kGroup];
    const int64_t n = std::min<int64_t>(kGroup, p_.length() - low * kGroup);
    const C* v = read(p_, p_.row(r), low * kGroup, n, in);
    const uint8_t* drawn = replacement_ ? nullptr : marks_ + r * scratch_.marks + low * kGroup;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t weight = drawn && drawn[i] ? 0 : weight_of(v[i], row.most, bits_);
      if (left < weight) return {low * kGroup + i, weight};
      left -= weight;
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
    if (launch_.failure) *launch_.failure = {0, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
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
