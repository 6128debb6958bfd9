// Runs kernel bodies on the CPU. The threads of a block are fibers of one OS thread, so barriers and shuffles are real;
// blocks run one after another. A test tool: it finds logic errors, and says nothing about speed or last-bit accuracy.
//
// Environment: BARACUDA_EMULATOR_SCHEDULE = forward | reverse | random:SEED, the order of threads and blocks;
// BARACUDA_EMULATOR_LOG = a file that the names of the kernels that run are added to.
#pragma once
#include <cstdint>
#include <source_location>
#include <span>
#include <string>

#include "emulator/race.h"

namespace baracuda::emulator {

inline constexpr uint32_t kMaxThreads = 1024, kWarp = 32;

using Site = std::source_location;  // which call: what threads that meet must agree on

// Where a thread is.
struct Position {
  uint32_t tid, bdim, bid[3], gdim[3];
};

struct Kernel {
  const char* name;  // of the body, or a function signature that ends in "Body = NAME]"
  void (*run)(Position at, void* shared, const void* params);
  uint32_t param_bytes, shared_bytes, most_threads;
};

struct Blocks {
  uint32_t x, y, z;
};

// Memory that a launch may touch, and what reports call it.
struct Bound {
  Region* region;
  std::string name;
};

// Runs a kernel to its end. Returns what was found wrong, in words; empty if nothing was.
std::string run(const Kernel& kernel, Blocks grid, uint32_t threads, const void* params, std::span<Bound> bound);
std::string name_of(const Kernel& kernel);
// Whether a body is running, and which thread of it.
bool running();
// Whether it is the code with this stack frame that runs as a body. Launchers, which other OS threads may be in, are
// compiled with the same hooks.
__attribute__((visibility("default"))) bool in_body(const void* frame);
Position position();

// "forward", "reverse" or "random:SEED"; false if it is none of these.
bool set_schedule(const char* name);

struct Counts {
  uint64_t threads, barriers, warp_operations, switches;  // a barrier counts once per thread
};
Counts take_counts();

// What bodies call, on the thread that runs now; those of texts that are compiled later, too.
#pragma GCC visibility push(default)
void barrier(bool global, const Site& here);
void warp_sync(const Site& here);
enum class Shuffle { From, Xor, Down, Up };
uint64_t shuffle(uint64_t value, uint32_t argument, Shuffle kind, const Site& here);
void* shared_memory();
uint32_t atomic_add(uint32_t* counter, uint32_t v);
uint32_t atomic_exchange(uint32_t* word, uint32_t v);
void atomic_add(float* sum, float v);

// Ends the launch with a report, from inside a body.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);
#pragma GCC visibility pop

// The block that was the n-th to run, and whether an address is the running thread's stack or right below it.
Blocks block_of(uint32_t nth);
bool on_own_stack(const void* p);
bool below_own_stack(const void* p);

}  // namespace baracuda::emulator
