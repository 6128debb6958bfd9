// Launches copies and fills on a GPU.
#pragma once
#include <utility>

#include "backends/simt/family.h"
#include "core/half.h"
#include "ops/layout/blocks.h"
#include "ops/layout/simt.h"
#include "ops/layout/skus.h"
#include "simt/map_launch.h"

namespace baracuda::layout {

// A copy whose dimensions are merged; operand 0 is `to`, operand 1 `from` or, without data, a pattern.
using Copied = simt::Merged<2>;

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

// What only the device knows of a copy: where its target starts.
struct Shift {
  const Scalar* start;
  int64_t step, limit;  // bytes by which one start moves; starts are below the limit
  int32_t tensor;       // which one a fault names
};

class CopyLaunch {
 public:
  CopyLaunch(const Launch& launch, const IterationSpace& space, const Operand& to, const Operand* from,
             const void* pattern = nullptr, const Shift* shift = nullptr)
      : launch_(launch), shift_(shift) {
    const Operand none{nullptr, to.element, {}};
    const Operand* const operands[] = {&to, from ? from : &none};
    space_ = simt::merged<2>(space, operands, 0, false);
    for (int64_t i = 0; pattern && i < 16; i += size_of(to.element))
      std::memcpy(reinterpret_cast<char*>(pattern_) + i, pattern, size_of(to.element));
  }

  Status run() const {
    return simt::for_parts(space_, false, [&](const Copied& part) { return copy(part); });
  }

 private:
  Status copy(Copied s) const {
    if (const int64_t rest = shift_ ? 0 : tail(s); rest > 0) {
      const int64_t whole = s.shape[0] - rest;
      const Status status = whole ? copy(s.part(0, 0, whole, 0)) : Status::Ok;
      return status == Status::Ok ? plain(s.part(0, whole, rest, 0)) : status;
    }
    while (s.bytes[0] < 16 && doubles(s) && (!shift_ || shift_->step % (2 * s.bytes[0]) == 0)) {
      s.shape[0] /= 2;
      for (int k = 0; k < 2; ++k) {
        s.bytes[k] *= 2;
        for (int d = 1; d < s.rank; ++d) s.stride[k][d] /= 2;
      }
    }
    const int a = shift_ ? 0 : source_dimension(s);
    return a > 0 ? transpose(s, a) : plain(s);
  }

  // Contiguous memory whose end does not fill 16 bytes: how many elements that end has.
  static int64_t tail(const Copied& s) {
    if (s.rank != 1 || s.stride[0][0] != 1 || (s.data[1] && s.stride[1][0] != 1)) return 0;
    return s.shape[0] % (16 / s.bytes[0]);
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
      p.shape[d] = simt::divider(s.shape[d]);
      p.to_stride[d] = static_cast<int32_t>(s.stride[0][d]), p.from_stride[d] = static_cast<int32_t>(s.stride[1][d]);
    }
    return with_bytes(s.bytes[0], [&](auto bytes) {
      if (shift_) return shifted<bytes()>(p);
      return simt::submit<CopyCells<bytes()>>(launch_, {simt::blocks_for(p.count, 256)}, 256, p);
    });
  }

  template <int kBytes>
  Status shifted(const CopyParams& copy) const {
    ShiftedParams p{};
    p.copy = copy;
    p.start = simt::number_of(*shift_->start), p.step = shift_->step, p.limit = shift_->limit;
    p.fault = simt::fault_of(launch_), p.row = launch_.row, p.tensor = shift_->tensor;
    return simt::submit<ShiftedCells<kBytes>>(launch_, {simt::blocks_for(copy.count, 256)}, 256, p);
  }

  static Side side(const Copied& s, int k, int a, int run) {
    Side side{};
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
      p.a_tiles = simt::divider(a_tiles), p.b_tiles = simt::divider(b_tiles);
      int64_t tiles = a_tiles * b_tiles;
      for (int d = 1; d < s.rank; ++d) {
        if (d == a) continue;
        p.shape[p.rank++] = simt::divider(s.shape[d]);
        tiles *= s.shape[d];
      }
      p.tiles = static_cast<uint32_t>(tiles);
      return simt::submit<Body>(launch_, {tiles}, 256, p);
    });
  }

  const Launch& launch_;
  const Shift* shift_;
  Copied space_;
  uint32_t pattern_[4] = {};
};

// The bytes of a number as it is stored. Integers are taken as integers; bool takes any number but zero as true.
inline void stored_number(const Scalar& value, Element element, void* to) {
  const simt::Number n = simt::number_of(value);
  const double real = math::bit_cast<double>(n.real);
  uint64_t bits = static_cast<uint64_t>(n.whole);
  if (element == Element::Bool) bits = real != 0;
  if (element == Element::F64) bits = static_cast<uint64_t>(n.real);
  if (element == Element::F32) bits = bits_of(n.f);
  if (element == Element::F16) bits = float_to_f16(round_to_odd(real));
  if (element == Element::BF16) bits = float_to_bf16(round_to_odd(real));
  std::memcpy(to, &bits, size_of(element));
}

// Carries out the copies and fills of blocks.h, each in a launch of its own.
class Mover {
 public:
  explicit Mover(const Launch& launch, const Scalar* value = nullptr) : launch_(launch), value_(value) {
    if (!value || value->data) return;
    const Element e = launch.element;
    stored_number(*value, e == Element::C64 ? Element::F32 : e == Element::C128 ? Element::F64 : e, pattern_);
  }

  Status copy(const TensorView& to, const TensorView& from) const {
    const IterationSpace space = space_of(to);
    const Operand source = operand(from, space), target = operand(to, space);
    return source.data == target.data ? Status::Ok : CopyLaunch(launch_, space, target, &source).run();
  }
  Status clear(const TensorView& to) const {
    const IterationSpace space = space_of(to);
    const Operand target = operand(to, space);
    if (!value_ || !value_->data) return CopyLaunch(launch_, space, target, nullptr, pattern_).run();
    if (!kReal.has(to.element)) return Status::Unsupported;
    const simt::Input in[] = {*value_};
    const Operand out[] = {target};
    return simt::map_real<Same>(launch_, space, in, out);
  }

 private:
  const Launch& launch_;
  const Scalar* value_;
  alignas(16) char pattern_[16] = {};
};

inline Status write_slice(const Launch& launch) {
  const TensorView &x = launch[0], &source = launch[1], &y = launch[2];
  const SliceAttrs attrs = attributes<SliceAttrs>(launch);
  const int axis = static_cast<int>(attrs.axis);
  const Scalar& start = launch.scalars[0];
  const int64_t limit = start_limit(x, source, attrs);
  if (!start.data && (start.as_i64() < 0 || start.as_i64() >= limit)) {
    if (launch.failure) *launch.failure = {1, -1, start.as_i64(), limit};
    return Status::IndexOutOfRange;
  }
  const Mover mover(launch);
  if (const Status s = mover.copy(y, x); s != Status::Ok || source.numel() == 0) return s;
  const TensorView target = slice(y, axis, start.data ? 0 : start.as_i64(), source.shape[axis], attrs.step);
  if (!start.data) return mover.copy(target, source);
  const IterationSpace space = space_of(source);
  const Operand from = operand(source, space), to = operand(target, space);
  const Shift shift{&start, y.strides[axis] * size_of(y.element), limit, 1};
  return CopyLaunch(launch, space, to, &from, nullptr, &shift).run();
}

inline Status triangle(const Launch& launch, bool upper) {
  const TensorView &x = launch[0], &y = launch[1];
  TriangleParams p{};
  p.to = y.data, p.from = x.data;
  p.rank = y.rank, p.count = y.numel();
  p.diagonal = attributes<DiagonalAttrs>(launch).diagonal, p.upper = upper;
  for (int d = 0; d < y.rank; ++d) {
    const int from = y.rank - 1 - d;
    p.shape[d] = y.shape[from], p.to_stride[d] = y.strides[from], p.from_stride[d] = x.strides[from];
  }
  return with_bytes(size_of(y.element), [&](auto bytes) {
    return simt::submit<TriangleCells<bytes()>>(launch, {simt::blocks_for(p.count, 256)}, 256, p);
  });
}

inline Status gradient(const Launch& launch, bool padded, int64_t mode) {
  GradientParams p{};
  p.rank = gradient_axes(launch, padded, p.axes), p.mode = static_cast<int32_t>(mode);
  const TensorView dy = widened(launch[0], p.rank), dx = widened(launch[1], p.rank);
  for (int d = 0; d < p.rank; ++d)
    p.shape[d] = dx.shape[d], p.dx_stride[d] = dx.strides[d], p.dy_stride[d] = dy.strides[d];
  p.dy = dy.data, p.dx = dx.data;
  p.count = dx.numel(), p.element = static_cast<int32_t>(dx.element);
  const simt::Grid grid{simt::blocks_for(p.count, 256)};
#if BCU_HAS_F64
  if (dx.element == Element::F64) return simt::submit<OccurrenceSums<double>>(launch, grid, 256, p);
#endif
  return simt::submit<OccurrenceSums<float>>(launch, grid, 256, p);
}

template <class F>
Status sequence(const Launch& launch) {
  const IterationSpace space = space_of(launch[0]);
  const simt::Input in[] = {launch.scalars[0], launch.scalars[1]};
  const Operand out[] = {operand(launch[0], space)};
  const Place place{space.numel()};
  if (is_float(launch.element)) return simt::map_floats<F, Place>(launch, space, in, out, place);
  if constexpr (std::is_same_v<F, Progression>) return simt::map_integers<F, Place>(launch, space, in, out, place);
  return Status::Unsupported;
}

inline Status eye(const Launch& launch) {
  const Status s = Mover(launch).clear(launch[0]);
  const TensorView ones = diagonal_of(launch[0], 0);
  if (s != Status::Ok || ones.numel() == 0) return s;
  Scalar one;
  one.f = 1;
  return Mover(launch, &one).clear(ones);
}

}  // namespace baracuda::layout

namespace baracuda {

template <>
struct SimtKernel<layout::Copy> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[1]);
    const Operand from = operand(launch[0], space), to = operand(launch[1], space);
    if (from.data == to.data) return Status::Ok;  // in place is the identical view
    return layout::CopyLaunch(launch, space, to, &from).run();
  }
};

// A number that only the device knows is converted there.
template <>
struct SimtKernel<layout::Fill> {
  static Status run(const Launch& launch) {
    const TensorView& y = launch[0];
    const IterationSpace space = space_of(y);
    const Scalar& value = launch.scalars[0];
    const Operand to = operand(y, space);
    if (value.data) {
      const simt::Input in[] = {value};
      const Operand out[] = {to};
      return simt::map_real<Same>(launch, space, in, out);
    }
    alignas(16) char pattern[16] = {};
    layout::stored_number(value, y.element, pattern);
    return layout::CopyLaunch(launch, space, to, nullptr, pattern).run();
  }
};

#define BCU_MOVED(Tag, function)                                                                        \
  template <>                                                                                           \
  struct SimtKernel<layout::Tag> {                                                                      \
    static Status run(const Launch& launch) { return layout::function(launch, layout::Mover(launch)); } \
  };
BCU_MOVED(Cat, cat)
BCU_MOVED(Stack, stack)
BCU_MOVED(Flip, flip)
BCU_MOVED(Roll, roll)
BCU_MOVED(Repeat, repeat)
BCU_MOVED(Diag, diag)
BCU_MOVED(DiagBackward, diag)
#undef BCU_MOVED

template <>
struct SimtKernel<layout::Pad> {
  static Status run(const Launch& launch) {
    const bool fills = attributes<layout::PadAttrs>(launch).mode == layout::kConstant;
    return layout::pad(launch, layout::Mover(launch, fills ? &launch.scalars[0] : nullptr));
  }
};
template <>
struct SimtKernel<layout::PadBackward> {
  static Status run(const Launch& launch) {
    return layout::gradient(launch, true, attributes<layout::PadAttrs>(launch).mode);
  }
};
template <>
struct SimtKernel<layout::RepeatBackward> {
  static Status run(const Launch& launch) {
    const bool each = attributes<layout::RepeatAttrs>(launch).each != 0;
    return layout::gradient(launch, false, each ? layout::kRepeatEach : layout::kRepeatWhole);
  }
};
template <bool kUpper>
struct SimtKernel<layout::Triangle<kUpper>> {
  static Status run(const Launch& launch) { return layout::triangle(launch, kUpper); }
};
template <>
struct SimtKernel<layout::WriteSlice> {
  static Status run(const Launch& launch) { return layout::write_slice(launch); }
};
template <>
struct SimtKernel<layout::Arange> {
  static Status run(const Launch& launch) { return layout::sequence<layout::Progression>(launch); }
};
template <>
struct SimtKernel<layout::Linspace> {
  static Status run(const Launch& launch) { return layout::sequence<layout::Between>(launch); }
};
template <>
struct SimtKernel<layout::Eye> {
  static Status run(const Launch& launch) { return layout::eye(launch); }
};

}  // namespace baracuda
