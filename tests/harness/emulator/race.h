// Finds data races, reads of shared memory that nobody wrote and accesses outside of what a launch may touch. The
// compiler calls it before every load and store of a body (hooks.cpp).
//
// Order is exactly what the vocabulary promises: barrier() and warp_sync() order shared memory among the threads of a
// block or a warp, barrier_all() global memory too; shuffles order nothing, and between blocks there is no order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace baracuda::emulator {

struct Bound;
struct Cell;

// A stretch of memory with a record of its last accesses. Cells cover 2^shift bytes, as few as accesses need.
struct Region {
  char* begin = nullptr;
  char* end = nullptr;
  Cell* cells = nullptr;
  int shift = 0;
  bool shared = false;
};
void forget(Region& region);

// `on` only while a thread of a block runs, and only in builds whose bodies are compiled with hooks.
struct Watch {
  bool on = false;
  uint32_t thread = 0;
  uint32_t block = 0, first_block = 1;  // numbered over all launches, so that records of older ones are told apart
  uint32_t shared_epoch = 0, global_epoch = 0;  // barriers passed
  uint16_t warp_epoch[32] = {};                 // warp_syncs since the last barrier
};
extern __attribute__((visibility("default"))) Watch watch;  // the hooks of later texts, too, look at it

enum class AccessKind { Read, Write, Atomic };

void begin_launch(Region* shared, const void* params, size_t param_bytes, std::span<Bound> bound, const void* code);
void end_launch();
void begin_block();
void pass_barrier(bool global);
void pass_warp_sync(uint32_t warp);
__attribute__((visibility("default"))) void access(const void* p, uint32_t bytes, AccessKind kind, const void* pc);

}  // namespace baracuda::emulator
