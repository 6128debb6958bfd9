// How a family's cpu.cpp hands its kernels to the loader: one kernel per cpu row, found by the row's tag at compile
// time. A cpu row whose CpuKernel<Tag> nobody wrote does not compile; rows of other backends need none.
//
// A large family is compiled in slices: the build compiles its cpu.cpp several times with another BCU_SLICE, and each
// instantiates every BCU_SLICES-th row of the table. No file lists the ops once more.
#pragma once
#include <array>
#include <utility>

#include "core/backend.h"

#ifndef BCU_SLICE
#define BCU_SLICE 0
#define BCU_SLICES 1
#endif

namespace baracuda {

// Specialise for every tag: static Status run(const Launch&) noexcept, and prepare (a Prepare) where plans of the row
// make something when they are selected.
template <class Tag>
struct CpuKernel;

template <class Tag, bool kWanted>
constexpr Kernel cpu_kernel_of() {
  if constexpr (kWanted)
    return &CpuKernel<Tag>::run;
  else
    return nullptr;
}

template <const auto& kTable, size_t kSlice = 0, size_t kSlices = 1>
constexpr auto cpu_kernels() {
  return []<class... Tags, size_t... I>(const Table<Tags...>&, std::index_sequence<I...>) {
    return std::array<Kernel, sizeof...(Tags)>{
        cpu_kernel_of<Tags, kTable.rows[I].backend == Backend::Cpu && I % kSlices == kSlice>()...};
  }(kTable, std::make_index_sequence<kTable.rows.size()>());
}

template <class Tag, bool kWanted>
constexpr Prepare cpu_prepare_of() {
  if constexpr (kWanted) {
    if constexpr (requires { &CpuKernel<Tag>::prepare; }) return &CpuKernel<Tag>::prepare;
  }
  return nullptr;
}

template <const auto& kTable, size_t kSlice = 0, size_t kSlices = 1>
constexpr auto cpu_prepares() {
  return []<class... Tags, size_t... I>(const Table<Tags...>&, std::index_sequence<I...>) {
    return std::array<Prepare, sizeof...(Tags)>{
        cpu_prepare_of<Tags, kTable.rows[I].backend == Backend::Cpu && I % kSlices == kSlice>()...};
  }(kTable, std::make_index_sequence<kTable.rows.size()>());
}

}  // namespace baracuda

// At the end of csrc/ops/<family>/cpu.cpp, inside no namespace.
#define BCU_CPU_FAMILY(name) BCU_CPU_SLICE(name, BCU_SLICE)
#define BCU_CPU_SLICE(name, slice) BCU_CPU_SLICE_OF(name, slice)
#define BCU_CPU_SLICE_OF(name, slice)                                                                              \
  namespace baracuda::name {                                                                                       \
  static constexpr auto kCpuKernels = ::baracuda::cpu_kernels<kTable, slice, BCU_SLICES>();                        \
  static constexpr auto kCpuPrepares = ::baracuda::cpu_prepares<kTable, slice, BCU_SLICES>();                      \
  extern const ::baracuda::FamilyKernels kCpuSlice##slice;                                                         \
  constinit const ::baracuda::FamilyKernels kCpuSlice##slice = {#name, kCpuKernels.data(),                         \
                                                                (int32_t)kCpuKernels.size(), kCpuPrepares.data()}; \
  }
