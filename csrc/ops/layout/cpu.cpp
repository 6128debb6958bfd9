// Copies of any strides to any strides, fills, and what is made of both.
#include "ops/layout/cpu.h"
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "host/convert.h"
#include "host/tile.h"
#include "ops/layout/blocks.h"
#include "ops/layout/cpu_cat.h"

namespace baracuda::layout {
namespace {

// An element's bytes. Integers are taken as integers, so that 64-bit values keep all their digits; bool takes any
// non-zero number.
void stored(const Scalar& value, Element element, char* bytes) {
  if (kInts.has(element)) {
    with_compute_type(element, [&](auto c) {
      c = scalar_as<decltype(c)>(value);
      store(element, bytes, 1, &c, 1);
    });
    return;
  }
  const double number = value.as_f64();
  const bool complex = element == Element::C64 || element == Element::C128;
  store(complex ? (element == Element::C64 ? Element::F32 : Element::F64) : element, bytes, 1, &number, 1);
}

class Mover {
 public:
  Mover() = default;
  Mover(const Scalar& value, Element element) { stored(value, element, cell_); }

  Status copy(const TensorView& to, const TensorView& from) const {
    IterationSpace space = space_of(to);
    const Operand in = operand(from, space), out = operand(to, space);
    if (in.data != out.data) copy_tiles(space, in, out);  // in place is the identical view
    return Status::Ok;
  }
  Status clear(const TensorView& to) const {
    IterationSpace space = space_of(to);
    copy_tiles(space, constant(cell_, to.element), operand(to, space));
    return Status::Ok;
  }

 private:
  alignas(16) char cell_[16] = {};
};

Status write_slice(const Launch& launch) {
  using Args = SliceArgs;
  const TensorView &x = launch[Args::x], &source = launch[Args::source], &y = launch[Args::y];
  const SliceAttrs attrs = attributes<SliceAttrs>(launch);
  const int axis = static_cast<int>(attrs.axis);
  const int64_t start = launch.scalars[Args::start].as_i64(), last = start_limit(x, source, attrs);
  if (start < 0 || start >= last) {
    if (launch.failure) *launch.failure = {-1, Args::start, start, last};
    return Status::IndexOutOfRange;
  }
  const Mover mover;
  mover.copy(y, x);
  if (source.numel() == 0) return Status::Ok;
  return mover.copy(slice(y, axis, start, source.shape[axis], attrs.step), source);
}

}  // namespace
}  // namespace baracuda::layout

namespace baracuda {

#define BCU_MOVED(Tag, function)                                                                  \
  template <>                                                                                     \
  struct CpuKernel<layout::Tag> {                                                                 \
    static Status run(const Launch& launch) { return layout::function(launch, layout::Mover()); } \
  };
BCU_MOVED(Stack, stack)
BCU_MOVED(Flip, flip)
BCU_MOVED(Roll, roll)
BCU_MOVED(Repeat, repeat)
BCU_MOVED(Diag, diag)
BCU_MOVED(DiagBackward, diag_backward)
#undef BCU_MOVED

template <>
struct CpuKernel<layout::Cat> {
  static Status run(const Launch& launch) {
    return layout::cat_short_rows(launch) ? Status::Ok : layout::cat(launch, layout::Mover());
  }
};

template <>
struct CpuKernel<layout::Copy> {
  using Args = layout::MoveArgs;
  static Status run(const Launch& launch) { return layout::Mover().copy(launch[Args::y], launch[Args::x]); }
};

template <>
struct CpuKernel<layout::Fill> {
  static Status run(const Launch& launch) {
    using Args = layout::FillArgs;
    const TensorView& y = launch[Args::y];
    return layout::Mover(launch.scalars[Args::value], y.element).clear(y);
  }
};

template <>
struct CpuKernel<layout::Pad> {
  static Status run(const Launch& launch) {
    using Args = layout::PadArgs;
    if (attributes<layout::PadAttrs>(launch).mode != layout::kConstant) return layout::pad(launch, layout::Mover());
    return layout::pad(launch, layout::Mover(launch.scalars[Args::value], launch[Args::x].element));
  }
};

template <>
struct CpuKernel<layout::Eye> {
  static Status run(const Launch& launch) {
    Scalar one;
    one.f = 1;
    const TensorView& y = launch[layout::EyeArgs::y];
    layout::Mover().clear(y);
    const TensorView ones = layout::diagonal_of(y, 0);
    return ones.numel() ? layout::Mover(one, ones.element).clear(ones) : Status::Ok;
  }
};

template <>
struct CpuKernel<layout::WriteSlice> {
  static Status run(const Launch& launch) { return layout::write_slice(launch); }
};

template <>
struct CpuKernel<layout::PadBackward> {
  static Status run(const Launch& launch) { return layout::pad_backward(launch); }
};

template <>
struct CpuKernel<layout::RepeatBackward> {
  static Status run(const Launch& launch) { return layout::repeat_backward(launch); }
};

template <bool kUpper>
struct CpuKernel<layout::Triangle<kUpper>> {
  static Status run(const Launch& launch) { return layout::triangle(launch, kUpper); }
};

template <>
struct CpuKernel<layout::Arange> {
  static Status run(const Launch& launch) { return layout::arange(launch); }
};

template <>
struct CpuKernel<layout::Linspace> {
  static Status run(const Launch& launch) { return layout::linspace(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(layout)
