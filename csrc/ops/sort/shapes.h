// What sorting asks of its tensors.
#pragma once
#include "core/shapes.h"
#include "ops/sort/skus.h"

namespace baracuda::sort {

inline void sort_shapes(Shapes& s) {
  const auto x = s.in(SortArgs::x);
  s.out(SortArgs::values).is(x);
  s.out(SortArgs::indices, Element::I64).is(x);
  const SortAttrs attrs = s.attrs<SortAttrs>();
  s.axis(attrs.axis, x.rank());
  s.flag(attrs.descending, "descending");
}

inline ShapeRule shapes_of(const Row&) { return sort_shapes; }

}  // namespace baracuda::sort
