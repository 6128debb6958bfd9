// Products of activations with quantized weights whose values are multiplied in f32. A few rows of weights are decoded
// at a time, blocks or codes with scales; sums are built in blocks of kChunk products.
#include "ops/quant/cpu_codes.h"
#include "ops/quant/cpu_registers.h"

namespace baracuda::quant {
namespace {

struct Rows {
  float* data;
  int64_t stride;
  const float* at(int64_t row, int64_t chunk) const { return data + row * stride + chunk * kChunk; }
};

void widen(const Product& p, const Rows& rows, int64_t first, int64_t count) {
  parallel_for(count, row_grain(p.depth), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* to = rows.data + r * rows.stride;
      const float* from = read(p.x, p.x.row(first + r), 0, p.depth, to);
      if (from != to) std::copy_n(from, p.depth, to);
      std::fill(to + p.depth, to + rows.stride, 0.0f);
    }
  });
}

template <class Format>
void decode_chunk(const uint8_t* bytes, float* values) {
  const FromBytes<Format> all{};
  all.each(bytes,
           [&](int, int at, Floats w) __attribute__((always_inline)) { std::memcpy(values + at, &w, sizeof w); });
}

Floats dot(const float* x, const float* w) {
  Floats part[4] = {};
#pragma GCC unroll 4
  for (int i = 0; i < kChunk; i += 4 * kWide) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) part[k] += load_floats(x + i + k * kWide) * load_floats(w + i + k * kWide);
  }
  return (part[0] + part[1]) + (part[2] + part[3]);
}

// Weights in blocks: rows that are read side by side, and any chunk of a row; zeros behind the last.
template <class Format>
struct FromBlocks {
  const Product& p;
  static constexpr bool kBias = false;
  float bias(int64_t) const { return 0.0f; }

  template <int R>
  struct Side {
    Streams<Format, R> streams;
    Chunk<Format> chunk;
    Side(const FromBlocks& from, int64_t column, int64_t apart) : streams(from.p, column, apart) {}
    void read(const FromBlocks& from, int r, int64_t c, float* values) {
      decode_chunk<Format>(bytes(from, r, c), values);
    }
    const uint8_t* bytes(const FromBlocks& from, int r, int64_t c) { return streams.read(from.p, r, c, chunk); }
  };
  using Registers = InRegisters<Format::kNumber>;
  void read(int64_t row, int64_t c, float* values) const {
    Chunk<Format> chunk;
    decode_chunk<Format>(chunk.read(p, row, c), values);
  }
};

// Chunk c of row r of weights times that of M rows.
template <int M, class From, class Side, class Registers>
[[gnu::always_inline]] inline void add_chunk(const From& from, Side& side, const Registers& registers, int r, int64_t c,
                                             const Rows& rows, Floats* sums, int apart) {
  if constexpr (Registers::kThere) {
    const float* x = rows.at(0, c);
    constexpr int kParts = M == 1 && kWide < 16 ? 4 : 2;  // sums side by side: an addition takes 3 or 4 cycles
    Floats part[M][kParts] = {};
    registers.each(side.bytes(from, r, c), [&](int k, int at, Floats w) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) part[m][k % kParts] += load_floats(x + m * rows.stride + at) * w;
    });
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      if constexpr (kParts == 4) part[m][0] += part[m][2], part[m][1] += part[m][3];
      sums[m * apart] += part[m][0] + part[m][1];
    }
  } else {
    alignas(64) float values[kChunk];
    side.read(from, r, c, values);
    for (int m = 0; m < M; ++m) sums[m * apart] += dot(rows.at(m, c), values);
  }
}

// M rows: each row of weights is decoded and multiplied at once.
template <int M, class From>
void thin(const Product& p, const From& from, const Rows& rows, int64_t first) {
  each_columns(p, [&](int64_t begin, int64_t end) {
    const typename From::Registers registers{};
    each_streams<4>(begin, end, [&]<int R>(int64_t column, int64_t apart, Count<R>) {
      Floats sums[M][R] = {};
      typename From::template Side<R> side(from, column, apart);
      for (int64_t c = 0; c < p.chunks(); ++c) {
        for (int r = 0; r < R; ++r) add_chunk<M>(from, side, registers, r, c, rows, &sums[0][r], R);
      }
      for (int64_t m = 0; m < M; ++m) {
        for (int r = 0; r < R; ++r) {
          float sum = fold_vector<float>(sums[m][r], Add());
          if (From::kBias) sum += from.bias(column + r * apart);
          p.put(first + m, column + r * apart, 1, &sum);
        }
      }
    });
  });
}
template <class From>
void thin_rows(const Product& p, const From& from, const Rows& rows, int64_t first, int64_t count) {
  static_assert(kThinRows == 4);
  if (count == 1) return thin<1>(p, from, rows, first);
  if (count == 2) return thin<2>(p, from, rows, first);
  if (count == 3) return thin<3>(p, from, rows, first);
  thin<4>(p, from, rows, first);
}

struct alignas(64) Panel {
  float values[kChunk][kPanel];
};

template <class From>
void unpack(const From& weight, int64_t column, int64_t c, Panel& panel) {
  alignas(64) float values[kPanel][kChunk];
  const uint32_t* from[kPanel];
  uint32_t* to[kChunk];
  for (int j = 0; j < kPanel; ++j) {
    weight.read(column + j, c, values[j]);
    from[j] = reinterpret_cast<const uint32_t*>(values[j]);
  }
  for (int k = 0; k < kChunk; ++k) to[k] = reinterpret_cast<uint32_t*>(panel.values[k]);
  tile::transpose_strip<uint32_t>(from, kPanel, kChunk, to, 0, false);
}

inline constexpr int kTile = level::kRegisters == 32 ? 12 : 4;

template <int M>
void multiply(const Rows& rows, int64_t row, int64_t c, const Panel& panel, float* sums) {
  const float* x = rows.at(row, c);
  Floats sum[M][2] = {};
  for (int k = 0; k < kChunk; ++k) {
    const Floats w[2] = {load_floats(panel.values[k]), load_floats(panel.values[k] + kWide)};
#pragma GCC unroll 12
    for (int m = 0; m < M; ++m) {
      const Floats v = x[m * rows.stride + k] + Floats{};
      sum[m][0] += v * w[0], sum[m][1] += v * w[1];
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < M; ++m) add_to(sums + m * kPanel, sum[m][0]), add_to(sums + m * kPanel + kWide, sum[m][1]);
}

template <class From>
void wide(const Product& p, const From& from, const Rows& rows, int64_t first, int64_t count) {
  parallel_for((p.columns + kPanel - 1) / kPanel, 1, [&](int64_t begin, int64_t end) {
    Panel panel;
    alignas(64) float sums[kRowBlock * kPanel];
    for (int64_t j = begin * kPanel; j < end * kPanel; j += kPanel) {
      std::fill(sums, sums + count * kPanel, 0.0f);
      for (int64_t c = 0; c < p.chunks(); ++c) {
        unpack(from, j, c, panel);
        each_tile<kTile>(count, [&]<int M>(int64_t m, Count<M>) { multiply<M>(rows, m, c, panel, sums + m * kPanel); });
      }
      const int64_t there = std::min<int64_t>(kPanel, p.columns - j);
      float bias[kPanel] = {};
      for (int64_t i = 0; From::kBias && i < there; ++i) bias[i] = from.bias(j + i);
      for (int64_t m = 0; m < count; ++m) {
        for (int64_t i = 0; From::kBias && i < kPanel; ++i) sums[m * kPanel + i] += bias[i];
        p.put(first + m, j, there, sums + m * kPanel);
      }
    }
  });
}

template <class From>
void run(const Product& p, const From& from, void* workspace) {
  const Rows rows{static_cast<float*>(workspace), p.chunks() * kChunk};
  each_row_block(p, [&](int64_t first, int64_t count) {
    widen(p, rows, first, count);
    count <= kThinRows ? thin_rows(p, from, rows, first, count) : wide(p, from, rows, first, count);
  });
}

}  // namespace

void run_floats(const Product& p, int64_t format, void* workspace) {
  with_format(format, [&](auto f) { run(p, FromBlocks<decltype(f)>{p}, workspace); });
}

void run_codes(const Product& p, const CodedWeight& weight, void* workspace) {
  if (weight.bias.present()) return run(p, FromCodes<true>{p, weight}, workspace);
  run(p, FromCodes<false>{p, weight}, workspace);
}

}  // namespace baracuda::quant
