// The emulator's controls, which tests reach through an emulated module by ctypes.
#include "core/api.h"
#include "emulator/emulator.h"

extern "C" {

// "forward", "reverse" or "random:SEED".
BCU_API int32_t bcu_emulator_schedule(const char* name) { return baracuda::emulator::set_schedule(name); }

// Threads run, barriers (per thread), warp operations (per lane) and fiber switches since the last call.
BCU_API void bcu_emulator_counts(uint64_t out[4]) {
  auto counts = baracuda::emulator::take_counts();
  out[0] = counts.threads, out[1] = counts.barriers, out[2] = counts.warp_operations, out[3] = counts.switches;
}
}
