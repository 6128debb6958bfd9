// Which kernel of the .metal text a body is, for launching it: kMetalName<Body>, made from the families' metal.def.
#pragma once
#include "simt/metal_instances.h"

namespace baracuda::simt {

template <class Body>
struct UnlistedBody {
  static_assert(sizeof(Body) == 0, "no line of the family's metal.def names this body");
  static constexpr const char* kName = "";
};
template <class Body>
inline constexpr const char* kMetalName = UnlistedBody<Body>::kName;

}  // namespace baracuda::simt

// Around the lines of a metal.def, in namespace baracuda.
#define BCU_METAL_KERNEL(name, body) \
  template <>                        \
  inline constexpr const char* simt::kMetalName<BCU_UNPACK body> = #name;
