// A reduction's rows once more, where the squares of their values leave the range of the compute type.
#pragma once
#include "host/careful.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {

// A row's sums, of values times `scale`.
struct CarefulSums {
  double scale = 0;  // 0: the row is of zeros, or has an infinity or NaN
  double mean = 0, squares = 0;
};

// f(values, n) for the pieces of an output's row.
template <class C, class F>
void each_piece(const Walk& w, int64_t output, F&& f) {
  constexpr int64_t kPiece = 1024;
  const int64_t size = size_of(w.in_element);
  const char* base = w.from(output);
  C buffer[kPiece];
  w.folded.runs(0, w.length, [&](int64_t offset, int64_t stride, int64_t count) {
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t n = std::min(kPiece, count - at);
      load<C>(w.in_element, base + (offset + at * stride) * size, stride, buffer, n);
      f(buffer, n);
    }
  });
}

// The sum of the squares of an output's values, less their mean if `centred`.
template <class C>
CarefulSums careful_sums(const Walk& w, int64_t output, bool centred) {
  C most = 0, last = 0;
  each_piece<C>(w, output, [&](const C* v, int64_t n) { most = largest_size(most, v, n), last = v[n - 1]; });
  if (!(most > 0)) return {};
  CarefulSums sums;
  sums.scale = sizeof(C) == 4 ? 1.0 : scale_of(static_cast<double>(most));
  // Means are those of the distances from one of the values, so that equal values have no variance at all.
  const double origin = centred ? last * sums.scale : 0;
  const auto total = [&](auto term) {
    CompensatedSum<double> all;
    each_piece<C>(w, output, [&](const C* v, int64_t n) {
      double part = 0;
      for (int64_t i = 0; i < n; ++i) part += term(v[i] * sums.scale - origin);
      all.add(part);
    });
    return all.value();
  };
  const double mean = centred ? total([](double v) { return v; }) / static_cast<double>(w.length) : 0;
  sums.squares = total([mean](double v) { return (v - mean) * (v - mean); });
  sums.mean = origin + mean;
  return sums;
}

// (sum |x|^p)^(1/p) of an output's values, over that whose power is the largest.
template <class C>
C careful_norm(const Walk& w, int64_t output, double p) {
  C most = 0, least = std::numeric_limits<C>::infinity();
  each_piece<C>(w, output, [&](const C* v, int64_t n) {
    most = largest_size(most, v, n);
    for (int64_t i = 0; i < n; ++i) least = std::fabs(v[i]) < least ? std::fabs(v[i]) : least;
  });
  if (most == 0 && p > 0) return C(0);
  const double found = p > 0 ? most : least;
  // Zeros, infinities and NaN are as the formula has them.
  const double by = most > 0 && found > 0 ? found : 1;
  double all = 0;
  each_piece<C>(w, output, [&](const C* v, int64_t n) {
    double part = 0;
    for (int64_t i = 0; i < n; ++i) part += std::pow(std::fabs(static_cast<double>(v[i])) / by, p);
    all += part;
  });
  return static_cast<C>(by * std::pow(all, 1 / p));
}

}  // namespace baracuda::reduce
