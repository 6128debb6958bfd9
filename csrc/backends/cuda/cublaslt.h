// The part of cuBLASLt that baracuda calls, declared here because the library is opened at run time. Values and
// structures are those of cublasLt.h; a test compares them.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/launch.h"

namespace baracuda::cuda::lt {

enum Code : int { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kArchMismatch = 8, kNotSupported = 15 };
enum Type : int { kF32 = 0, kF64 = 1, kF16 = 2, kI8 = 3, kI32 = 10, kBF16 = 14, kF8E4M3 = 28 };
enum Compute : int { kCompute32 = 68, kCompute64 = 70, kComputeI32 = 72, kComputeTf32 = 77 };
enum Operation : int { kPlain = 0, kTransposed = 1 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum DescAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScalePointerA = 17,
  kScalePointerB = 18
};
enum Epilogue : int { kNoEpilogue = 1, kBiasEpilogue = 4 };
enum PreferenceAttribute : int {
  kMostWorkspace = 1,
  kReductions = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8,
  kImplementations = 12
};
enum Reduction : uint32_t { kNoReduction = 0, kReduceInComputeType = 2 };
// How an algorithm computes: bits that kImplementations allows.
enum Implementation : uint64_t {
  kIntegerUnits = 0x04,
  kSumsF16 = 0x01 << 8,
  kReadsF16 = 0x01 << 16,
  kReadsBF16 = 0x02 << 16,
  kReadsTf32 = 0x04 << 16,
  kReadsI8 = 0x20 << 16
};

struct Algo {
  uint64_t data[8];
};
struct Heuristic {
  Algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
// Descriptors in memory of ours, larger than any version's: nothing is allocated for a launch.
struct Layout {
  uint64_t data[32];
};
struct Desc {
  uint64_t data[64];
};
struct Preference {
  uint64_t data[32];
};

using Handle = void*;
struct Api {
  int (*create)(Handle*);
  const char* (*status_name)(int);
  int (*layout_init)(Layout*, size_t, int type, uint64_t rows, uint64_t columns, int64_t lead);
  int (*layout_set)(Layout*, int attribute, const void* value, size_t bytes);
  int (*desc_init)(Desc*, size_t, int compute, int scale);
  int (*desc_set)(Desc*, int attribute, const void* value, size_t bytes);
  int (*preference_init)(Preference*, size_t);
  int (*preference_set)(Preference*, int attribute, const void* value, size_t bytes);
  int (*heuristic)(Handle, Desc*, Layout* a, Layout* b, Layout* c, Layout* d, Preference*, int wanted, Heuristic* found,
                   int* count);
  int (*check)(Handle, Desc*, Layout* a, Layout* b, Layout* c, Layout* d, const Algo*, Heuristic* found);
  int (*matmul)(Handle, Desc*, const void* alpha, const void* a, Layout*, const void* b, Layout*, const void* beta,
                const void* c, Layout*, void* d, Layout*, const Algo*, void* workspace, size_t, cudaStream_t);
};
#define BCU_CUBLASLT_FUNCTIONS(X)                             \
  X(create, "cublasLtCreate")                                 \
  X(status_name, "cublasLtGetStatusName")                     \
  X(layout_init, "cublasLtMatrixLayoutInit_internal")         \
  X(layout_set, "cublasLtMatrixLayoutSetAttribute")           \
  X(desc_init, "cublasLtMatmulDescInit_internal")             \
  X(desc_set, "cublasLtMatmulDescSetAttribute")               \
  X(preference_init, "cublasLtMatmulPreferenceInit_internal") \
  X(preference_set, "cublasLtMatmulPreferenceSetAttribute")   \
  X(heuristic, "cublasLtMatmulAlgoGetHeuristic")              \
  X(check, "cublasLtMatmulAlgoCheck")                         \
  X(matmul, "cublasLtMatmul")

// Null, with last_error(), where the library or one of the functions is missing.
const Api* api();
// The device's handle, made when it is first asked for and kept for the life of the process.
Status handle(int32_t device, Handle* out);
// Ok, or Launch with the function and the code's name for last_error().
Status check(int code, const char* function);

}  // namespace baracuda::cuda::lt
