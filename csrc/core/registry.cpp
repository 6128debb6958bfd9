#include "core/registry.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "backends/cpu/loader.h"
#include "skus.inc"

namespace baracuda {
namespace {

#define BCU_FAMILY(name) {#name, name::kRows.data(), static_cast<int32_t>(name::kRows.size())},
constexpr Family kFamilies[] = {
#include "families.inc"
};
#undef BCU_FAMILY

struct Place {
  const Family* family;
  int32_t row;
};

Place place(int32_t index) {
  for (const Family& f : kFamilies) {
    if (index < f.n_rows) return {&f, index};
    index -= f.n_rows;
  }
  return {&kFamilies[0], 0};
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

int32_t row_count() {
  int32_t n = 0;
  for (const Family& f : kFamilies) n += f.n_rows;
  return n;
}

const Row& row_at(int32_t index) {
  Place p = place(index);
  return p.family->rows[p.row];
}

const char* family_of(int32_t index) { return place(index).family->name; }

const BackendState& backend_state(Backend backend) {
  static const BackendState cuda = {false, false, 0, "", "this wheel was built without the cuda backend"};
  static const BackendState metal = {false, false, 0, "", "this wheel was built without the metal backend"};
  if (backend == Backend::Cuda) return cuda;
  if (backend == Backend::Metal) return metal;
  return cpu_backend().state;
}

Kernel find_kernel(int32_t row, std::string& reason) {
  Place p = place(row);
  Backend backend = p.family->rows[p.row].backend;
  const BackendState& state = backend_state(backend);
  if (!state.built || !state.present) {
    reason = state.reason;
    return nullptr;
  }
  for (const CpuModule* module : cpu_backend().modules)
    for (int32_t i = 0; i < module->n_families; ++i) {
      const FamilyKernels& f = *module->families[i];
      if (std::strcmp(f.family, p.family->name) != 0) continue;
      if (f.n_rows != p.family->n_rows) {
        reason = "the module for level " + state.level + " was built from another table; build it again";
        return nullptr;
      }
      if (f.kernels[p.row]) return f.kernels[p.row];
    }
  reason = "the module for level " + state.level + " has no kernel for this row";
  return nullptr;
}

}  // namespace baracuda
