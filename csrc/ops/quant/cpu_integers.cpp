// Products of activations quantized to 8 bits with quantized weights: integers are multiplied and summed exactly within
// a group of values that share a scale, groups in f32, in blocks of kChunk values.
#include "host/tile_transpose.h"
#include "ops/quant/cpu_direct.h"
#include "ops/quant/product.h"

namespace baracuda::quant {
namespace {

using level::dot_bytes;

Words load_words(const void* from) { return load_as<Words>(from); }

// Codes are stored so much higher, as unsigned bytes, where the level multiplies these.
template <class Format>
inline constexpr int kBias = kBytesBias<Format::kNumber>;

// Rows of activations: codes; scales of 32 values each; for every 4 values, and every group that shares a scale of the
// weights, minus the bias times the sum of codes; for the groups, scale times sum.
struct Rows {
  int64_t stride;  // values of a row, in whole chunks
  int8_t* codes;
  float *scales, *sums;
  int32_t *starts, *group_starts;

  Rows(void* workspace, int64_t values, int64_t rows) : stride(values) {
    codes = static_cast<int8_t*>(workspace);
    starts = reinterpret_cast<int32_t*>(codes + rows * stride);
    scales = reinterpret_cast<float*>(starts + rows * stride / 4);
    sums = scales + rows * stride / 32;
    group_starts = reinterpret_cast<int32_t*>(sums + rows * stride / 16);
  }
  uint32_t* packed() const { return reinterpret_cast<uint32_t*>(starts); }  // of many rows, which need no starts
  Activations chunk(int64_t at, int group) const {
    return {codes + at, starts + at / 4, scales + at / 32, sums + at / group};
  }
};

// One block of kValues values.
template <int kValues>
void quantize_block(const float* x, int8_t* codes, float* scales) {
  uint32_t most = 0;
  for (int i = 0; i < kValues; ++i) most = std::max(most, math::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  const Step step = step_of(most);
  for (int i = 0; i < kValues; ++i) codes[i] = static_cast<int8_t>(nearest(x[i] * step.by));
  for (int i = 0; i < kValues / 32; ++i) scales[i] = step.scale;
}

template <class Format, bool kThin>
void quantize(const Product& p, const Rows& rows, int64_t first, int64_t count) {
  using F = Blocks<Format::kNumber>;
  const int64_t n = rows.stride;
  parallel_for(count, row_grain(p.depth), [&](int64_t begin, int64_t end) {
    alignas(64) float buffer[kChunk];
    for (int64_t at = begin * n; at < end * n; at += kChunk) {
      const int64_t from = at % n, left = std::min(kChunk, p.depth - from);
      const float* x = read(p.x, p.x.row(first + at / n), from, left, buffer);
      if (left < kChunk) {
        if (x != buffer) std::copy_n(x, left, buffer);
        std::fill(buffer + left, buffer + kChunk, 0.0f), x = buffer;
      }
      int8_t* codes = rows.codes + at;
      for (int i = 0; i < kChunk; i += F::kValues)
        quantize_block<F::kValues>(x + i, codes + i, rows.scales + (at + i) / 32);
      for (int g = 0; g < kChunk / F::kGroup; ++g) {
        int sum = 0;
        for (int i = 0; i < F::kGroup; ++i) sum += codes[g * F::kGroup + i];
        rows.group_starts[at / F::kGroup + g] = -kBias<Format> * sum;
        rows.sums[at / F::kGroup + g] = rows.scales[(at + g * F::kGroup) / 32] * static_cast<float>(sum);
      }
      for (int i = 0; i < kChunk && kThin; i += kVectorBytes) {
        const Words starts = kBias<Format> == 0 ? Words{} : sums_of_4(Words{}, codes + i) * -uint32_t{kBias<Format>};
        std::memcpy(rows.starts + (at + i) / 4, &starts, sizeof starts);
      }
      if constexpr (kThin && Direct<Format::kNumber>::kThere)
        Direct<Format::kNumber>::arrange(codes, rows.starts + at / 4);
    }
  });
}

// A chunk of a row of weights: its codes, and of each group the scale and what is added, NaN where they are not finite.
template <class Format>
struct Weights : Codes<Format, kBias<Format>> {
  using Plain = Codes<Format, kBias<Format>>;
  void read(const uint8_t* bytes) {
    Plain::read(bytes);
    for (int g = 0; g < Plain::kGroups; ++g) this->scales[g] = finite(this->scales[g]);
    for (int g = 0; g < Plain::kGroups && Plain::F::kLow; ++g) this->lows[g] = finite(this->lows[g]);
  }
};

// Vector v of a chunk's sums: each lane its group's scale.
template <int kGroup>
Floats spread(const float* scales, int v) {
  typedef int32_t Index __attribute__((vector_size(kVectorBytes)));
  Index lanes;
  for (int i = 0; i < kWide; ++i) lanes[i] = (v * kVectorBytes % kGroup + 4 * i) / kGroup;
  const Floats all = load_floats(scales + v * kVectorBytes / kGroup);
#if defined(__clang__)  // whose shuffles take literal numbers only
  Floats each;
  for (int i = 0; i < kWide; ++i) each[i] = all[lanes[i]];
  return each;
#else
  return __builtin_shuffle(all, lanes);
#endif
}

template <int kGroups>
struct GroupVector {
  typedef float type __attribute__((vector_size(4 * kGroups)));
};

// The sum of a chunk, in lanes, and with minima in `lows`.
template <class Format>
Floats dot(const Weights<Format>& w, const Rows& rows, int64_t at,
           typename GroupVector<kChunk / Blocks<Format::kNumber>::kGroup>::type& lows) {
  using F = Blocks<Format::kNumber>;
  using Groups = typename GroupVector<kChunk / F::kGroup>::type;
  const float* scales = w.scales;
  alignas(64) float both[kChunk / F::kGroup + kWide];
  if constexpr (F::kValues == 32) {  // activations have a scale for each of them, too
    Groups own, other;
    std::memcpy(&own, w.scales, sizeof own), std::memcpy(&other, rows.scales + at / 32, sizeof other);
    own *= other;
    std::memcpy(both, &own, sizeof own), scales = both;
  }
  Floats sum = {};
#pragma GCC unroll 16
  for (int v = 0; v < kChunk / kVectorBytes; ++v) {
    const int64_t from = at + v * kVectorBytes;
    const Words whole = dot_bytes(load_words(rows.starts + from / 4), load_words(w.codes + v * kVectorBytes),
                                  load_words(rows.codes + from));
    sum += as_floats(whole) * spread<F::kGroup>(scales, v);
  }
  if constexpr (F::kLow) {
    Groups own, other;
    std::memcpy(&own, w.lows, sizeof own), std::memcpy(&other, rows.sums + at / F::kGroup, sizeof other);
    lows += own * other;
  }
  return F::kValues == 32 ? sum : sum * rows.scales[at / 32];
}

// A few rows, M at most: each row of weights is multiplied while it is read.
template <class Format, int M, int R>
void thin_columns(const Product& p, const Rows rows, int64_t first, int64_t count, int64_t column, int64_t apart) {
  using F = Blocks<Format::kNumber>;
  using Groups = typename GroupVector<kChunk / F::kGroup>::type;
  if (M == 1) count = 1;
  Floats sums[M][R] = {};
  Groups lows[M][R] = {};
  Chunk<Format> chunk;
  const Streams<Format, R> streams(p, column, apart);
  for (int64_t c = 0, chunks = p.chunks(); c < chunks; ++c) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const uint8_t* bytes = streams.read(p, r, c, chunk);
      if constexpr (Direct<Format::kNumber>::kThere) {
        using Fast = Direct<Format::kNumber>;
        const typename Fast::Weights w = Fast::read(bytes);
        for (int64_t m = 0; m < count; ++m)
          sums[m][r] = Fast::dot(w, rows.chunk(m * rows.stride + c * kChunk, F::kGroup), sums[m][r], lows[m][r]);
      } else {
        Weights<Format> codes;
        codes.read(bytes);
        for (int64_t m = 0; m < count; ++m)
          sums[m][r] += dot<Format>(codes, rows, m * rows.stride + c * kChunk, lows[m][r]);
      }
    }
  }
  for (int64_t m = 0; m < count; ++m) {
    for (int r = 0; r < R; ++r) {
      float sum = fold_vector<float>(sums[m][r], Add());
      for (size_t g = 0; F::kLow && g < sizeof(Groups) / 4; ++g) sum += lows[m][r][g];
      p.put(first + m, column + r * apart, 1, &sum);
    }
  }
}

template <class Format, int M>
void thin_rows(const Product& p, const Rows& rows, int64_t first, int64_t count) {
  each_columns(p, [&](int64_t begin, int64_t end) {
    each_streams<M == 1 ? 8 : 4>(begin, end, [&]<int R>(int64_t column, int64_t apart, Count<R>) {
      thin_columns<Format, M, R>(p, rows, first, count, column, apart);
    });
  });
}
template <class Format>
void thin(const Product& p, const Rows& rows, int64_t first, int64_t count) {
  if constexpr (Direct<Format::kNumber>::kThere)
    if (count == 1) return thin_rows<Format, 1>(p, rows, first, count);
  thin_rows<Format, kThinRows>(p, rows, first, count);
}

// A chunk of kPanel rows of weights, in steps of 4 codes.
struct alignas(64) Panel {
  uint32_t codes[kChunk / 4][kPanel];
  float scales[kChunk / 16][kPanel], lows[kChunk / 16][kPanel];
};

template <class Format>
void unpack(const Product& p, int64_t column, int64_t c, Panel& panel) {
  Weights<Format> codes[kPanel];
  const uint32_t* from[kPanel];
  uint32_t* to[kChunk / 4];
  Chunk<Format> chunk;
  for (int j = 0; j < kPanel; ++j) {
    codes[j].read(chunk.read(p, column + j, c));
    from[j] = reinterpret_cast<const uint32_t*>(codes[j].codes);
  }
  for (int k = 0; k < kChunk / 4; ++k) to[k] = panel.codes[k];
  tile::transpose_strip<uint32_t>(from, kPanel, kChunk / 4, to, 0, false);
  const auto turn = [&](auto&& row_of, float (*rows)[kPanel]) {
    for (int j = 0; j < kPanel; ++j) from[j] = reinterpret_cast<const uint32_t*>(row_of(codes[j]));
    for (int g = 0; g < Weights<Format>::kGroups; ++g) to[g] = reinterpret_cast<uint32_t*>(rows[g]);
    tile::transpose_strip<uint32_t>(from, kPanel, Weights<Format>::kGroups, to, 0, false);
  };
  turn([](const auto& c) { return c.scales; }, panel.scales);
  if (Blocks<Format::kNumber>::kLow) turn([](const auto& c) { return c.lows; }, panel.lows);
}

inline constexpr int kTile = level::kRegisters == 32 ? 6 : 2;

// Codes of activations as tiles read them: 4 of each row, then the next 4.
void pack(const Rows& rows, int64_t count) {
  parallel_for(rows.stride / kChunk, 1, [&](int64_t begin, int64_t end) {
    each_tile<kTile>(count, [&]<int M>(int64_t row, Count<M>) {
      uint32_t* to = rows.packed() + row * rows.stride / 4;
      for (int64_t k = begin * kChunk / 4; k < end * kChunk / 4; ++k) {
        for (int m = 0; m < M; ++m) to[k * M + m] = load_as<uint32_t>(rows.codes + (row + m) * rows.stride + 4 * k);
      }
    });
  });
}

template <int M, int kGroup, bool kShared, bool kLow>  // kShared: activations have one scale for a chunk
void multiply(const Rows& rows, int64_t row, int64_t c, const Panel& panel, float* sums) {
  const int64_t at = row * rows.stride + c * kChunk;
  Floats sum[M][2] = {};
  const uint32_t* x = rows.packed() + row * rows.stride / 4 + c * (kChunk / 4) * M;
  for (int g = 0; g < kChunk / kGroup; ++g) {
    Words whole[M][2];
#pragma GCC unroll 6
    for (int m = 0; m < M; ++m)
      whole[m][0] = whole[m][1] =
          static_cast<uint32_t>(rows.group_starts[(at + m * rows.stride) / kGroup + g]) + Words{};
#pragma GCC unroll 8
    for (int k = 0; k < kGroup / 4; ++k) {
      const uint32_t* codes = panel.codes[g * kGroup / 4 + k];
      const Words w[2] = {load_words(codes), load_words(codes + kWide)};
#pragma GCC unroll 6
      for (int m = 0; m < M; ++m) {
        const Words four = x[k * M + m] + Words{};
        whole[m][0] = dot_bytes(whole[m][0], w[0], four), whole[m][1] = dot_bytes(whole[m][1], w[1], four);
      }
    }
    x += kGroup / 4 * M;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Floats scale = load_floats(panel.scales[g] + v * kWide);
#pragma GCC unroll 6
      for (int m = 0; m < M; ++m) {
        const float own = kShared ? 1.0f : rows.scales[(at + m * rows.stride) / 32 + g];
        sum[m][v] += as_floats(whole[m][v]) * (kShared ? scale : scale * own);
      }
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < M; ++m) {
    const int64_t from = at + m * rows.stride;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      if (kShared) sum[m][v] *= rows.scales[from / 32];
      for (int g = 0; kLow && g < kChunk / kGroup; ++g)
        sum[m][v] += load_floats(panel.lows[g] + v * kWide) * rows.sums[from / kGroup + g];
      add_to(sums + m * kPanel + v * kWide, sum[m][v]);
    }
  }
}

template <class Format>
void wide(const Product& p, const Rows& rows, int64_t first, int64_t count) {
  using F = Blocks<Format::kNumber>;
  parallel_for((p.columns + kPanel - 1) / kPanel, 1, [&](int64_t begin, int64_t end) {
    Panel panel;
    alignas(64) float sums[kRowBlock * kPanel];
    for (int64_t j = begin * kPanel; j < end * kPanel; j += kPanel) {
      std::fill(sums, sums + count * kPanel, 0.0f);
      for (int64_t c = 0; c < p.chunks(); ++c) {
        unpack<Format>(p, j, c, panel);
        each_tile<kTile>(count, [&]<int M>(int64_t m, Count<M>) {
          multiply<M, F::kGroup, F::kValues == 256, F::kLow>(rows, m, c, panel, sums + m * kPanel);
        });
      }
      for (int64_t m = 0; m < count; ++m)
        p.put(first + m, j, std::min<int64_t>(kPanel, p.columns - j), sums + m * kPanel);
    }
  });
}

}  // namespace

void run_integers(const Product& p, int64_t format, void* workspace) {
  const Rows rows(workspace, p.chunks() * kChunk, std::min(p.rows, kRowBlock));
  with_format(format, [&](auto f) {
    each_row_block(p, [&](int64_t first, int64_t count) {
      using Format = decltype(f);
      if (count <= kThinRows) {
        quantize<Format, true>(p, rows, first, count);
        thin<Format>(p, rows, first, count);
      } else {
        quantize<Format, false>(p, rows, first, count);
        pack(rows, count);
        wide<Format>(p, rows, first, count);
      }
    });
  });
}

}  // namespace baracuda::quant
