// A weight of codes with scales, as products read it: 256 values of a row at a time, in f32.
#pragma once
#include "host/tile_transpose.h"
#include "ops/quant/affine.h"
#include "ops/quant/cpu_registers.h"

namespace baracuda::quant {

template <bool kHasBias>
struct FromCodes {
  const Product& p;
  const CodedWeight& w;
  using Registers = InRegisters<-1>;  // none
  static constexpr bool kBias = kHasBias;
  static constexpr int64_t kPart = 32;  // values that share a scale where groups allow it

  float bias(int64_t column) const {
    float v;
    load<float>(w.bias.element, w.bias.as<char>() + column * w.bias.strides[0] * size_of(w.bias.element), 1, &v, 1);
    return v;
  }
  template <int R>
  struct Side {
    const FromCodes& from;
    int64_t column, apart;
    Side(const FromCodes& f, int64_t c, int64_t far) : from(f), column(c), apart(far) {}
    void read(const FromCodes&, int r, int64_t c, float* values) { from.read(column + r * apart, c, values); }
  };

  void read(int64_t row, int64_t c, float* values) const {
    const int64_t first = c * kChunk, n = row < p.columns ? std::min(kChunk, p.depth - first) : 0;
    std::fill(values + n, values + kChunk, 0.0f);
    if (n == 0) return;
    codes(row, first, n, values);
    if (w.group % kPart == 0 && n == kChunk) {
      for (int64_t i = 0; i < kChunk; i += kPart) apply(row, first + i, kPart, values + i);
      return;
    }
    for (int64_t i = 0, run = 0; i < n; i += run) {
      run = std::min(n - i, w.group - (first + i) % w.group);
      apply(row, first + i, run, values + i);
    }
  }

 private:
  // Codes as numbers.
  void codes(int64_t row, int64_t first, int64_t n, float* values) const {
    if (w.packed != 0) {
      uint8_t buffer[kChunk / 2], split[kChunk];
      const uint8_t* bytes = bytes_of(p.w, row, first / 2, n / 2, buffer);
      for (int64_t i = 0; i < n / 2; ++i) split[2 * i] = bytes[i] & 15, split[2 * i + 1] = bytes[i] >> 4;
      const int sign = w.packed == 2 ? 8 : 0;
      for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>((split[i] ^ sign) - sign);
      return;
    }
    const float* from = baracuda::read(p.w, p.w.row(row), first, n, values);
    if (from != values) std::copy_n(from, n, values);
    if (w.code == Element::F8E4M3)
      for (int64_t i = 0; i < n; ++i) values[i] = F8<3>::decode(static_cast<uint32_t>(static_cast<int32_t>(values[i])));
    if (w.code == Element::F8E5M2)
      for (int64_t i = 0; i < n; ++i) values[i] = F8<2>::decode(static_cast<uint32_t>(static_cast<int32_t>(values[i])));
  }
  // One rounding after another, as dequantize_linear has it.
  void apply(int64_t row, int64_t at, int64_t n, float* values) const {
    const int64_t y = row / w.rows_each, x = at / w.group;
    const float scale = w.scale.template as<float>()[y * w.scale.strides[0] + x * w.scale.strides[1]];
    const float zero =
        w.zero.present()
            ? static_cast<float>(w.zero.template as<int32_t>()[y * w.zero.strides[0] + x * w.zero.strides[1]])
            : 0.0f;
    if (n == kPart) {
      for (int64_t i = 0; i < kPart; ++i) values[i] = Decoded::f(values[i], scale, zero);
      return;
    }
    for (int64_t i = 0; i < n; ++i) values[i] = Decoded::f(values[i], scale, zero);
  }
};

}  // namespace baracuda::quant
