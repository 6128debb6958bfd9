// Casts from integers and bool, and from floats to integers, in one loop over memory. The tile driver converts to 64
// bits in one and from them in another, which for 8-bit elements is eight times the work (i8 to i16, 1M in cache: 109
// us by tiles).
#include "ops/cast/cpu_direct.h"

#include <algorithm>

#include "core/collapse.h"
#include "core/half.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "host/stream.h"

namespace baracuda::cast {
namespace {

using Loop = void (*)(const char* from, char* to, int64_t n);

struct BoolByte {
  uint8_t byte;
};

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<From, BoolByte>)
    return static_cast<To>(x.byte != 0);
  else if constexpr (std::is_same_v<To, BoolByte>)
    return BoolByte{static_cast<uint8_t>(x != 0)};
  else
    return static_cast<To>(x);
}

template <class From, class To>
void plain_loop(const char* from, char* to, int64_t n) {
  const From* x = reinterpret_cast<const From*>(from);
  To* y = reinterpret_cast<To*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = converted<To>(x[i]);
}

// A float from which rounding to a half gives what rounding the integer once gives. Of 32 bits the last eight become a
// sticky one where they would not fit.
template <class From>
float before_half(From x) {
  if constexpr (std::is_same_v<From, BoolByte> || sizeof(From) < 4) {
    return converted<float>(x);
  } else {
    constexpr From kExact = 1 << 24;
    bool big = x > kExact;
    if constexpr (std::is_signed_v<From>) big |= x < -kExact;
    const From kept = big ? static_cast<From>((x >> 8) | ((x & 255) != 0)) : x;
    return static_cast<float>(static_cast<int32_t>(kept)) * (big ? 256.0f : 1.0f);
  }
}

struct F16 {
  static void narrow(const float* x, uint16_t* h, int64_t n) { float_to_f16(x, h, n); }
};
struct BF16 {
  static void narrow(const float* x, uint16_t* h, int64_t n) { float_to_bf16(x, h, n); }
};

template <class From, class Half>
void half_loop(const char* from, char* to, int64_t n) {
  constexpr int64_t kBlock = 256;
  const From* x = reinterpret_cast<const From*>(from);
  uint16_t* y = reinterpret_cast<uint16_t*>(to);
  alignas(64) float wide[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    for (int64_t i = 0; i < count; ++i) wide[i] = before_half(x[at + i]);
    Half::narrow(wide, y + at, count);
  }
}

// Floats are truncated by way of i32, as conversions of tiles do.
template <class From, class To>
void truncate_loop(const char* from, char* to, int64_t n) {
  const From* x = reinterpret_cast<const From*>(from);
  To* y = reinterpret_cast<To*>(to);
  if constexpr (std::is_same_v<From, float>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
  } else {  // bf16
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<int32_t>(bf16_to_float(x[i])));
  }
}
template <class To>
void truncate_f16_loop(const char* from, char* to, int64_t n) {
  constexpr int64_t kBlock = 256;
  alignas(64) float wide[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    f16_to_float(reinterpret_cast<const uint16_t*>(from) + at, wide, count);
    truncate_loop<float, To>(reinterpret_cast<const char*>(wide), to + at * static_cast<int64_t>(sizeof(To)), count);
  }
}

// The loop from an element; kBits: only its lowest bits matter, so that its sign does not.
template <class To, bool kHalf = std::is_same_v<To, F16> || std::is_same_v<To, BF16>>
struct From {
  static constexpr bool kInteger = std::is_integral_v<To>, kTruth = std::is_same_v<To, BoolByte>;
  static constexpr bool kTruncated = std::is_same_v<To, int32_t> || (kInteger && sizeof(To) < 4);
  template <class T>
  static constexpr Loop of() {
    if constexpr (kHalf)
      return &half_loop<T, To>;
    else
      return &plain_loop<T, To>;
  }
  template <class Signed>
  static constexpr Loop of_signed() {
    if constexpr (kTruth || (kInteger && sizeof(Signed) >= sizeof(To)))
      return of<std::make_unsigned_t<Signed>>();
    else
      return of<Signed>();
  }
  static Loop loop(Element from) {
    switch (from) {
      case Element::Bool:
        if constexpr (kTruth) return nullptr;
        return of<BoolByte>();
      case Element::U8:
        return of<uint8_t>();
      case Element::I8:
        return of_signed<int8_t>();
      case Element::U16:
        return of<uint16_t>();
      case Element::I16:
        return of_signed<int16_t>();
      case Element::U32:
        return of<uint32_t>();
      case Element::I32:
        return of_signed<int32_t>();
      case Element::U64:
      case Element::I64:
        if constexpr (kInteger || kTruth) return of<uint64_t>();
        return nullptr;
      case Element::F32:
        if constexpr (kTruncated) return &truncate_loop<float, To>;
        return nullptr;
      case Element::F16:
        if constexpr (kTruncated) return &truncate_f16_loop<To>;
        return nullptr;
      case Element::BF16:
        if constexpr (kTruncated) return &truncate_loop<uint16_t, To>;
        return nullptr;
      default:
        return nullptr;
    }
  }
};

Loop loop_of(Element from, Element to) {
  switch (to) {
    case Element::Bool:
      return From<BoolByte>::loop(from);
    case Element::U8:
    case Element::I8:
      return From<uint8_t>::loop(from);
    case Element::U16:
    case Element::I16:
      return From<uint16_t>::loop(from);
    case Element::U32:
      return From<uint32_t>::loop(from);
    case Element::I32:
      return From<int32_t>::loop(from);
    case Element::U64:
    case Element::I64:
      return From<uint64_t>::loop(from);
    case Element::F32:
      return From<float>::loop(from);
    case Element::F64:
      return From<double>::loop(from);
    case Element::F16:
      return From<F16>::loop(from);
    case Element::BF16:
      return From<BF16>::loop(from);
    default:
      return nullptr;
  }
}

// Both tensors as runs of `inner` elements one behind the other.
struct Lines {
  int32_t rank = 0;
  int64_t shape[kMaxRank], strides[2][kMaxRank], inner = 1, count = 1;

  // False where there are no such runs.
  bool read(const TensorView& x, const TensorView& y) {
    const TensorView* tensors[] = {&x, &y};
    for (int d = 0; d < y.rank; ++d)
      collapse(
          rank, shape, 2, y.shape[d], [this](int k, int at) -> int64_t& { return strides[k][at]; },
          [&](int k) { return tensors[k]->strides[d]; });
    if (rank == 0 || strides[0][rank - 1] != 1 || strides[1][rank - 1] != 1) return false;
    inner = shape[--rank];
    for (int d = 0; d < rank; ++d) count *= shape[d];
    return true;
  }
  int64_t offset(int k, int64_t line) const {
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; line /= shape[d--]) at += line % shape[d] * strides[k][d];
    return at;
  }
};

// Past the caches, through a few lines of memory; what is read behind them is fetched beside the writing.
void stream(Loop loop, const char* from, int64_t from_size, char* to, int64_t to_size, int64_t n) {
  alignas(kStreamLine) char piece[kStreamPiece];
  const int64_t head = (-reinterpret_cast<intptr_t>(to) & (kStreamLine - 1)) / to_size;
  const int64_t ahead = 2 * kStreamPiece / to_size;
  for (int64_t at = 0, count; at < n; at += count) {
    count = std::min(at == 0 && head > 0 ? head : kStreamPiece / to_size, n - at);
    loop(from + at * from_size, piece, count);
    for (int64_t b = 0; b < count * from_size; b += kStreamLine)
      __builtin_prefetch(from + (at + ahead) * from_size + b);
    stream_bytes(to + at * to_size, piece, count * to_size);
  }
}

}  // namespace

bool convert_direct(const TensorView& x, const TensorView& y) {
  constexpr int64_t kLeastRun = 64;
  const Loop loop = loop_of(x.element, y.element);
  Lines lines;
  if (!loop || !lines.read(x, y) || lines.inner < kLeastRun || lines.count == 0) return false;
  const int64_t from_size = size_of(x.element), to_size = size_of(y.element), all = lines.count * lines.inner;
  const bool streams = all * to_size >= kStreamBytes && x.data != y.data;
  parallel_for(all, kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t n; begin < end; begin += n) {
      const int64_t line = begin / lines.inner, at = begin % lines.inner;
      n = std::min(lines.inner - at, end - begin);
      const char* from = x.as<char>() + (lines.offset(0, line) + at) * from_size;
      char* to = y.as<char>() + (lines.offset(1, line) + at) * to_size;
      streams ? stream(loop, from, from_size, to, to_size, n) : loop(from, to, n);
    }
    if (streams) stream_fence();
  });
  return true;
}

}  // namespace baracuda::cast
