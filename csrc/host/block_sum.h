// Sums of many rows, a block of columns at a time. Rows of floats (and halves) are added in double, which is exact but
// for the last bits of it; rows of doubles with Kahan's correction.
#pragma once
#include <cstdint>

namespace baracuda {

template <class T>
class BlockSum;

template <>
class BlockSum<float> {
 public:
  static constexpr int64_t kBlock = 1024;
  void start(int64_t n) {
    for (int64_t j = 0; j < n; ++j) sum_[j] = 0;
  }
  // Adds x to the columns from `at` on.
  void add(const float* x, int64_t n, int64_t at = 0) {
    double* sum = sum_ + at;
    for (int64_t j = 0; j < n; ++j) sum[j] += static_cast<double>(x[j]);
  }
  const double* result() const { return sum_; }

 private:
  alignas(64) double sum_[kBlock];
};

template <>
class BlockSum<double> {
 public:
  static constexpr int64_t kBlock = 1024;
  void start(int64_t n) {
    for (int64_t j = 0; j < n; ++j) sum_[j] = lost_[j] = 0;
  }
  void add(const double* x, int64_t n, int64_t at = 0) {
    double *sum = sum_ + at, *lost = lost_ + at;
    for (int64_t j = 0; j < n; ++j) {
      const double y = x[j] - lost[j], t = sum[j] + y, c = (t - sum[j]) - y;
      lost[j] = c - c == 0 ? c : 0;  // an infinite sum has lost nothing
      sum[j] = t;
    }
  }
  const double* result() const { return sum_; }

 private:
  alignas(64) double sum_[kBlock];
  alignas(64) double lost_[kBlock];
};

}  // namespace baracuda
