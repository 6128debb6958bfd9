// Copies blocks of A and B into panels: [panel][step][width] units, so that the inner kernel reads memory in order.
// Any strides; half elements are converted on the way.
#pragma once
#include <algorithm>
#include <type_traits>

#include "core/convert.h"
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
  const int64_t blocked = x.ks == kSize ? rows / 4 * 4 : 0;
  for (int64_t s0 = 0; s0 < steps; s0 += kChunk) {
    const int64_t count = std::min(kChunk, steps - s0), whole = s0 + count / 4 * 4;
    for (int64_t i = 0; i < blocked; i += 4) {
      const char* from = x.data + i * x.rs;
      for (int64_t s = s0; s < whole; s += 4) transpose_4x4(from + s * kSize, x.rs, to + s * width + i, width);
      for (int64_t s = whole; s < s0 + count; ++s) {
        for (int64_t r = 0; r < 4; ++r) to[s * width + i + r] = read<T>(from + s * kSize + r * x.rs);
      }
    }
    for (int64_t i = blocked; i < rows; ++i) {
      for (int64_t s = s0; s < s0 + count; ++s) to[s * width + i] = read<T>(x.data + i * x.rs + s * x.ks);
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
    for (int64_t s = 0; s < steps; ++s) load<T>(x.element, x.data + s * x.ks, 1, to + s * width, rows);
    return;
  }
  T chunk[kMaxWidth * kChunk];
  for (int64_t s0 = 0; s0 < steps; s0 += kChunk) {
    const int64_t count = std::min(kChunk, steps - s0);
    for (int64_t i = 0; i < rows; ++i) {
      load<T>(x.element, x.data + i * x.rs + s0 * x.ks, x.ks / bytes, chunk + i * kChunk, count);
    }
    Strip same{reinterpret_cast<const char*>(chunk), Element::F32, kChunk * int64_t{sizeof(T)}, sizeof(T)};
    pack_same<T>(same, rows, count, to + s0 * width, width);
  }
}

// Panel `k` long (not steps): what the inner kernel of policy P wants.
template <class T>
void pack(Plain<T>, const Strip& x, int64_t rows, int64_t k, T* to, int64_t width) {
  constexpr Element kSame = sizeof(T) == 8 ? Element::F64 : Element::F32;
  x.element == kSame ? pack_same<T>(x, rows, k, to, width) : pack_converted<T>(x, rows, k, to, width);
}

#if defined(__AVX512BF16__)
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
        for (int64_t i = 0; i < rows; ++i)
          out[i] = read<uint16_t>(low + 2 * i) | uint32_t{read<uint16_t>(high + 2 * i)} << 16;
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
