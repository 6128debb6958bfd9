// Tokens drawn from logits on the CPU, a row by a thread.
#include <bit>
#include <cmath>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sampling/kernels.h"
#include "ops/sampling/row_search.h"

namespace baracuda::sampling {
namespace {

enum : int64_t { kNothing = -2, kDrawn = -1 };  // of a row; else where what is no logit is

// A tensor that is broadcast to `shape`, seen so.
TensorView stretched(const TensorView& t, const TensorView& shape) {
  if (!t.present()) return t;
  TensorView s = shape;
  s.data = t.data, s.element = t.element;
  for (int i = 0; i < shape.rank; ++i) {
    const int from = t.rank - shape.rank + i;
    s.strides[i] = from < 0 || t.shape[from] == 1 ? 0 : t.strides[from];
  }
  return s;
}

class Sampler {
  using Args = SampleArgs;  // filter_logits has the same tensors and numbers, but for seed and offset

 public:
  explicit Sampler(const Launch& launch)
      : launch_(launch),
        logits_(by_row(launch[Args::logits])),
        counts_(by_row(launch[Args::counts])),
        mask_(by_row(stretched(launch[Args::mask], launch[Args::logits]))),
        controls_(by_row(launch[Args::controls])),
        y_(drawn(launch[Args::y], launch[Args::logits])),
        scratch_(logits_.rows(), logits_.length()),
        results_(static_cast<int64_t*>(launch.workspace)) {}

  // Calls body(row, r, sum) for each row whose rule is made, all of whose weights are `sum`.
  template <class Body>
  Status run(bool wanted, Body&& body) {
    if (const Status s = check(); s != Status::Ok) return s;
    const int64_t rows = logits_.rows(), n = logits_.length();
    if (!wanted || rows == 0) return Status::Ok;
    if (n == 0) return failed(Args::logits, 0, 0, ValueRange::PositiveSum);
    parallel_for(rows, row_grain(8 * n), [&](int64_t begin, int64_t end) {
      char* memory = static_cast<char*>(launch_.workspace) + scratch_.results + thread_index() * scratch_.per_thread;
      for (int64_t r = begin; r < end; ++r) results_[r] = one(r, memory, body);
    });
    for (int64_t r = 0; r < rows; ++r)
      if (results_[r] != kDrawn) return wrong(r);
    return Status::Ok;
  }

  const RowMap& y() const { return y_; }
  int64_t tokens() const { return logits_.length(); }

 private:
  static RowMap by_row(const TensorView& t) { return row_map(t, t.rank > 0 ? 1u << (t.rank - 1) : 0u); }
  // Tokens, one for each row or several.
  static RowMap drawn(const TensorView& y, const TensorView& logits) {
    return y.rank < logits.rank ? row_map(y, 0) : by_row(y);
  }

  double number(int scalar) const { return launch_.scalars[scalar].as_f64(); }
  float control(int64_t r, int at) const {
    if (!controls_.present()) return static_cast<float>(number(at));
    float v;
    load<float>(Element::F32, controls_.row(r) + controls_.inner.offset(at) * 4, 1, &v, 1);
    return v;
  }
  Controls controls_of(int64_t r) const {
    Controls c;
    c.temperature = control(r, Args::temperature);
    c.top_k = controls_.present() ? whole_k(control(r, Args::top_k)) : launch_.scalars[Args::top_k].as_i64();
    c.top_p = control(r, Args::top_p), c.min_p = control(r, Args::min_p), c.typical_p = control(r, Args::typical_p);
    c.repetition = control(r, Args::repetition), c.presence = control(r, Args::presence);
    c.frequency = control(r, Args::frequency);
    return c;
  }

  static ValueRange range_of(int control) {
    return control == Args::temperature || control == Args::repetition                         ? ValueRange::NotNegative
           : control == Args::presence || control == Args::frequency || control == Args::top_k ? ValueRange::Finite
                                                                                               : ValueRange::Unit;
  }
  static bool lies_in(float v, ValueRange range) {
    if (!std::isfinite(v)) return false;
    return range == ValueRange::Finite || (v >= 0 && (range == ValueRange::NotNegative || v <= 1));
  }
  Status check() {
    const int64_t rows = controls_.present() ? logits_.rows() : 1;
    for (int64_t r = 0; r < rows; ++r)
      for (int c = 0; c < kControls; ++c) {
        if (lies_in(control(r, c), range_of(c))) continue;
        if (controls_.present()) return failed(Args::controls, r * kControls + c, control(r, c), range_of(c));
        if (launch_.failure) *launch_.failure = {-1, c, 0, -2 - static_cast<int64_t>(range_of(c))};
        return Status::InvalidProblem;
      }
    return Status::Ok;
  }

  // The row's logits as they are drawn from.
  const float* logits_of(int64_t r, const Controls& c, float* to) const {
    const int64_t n = logits_.length();
    const float* given = sampling_read(logits_, r, 0, n, to);
    if (!counts_.present() && !mask_.present()) return given;
    const Penalty penalty = penalty_of(c);
    constexpr int64_t kTile = 1024;
    int64_t counts[kTile], kept[kTile];
    for (int64_t at = 0; at < n; at += kTile) {
      const int64_t m = std::min(kTile, n - at);
      if (counts_.present()) {
        const int64_t* count = sampling_read(counts_, r, at, m, counts);
        for (int64_t j = 0; j < m; ++j) to[at + j] = penalised(given[at + j], static_cast<int32_t>(count[j]), penalty);
      } else if (to != given) {
        std::copy_n(given + at, m, to + at);
      }
      if (!mask_.present()) continue;
      const int64_t* keep = sampling_read(mask_, r, at, m, kept);
      for (int64_t j = 0; j < m; ++j) to[at + j] = keep[j] != 0 ? to[at + j] : -math::infinity<float>();
    }
    return to;
  }
  template <class C>
  static const C* sampling_read(const RowMap& m, int64_t r, int64_t at, int64_t n, C* buffer) {
    return read(m, m.row(r), at, n, buffer);
  }

  template <class Body>
  int64_t one(int64_t r, char* memory, Body&& body) const {
    const int64_t n = logits_.length();
    const Controls c = controls_of(r);
    const float* z = logits_of(r, c, reinterpret_cast<float*>(memory));
    const float top = largest(z, n);
    if (!is_logit(top)) return first_wrong(z, n);
    if (top == -math::infinity<float>()) return kNothing;
    RowSearch row(z, n, reinterpret_cast<uint64_t*>(memory + scratch_.logits),
                  reinterpret_cast<uint64_t*>(memory + scratch_.logits + scratch_.entries));
    row.rule = rule_of(top, c.temperature, n);
    body(row, r, keep(row, c, n));
    return kDrawn;
  }
  static float largest(const float* z, int64_t n) {
    float top = -math::infinity<float>();
    for (int64_t at = 0; at < n; at += kRowTile<float>) {
      const float v = lane_extreme<true, true>(z + at, std::min(kRowTile<float>, n - at));
      if (v != v) return v;
      top = v > top ? v : top;
    }
    return top;
  }
  static int64_t first_wrong(const float* z, int64_t n) {
    return std::find_if(z, z + n, [](float v) { return !is_logit(v); }) - z;
  }

  // Narrows the row's rule to what its controls keep; returns the sum of the weights, which are in bins.
  static uint64_t keep(RowSearch& row, const Controls& c, int64_t n) {
    Rule& rule = row.rule;
    const int64_t k = is_greedy(c.temperature) ? 1 : c.top_k;
    if (k > 0 && k < n) rule.cut = row.find_kth(k);
    uint64_t sum = row.weigh();
    if (c.top_p < 1.0f) {
      const auto cut = row.find(share_of(sum, c.top_p));
      rule.cut = cut.at, sum = cut.sum;
    }
    if (c.min_p > 0.0f) {
      rule.least = least_of(c.min_p, rule.up);
      sum = row.weigh();
    }
    if (c.typical_p < 1.0f) {
      rule.mean = row.mean_distance(sum), rule.banded = true;
      row.weigh();
      const auto band = row.find(share_of(sum, c.typical_p));
      rule.band = band.at, sum = band.sum;
    }
    return sum;
  }

  Status failed(int tensor, int64_t position, double value, ValueRange range) const {
    if (launch_.failure)
      *launch_.failure = {tensor, position, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
    return Status::ValueOutOfRange;
  }
  Status wrong(int64_t r) const {
    const int64_t n = logits_.length(), at = results_[r];
    if (at == kNothing) return failed(Args::logits, r * n, 0, ValueRange::PositiveSum);
    float buffer;
    return failed(Args::logits, r * n + at, *sampling_read(logits_, r, at, 1, &buffer), ValueRange::Finite);
  }

  const Launch& launch_;
  RowMap logits_, counts_, mask_, controls_, y_;
  Scratch scratch_;
  int64_t* results_;
};

Status draw_tokens(const Launch& launch) {
  Sampler sampler(launch);
  const RowMap& y = sampler.y();
  const int64_t samples = y.length();
  const uint64_t seed = launch.scalars[SampleArgs::seed].as_u64(), offset = launch.scalars[SampleArgs::offset].as_u64();
  return sampler.run(samples > 0, [&](RowSearch& row, int64_t r, uint64_t sum) {
    for (int64_t j = 0; j < samples; ++j) {
      const uint64_t drawn = random::below(seed, offset, static_cast<uint64_t>(r * samples + j), sum);
      const int64_t token = row.find(drawn + 1).at.position;
      store<int64_t>(y.element, y.row(r) + y.inner.offset(j) * size_of(y.element), 1, &token, 1);
    }
  });
}

Status filter_tokens(const Launch& launch) {
  Sampler sampler(launch);
  const RowMap& y = sampler.y();
  const bool probabilities = attributes<FilterAttrs>(launch).probabilities != 0;
  return sampler.run(sampler.tokens() > 0, [&](RowSearch& row, int64_t r, uint64_t sum) {
    constexpr int64_t kTile = 1024;
    float buffer[kTile];
    for (int64_t at = 0, n = sampler.tokens(); at < n; at += kTile) {
      const int64_t m = std::min(kTile, n - at);
      float* out = target(y, y.row(r), at, buffer);
      row.filter(at, m, probabilities, sum, out);
      write(y, y.row(r), at, m, out);
    }
  });
}

}  // namespace
}  // namespace baracuda::sampling

namespace baracuda {

template <>
struct CpuKernel<sampling::Sample> {
  static Status run(const Launch& launch) { return sampling::draw_tokens(launch); }
};
template <>
struct CpuKernel<sampling::Filter> {
  static Status run(const Launch& launch) { return sampling::filter_tokens(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(sampling)
