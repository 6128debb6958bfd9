// GGUF's blocks on the CPU: bytes as the portable code reads them, and products with them.
#pragma once
#include <cstring>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/quant/formats.h"
#include "ops/quant/skus.h"

namespace baracuda::quant {

struct Bytes {
  const uint8_t* data;
  BCU_METHOD uint32_t operator()(int at) const { return data[at]; }
};

template <class Format>
void decode(const uint8_t* __restrict__ block, float* __restrict__ values) {
#pragma GCC unroll 16
  for (int g = 0; g < Format::kValues / 16; ++g) {
    for (int i = 0; i < 16; ++i) values[16 * g + i] = value_of<Format::kNumber>(Bytes{block}, g, i);
  }
}

// Bytes [first, first + count) of a row: where they lie, or in `buffer`.
inline const uint8_t* bytes_of(const RowMap& x, int64_t row, int64_t first, int64_t count, uint8_t* buffer) {
  const char* from = x.row(row);
  if (x.inner.dense()) return reinterpret_cast<const uint8_t*>(from) + first;
  x.inner.runs(first, count, [&, to = buffer](int64_t offset, int64_t stride, int64_t run) mutable {
    for (int64_t i = 0; i < run; ++i) *to++ = static_cast<uint8_t>(from[offset + i * stride]);
  });
  return buffer;
}

// y = x times the transpose of w, of rows of `depth`.
struct Product {
  RowMap x, w, y;
  int64_t rows, columns, depth;

  explicit Product(const Launch& launch);
  Product(const RowMap& left, const RowMap& weights, const RowMap& result)
      : x(left), w(weights), y(result), rows(y.rows()), columns(y.length()), depth(x.length()) {}
  int64_t chunks() const { return (depth + kChunk - 1) / kChunk; }
  void put(int64_t row, int64_t first, int64_t count, const float* sums) const {
    y.inner.runs(first, count, [&](int64_t offset, int64_t stride, int64_t run) {
      store<float>(y.element, y.row(row) + offset * size_of(y.element), stride, sums, run);
      sums += run;
    });
  }
};

template <class Format>
inline constexpr int64_t kChunkBytes = kChunk / Format::kValues * Format::kBytes;

// A chunk of a row of weights. Behind the last value, and the last row, are zeros.
template <class Format>
struct Chunk {
  uint8_t buffer[kChunkBytes<Format>];

  const uint8_t* read(const Product& p, int64_t row, int64_t chunk) {
    const int64_t first = chunk * kChunkBytes<Format>;
    const int64_t count = std::min(p.depth - chunk * kChunk, kChunk) / Format::kValues * Format::kBytes;
    if (count == kChunkBytes<Format> && row < p.columns) return bytes_of(p.w, row, first, count, buffer);
    std::memset(buffer, 0, sizeof buffer);
    if (row >= p.columns) return buffer;
    const uint8_t* from = bytes_of(p.w, row, first, count, buffer);
    if (from != buffer) std::memcpy(buffer, from, count);
    return buffer;
  }
};

// R rows of weights that are read side by side.
template <class Format, int R>
struct Streams {
  const uint8_t* rows[R];
  int64_t column, apart, whole;  // chunks that lie there whole

  Streams(const Product& p, int64_t c, int64_t far)
      : column(c), apart(far), whole(p.w.inner.dense() ? p.depth / kChunk : 0) {
    for (int r = 0; r < R; ++r) rows[r] = reinterpret_cast<const uint8_t*>(p.w.row(column + r * apart));
  }
  const uint8_t* read(const Product& p, int r, int64_t c, Chunk<Format>& chunk) const {
    if (c >= whole) return chunk.read(p, column + r * apart, c);
    const uint8_t* bytes = rows[r] + c * kChunkBytes<Format>;
#pragma GCC unroll 8
    for (int64_t b = 0; b < kChunkBytes<Format>; b += 64) __builtin_prefetch(bytes + 1024 + b);
    return bytes;
  }
};

inline constexpr int kWide = kVectorBytes / 4;
inline constexpr int kPanel = 2 * kWide;  // columns whose weights are unpacked together for many rows
using level::Floats;
using level::Words;

inline Floats load_floats(const float* from) {
  Floats v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void add_to(float* to, Floats v) {
  v += load_floats(to);
  std::memcpy(to, &v, sizeof v);
}

// f(first row, rows) for rows that fit the workspace.
template <class F>
void each_row_block(const Product& p, F&& f) {
  for (int64_t first = 0; first < p.rows; first += kRowBlock) f(first, std::min(kRowBlock, p.rows - first));
}

// f(begin, end) for columns, where few rows are multiplied and weights are read once.
template <class F>
void each_columns(const Product& p, F&& f) {
  const int64_t piece = std::clamp<int64_t>(p.columns / 8, 4, 64), pieces = (p.columns + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (piece * std::max<int64_t>(1, p.depth)));
  parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) f(c * piece, std::min(p.columns, (c + 1) * piece));
  });
}
// Rows of weights that are read side by side lie apart, so that each is one long stream, which the hardware foresees
// across the ends of rows: neighbours of 2304 bytes are read at half the speed. one(columns that are apart, how far,
// Count<how many>) takes them; one row of activations reads 8 streams faster than 4 (Q4_0 on pages of 4 KB: 335 and
// 530 us), for more rows there are not the registers.
template <int kRows>
struct Count {
  static constexpr int value = kRows;
};
template <int kStreams, class F>
void each_streams(int64_t begin, int64_t end, F&& one) {
  const int64_t group = (end - begin) / kStreams;
  for (int64_t c = 0; c < group; ++c) one(begin + c, group, Count<kStreams>());
  for (int64_t c = begin + kStreams * group; c < end; ++c) one(c, int64_t{0}, Count<1>());
}

// one(first row, Count<rows>) for tiles of rows: as many large ones as there are, and the rest by 4, 2 and 1.
template <int kTile, class F>
void each_tile(int64_t count, F&& one) {
  int64_t m = 0;
  for (; m + kTile <= count; m += kTile) one(m, Count<kTile>());
  if constexpr (kTile > 4)
    for (; m + 4 <= count; m += 4) one(m, Count<4>());
  if constexpr (kTile > 2)
    for (; m + 2 <= count; m += 2) one(m, Count<2>());
  for (; m < count; ++m) one(m, Count<1>());
}

void run_floats(const Product& p, int64_t format, void* workspace);
void run_integers(const Product& p, int64_t format, void* workspace);

// A weight of codes, and its scales: row n has those of row n / rows_each, value k those of k / group.
struct CodedWeight {
  Element code;  // of an 8-bit float whose bytes p.w has as U8
  int64_t packed, rows_each, group;
  TensorView scale, zero, bias;  // the last two may be absent
};
void run_codes(const Product& p, const CodedWeight& weight, void* workspace);

}  // namespace baracuda::quant
