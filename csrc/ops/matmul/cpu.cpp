// The matmul rows: each tries its own way first and falls back to the packed kernel, which takes every layout.
#include "ops/matmul/cpu.h"

#include "backends/cpu/family.h"
#include "ops/matmul/skus.h"

namespace baracuda {

template <>
struct CpuKernel<matmul::PackedRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_launch(launch, g)) matmul::run_packed(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::Bf16DotRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_launch(launch, g)) matmul::run_bf16(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::ThinRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (!matmul::read_launch(launch, g)) return Status::Ok;
    // Dot products of pairs are faster than reading memory, whatever the number of rows; sums of f32 are with few only.
    if (std::min(g.m, g.n) > matmul::kFewRows && matmul::run_in_place(g, launch.workspace)) return Status::Ok;
    if (!matmul::run_thin(g, launch.workspace)) matmul::run_packed(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::BlasRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_launch(launch, g) && !matmul::run_blas(g)) matmul::run_packed(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::WholeRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_launch(launch, g)) matmul::run_whole(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::ScaledRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_scaled(launch, g)) matmul::run_scaled(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::VnniRow> {
  static Status run(const Launch& launch) {
    matmul::Gemm g;
    if (matmul::read_scaled(launch, g)) matmul::run_vnni(g, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<matmul::GatedThinRow> {
  static Status run(const Launch& launch) {
    matmul::run_gated(launch);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(matmul)
