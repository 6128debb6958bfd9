// Running maxima and minima with their positions, on the CPU.
#include <limits>

#include "ops/scan/cpu.h"
#include "ops/scan/kernels.h"
#include "ops/scan/math.h"

namespace baracuda::scan {
namespace {

using Maps = std::array<RowMap, 3>;  // x, values, indices

template <bool kMax, class C>
constexpr C least() {
  using Limits = std::numeric_limits<C>;
  if constexpr (Limits::has_infinity) return kMax ? -Limits::infinity() : Limits::infinity();
  return kMax ? Limits::lowest() : Limits::max();
}

// A running extreme. Most runs of a few values have none that takes its place, and are then filled.
template <bool kMax, class C>
struct Peak {
  C value = least<kMax, C>();
  int64_t place = 0;

  void scan(const C* x, int64_t at, int64_t n, C* values, int64_t* places) {
    constexpr int64_t kRun = 32;
    for (int64_t i = 0; i < n; i += kRun) {
      const int64_t end = std::min(n, i + kRun);
      if (end - i == kRun && !any(x + i, kRun)) {
        std::fill_n(values + i, kRun, value), std::fill_n(places + i, kRun, place);
        continue;
      }
      for (int64_t j = i; j < end; ++j) {
        const bool later = replaces<kMax>(x[j], value);
        value = later ? x[j] : value, place = later ? at + j : place;
        values[j] = value, places[j] = place;
      }
    }
  }

 private:
  bool any(const C* x, int64_t n) const {
    const C v = value;
    int found = 0;
    for (int64_t j = 0; j < n; ++j) found |= replaces<kMax>(x[j], v);
    return found != 0;
  }
};

template <bool kMax, class C>
void run_extreme_lines(const Maps& maps) {
  const auto& [x, values, indices] = maps;
  const int64_t length = x.length();
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    const RowReader<C> reader(x);
    C given[kTile], found[kTile];
    int64_t places[kTile];
    for (int64_t r = begin; r < end; ++r) {
      Peak<kMax, C> peak;
      for (int64_t at = 0; at < length; at += kTile) {
        const int64_t n = std::min(kTile, length - at);
        const C* v = reader.get(x.row(r), at, n, given);
        C* out = target(values, values.row(r), at, found);
        int64_t* index = target(indices, indices.row(r), at, places);
        peak.scan(v, at, n, out, index);
        write(values, values.row(r), at, n, out), write(indices, indices.row(r), at, n, index);
      }
    }
  });
}

template <bool kMax, class C>
void run_extreme_columns(const Maps& maps, int64_t first, int64_t n) {
  const auto& [x, values, indices] = maps;
  C given[kTile], value[kTile];
  int64_t place[kTile];
  std::fill_n(value, n, least<kMax, C>());
  std::fill_n(place, n, int64_t{0});
  const RowReader<C> reader(x);
  for (int64_t r = 0, rows = x.rows(); r < rows; ++r) {
    const C* v = reader.get(x.row(r), first, n, given);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const bool later = replaces<kMax>(v[j], value[j]);
      value[j] = later ? v[j] : value[j], place[j] = later ? r : place[j];
    }
    put_row(values, values.row(r), first, n, value), put_row(indices, indices.row(r), first, n, place);
  }
}

template <bool kMax, class C>
void run_extremes(const std::array<TensorView, 3>& tensors, int64_t axis) {
  walk<16>(tensors, axis, run_extreme_lines<kMax, C>, run_extreme_columns<kMax, C>);
}
template <bool kMax>
void extremes_of(const std::array<TensorView, 3>& tensors, int64_t axis) {
  const Element e = tensors[0].element;
  if (e == Element::F64) return run_extremes<kMax, double>(tensors, axis);
  if (is_float(e)) return run_extremes<kMax, float>(tensors, axis);
  if (kSigned.has(e)) return run_extremes<kMax, int64_t>(tensors, axis);
  run_extremes<kMax, uint64_t>(tensors, axis);
}

}  // namespace

void extremes(const Launch& launch, bool max) {
  using Args = ExtremeArgs;
  const std::array<TensorView, 3> tensors{launch[Args::x], launch[Args::values], launch[Args::indices]};
  const int64_t axis = attributes<ScanAttrs>(launch).axis;
  max ? extremes_of<true>(tensors, axis) : extremes_of<false>(tensors, axis);
}

}  // namespace baracuda::scan
