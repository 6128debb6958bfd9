// OpenBLAS for f32 and f64 products, opened when it is first asked for. Its own threads stay off: they would change
// bits.
#pragma once
#include "core/api.h"

namespace baracuda {

enum class BlasOrder : int { RowMajor = 101 };
enum class BlasTranspose : int { No = 111, Yes = 112 };

template <class T>
using BlasGemm = void (*)(BlasOrder order, BlasTranspose a_is, BlasTranspose b_is, int m, int n, int k, T alpha,
                          const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);

struct Blas {
  BlasGemm<float> sgemm = nullptr;
  BlasGemm<double> dgemm = nullptr;
};

// Null when the library cannot be opened; blas_origin() then says why, else which file it is. Both stay the same from
// the first call on.
BCU_API const Blas* blas() noexcept;
BCU_API const char* blas_origin() noexcept;

// Where to look first, if called before the first use: a file, as the Python package knows it. Then the folder of
// libbaracuda is searched, then what the system's loader finds.
BCU_API void set_blas_path(const char* path) noexcept;

}  // namespace baracuda
