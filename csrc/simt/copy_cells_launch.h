// Launches copies and fills on a GPU.
#pragma once
#include "core/half.h"
#include "simt/copy_cells.h"
#include "simt/map_launch.h"

namespace baracuda::simt {

// A copy whose dimensions are merged; operand 0 is `to`, operand 1 `from` or, without data, a pattern.
using Copied = Merged<2>;

template <class Run>
Status with_bytes(int64_t bytes, Run&& run) {
  switch (bytes) {
    case 1:
      return run(std::integral_constant<int, 1>());
    case 2:
      return run(std::integral_constant<int, 2>());
    case 4:
      return run(std::integral_constant<int, 4>());
    case 8:
      return run(std::integral_constant<int, 8>());
    default:
      return run(std::integral_constant<int, 16>());
  }
}

// A copy to where its operand says. layout has a Shift by a number that only the device knows:
//   bool fits(int64_t bytes)                                     whether it moves by whole cells of so many bytes
//   template <int kBytes> Status submit(launch, CopyParams)
struct NoShift {
  bool fits(int64_t) const { return true; }
  template <int kBytes>
  Status submit(const Launch& launch, const CopyParams& p) const {
    return simt::submit<CopyCells<kBytes>>(launch, {blocks_for(p.count, 256)}, 256, p);
  }
};

// Copies `from`, or the pattern where there is none.
template <class Shift = NoShift>
class CopyLaunch {
 public:
  CopyLaunch(const Launch& launch, const IterationSpace& space, const Operand& to, const Operand* from,
             const void* pattern = nullptr, const Shift& shift = {})
      : launch_(launch), shift_(shift) {
    const Operand none{nullptr, to.element, {}};
    const Operand* const operands[] = {&to, from ? from : &none};
    space_ = merged<2>(space, operands, 0, false);
    for (int64_t i = 0; pattern && i < kPackBytes; i += size_of(to.element))
      std::memcpy(reinterpret_cast<char*>(pattern_) + i, pattern, size_of(to.element));
  }

  Status run() const {
    return for_parts(space_, false, [&](const Copied& part) { return copy(part); });
  }

 private:
  static constexpr bool kShifts = !std::is_same_v<Shift, NoShift>;

  Status copy(Copied s) const {
    if (const int64_t rest = kShifts ? 0 : tail(s); rest > 0) {
      const int64_t whole = s.shape[0] - rest;
      const Status status = whole ? copy(s.part(0, 0, whole, 0)) : Status::Ok;
      return status == Status::Ok ? plain(s.part(0, whole, rest, 0)) : status;
    }
    while (s.bytes[0] < kPackBytes && doubles(s) && shift_.fits(2 * s.bytes[0])) {
      s.shape[0] /= 2;
      for (int k = 0; k < 2; ++k) {
        s.bytes[k] *= 2;
        for (int d = 1; d < s.rank; ++d) s.stride[k][d] /= 2;
      }
    }
    if constexpr (!kShifts) {
      if (const int a = source_dimension(s); a > 0) return transpose(s, a);
    }
    return plain(s);
  }

  // Contiguous memory whose end does not fill a pack: how many elements that end has.
  static int64_t tail(const Copied& s) {
    if (s.rank != 1 || s.stride[0][0] != 1 || (s.data[1] && s.stride[1][0] != 1)) return 0;
    return s.shape[0] % (kPackBytes / s.bytes[0]);
  }

  // Whether two neighbouring cells can be taken as one.
  static bool doubles(const Copied& s) {
    if (s.rank == 0 || s.shape[0] % 2 != 0) return false;
    for (int k = 0; k < 2; ++k) {
      if (!s.data[k]) continue;
      if (s.stride[k][0] != 1 || reinterpret_cast<uintptr_t>(s.data[k]) % (2 * s.bytes[k]) != 0) return false;
      for (int d = 1; d < s.rank; ++d) {
        if (s.stride[k][d] % 2 != 0) return false;
      }
    }
    return true;
  }

  // The dimension along which `from` is densest, where tiles pay; 0 where `from` is read well in the order of `to`.
  static int source_dimension(const Copied& s) {
    constexpr int64_t kWorth = 16;
    if (!s.data[1] || s.rank < 2 || s.stride[1][0] == 0 || s.shape[0] < kWorth) return 0;
    int best = 0;
    for (int d = 1; d < s.rank; ++d) {
      const int64_t step = std::abs(s.stride[1][d]);
      if (step != 0 && s.shape[d] >= kWorth && step < std::abs(s.stride[1][best])) best = d;
    }
    return best;
  }

  Status plain(const Copied& s) const {
    CopyParams p{};
    p.to = s.data[0], p.from = s.data[1];
    std::memcpy(p.pattern, pattern_, sizeof pattern_);
    p.rank = s.rank;
    p.count = static_cast<uint32_t>(s.count());
    for (int d = 0; d < s.rank; ++d) {
      p.shape[d] = divider(s.shape[d]);
      p.to_stride[d] = static_cast<int32_t>(s.stride[0][d]), p.from_stride[d] = static_cast<int32_t>(s.stride[1][d]);
    }
    return with_bytes(s.bytes[0], [&](auto bytes) { return shift_.template submit<bytes()>(launch_, p); });
  }

  static CopySide side(const Copied& s, int k, int a, int run) {
    CopySide side{};
    side.a = static_cast<int32_t>(s.stride[k][a]), side.b = static_cast<int32_t>(s.stride[k][0]);
    const int own = k == 0 ? 0 : a;
    bool wide = s.stride[k][own] == 1 && reinterpret_cast<uintptr_t>(s.data[k]) % (run * s.bytes[k]) == 0;
    for (int d = 0, n = 0; d < s.rank; ++d) {
      if (d != own) wide &= s.stride[k][d] % run == 0;
      if (d != 0 && d != a) side.others[n++] = static_cast<int32_t>(s.stride[k][d]);
    }
    side.wide = wide;
    return side;
  }

  Status transpose(const Copied& s, int a) const {
    return with_bytes(s.bytes[0], [&](auto bytes) {
      using Body = TransposeCells<bytes()>;
      TransposeParams p{};
      p.to = s.data[0], p.from = s.data[1];
      p.target = side(s, 0, a, Body::kRun), p.source = side(s, 1, a, Body::kRun);
      p.a_size = static_cast<uint32_t>(s.shape[a]), p.b_size = static_cast<uint32_t>(s.shape[0]);
      const int64_t a_tiles = (s.shape[a] + Body::kTile - 1) / Body::kTile,
                    b_tiles = (s.shape[0] + Body::kTile - 1) / Body::kTile;
      p.a_tiles = divider(a_tiles), p.b_tiles = divider(b_tiles);
      int64_t tiles = a_tiles * b_tiles;
      for (int d = 1; d < s.rank; ++d) {
        if (d == a) continue;
        p.shape[p.rank++] = divider(s.shape[d]);
        tiles *= s.shape[d];
      }
      p.tiles = static_cast<uint32_t>(tiles);
      return submit<Body>(launch_, {tiles}, 256, p);
    });
  }

  const Launch& launch_;
  const Shift shift_;
  Copied space_;
  uint32_t pattern_[4] = {};
};

// The bytes of a number as it is stored. Integers are taken as integers; bool takes any number but zero as true.
inline void stored_number(const Scalar& value, Element element, void* to) {
  const Number n = number_of(value);
  const double real = math::bit_cast<double>(n.real);
  uint64_t bits = static_cast<uint64_t>(n.whole);
  if (element == Element::Bool) bits = real != 0;
  if (element == Element::F64) bits = static_cast<uint64_t>(n.real);
  if (element == Element::F32) bits = bits_of(n.f);
  if (element == Element::F16) bits = float_to_f16(baracuda::round_to_odd(real));
  if (element == Element::BF16) bits = float_to_bf16(baracuda::round_to_odd(real));
  std::memcpy(to, &bits, size_of(element));
}

inline Status copy_tensor(const Launch& launch, const TensorView& to, const TensorView& from) {
  const IterationSpace space = space_of(to);
  const Operand source = operand(from, space), target = operand(to, space);
  return source.data == target.data ? Status::Ok : CopyLaunch<>(launch, space, target, &source).run();
}
// `pattern`: the bytes of one element.
inline Status fill_tensor(const Launch& launch, const TensorView& to, const void* pattern) {
  const IterationSpace space = space_of(to);
  return CopyLaunch<>(launch, space, operand(to, space), nullptr, pattern).run();
}
inline Status clear_tensor(const Launch& launch, const TensorView& to) {
  const char zero[kPackBytes] = {};
  return fill_tensor(launch, to, zero);
}

}  // namespace baracuda::simt
