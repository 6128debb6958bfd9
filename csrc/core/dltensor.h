// DLPack's tensors as the engine's views.
#pragma once
#include <dlpack/dlpack.h>

#include <memory>

#include "core/api.h"
#include "core/device.h"
#include "core/launch.h"
#include "core/refusal.h"

namespace baracuda {

// Fills all of `view` but read_only. False with the reason for what no kernel could read; whether the memory is there
// is not looked at, and the address of what a device names by objects is that of the object: see adopt().
BCU_API bool read_dltensor(const DLTensor& t, TensorView& view, std::unique_ptr<Refusal>& why);

// The use of memory that came as an object.
struct Adopted {
  const DeviceModule* module = nullptr;  // null: it came as an address
  int32_t device = 0;
  void* address = nullptr;
  BCU_API void give_up();
};

// Gives a view that was read from `t` its address on devices whose memory DLPack names by an object. False with the
// reason, and nothing adopted.
BCU_API bool adopt(const DLTensor& t, TensorView& view, Adopted& out, std::unique_ptr<Refusal>& why);

}  // namespace baracuda
