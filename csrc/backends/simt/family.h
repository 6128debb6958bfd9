// How a family hands its GPU kernels to a backend's module: SimtKernel<Tag> launches the portable bodies, for cuda rows
// and for metal rows alike.
#pragma once
#include "backends/cpu/family.h"
#include "simt/launch.h"

namespace baracuda {

// Specialise for every tag of a cuda or metal row: static Status run(const Launch&).
template <class Tag>
struct SimtKernel;

template <const auto& kTable, Backend kBackend, size_t kRow>
constexpr Kernel simt_kernel_at() {
  using RowType = std::remove_cvref_t<decltype(std::get<kRow>(kTable))>;
  if constexpr (std::get<kRow>(kTable).backend == kBackend) return &SimtKernel<typename RowType::tag>::run;
  return nullptr;
}
template <const auto& kTable, Backend kBackend>
constexpr auto simt_kernels() {
  constexpr size_t n = std::tuple_size_v<std::remove_cvref_t<decltype(kTable)>>;
  return []<size_t... kRows>(std::index_sequence<kRows...>) {
    return std::array<Kernel, n>{simt_kernel_at<kTable, kBackend, kRows>()...};
  }(std::make_index_sequence<n>{});
}

}  // namespace baracuda

// At the end of csrc/ops/<family>/cuda.cu, inside no namespace. The emulator builds the same files for either backend.
#ifndef BCU_SIMT_BACKEND
#define BCU_SIMT_BACKEND Cuda
#endif
#define BCU_SIMT_FAMILY(name)                                                                                         \
  namespace baracuda::name {                                                                                          \
  static constexpr auto kSimtKernels = ::baracuda::simt_kernels<kTable, Backend::BCU_SIMT_BACKEND>();                 \
  extern const ::baracuda::FamilyKernels kSimtFamily;                                                                 \
  constinit const ::baracuda::FamilyKernels kSimtFamily = {#name, kSimtKernels.data(), (int32_t)kSimtKernels.size()}; \
  }
