// Copies of any strides to any strides, and fills.
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/convert.h"
#include "core/tile.h"
#include "ops/layout/skus.h"

namespace baracuda {

template <>
struct CpuKernel<layout::Copy> {
  static Status run(const Launch& launch) {
    IterationSpace space = space_of(launch[1]);
    const Operand from = operand(launch[0], space), to = operand(launch[1], space);
    if (from.data != to.data) copy_tiles(space, from, to);  // in place is the identical view
    return Status::Ok;
  }
};

template <>
struct CpuKernel<layout::Fill> {
  static Status run(const Launch& launch) {
    const TensorView& y = launch[0];
    const Scalar& value = launch.scalars[0];
    alignas(16) char element[16];
    // Integers are taken as integers, so that 64-bit values keep all their digits; bool takes any non-zero number.
    if (kInts.has(y.element)) {
      with_compute_type(y.element, [&](auto c) {
        c = scalar_as<decltype(c)>(value);
        store(y.element, element, 1, &c, 1);
      });
    } else {
      const double number = value.as_f64();
      store(y.element, element, 1, &number, 1);
    }
    IterationSpace space = space_of(y);
    copy_tiles(space, constant(element, y.element), operand(y, space));
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(layout)
