// All rows of all families, what this wheel has of each backend, and where a row's kernel is.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/api.h"
#include "core/backend.h"

namespace baracuda {

BCU_API std::span<const Family> families();
BCU_API int32_t row_count();
BCU_API const Row& row_at(int32_t index);
BCU_API const char* family_of(int32_t index);
// The rows that a question is put to, in the order they are tried: preference first, then the table's order. No op:
// all.
BCU_API std::span<const int32_t> rows_of(std::string_view op, Direction direction);

BCU_API const BackendState& backend_state(Backend backend);
// The module of a backend with memory of its own, or null with the reason why it is not usable.
BCU_API const DeviceModule* device_module(Backend backend, std::string& reason);

// The kernel of a row in the loaded module, or null with the reason.
BCU_API Kernel find_kernel(int32_t row, std::string& reason);
// Those of the loaded CPU level.
BCU_API std::span<const Threshold> cpu_thresholds();
// What a plan of this row makes when it is selected, or null.
BCU_API Prepare find_prepare(int32_t row);

}  // namespace baracuda
