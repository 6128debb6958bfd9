// How a family's cpu.cpp hands its kernels to the loader: one kernel per cpu row, found by the row's tag at compile
// time. A row whose CpuKernel<Tag> nobody wrote does not compile.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "core/row.h"

namespace baracuda {

// Specialise for every tag: static Status run(const Launch&) noexcept.
template <class Tag>
struct CpuKernel;

struct FamilyKernels {
  const char* family;
  const Kernel* kernels;  // by row index; null for rows of other backends
  int32_t n_rows;
};

template <class RowType>
constexpr Kernel cpu_kernel_of(const RowType& r) {
  if (r.backend != Backend::Cpu) return nullptr;
  return &CpuKernel<typename RowType::tag>::run;
}

template <class... Tags>
constexpr std::array<Kernel, sizeof...(Tags)> cpu_kernels(const std::tuple<RowOf<Tags>...>& t) {
  return std::apply([](const auto&... r) { return std::array<Kernel, sizeof...(Tags)>{cpu_kernel_of(r)...}; }, t);
}

}  // namespace baracuda

// At the end of csrc/ops/<family>/cpu.cpp, inside no namespace.
#define BCU_CPU_FAMILY(name)                                                                                       \
  namespace baracuda::name {                                                                                       \
  static constexpr auto kCpuKernels = ::baracuda::cpu_kernels(kTable);                                             \
  extern const ::baracuda::FamilyKernels kCpuFamily;                                                               \
  constinit const ::baracuda::FamilyKernels kCpuFamily = {#name, kCpuKernels.data(), (int32_t)kCpuKernels.size()}; \
  }
