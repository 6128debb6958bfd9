// Our declarations of cuBLASLt against the real header: values, structures and the arguments of functions.
#include <cublasLt.h>

#include "backends/cuda/cublaslt.h"

using namespace baracuda::cuda::lt;

#define SAME(ours, theirs) static_assert(uint64_t(ours) == uint64_t(theirs), #theirs)

SAME(kSuccess, CUBLAS_STATUS_SUCCESS);
SAME(kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME(kArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(kF32, CUDA_R_32F);
SAME(kF64, CUDA_R_64F);
SAME(kF16, CUDA_R_16F);
SAME(kBF16, CUDA_R_16BF);
SAME(kI8, CUDA_R_8I);
SAME(kI32, CUDA_R_32I);
SAME(kF8E4M3, CUDA_R_8F_E4M3);
SAME(kCompute32, CUBLAS_COMPUTE_32F);
SAME(kCompute64, CUBLAS_COMPUTE_64F);
SAME(kComputeI32, CUBLAS_COMPUTE_32I);
SAME(kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(kPlain, CUBLAS_OP_N);
SAME(kTransposed, CUBLAS_OP_T);
SAME(kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(kTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(kTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(kScalePointerA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(kScalePointerB, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(kNoEpilogue, CUBLASLT_EPILOGUE_DEFAULT);
SAME(kBiasEpilogue, CUBLASLT_EPILOGUE_BIAS);
SAME(kMostWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(kReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(kImplementations, CUBLASLT_MATMUL_PREF_IMPL_MASK);
SAME(kNoReduction, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(kIntegerUnits, CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA);
SAME(kSumsF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F);
SAME(kReadsF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F);
SAME(kReadsBF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF);
SAME(kReadsTf32, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32);
SAME(kReadsI8, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I);

static_assert(sizeof(Algo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(Layout) >= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Desc) >= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) >= sizeof(cublasLtMatmulPreferenceOpaque_t));

// The same number of arguments of the same sizes and kinds: pointers for pointers, integers for integers or enums.
template <class A, class B>
constexpr bool alike() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
}
template <class R, class... A, class S, class... B>
constexpr bool agree(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return alike<R, S>() && (alike<A, B>() && ...);
}
#define FUNCTION(member, theirs) \
  static_assert(agree(decltype(Api::member)(nullptr), decltype (&theirs)(nullptr)), #theirs)

FUNCTION(create, cublasLtCreate);
FUNCTION(status_name, cublasLtGetStatusName);
FUNCTION(layout_init, cublasLtMatrixLayoutInit_internal);
FUNCTION(layout_set, cublasLtMatrixLayoutSetAttribute);
FUNCTION(desc_init, cublasLtMatmulDescInit_internal);
FUNCTION(desc_set, cublasLtMatmulDescSetAttribute);
FUNCTION(preference_init, cublasLtMatmulPreferenceInit_internal);
FUNCTION(preference_set, cublasLtMatmulPreferenceSetAttribute);
FUNCTION(heuristic, cublasLtMatmulAlgoGetHeuristic);
FUNCTION(check, cublasLtMatmulAlgoCheck);
FUNCTION(matmul, cublasLtMatmul);
