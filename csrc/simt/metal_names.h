// Which kernel of the .metal text a body is, for launching it: kMetalName<Body>, made from the families' metal.metal. A
// host that launches includes the family's metal.metal before its launchers.
#pragma once
#include "simt/metal_instances.h"
#include "simt/simt.h"

namespace baracuda::simt {

template <class Body>
struct UnlistedBody {
  static_assert(sizeof(Body) == 0, "no line of the family's metal.metal names this body");
  static constexpr const char* kName = "";
};
template <class Body>
inline constexpr const char* kMetalName = UnlistedBody<Body>::kName;

}  // namespace baracuda::simt

#define BCU_METAL_KERNEL(name, body) \
  template <>                        \
  inline constexpr const char* baracuda::simt::kMetalName<BCU_UNPACK body> = #name;
