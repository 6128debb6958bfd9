// Launches copies and fills on a GPU.
#pragma once
#include <utility>

#include "backends/simt/family.h"
#include "ops/layout/blocks.h"
#include "ops/layout/simt.h"
#include "ops/layout/skus.h"
#include "simt/copy_cells_launch.h"

namespace baracuda::layout {

// What only the device knows of a copy: where its target starts.
struct Shift {
  const Scalar* start;
  int64_t step, limit;  // bytes by which one start moves; starts are below the limit
  int32_t scalar;       // which number a fault names

  // Whether a start moves by whole cells of so many bytes.
  bool fits(int64_t bytes) const { return step % bytes == 0; }
  template <int kBytes>
  Status submit(const Launch& launch, const simt::CopyParams& copy) const {
    ShiftedParams p{};
    p.copy = copy;
    p.start = simt::number_of(*start), p.step = step, p.limit = limit;
    p.fault = simt::fault_of(launch), p.row = launch.row, p.scalar = scalar;
    return simt::submit<ShiftedCells<kBytes>>(launch, {simt::blocks_for(copy.count, 256)}, 256, p);
  }
};

// Carries out the copies and fills of blocks.h, each in a launch of its own.
class Mover {
 public:
  explicit Mover(const Launch& launch, const Scalar* value = nullptr) : launch_(launch), value_(value) {
    if (!value || value->data) return;
    const Element e = launch.element;
    simt::stored_number(*value, e == Element::C64 ? Element::F32 : e == Element::C128 ? Element::F64 : e, pattern_);
  }

  Status copy(const TensorView& to, const TensorView& from) const { return simt::copy_tensor(launch_, to, from); }
  Status clear(const TensorView& to) const {
    if (!value_ || !value_->data) return simt::fill_tensor(launch_, to, pattern_);
    if (!kReal.has(to.element)) return Status::Unsupported;
    const IterationSpace space = space_of(to);
    const simt::Input in[] = {*value_};
    const Operand out[] = {operand(to, space)};
    return simt::map_real<Same>(launch_, space, in, out);
  }

 private:
  const Launch& launch_;
  const Scalar* value_;
  alignas(16) char pattern_[16] = {};
};

inline Status write_slice(const Launch& launch) {
  using Args = SliceArgs;
  const TensorView &x = launch[Args::x], &source = launch[Args::source], &y = launch[Args::y];
  const SliceAttrs attrs = attributes<SliceAttrs>(launch);
  const int axis = static_cast<int>(attrs.axis);
  const Scalar& start = launch.scalars[Args::start];
  const int64_t limit = start_limit(x, source, attrs);
  if (!start.data && (start.as_i64() < 0 || start.as_i64() >= limit)) {
    if (launch.failure) *launch.failure = {-1, Args::start, start.as_i64(), limit};
    return Status::IndexOutOfRange;
  }
  const Mover mover(launch);
  if (const Status s = mover.copy(y, x); s != Status::Ok || source.numel() == 0) return s;
  const TensorView target = slice(y, axis, start.data ? 0 : start.as_i64(), source.shape[axis], attrs.step);
  if (!start.data) return mover.copy(target, source);
  const IterationSpace space = space_of(source);
  const Operand from = operand(source, space), to = operand(target, space);
  const Shift shift{&start, y.strides[axis] * size_of(y.element), limit, Args::start};
  return simt::CopyLaunch<Shift>(launch, space, to, &from, nullptr, shift).run();
}

inline Status triangle(const Launch& launch, bool upper) {
  const TensorView &x = launch[MoveArgs::x], &y = launch[MoveArgs::y];
  TriangleParams p{};
  p.to = y.data, p.from = x.data;
  p.rank = y.rank, p.count = y.numel();
  p.diagonal = attributes<DiagonalAttrs>(launch).diagonal, p.upper = upper;
  for (int d = 0; d < y.rank; ++d) {
    const int from = y.rank - 1 - d;
    p.shape[d] = y.shape[from], p.to_stride[d] = y.strides[from], p.from_stride[d] = x.strides[from];
  }
  return simt::with_bytes(size_of(y.element), [&](auto bytes) {
    return simt::submit<TriangleCells<bytes()>>(launch, {simt::blocks_for(p.count, 256)}, 256, p);
  });
}

inline Status gradient(const Launch& launch, bool padded, int64_t mode) {
  using Args = MoveBackwardArgs;
  GradientParams p{};
  p.rank = gradient_axes(launch, padded, p.axes), p.mode = static_cast<int32_t>(mode);
  const TensorView dy = widened(launch[Args::dy], p.rank), dx = widened(launch[Args::dx], p.rank);
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
Status sequence(const Launch& launch, const TensorView& y, const Scalar& first, const Scalar& second) {
  const IterationSpace space = space_of(y);
  const simt::Input in[] = {first, second};
  const Operand out[] = {operand(y, space)};
  const Place place{space.numel()};
  if (is_float(launch.element)) return simt::map_floats<F, Place>(launch, space, in, out, place);
  if constexpr (std::is_same_v<F, Progression>) return simt::map_integers<F, Place>(launch, space, in, out, place);
  return Status::Unsupported;
}

inline Status eye(const Launch& launch) {
  const TensorView& y = launch[EyeArgs::y];
  const Status s = Mover(launch).clear(y);
  const TensorView ones = diagonal_of(y, 0);
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
    using Args = layout::MoveArgs;
    const IterationSpace space = space_of(launch[Args::y]);
    const Operand from = operand(launch[Args::x], space), to = operand(launch[Args::y], space);
    if (from.data == to.data) return Status::Ok;  // in place is the identical view
    return simt::CopyLaunch<>(launch, space, to, &from).run();
  }
};

// A number that only the device knows is converted there.
template <>
struct SimtKernel<layout::Fill> {
  static Status run(const Launch& launch) {
    using Args = layout::FillArgs;
    const TensorView& y = launch[Args::y];
    const IterationSpace space = space_of(y);
    const Scalar& value = launch.scalars[Args::value];
    const Operand to = operand(y, space);
    if (value.data) {
      const simt::Input in[] = {value};
      const Operand out[] = {to};
      return simt::map_real<Same>(launch, space, in, out);
    }
    alignas(16) char pattern[16] = {};
    simt::stored_number(value, y.element, pattern);
    return simt::CopyLaunch<>(launch, space, to, nullptr, pattern).run();
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
BCU_MOVED(DiagBackward, diag_backward)
#undef BCU_MOVED

template <>
struct SimtKernel<layout::Pad> {
  static Status run(const Launch& launch) {
    const bool fills = attributes<layout::PadAttrs>(launch).mode == layout::kConstant;
    return layout::pad(launch, layout::Mover(launch, fills ? &launch.scalars[layout::PadArgs::value] : nullptr));
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
  static Status run(const Launch& launch) {
    using Args = layout::ArangeArgs;
    const Scalar *start = &launch.scalars[Args::start], *step = &launch.scalars[Args::step];
    return layout::sequence<layout::Progression>(launch, launch[Args::y], *start, *step);
  }
};
template <>
struct SimtKernel<layout::Linspace> {
  static Status run(const Launch& launch) {
    using Args = layout::LinspaceArgs;
    const Scalar *start = &launch.scalars[Args::start], *end = &launch.scalars[Args::end];
    return layout::sequence<layout::Between>(launch, launch[Args::y], *start, *end);
  }
};
template <>
struct SimtKernel<layout::Eye> {
  static Status run(const Launch& launch) { return layout::eye(launch); }
};

}  // namespace baracuda
