// The SKU table of matrix products: out = alpha * a @ b + beta * c + bias.
#pragma once
#include <algorithm>

#include "backends/cpu/blas.h"
#include "backends/libraries.h"
#include "core/row.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/strided.h"

namespace baracuda::matmul {

enum Param { kA, kB, kC, kBias, kOut };

struct ThinRow {};
struct Bf16DotRow {};
struct PackedRow {};
struct BlasRow {};
struct TiledRow {};
struct ThinTiledRow {};
struct LtRow {};
struct MmaRow {};

// Sizes of a problem whose last `merged` batch dimensions have become rows.
struct Sizes {
  int64_t batch = 1, parts = 1, m = 0, n = 0, k = 0;
};
inline Sizes sizes(const Problem& p, int merged) {
  const ParamMeta &a = p.params[kA], &b = p.params[kB], &out = p.params[kOut];
  Sizes s;
  s.m = out.shape[out.rank - 2], s.n = out.shape[out.rank - 1], s.k = a.shape[a.rank - 1];
  auto size = [](const ParamMeta& t, int from_last) {
    return from_last < t.rank ? t.shape[t.rank - 1 - from_last] : 1;
  };
  for (int i = 2; i < std::max({a.rank, b.rank, out.rank}); ++i) {
    const int64_t kept = size(out, i), read = std::max(size(a, i), size(b, i));
    if (kept < read) s.parts *= read;
    (i - 2 < merged ? s.m : s.batch) *= kept;
  }
  return s;
}
// What is summed over may become one long sum.
inline int64_t packed_bytes(const Sizes& s, int64_t sum) {
  return std::max(workspace_bytes(s.batch, s.parts, s.m, s.n, s.k, sum, sum),
                  workspace_bytes(s.batch, 1, s.m, s.n, s.k * s.parts, sum, sum));
}

// Kernels merge dimensions where strides allow, which is known at run only: enough for every case.
inline int64_t packed_scratch(const Problem& p) {
  const int64_t sum = p.element == Element::F64 ? 8 : 4;
  int64_t most = 0;
  for (int merged = 0; merged <= p.params[kOut].rank - 2; ++merged) {
    most = std::max(most, packed_bytes(sizes(p, merged), sum));
  }
  return most;
}
inline int64_t thin_scratch(const Problem& p) {
  const Sizes s = sizes(p, 0);
  return std::max(packed_scratch(p), thin_bytes(s.batch, s.k * s.parts, p.element == Element::F64 ? 8 : 4));
}

inline Reason thin_enough(const Problem& p) {
  const ParamMeta& b = p.params[kB];
  bool one_b = true;
  for (int i = 0; i < b.rank - 2; ++i) one_b &= b.shape[i] == 1;
  const Sizes s = sizes(p, one_b ? p.params[kOut].rank - 2 : 0);
  if (std::min(s.m, s.n) <= kMaxThin) return {};
  return {"shape", "a product with at most 8 rows or columns", "the packed row takes larger ones"};
}

inline Reason blas_opens(const Problem&) {
  if (blas()) return {};
  return {"library", "OpenBLAS (package scipy-openblas32)", blas_origin()};
}

template <class Tag>
constexpr auto product(const char* variant) {
  return row<Tag>("matmul").name(variant).in_place_of(1u << kC).scratch(packed_scratch);
}

// Sums are built in blocks of 256 products, which bounds their error by 8 eps sqrt(K) for every K up to 2^24.
inline constexpr auto kCpu =
    table(product<ThinRow>("thin")
              .takes(kFloats)
              .sum(8)
              .not_batch_invariant()
              .only_if(thin_enough)
              .scratch(thin_scratch)
              .prefer(40, "Zen4, 2026-11-21"),
          // Products small enough to meet vdpbf16ps's flushing to zero send the whole call to the packed kernel.
          product<Bf16DotRow>("bf16_dot")
              .takes(set_of(Element::BF16))
              .sum(8)
              .not_batch_invariant()
              .arch(5)
              .prefer(30, "Zen4, 2026-11-21"),
          product<PackedRow>("packed").takes(kFloats).sum(8).prefer(20, "Zen4, 2026-11-21"),
          // OpenBLAS builds sums in blocks of up to 448 products, and picks kernels by the size of a tile.
          product<BlasRow>("blas")
              .takes(Element::F32 | Element::F64)
              .sum(11)
              .not_batch_invariant()
              .only_if(blas_opens)
              .prefer(10, "Zen4, 2026-11-21"));

// GPUs build sums in blocks of 256 products, too, whatever the size of their tiles.
inline constexpr auto kSimt = table(row<TiledRow>("matmul").takes(kFloats).sum(8).in_place_of(1u << kC));

// Few rows or columns: B is read once, in another order of sums.
inline constexpr auto kSimtThin = table(
    row<ThinTiledRow>("matmul").takes(kFloats).sum(8).in_place_of(1u << kC).not_batch_invariant().only_if(thin_enough));

// Tensor cores cut off where they add: 17 eps for each 16 products at worst, in blocks of 256. Layouts that 16-byte
// copies cannot read go to tiles without tensor cores, and those of one row have fewer strides.
inline constexpr auto kSimtMma = table(
    row<MmaRow>("matmul").takes(Element::F16 | Element::BF16).sum(17).in_place_of(1u << kC).not_batch_invariant());

template <class... Tags>
constexpr auto preferred(Table<Tags...> t, const char* variant, int preference) {
  for (Row& r : t.rows) r.variant = variant, r.preference = preference;
  return t;
}

inline Reason cublaslt_takes(const Problem& p) {
  const FoundLibrary& found = library(Library::CublasLt);
  if (!found.handle) return {"library", "cuBLASLt", found.reason.c_str()};
  return strided_enough(p);
}

// cuBLASLt says nothing about its errors. These promises hold for sums built one product after another: K terms, each
// added with half an eps, are within 128 eps sqrt(K) up to the K that the rows take. Tensor cores cut instead of
// rounding: twice that. TF32 drops 13 bits of both factors, 2^14 eps of every product, whatever K is.
template <class Row>
constexpr auto by_cublaslt(Row r, const char* variant) {
  r = r.in_place_of(1u << kC).not_batch_invariant().only_if(cublaslt_takes).arch(kLeastCudaArch);
  return table(
      r.on(Backend::Cuda).name(variant).prefer(5, "").with([](baracuda::Row& x) { x.proof = Proof::Compiled; }));
}
inline constexpr auto kCublasLt =
    join(by_cublaslt(row<LtRow>("matmul").takes(Element::F32 | Element::F64).sum(128), "cublaslt"),
         by_cublaslt(row<LtRow>("matmul").takes(Element::F16 | Element::BF16).sum(256), "cublaslt"),
         by_cublaslt(row<LtRow>("matmul").takes(set_of(Element::F32)).sum(16640).math(MathPrecision::Tf32),
                     "cublaslt_tf32"));

inline constexpr auto kTable =
    join(kCpu, preferred(on_cuda(kSimtThin), "simt_thin", 10), kCublasLt, preferred(on_cuda(kSimtMma), "simt_mma", 2),
         on_cuda(kSimt), preferred(on_metal(kSimtThin), "simt_thin", 10), on_metal(kSimt));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::matmul
