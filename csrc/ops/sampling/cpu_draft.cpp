// Verification of draft tokens on the CPU, a row by a thread.
#include <algorithm>
#include <bit>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sampling/draft.h"
#include "ops/sampling/kernels.h"

namespace baracuda::sampling {
namespace {

// The places of a draft, each with the target's probabilities of what comes next.
class Places {
 public:
  // `draft`: what draft tokens were drawn with; null: of no matter.
  Places(const Launch& launch, const TensorView& target, const TensorView* draft, const TensorView& tokens,
         const TensorView& y, const Scalar& seed, const Scalar& offset)
      : launch_(launch),
        target_(target),
        draft_(draft),
        tokens_(tokens),
        y_(y),
        rows_(target.shape[0]),
        drafted_(tokens.shape[1]),
        vocabulary_(target.shape[2]),
        seed_(seed.as_u64()),
        offset_(offset.as_u64()),
        wrong_(static_cast<int64_t*>(launch.workspace)) {}

 protected:
  static constexpr int64_t kNone = -1, kEmpty = INT64_MIN, kTile = 1024;

  // Calls row(r) for each row: kNone, or the position in the row's probabilities that is wrong.
  template <class Row>
  Status each_row(int target, int draft, Row&& row) {
    parallel_for(rows_, row_grain(vocabulary_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) wrong_[r] = row(r);
    });
    for (int64_t r = 0; r < rows_; ++r)
      if (wrong_[r] != kNone) return failed(r, target, draft);
    return Status::Ok;
  }
  Status out_of_range(int tensor, int64_t position, int64_t value, int64_t limit) const {
    if (launch_.failure) *launch_.failure = {tensor, position, value, limit};
    return Status::IndexOutOfRange;
  }
  int64_t place(int64_t r, int64_t i) const { return r * (drafted_ + 1) + i; }

  static const char* at(const TensorView& t, int64_t i, int64_t j = 0, int64_t k = 0) {
    const int64_t place[] = {i, j, k};
    int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) offset += place[d] * t.strides[d];
    return static_cast<const char*>(t.data) + offset * size_of(t.element);
  }
  static int64_t whole(const TensorView& t, int64_t r, int64_t i) {
    int64_t v;
    load<int64_t>(t.element, at(t, r, i), 1, &v, 1);
    return v;
  }
  static void put(const TensorView& t, int64_t r, int64_t i, int64_t v) {
    store<int64_t>(t.element, const_cast<char*>(at(t, r, i)), 1, &v, 1);
  }
  static float chance(const TensorView& t, int64_t r, int64_t i, int64_t token) {
    float v;
    load<float>(t.element, at(t, r, i, token), 1, &v, 1);
    return v;
  }
  // A token drawn at a place and put there; kNone, or the position of what is wrong.
  int64_t put_drawn(int64_t r, int64_t i, int64_t at_y, bool beyond_draft, int64_t& token) const {
    token = draw(r, i, beyond_draft);
    if (token == kEmpty) token = draw(r, i, false);
    if (token == kEmpty) return i * vocabulary_;
    if (token < 0) return -token - 2;
    put(y_, r, at_y, token);
    return kNone;
  }

 private:
  // Weights [first, first + n) of a row, without the draft's where they are beyond it; false where one is none.
  void read_weights(int64_t r, int64_t i, bool beyond_draft, int64_t first, int64_t n, float* to, float* other) const {
    load<float>(target_.element, at(target_, r, i, first), target_.strides[2], to, n);
    if (!beyond_draft) return;
    load<float>(draft_->element, at(*draft_, r, i, first), draft_->strides[2], other, n);
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
    uint64_t left = drawn_below(seed_, offset_, place(r, i), sum);
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

  Status failed(int64_t r, int target, int draft) const {
    const int64_t width = std::max<int64_t>(vocabulary_, 1), i = wrong_[r] / width, token = wrong_[r] % width;
    if (vocabulary_ == 0) return told(target, 0, 0, ValueRange::PositiveSum);
    const float weight = chance(target_, r, i, token);
    if (!random::is_weight(weight))
      return told(target, place(r, i) * vocabulary_ + token, weight, ValueRange::NotNegative);
    const float other = draft_ && i < drafted_ ? chance(*draft_, r, i, token) : 0.0f;
    if (!random::is_weight(other))
      return told(draft, (r * drafted_ + i) * vocabulary_ + token, other, ValueRange::NotNegative);
    return told(target, place(r, i) * vocabulary_, 0, ValueRange::PositiveSum);
  }
  Status told(int tensor, int64_t position, double value, ValueRange range) const {
    if (launch_.failure)
      *launch_.failure = {tensor, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
    return Status::ValueOutOfRange;
  }

 protected:
  const Launch& launch_;
  const TensorView& target_;
  const TensorView* draft_;
  const TensorView &tokens_, &y_;
  int64_t rows_, drafted_, vocabulary_;
  uint64_t seed_, offset_;
  int64_t* wrong_;
};

class Chain : Places {
  using Args = VerifyArgs;

 public:
  explicit Chain(const Launch& launch)
      : Places(launch, launch[Args::target], &launch[Args::draft], launch[Args::draft_tokens], launch[Args::y],
               launch.scalars[Args::seed], launch.scalars[Args::offset]) {}
  Status run() {
    for (int64_t i = 0; i < rows_ * drafted_; ++i) {
      const int64_t token = whole(tokens_, i / drafted_, i % drafted_);
      if (token < 0 || token >= vocabulary_) return out_of_range(Args::draft_tokens, i, token, vocabulary_);
    }
    return each_row(Args::target, Args::draft, [&](int64_t r) { return row(r); });
  }

 private:
  int64_t row(int64_t r) const {
    int64_t i = 0, drawn;
    for (; i < drafted_; ++i) {
      const int64_t token = whole(tokens_, r, i);
      const uint32_t word = deciding_word(seed_, offset_, place(r, i));
      if (!accepts(chance(target_, r, i, token), chance(*draft_, r, i, token), word)) break;
      put(y_, r, i, token);
    }
    put(launch_[Args::accepted], r, 0, i);
    for (int64_t j = i + 1; j <= drafted_; ++j) put(y_, r, j, -1);
    return put_drawn(r, i, i, i < drafted_, drawn);
  }
};

class Tree : Places {
  using Args = TreeArgs;

 public:
  explicit Tree(const Launch& launch)
      : Places(launch, launch[Args::target], nullptr, launch[Args::tokens], launch[Args::y], launch.scalars[Args::seed],
               launch.scalars[Args::offset]),
        parents_(launch[Args::parents]) {}
  Status run() {
    for (int64_t i = 0; i < rows_ * drafted_; ++i) {
      const int64_t parent = whole(parents_, i / drafted_, i % drafted_), limit = i % drafted_ + 1;
      if (parent < 0 || parent >= limit) return out_of_range(Args::parents, i, parent, limit);
    }
    return each_row(Args::target, -1, [&](int64_t r) { return row(r); });
  }

 private:
  // From place to place, so long as what is drawn is the token of a child.
  int64_t row(int64_t r) const {
    int64_t i = 0, kept = 0, token;
    for (;;) {
      if (const int64_t wrong = put_drawn(r, i, kept, false, token); wrong != kNone) return wrong;
      int64_t child = i;
      while (child < drafted_ && !(whole(parents_, r, child) == i && whole(tokens_, r, child) == token)) ++child;
      if (child == drafted_) break;
      put(launch_[Args::path], r, kept++, child);
      i = child + 1;
    }
    put(launch_[Args::accepted], r, 0, kept);
    for (int64_t j = kept; j < drafted_; ++j) put(launch_[Args::path], r, j, -1), put(y_, r, j + 1, -1);
    return kNone;
  }

  const TensorView& parents_;
};

}  // namespace
}  // namespace baracuda::sampling

namespace baracuda {

Status CpuKernel<sampling::Verify>::run(const Launch& launch) { return sampling::Chain(launch).run(); }
Status CpuKernel<sampling::VerifyTree>::run(const Launch& launch) { return sampling::Tree(launch).run(); }

}  // namespace baracuda
