// Quantization that finds its scales: the values that share one are read for their extremes, and again, from the caches
// where they fit, for their codes.
#include <algorithm>

#include "core/parallel.h"
#include "ops/quant/coded_rows.h"
#include "ops/quant/cpu_scaled.h"
#include "ops/quant/scale_space.h"

namespace baracuda::quant {
namespace {

inline constexpr int64_t kTile = 4096, kLong = 1 << 16, kMostParts = 256;

struct Dynamic {
  RowMap x, y, scale, zero;
  Limits by;
  Element code;

  explicit Dynamic(const Launch& launch) {
    using A = DynamicArgs;
    const auto attrs = attributes<DynamicAttrs>(launch);
    const ScaleSpace cut(launch[A::x], launch[A::scale]);
    const uint32_t shared = cut.shared();
    x = row_map(cut.values(launch[A::x]), shared), y = row_map(cut.values(launch[A::y]), shared);
    scale = row_map(cut.scales(launch[A::scale]), shared);
    if (launch[A::zero_point].present()) zero = row_map(cut.scales(launch[A::zero_point]), shared);
    by = {static_cast<float>(attrs.least), static_cast<float>(attrs.most), attrs.symmetric != 0};
    code = launch[A::y].element;
  }
  void put_scaling(int64_t row, const Scaling& s) const {
    put(scale, row, s.scale);
    if (zero.present()) put(zero, row, s.zero);
  }
};

template <class F>
void each_tile(int64_t begin, int64_t end, F&& f) {
  for (int64_t at = begin; at < end; at += kTile) f(at, std::min(kTile, end - at));
}

Extremes extremes_of(const Dynamic& d, int64_t row, int64_t begin, int64_t end) {
  alignas(64) float buffer[kTile];
  Extremes found;
  each_tile(begin, end, [&](int64_t at, int64_t n) { found.add(read(d.x, d.x.row(row), at, n, buffer), n); });
  return found;
}

template <class Code>
class Writer {
 public:
  explicit Writer(const Dynamic& d) : d_(d), coder_(d.y, d.by) {}

  // Rows before `last` are read next.
  void put(int64_t row, int64_t last, int64_t begin, int64_t end, const Scaling& s) const {
    alignas(64) float buffer[kTile];
    char* to = d_.y.row(row);
    each_tile(begin, end, [&](int64_t at, int64_t n) {
      coder_.put(to, at, read(d_.x, d_.x.row(row), at, n, buffer), n, s, Ahead(d_.x, row + 1, last, at));
    });
  }

 private:
  const Dynamic& d_;
  const Coder<Code> coder_;
};

// Long rows are shared by threads, in parts that follow from their length.
template <class Code>
void long_rows(const Dynamic& d) {
  const int64_t length = d.x.length(), part = std::max(kTile, (length / kMostParts + kTile) / kTile * kTile);
  const int64_t parts = (length + part - 1) / part;
  for (int64_t row = 0; row < d.x.rows(); ++row) {
    Extremes found[kMostParts], all;
    const auto each = [&](auto&& f) {
      parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) f(k, k * part, std::min(length, (k + 1) * part));
      });
    };
    each([&](int64_t k, int64_t begin, int64_t end) { found[k] = extremes_of(d, row, begin, end); });
    for (int64_t k = 0; k < parts; ++k) all.add(found[k]);
    const Scaling s = all.scaling(d.by);
    d.put_scaling(row, s);
    each([&](int64_t, int64_t begin, int64_t end) { Writer<Code>(d).put(row, 0, begin, end, s); });
  }
}

template <class Code>
void run(const Dynamic& d) {
  if (d.x.length() > kLong) return long_rows<Code>(d);
  parallel_for(d.scale.rows(), row_grain(d.x.length()), [&](int64_t begin, int64_t end) {
    const Writer<Code> writer(d);
    for (int64_t row = begin; row < end; ++row) {
      const Scaling s = extremes_of(d, row, 0, d.x.length()).scaling(d.by);
      d.put_scaling(row, s);
      writer.put(row, end, 0, d.x.length(), s);
    }
  });
}

}  // namespace

void run_dynamic_quantize(const Launch& launch) {
  const Dynamic d(launch);
  with_code(d.code, [&]<class Code>() { run<Code>(d); });
}

}  // namespace baracuda::quant
