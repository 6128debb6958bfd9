// Verification of draft tokens on the CPU, a row by a thread.
#include <algorithm>
#include <bit>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sampling/draft.h"
#include "ops/sampling/kernels.h"

namespace baracuda::sampling {
namespace {

class Verifier {
  using Args = VerifyArgs;

 public:
  explicit Verifier(const Launch& launch)
      : launch_(launch),
        draft_(launch[Args::draft]),
        tokens_(launch[Args::draft_tokens]),
        target_(launch[Args::target]),
        y_(launch[Args::y]),
        accepted_(launch[Args::accepted]),
        rows_(target_.shape[0]),
        drafted_(draft_.shape[1]),
        vocabulary_(target_.shape[2]),
        seed_(launch.scalars[Args::seed].as_u64()),
        offset_(launch.scalars[Args::offset].as_u64()),
        wrong_(static_cast<int64_t*>(launch.workspace)) {}

  Status run() {
    for (int64_t i = 0; i < rows_ * drafted_; ++i) {
      const int64_t token = drafted(i / drafted_, i % drafted_);
      if (token < 0 || token >= vocabulary_) {
        if (launch_.failure) *launch_.failure = {Args::draft_tokens, i, token, vocabulary_};
        return Status::IndexOutOfRange;
      }
    }
    parallel_for(rows_, row_grain(vocabulary_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) wrong_[r] = row(r);
    });
    for (int64_t r = 0; r < rows_; ++r)
      if (wrong_[r] != kNone) return failed(r);
    return Status::Ok;
  }

 private:
  static constexpr int64_t kNone = -1, kTile = 1024;

  static const char* at(const TensorView& t, int64_t i, int64_t j = 0, int64_t k = 0) {
    const int64_t place[] = {i, j, k};
    int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) offset += place[d] * t.strides[d];
    return static_cast<const char*>(t.data) + offset * size_of(t.element);
  }
  int64_t drafted(int64_t r, int64_t i) const {
    int64_t token;
    load<int64_t>(tokens_.element, at(tokens_, r, i), 1, &token, 1);
    return token;
  }
  static float chance(const TensorView& t, int64_t r, int64_t i, int64_t token) {
    float v;
    load<float>(t.element, at(t, r, i, token), 1, &v, 1);
    return v;
  }
  void put(int64_t r, int64_t i, int64_t token) const {
    store<int64_t>(y_.element, const_cast<char*>(at(y_, r, i)), 1, &token, 1);
  }

  // Where probabilities of the row that is drawn from are none, else kNone.
  int64_t row(int64_t r) const {
    int64_t i = 0;
    for (; i < drafted_; ++i) {
      const int64_t token = drafted(r, i);
      const uint32_t word = deciding_word(seed_, offset_, r * (drafted_ + 1) + i);
      if (!accepts(chance(target_, r, i, token), chance(draft_, r, i, token), word)) break;
      put(r, i, token);
    }
    store<int64_t>(accepted_.element, const_cast<char*>(at(accepted_, r)), 1, &i, 1);
    for (int64_t j = i + 1; j <= drafted_; ++j) put(r, j, -1);
    int64_t found = draw(r, i, i < drafted_);
    if (found == kEmpty) found = draw(r, i, false);
    if (found == kEmpty) return i * vocabulary_;
    if (found < 0) return -found - 2;
    put(r, i, found);
    return kNone;
  }
  static constexpr int64_t kEmpty = INT64_MIN;

  // Weights [first, first + n) of a row, without the draft's where they are beyond it; false where one is none.
  void read_weights(int64_t r, int64_t i, bool beyond_draft, int64_t first, int64_t n, float* to, float* other) const {
    load<float>(target_.element, at(target_, r, i, first), target_.strides[2], to, n);
    if (!beyond_draft) return;
    load<float>(draft_.element, at(draft_, r, i, first), draft_.strides[2], other, n);
    for (int64_t j = 0; j < n; ++j) {
      const bool good = random::is_weight(to[j]) && random::is_weight(other[j]);
      to[j] = good ? beyond(to[j], other[j]) : math::quiet_nan<float>();
    }
  }
  // A token; kEmpty where there is no weight; -2 - position where a probability is none.
  int64_t draw(int64_t r, int64_t i, bool beyond_draft) const {
    float v[kTile], other[kTile];
    int32_t most = 1;
    for (int64_t first = 0; first < vocabulary_; first += kTile) {
      const int64_t n = std::min(kTile, vocabulary_ - first);
      read_weights(r, i, beyond_draft, first, n, v, other);
      for (int64_t j = 0; j < n; ++j) {
        if (!random::is_weight(v[j])) return -2 - (i * vocabulary_ + first + j);
        most = std::max(most, random::Parts<float>::exponent(v[j]));
      }
    }
    const int32_t bits = random::weight_bits(vocabulary_);
    uint64_t sum = 0;
    each_weight(r, i, beyond_draft, [&](int64_t, float w) {
      sum += random::weight_of(w, most, bits);
      return false;
    });
    if (sum == 0) return kEmpty;
    uint64_t left = drawn_below(seed_, offset_, r * (drafted_ + 1) + i, sum);
    return each_weight(r, i, beyond_draft, [&](int64_t, float w) {
      const uint64_t weight = random::weight_of(w, most, bits);
      if (left < weight) return true;
      left -= weight;
      return false;
    });
  }
  template <class Body>
  int64_t each_weight(int64_t r, int64_t i, bool beyond_draft, Body&& found) const {
    float v[kTile], other[kTile];
    for (int64_t first = 0; first < vocabulary_; first += kTile) {
      const int64_t n = std::min(kTile, vocabulary_ - first);
      read_weights(r, i, beyond_draft, first, n, v, other);
      for (int64_t j = 0; j < n; ++j)
        if (found(first + j, v[j])) return first + j;
    }
    return kEmpty;
  }

  Status failed(int64_t r) const {
    const int64_t i = wrong_[r] / std::max<int64_t>(vocabulary_, 1),
                  token = wrong_[r] % std::max<int64_t>(vocabulary_, 1);
    if (vocabulary_ == 0) return told(Args::target, 0, 0, ValueRange::PositiveSum);
    const float target = chance(target_, r, i, token);
    if (!random::is_weight(target))
      return told(Args::target, (r * (drafted_ + 1) + i) * vocabulary_ + token, target, ValueRange::NotNegative);
    const float draft = i < drafted_ ? chance(draft_, r, i, token) : 0.0f;
    if (!random::is_weight(draft))
      return told(Args::draft, (r * drafted_ + i) * vocabulary_ + token, draft, ValueRange::NotNegative);
    return told(Args::target, (r * (drafted_ + 1) + i) * vocabulary_, 0, ValueRange::PositiveSum);
  }
  Status told(int tensor, int64_t position, double value, ValueRange range) const {
    if (launch_.failure)
      *launch_.failure = {tensor, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
    return Status::ValueOutOfRange;
  }

  const Launch& launch_;
  const TensorView &draft_, &tokens_, &target_, &y_, &accepted_;
  int64_t rows_, drafted_, vocabulary_;
  uint64_t seed_, offset_;
  int64_t* wrong_;
};

}  // namespace
}  // namespace baracuda::sampling

namespace baracuda {

Status CpuKernel<sampling::Verify>::run(const Launch& launch) { return sampling::Verifier(launch).run(); }

}  // namespace baracuda
