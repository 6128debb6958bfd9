// submit() by the Metal runtime: the kernel that a body is in the family's .metal text.
#pragma once
#include <type_traits>

#include "backends/metal/entry.h"
#include "simt/metal_names.h"

namespace baracuda::simt {

template <class Body>
Status submit(const Launch& launch, Grid grid, int threads, const typename Body::Params& params) {
  static_assert(sizeof(params) <= 4000, "a kernel's parameters are at most 4 KB");
  static_assert(std::is_trivially_copyable_v<typename Body::Params>);
  static constinit metal::Entry entry{kMetalName<Body>, uint32_t(Body::kThreads), sizeof(params)};
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::Ok;
  return metal::submit(launch, entry, {grid.x, grid.y, grid.z}, threads, &params);
}

}  // namespace baracuda::simt
