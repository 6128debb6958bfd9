// Copies blocks of A and B into panels: [panel][step][width] units, so that the inner kernel reads memory in order.
// Any strides; half elements are converted on the way.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/f8.h"
#include "host/convert.h"
#include "ops/matmul/micro.h"

namespace baracuda::matmul {
namespace {

// What to pack: unit (i, s) lies at data + i * rs + s * ks, strides in bytes.
struct Strip {
  const char* data;
  Element element;
  int64_t rs, ks;
};

template <class T>
T read(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// to[s * width + i] = from(i, s) for a 4x4 block whose rows are contiguous in s.
template <class T>
inline void transpose_4x4(const char* from, int64_t rs, T* to, int64_t width) {
  typedef T V __attribute__((vector_size(4 * sizeof(T)), aligned(1), may_alias));
  auto row = [&](int i) { return reinterpret_cast<const V*>(from + i * rs); };
  const V a = *row(0), b = *row(1), c = *row(2), d = *row(3);
  const V ab_lo = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const V cd_lo = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const V out[4] = {
      __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 4, 5), __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 6, 7),
      __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 4, 5), __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 6, 7)};
  for (int s = 0; s < 4; ++s) std::memcpy(to + s * width, &out[s], sizeof(V));
}

// Lanes of `a` and `b` by turns, runs of `h` of them: those of even runs, or of `kSecond` those of odd ones.
template <int h, bool kSecond, class V, int... lane>
inline V weave(V a, V b, std::integer_sequence<int, lane...>) {
  constexpr int kAll = sizeof...(lane);
  return __builtin_shufflevector(a, b, ((lane & h) ? kAll + lane - (kSecond ? 0 : h) : lane + (kSecond ? h : 0))...);
}
// Swaps bit `h` of the numbers of vectors and lanes.
template <int h, class T, int kL>
inline void exchange(Vector<T> (&x)[kL]) {
#pragma GCC unroll 16
  for (int i = 0; i < kL; ++i) {
    if (i & h) continue;
    const Vector<T> a = x[i], b = x[i + h];
    x[i] = weave<h, false>(a, b, std::make_integer_sequence<int, kL>{});
    x[i + h] = weave<h, true>(a, b, std::make_integer_sequence<int, kL>{});
  }
}
// transpose_4x4 for as many rows and steps as a vector has lanes.
template <class T>
inline void transpose_square(const char* from, int64_t rs, T* to, int64_t width) {
  constexpr int kL = kVectorBytes / sizeof(T);
  Vector<T> x[kL];
#pragma GCC unroll 16
  for (int i = 0; i < kL; ++i) std::memcpy(&x[i], from + i * rs, kVectorBytes);
  static_assert(kL <= 16);
  if constexpr (kL > 8) exchange<8, T>(x);
  if constexpr (kL > 4) exchange<4, T>(x);
  if constexpr (kL > 2) exchange<2, T>(x);
  exchange<1, T>(x);
#pragma GCC unroll 16
  for (int s = 0; s < kL; ++s) std::memcpy(to + s * width, &x[s], kVectorBytes);
}

// Units that are stored as they are, `count` of them next to each other at every step, dealt out to panels of kWidth:
// memory is read in order. The last panel is `last_width` wide.
template <class T, int kWidth>
void deal(Strip x, int64_t count, int64_t first, int64_t last, int64_t steps, T* to, int64_t last_width) {
  constexpr int kSteps = 4;  // enough to fill lines of memory of the narrowest panels
  const int64_t whole = count / kWidth * kWidth;
  auto copy = [&](int64_t s, auto n) {
    const char* from = x.data + s * x.ks;
    for (int64_t i = 0; i < whole; i += kWidth) {
      T* out = to + i * steps + s * kWidth;
      for (int t = 0; t < n; ++t) std::memcpy(out + t * kWidth, from + i * sizeof(T) + t * x.ks, kWidth * sizeof(T));
    }
  };
  int64_t s = first;
  for (; s + kSteps <= last; s += kSteps) copy(s, std::integral_constant<int, kSteps>{});
  for (; s < last; ++s) copy(s, std::integral_constant<int, 1>{});
  if (whole == count) return;
  for (s = first; s < last; ++s) {
    T* out = to + whole * steps + s * last_width;
    std::fill(out, out + last_width, T(0));
    std::memcpy(out, x.data + s * x.ks + whole * sizeof(T), static_cast<size_t>(count - whole) * sizeof(T));
  }
}

// One panel of units that are stored as they are. Rows from `rows` up to `width` become zero.
template <class T>
void pack_same(Strip x, int64_t rows, int64_t steps, T* to, int64_t width) {
  constexpr int64_t kSize = sizeof(T), kChunk = 64;
  if (rows < width) std::fill(to, to + steps * width, T(0));
  if (x.rs == kSize) {
    for (int64_t s = 0; s < steps; ++s) {
      std::memcpy(to + s * width, x.data + s * x.ks, static_cast<size_t>(rows * kSize));
    }
    return;
  }
  constexpr int64_t kSquare = kVectorBytes / kSize;
  const int64_t blocked = x.ks == kSize ? rows / 4 * 4 : 0, squares = x.ks == kSize ? rows / kSquare * kSquare : 0;
  for (int64_t s0 = 0; s0 < steps; s0 += kChunk) {
    const int64_t count = std::min(kChunk, steps - s0), whole = s0 + count / 4 * 4;
    const int64_t square = s0 + count / kSquare * kSquare;
    for (int64_t i = 0; i < squares; i += kSquare) {
      for (int64_t s = s0; s < square; s += kSquare)
        transpose_square(x.data + i * x.rs + s * kSize, x.rs, to + s * width + i, width);
    }
    for (int64_t i = 0; i < blocked; i += 4) {
      const char* from = x.data + i * x.rs;
      for (int64_t s = i < squares ? square : s0; s < whole; s += 4)
        transpose_4x4(from + s * kSize, x.rs, to + s * width + i, width);
      for (int64_t s = whole; s < s0 + count; ++s) {
        for (int64_t r = 0; r < 4; ++r) to[s * width + i + r] = read<T>(from + s * kSize + r * x.rs);
      }
    }
    for (int64_t i = blocked; i < rows; ++i) {
      for (int64_t s = s0; s < s0 + count; ++s) to[s * width + i] = read<T>(x.data + i * x.rs + s * x.ks);
    }
  }
}

template <class S, class T>
void widen(const char* from, int64_t stride, T* to, int64_t n) {
  const S* s = reinterpret_cast<const S*>(from);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(s[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(s[i * stride]);
  }
}

// `n` elements, `stride` of them apart, as what is summed. Integers become those of two's complement.
template <class T>
void load_units(Element from, const char* src, int64_t stride, T* to, int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    if (from != Element::F8E4M3) return load<T>(from, src, stride, to, n);
    auto decode = [&](auto step) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(F8<3>::decode(static_cast<uint8_t>(src[i * step])));
    };
    stride == 1 ? decode(std::integral_constant<int64_t, 1>{}) : decode(stride);
  } else {
    switch (from) {
      case Element::I8:
        return widen<int8_t>(src, stride, to, n);
      case Element::U8:
        return widen<uint8_t>(src, stride, to, n);
      case Element::I16:
        return widen<int16_t>(src, stride, to, n);
      default:
        return widen<uint16_t>(src, stride, to, n);
    }
  }
}

// One panel of converted units: rows are converted in chunks and then packed as they are.
template <class T>
void pack_converted(Strip x, int64_t rows, int64_t steps, T* to, int64_t width) {
  constexpr int64_t kChunk = 64, kMaxWidth = kTileVectors * kVectorBytes / sizeof(T);
  const int64_t bytes = size_of(x.element);
  if (x.rs == bytes) {
    if (rows < width) std::fill(to, to + steps * width, T(0));
    for (int64_t s = 0; s < steps; ++s) load_units<T>(x.element, x.data + s * x.ks, 1, to + s * width, rows);
    return;
  }
  T chunk[kMaxWidth * kChunk];
  for (int64_t s0 = 0; s0 < steps; s0 += kChunk) {
    const int64_t count = std::min(kChunk, steps - s0);
    for (int64_t i = 0; i < rows; ++i) {
      load_units<T>(x.element, x.data + i * x.rs + s0 * x.ks, x.ks / bytes, chunk + i * kChunk, count);
    }
    Strip same{reinterpret_cast<const char*>(chunk), Element::F32, kChunk * int64_t{sizeof(T)}, sizeof(T)};
    pack_same<T>(same, rows, count, to + s0 * width, width);
  }
}

// Panel `k` long (not steps): what the inner kernel of policy P wants.
template <class T>
void pack(Plain<T>, const Strip& x, int64_t rows, int64_t k, T* to, int64_t width) {
  const bool same = size_of(x.element) == static_cast<int64_t>(sizeof(T));
  same ? pack_same<T>(x, rows, k, to, width) : pack_converted<T>(x, rows, k, to, width);
}

// Byte `at` of row i and product s of 8-bit elements.
inline uint32_t byte_at(const Strip& x, int64_t i, int64_t s) { return read<uint8_t>(x.data + i * x.rs + s * x.ks); }

#if BCU_LEVEL_PAIRS
inline void pack(S16Pairs, const Strip& x, int64_t rows, int64_t k, uint32_t* to, int64_t width) {
  constexpr int64_t kChunk = 128, kMaxWidth = kTileVectors * kVectorBytes / 4;
  if (x.rs == 1) {  // pairs of lines of memory
    if (rows < width || k % 2) std::fill(to, to + (k + 1) / 2 * width, 0u);
    for (int64_t s = 0; s < k; s += 2) {
      const auto *low = reinterpret_cast<const int8_t*>(x.data + s * x.ks), *high = low + x.ks;
      uint32_t* out = to + s / 2 * width;
      for (int64_t i = 0; i < rows; ++i) out[i] = static_cast<uint16_t>(low[i]);
      if (s + 1 == k) return;
      for (int64_t i = 0; i < rows; ++i) out[i] |= static_cast<uint32_t>(high[i]) << 16;
    }
    return;
  }
  int16_t chunk[kMaxWidth * kChunk];
  for (int64_t s0 = 0; s0 < k; s0 += kChunk) {
    const int64_t count = std::min(kChunk, k - s0);
    for (int64_t i = 0; i < rows; ++i) {
      widen<int8_t>(x.data + i * x.rs + s0 * x.ks, x.ks, chunk + i * kChunk, count);
      if (count % 2) chunk[i * kChunk + count] = 0;
    }
    Strip pairs{reinterpret_cast<const char*>(chunk), x.element, 2 * kChunk, 4};
    pack_same<uint32_t>(pairs, rows, (count + 1) / 2, to + s0 / 2 * width, width);
  }
}
#endif

#if BCU_LEVEL_QUADS
inline void pack(S8Quads, const Strip& x, int64_t rows, int64_t k, uint32_t* to, int64_t width) {
  const int64_t quads = k / 4;
  if (x.ks == 1) {
    pack_same<uint32_t>({x.data, x.element, x.rs, 4}, rows, quads, to, width);
  } else {
    if (rows < width) std::fill(to, to + quads * width, 0u);
    for (int64_t s = 0; s < quads; ++s) {
      const char* lines[4];
      for (int64_t q = 0; q < 4; ++q) lines[q] = x.data + (4 * s + q) * x.ks;
      auto quad = [&](int64_t at) {
        return uint32_t{read<uint8_t>(lines[0] + at)} | uint32_t{read<uint8_t>(lines[1] + at)} << 8 |
               uint32_t{read<uint8_t>(lines[2] + at)} << 16 | uint32_t{read<uint8_t>(lines[3] + at)} << 24;
      };
      uint32_t* out = to + s * width;
      if (x.rs == 1) {
        for (int64_t i = 0; i < rows; ++i) out[i] = quad(i);
      } else {
        for (int64_t i = 0; i < rows; ++i) out[i] = quad(i * x.rs);
      }
    }
  }
  if (k % 4 == 0) return;
  uint32_t* out = to + quads * width;
  std::fill(out, out + width, 0u);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t s = 4 * quads; s < k; ++s) out[i] |= byte_at(x, i, s) << 8 * (s % 4);
  }
}

// Stores units of A as unsigned ones.
inline void raise(S8Quads, uint32_t* units, int64_t n) {
  for (int64_t i = 0; i < n; ++i) units[i] ^= S8Quads::kOffset;
}
// What that adds to the sums of `width` columns, whose units are `b`.
inline void excess_of(S8Quads, const uint32_t* b, int64_t steps, int64_t width, uint32_t* out) {
  for (int64_t j = 0; j < width; j += kLanes<S8Quads>) {
    Vector<uint32_t> sum = {};
    for (int64_t s = 0; s < steps; ++s)
      sum = S8Quads::madd(sum, S8Quads::kOffset, *reinterpret_cast<const Vector<uint32_t>*>(b + s * width + j));
    *reinterpret_cast<Vector<uint32_t>*>(out + j) = sum;
  }
}
#endif

#if BCU_LEVEL_BF16
// A vector of units from as many elements of two rows.
inline void interleave(const char* low, const char* high, uint32_t* to) {
  typedef uint16_t Halves __attribute__((vector_size(kVectorBytes / 2), aligned(1), may_alias));
  auto wide = [](const char* p) {
    return __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Vector<uint32_t>);
  };
  *reinterpret_cast<Vector<uint32_t>*>(to) = wide(low) | wide(high) << 16;
}
inline void pack(Bf16Pairs, const Strip& x, int64_t rows, int64_t k, uint32_t* to, int64_t width) {
  const int64_t pairs = k / 2;
  if (x.ks == 2) {
    pack_same<uint32_t>({x.data, x.element, x.rs, 4}, rows, pairs, to, width);
  } else {
    if (rows < width) std::fill(to, to + pairs * width, 0u);
    for (int64_t s = 0; s < pairs; ++s) {
      const char *low = x.data + 2 * s * x.ks, *high = low + x.ks;
      uint32_t* out = to + s * width;
      if (x.rs == 2) {
        int64_t i = 0;
        for (; i + kLanes<Bf16Pairs> <= rows; i += kLanes<Bf16Pairs>) interleave(low + 2 * i, high + 2 * i, out + i);
        for (; i < rows; ++i) out[i] = read<uint16_t>(low + 2 * i) | uint32_t{read<uint16_t>(high + 2 * i)} << 16;
      } else {
        for (int64_t i = 0; i < rows; ++i)
          out[i] = read<uint16_t>(low + i * x.rs) | uint32_t{read<uint16_t>(high + i * x.rs)} << 16;
      }
    }
  }
  if (k % 2) {
    uint32_t* out = to + pairs * width;
    std::fill(out, out + width, 0u);
    for (int64_t i = 0; i < rows; ++i) out[i] = read<uint16_t>(x.data + i * x.rs + (k - 1) * x.ks);
  }
}
#endif

}  // namespace
}  // namespace baracuda::matmul
