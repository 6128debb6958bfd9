// The type that a launch's numbers are computed in.
#pragma once
#include "backends/simt/family.h"

namespace baracuda::image {

template <class F>
Status with_sample_type([[maybe_unused]] Element element, const F& f) {
#if BCU_HAS_F64
  if (element == Element::F64) return f(double());
#endif
  return f(float());
}

}  // namespace baracuda::image
