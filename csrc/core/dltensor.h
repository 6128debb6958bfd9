// DLPack's tensors as the engine's views.
#pragma once
#include <dlpack/dlpack.h>

#include <memory>

#include "core/api.h"
#include "core/launch.h"
#include "core/refusal.h"

namespace baracuda {

// Fills all of `view` but read_only. False with the reason for what no kernel could read; whether the memory is there
// is not looked at.
BCU_API bool read_dltensor(const DLTensor& t, TensorView& view, std::unique_ptr<Refusal>& why);

}  // namespace baracuda
