// Launches matrix products on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/matmul/problem.h"
#include "ops/matmul/simt_mma.h"
#include "ops/matmul/simt_quantized.h"
#include "ops/matmul/simt_square.h"
#include "ops/matmul/simt_thin.h"
#include "ops/matmul/skus.h"
#include "simt/launch.h"

namespace baracuda::matmul {

inline SimtMatrix in_elements(const Matrix& x, int64_t size) {
  SimtMatrix s{};
  s.row = x.rs / size, s.column = x.cs / size;
  for (int i = 0; i < kBatchDims; ++i) s.batch[i] = x.batch[i] / size, s.part[i] = x.part[i] / size;
  return s;
}

inline TiledParams tiled_params(const Launch& launch, const Gemm& g) {
  const int64_t size = size_of(launch.element), stored = size_of(g.d.element);
  TiledParams p{};
  p.a = g.a.data, p.b = g.b.data, p.c = g.c.data, p.bias = g.bias.data, p.d = g.d.data;
  p.as = in_elements(g.a, size), p.bs = in_elements(g.b, size);
  p.cs = in_elements(g.c, stored), p.ds = in_elements(g.d, stored);
  p.bias_row = g.bias.rs / stored, p.bias_column = g.bias.cs / stored;
  p.scale_a = reinterpret_cast<const float*>(g.scale_a.data),
  p.scale_b = reinterpret_cast<const float*>(g.scale_b.data);
  p.scales_a = in_elements(g.scale_a, sizeof(float)), p.scales_b = in_elements(g.scale_b, sizeof(float));
  p.m = g.m, p.n = g.n, p.k = g.k, p.parts = g.parts;
  std::copy_n(g.batch_shape, kBatchDims, p.batch_shape);
  std::copy_n(g.part_shape, kBatchDims, p.part_shape);
  if (!g.quantized) {
    p.alpha = simt::number_of(launch.scalars[MatmulArgs::alpha]);
    p.beta = simt::number_of(launch.scalars[MatmulArgs::beta]);
  }
  p.batch_rank = g.batch_rank, p.part_rank = g.part_rank;
  p.a_along_k = std::abs(p.as.column) <= std::abs(p.as.row);
  p.b_along_k = std::abs(p.bs.row) < std::abs(p.bs.column);
  p.activation = g.activation;
  return p;
}

template <class Body>
Status submit_tiles_of(const Launch& launch, const Gemm& g) {
  TiledParams p = tiled_params(launch, g);
  p.row_tiles = (g.m + Body::kTile - 1) / Body::kTile, p.column_tiles = (g.n + Body::kTile - 1) / Body::kTile;
  const int64_t blocks = g.batch * p.row_tiles * p.column_tiles;
  return blocks > simt::kMaxGridX ? Status::Unsupported : simt::submit<Body>(launch, {blocks}, Body::kThreads, p);
}

template <class T, int kSide>
Status submit_tiles(const Launch& launch, const Gemm& g) {
  return submit_tiles_of<Tiled<T, kSide>>(launch, g);
}

// Large tiles read less, small ones give every multiprocessor something to do.
inline constexpr int64_t kManyTiles = 128;
inline bool large_tiles(const Gemm& g) {
  return g.m > 64 && g.n > 64 && g.batch * ((g.m + 127) / 128) * ((g.n + 127) / 128) >= kManyTiles;
}

// Templates of the launch, so that a slice of the family compiles its own rows' kernels only; what others need of it
// has another name.
template <class L>
Status run_tiles(const L& launch, const Gemm& g) {
#if BCU_HAS_F64
  if (launch.element == Element::F64) return submit_tiles<double, 4>(launch, g);
#endif
  const bool large = large_tiles(g);
  switch (launch.element) {
    case Element::F16:
      return large ? submit_tiles<simt::f16, 8>(launch, g) : submit_tiles<simt::f16, 4>(launch, g);
    case Element::BF16:
      return large ? submit_tiles<simt::bf16, 8>(launch, g) : submit_tiles<simt::bf16, 4>(launch, g);
    case Element::F32:
      return large ? submit_tiles<float, 8>(launch, g) : submit_tiles<float, 4>(launch, g);
    default:
      return Status::Unsupported;
  }
}

// Whether lines of a matrix can be read in packs: `along` is the stride within a line, `across` that between lines.
inline bool lines_pack(const Matrix& x, int64_t along, int64_t across, int64_t size, const Gemm& g) {
  bool fit =
      along == size && across % simt::kPackBytes == 0 && reinterpret_cast<uintptr_t>(x.data) % simt::kPackBytes == 0;
  for (int i = 0; i < g.batch_rank; ++i) fit &= x.batch[i] % simt::kPackBytes == 0;
  return fit;
}

template <class Body>
Status submit_thin(const Launch& launch, const Gemm& g, int64_t columns) {
  TiledParams p = tiled_params(launch, g);
  p.column_tiles = (g.n + columns - 1) / columns;
  const int64_t blocks = g.batch * p.column_tiles;
  return blocks > simt::kMaxGridX ? Status::Unsupported : simt::submit<Body>(launch, {blocks}, Body::kThreads, p);
}

template <class T, int kRows>
Status run_thin_as(const Launch& launch, const Gemm& g) {
  const int64_t size = sizeof(T), pack = 16 / size;
  if (g.k % pack == 0 && lines_pack(g.b, g.b.rs, g.b.cs, size, g) && lines_pack(g.a, g.a.cs, g.a.rs, size, g))
    return submit_thin<ThinDots<T, kRows>>(launch, g, 8);
  if (g.n % pack == 0 && lines_pack(g.b, g.b.cs, g.b.rs, size, g))
    return submit_thin<ThinColumns<T, kRows>>(launch, g, ThinColumns<T, kRows>::kColumns);
  return run_tiles(launch, g);
}

template <class L>
Status run_tiled(const L& launch) {
  Gemm g;
  return read_tensors(launch, true, g) ? run_tiles(launch, g) : Status::Ok;
}

template <class L>
Status run_squares(const L& launch) {
  Gemm g;
  if (!read_tensors(launch, true, g)) return Status::Ok;
  return simt::with_float(launch.element, [&](auto t) { return submit_tiles_of<SquareTiled<decltype(t)>>(launch, g); });
}

// Falls back to tiles where strides do not suit.
template <class L>
Status run_thin(const L& launch) {
  Gemm g;
  if (!read_tensors(launch, true, g)) return Status::Ok;
  if (g.n < g.m) transpose(g);
  if (g.m > kThinRows || g.parts > 1 || g.k == 0 || g.k > kThinDepth) return run_tiles(launch, g);
  return simt::with_float(launch.element, [&](auto t) {
    using T = decltype(t);
    return g.m == 1 ? run_thin_as<T, 1>(launch, g) : run_thin_as<T, kThinRows>(launch, g);
  });
}

// How copies of 16 bytes can read a matrix.
enum class Along { Neither, K, Lines };
inline Along along(const Matrix& x, int64_t line, int64_t k, const Gemm& g) {
  Along found = lines_pack(x, k, line, 2, g) ? Along::K : lines_pack(x, line, k, 2, g) ? Along::Lines : Along::Neither;
  for (int i = 0; i < g.part_rank; ++i)
    if (x.part[i] % 16 != 0) found = Along::Neither;
  return found;
}

template <class T, bool kALongK, bool kBLongK>
Status submit_mma(const Launch& launch, const Gemm& g) {
  return large_tiles(g) ? submit_tiles_of<MmaTiled<T, 128, kALongK, kBLongK>>(launch, g)
                        : submit_tiles_of<MmaTiled<T, 64, kALongK, kBLongK>>(launch, g);
}
template <class T>
Status run_mma_as(const Launch& launch, const Gemm& g, Along a, Along b) {
  if (a == Along::K)
    return b == Along::K ? submit_mma<T, true, true>(launch, g) : submit_mma<T, true, false>(launch, g);
  return b == Along::K ? submit_mma<T, false, true>(launch, g) : submit_mma<T, false, false>(launch, g);
}
// Strides that do not suit go to tiles without tensor cores.
template <class L>
Status run_mma(const L& launch, const Gemm& g) {
  const Along a = along(g.a, g.a.rs, g.a.cs, g), b = along(g.b, g.b.cs, g.b.rs, g);
  if (a == Along::Neither || b == Along::Neither) return run_tiles_there(launch, g);
  return launch.element == Element::F16 ? run_mma_there(simt::f16{}, launch, g, a, b)
                                        : run_mma_there(simt::bf16{}, launch, g, a, b);
}

// Integers of one element: only their size matters.
template <class L>
Status run_whole(const L& launch) {
  Gemm g;
  if (!read_tensors(launch, true, g)) return Status::Ok;
  switch (size_of(launch.element)) {
    case 1:
      return submit_tiles<Whole<uint8_t, uint32_t>, 4>(launch, g);
    case 2:
      return submit_tiles<Whole<uint16_t, uint32_t>, 4>(launch, g);
    case 4:
      return submit_tiles<Whole<uint32_t, uint32_t>, 4>(launch, g);
    default:
      return submit_tiles<Whole<uint64_t, uint64_t>, 4>(launch, g);
  }
}

template <class In, class L>
Status run_scaled_as(const L& launch, const Gemm& g) {
  switch (launch.aux) {
    case Element::F32:
      return submit_tiles<Scaled<In, float>, 4>(launch, g);
    case Element::F16:
      return submit_tiles<Scaled<In, simt::f16>, 4>(launch, g);
    default:
      return submit_tiles<Scaled<In, simt::bf16>, 4>(launch, g);
  }
}
template <class L>
Status run_scaled(const L& launch, const Gemm& g) {
  if (launch.element == Element::F8E4M3) return run_scaled_as<uint8_t>(launch, g);
  if (launch.aux == Element::I32) return submit_tiles<Scaled<int8_t, int32_t>, 4>(launch, g);
  return run_scaled_as<int8_t>(launch, g);
}

// What slices need of each other, which cuda.cu defines; in a family that is not sliced, the functions themselves.
#if BCU_SLICES > 1
Status run_tiles_there(const Launch& launch, const Gemm& g);
Status run_mma_there(simt::f16, const Launch& launch, const Gemm& g, Along a, Along b);
Status run_mma_there(simt::bf16, const Launch& launch, const Gemm& g, Along a, Along b);
Status run_mma_or_tiles(const Launch& launch, const Gemm& g);
Status run_scaled_there(const Launch& launch, const Gemm& g);
#else
template <class L>
Status run_tiles_there(const L& launch, const Gemm& g) {
  return run_tiles(launch, g);
}
template <class T, class L>
Status run_mma_there(T, const L& launch, const Gemm& g, Along a, Along b) {
  return run_mma_as<T>(launch, g, a, b);
}
template <class L>
Status run_mma_or_tiles(const L& launch, const Gemm& g) {
  return run_mma(launch, g);
}
template <class L>
Status run_scaled_there(const L& launch, const Gemm& g) {
  return run_scaled(launch, g);
}
#endif

}  // namespace baracuda::matmul

namespace baracuda {

// Tensor cores' kernels apart from the others, and those of integers and 8-bit elements.
template <>
inline constexpr int kSimtSlice<matmul::TiledRow> = 0;
template <>
inline constexpr int kSimtSlice<matmul::ThinTiledRow> = 0;
template <>
inline constexpr int kSimtSlice<matmul::MmaRow> = 1;
template <>
inline constexpr int kSimtSlice<matmul::WholeRow> = 2;
template <>
inline constexpr int kSimtSlice<matmul::ScaledRow> = 2;

template <>
struct SimtKernel<matmul::TiledRow> {
  template <class L>
  static Status run(const L& launch) {
    return matmul::run_tiled(launch);
  }
};

template <>
struct SimtKernel<matmul::ThinTiledRow> {
  template <class L>
  static Status run(const L& launch) {
    return matmul::run_thin(launch);
  }
};

template <>
struct SimtKernel<matmul::SquareRow> {
  template <class L>
  static Status run(const L& launch) {
    return matmul::run_squares(launch);
  }
};

template <>
struct SimtKernel<matmul::MmaRow> {
  template <class L>
  static Status run(const L& launch) {
    matmul::Gemm g;
    return matmul::read_tensors(launch, true, g) ? matmul::run_mma(launch, g) : Status::Ok;
  }
};

template <>
struct SimtKernel<matmul::WholeRow> {
  template <class L>
  static Status run(const L& launch) {
    return matmul::run_whole(launch);
  }
};

template <>
struct SimtKernel<matmul::ScaledRow> {
  template <class L>
  static Status run(const L& launch) {
    matmul::Gemm g;
    return matmul::read_scaled(launch, g) ? matmul::run_scaled(launch, g) : Status::Ok;
  }
};

}  // namespace baracuda
