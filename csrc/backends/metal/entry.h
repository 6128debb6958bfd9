// What launchers, which are plain C++, see of the Metal runtime.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/launch.h"

namespace baracuda::metal {

struct Pipeline;

// A kernel of a .metal text, whose name starts with its family's; one for each body that is launched.
struct Entry {
  const char* name;
  uint32_t most_threads;
  size_t param_bytes;
  const Pipeline* pipeline = nullptr;  // made at the first launch or rehearsal; guarded by the runtime's lock
};

struct Blocks {
  int64_t x, y, z;
};

// While it is on, this thread's launches make their pipelines and run nothing.
void rehearse(bool on);

// Puts one launch on the stream of a call. Its parameters are copied; addresses in them are the GPU's.
Status submit(const Launch& launch, Entry& entry, Blocks grid, int threads, const void* params);

}  // namespace baracuda::metal
