// How a family hands its GPU kernels to a backend's module: SimtKernel<Tag> launches the portable bodies, for cuda rows
// and for metal rows alike.
#pragma once
#include "backends/cpu/family.h"
#include "simt/launch.h"

namespace baracuda {

// Specialise for every tag of a cuda or metal row: static Status run(const Launch&), and prepare (a Prepare) where
// plans keep something.
template <class Tag>
struct SimtKernel;

// Which slice of a family has a tag's kernels; -1: whichever its row falls into. Rows that share bodies belong
// together. In a sliced family `run` is a template of its argument's type, so that other slices compile nothing of it.
template <class Tag>
inline constexpr int kSimtSlice = -1;

template <class Tag>
constexpr bool in_slice(size_t row, size_t slice, size_t slices) {
  const int chosen = kSimtSlice<Tag>;
  return (chosen < 0 ? row : size_t(chosen)) % slices == slice;
}

template <class Tag, bool kWanted>
constexpr Kernel simt_kernel_of() {
  if constexpr (kWanted)
    return &SimtKernel<Tag>::run;
  else
    return nullptr;
}

template <const auto& kTable, Backend kBackend, size_t kSlice, size_t kSlices>
constexpr auto simt_kernels() {
  return []<class... Tags, size_t... I>(const Table<Tags...>&, std::index_sequence<I...>) {
    return std::array<Kernel, sizeof...(Tags)>{
        simt_kernel_of<Tags, kTable.rows[I].backend == kBackend && in_slice<Tags>(I, kSlice, kSlices)>()...};
  }(kTable, std::make_index_sequence<kTable.rows.size()>());
}

template <class Tag, bool kWanted>
constexpr Prepare prepare_of() {
  if constexpr (kWanted) {
    if constexpr (requires { &SimtKernel<Tag>::prepare; }) return &SimtKernel<Tag>::prepare;
  }
  return nullptr;
}

template <const auto& kTable, Backend kBackend, size_t kSlice, size_t kSlices>
constexpr auto simt_prepares() {
  return []<class... Tags, size_t... I>(const Table<Tags...>&, std::index_sequence<I...>) {
    return std::array<Prepare, sizeof...(Tags)>{
        prepare_of<Tags, kTable.rows[I].backend == kBackend && in_slice<Tags>(I, kSlice, kSlices)>()...};
  }(kTable, std::make_index_sequence<kTable.rows.size()>());
}

}  // namespace baracuda

// Behind csrc/ops/<family>/simt_launch.h, inside no namespace: the build writes such a file, where a family has no
// cuda.cu of its own. The emulator builds the same for either backend.
#ifndef BCU_SIMT_BACKEND
#define BCU_SIMT_BACKEND Cuda
#endif
#define BCU_SIMT_FAMILY(name) BCU_SIMT_SLICE(name, BCU_SLICE)
#define BCU_SIMT_SLICE(name, slice) BCU_SIMT_SLICE_OF(name, slice)
#define BCU_SIMT_SLICE_OF(name, slice)                                                                                \
  namespace baracuda::name {                                                                                          \
  static constexpr auto kSimtKernels =                                                                                \
      ::baracuda::simt_kernels<kTable, Backend::BCU_SIMT_BACKEND, slice, BCU_SLICES>();                               \
  static constexpr auto kSimtPrepares =                                                                               \
      ::baracuda::simt_prepares<kTable, Backend::BCU_SIMT_BACKEND, slice, BCU_SLICES>();                              \
  extern const ::baracuda::FamilyKernels kSimtSlice##slice;                                                           \
  constinit const ::baracuda::FamilyKernels kSimtSlice##slice = {#name, kSimtKernels.data(),                          \
                                                                 (int32_t)kSimtKernels.size(), kSimtPrepares.data()}; \
  }
