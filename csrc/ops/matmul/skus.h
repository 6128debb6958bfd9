// The SKU table of matrix products: matmul, out = act(alpha * a @ b + beta * c + bias), and scaled_matmul, of 8-bit
// elements, out = act(scale_a * scale_b * (a @ b) + bias).
#pragma once
#include <algorithm>
#include <utility>

#include "backends/cpu/blas.h"
#include "core/libraries.h"
#include "core/row.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/strided.h"

namespace baracuda::matmul {

struct ThinRow {};
struct Bf16DotRow {};
struct PackedRow {};
struct BlasRow {};
struct TiledRow {};
struct ThinTiledRow {};
struct LtRow {};
struct MmaRow {};
struct SquareRow {};
struct WholeRow {};
struct ScaledRow {};
struct VnniRow {};
struct ScaledLtRow {};
struct GatedThinRow {};

// Sizes of a problem whose last `merged` batch dimensions have become rows.
struct Sizes {
  int64_t batch = 1, parts = 1, m = 0, n = 0, k = 0;
};
template <class Args>
Sizes sizes(const Problem& p, int merged) {
  const ParamMeta &a = p.params[Args::a], &b = p.params[Args::b], &out = p.params[Args::out];
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
// What is summed over may become one long sum, and a result that lies in columns is computed as its transpose.
inline int64_t packed_bytes(const Sizes& s, int64_t unit, int64_t sum) {
  int64_t most = 0;
  for (const auto& [m, n] : {std::pair(s.m, s.n), std::pair(s.n, s.m)}) {
    most = std::max({most, workspace_bytes(s.batch, s.parts, m, n, s.k, unit, sum),
                     workspace_bytes(s.batch, 1, m, n, s.k * s.parts, unit, sum)});
  }
  return most;
}

// Kernels merge dimensions where strides allow, which is known at run only: enough for every case.
template <class Args>
int64_t most_packed(const Problem& p, int64_t unit, int64_t sum) {
  int64_t most = 0;
  for (int merged = 0; merged <= p.params[Args::out].rank - 2; ++merged) {
    most = std::max(most, packed_bytes(sizes<Args>(p, merged), unit, sum));
  }
  return most;
}
inline int64_t packed_scratch(const Problem& p) {
  const int64_t sum = size_of(p.element) == 8 ? 8 : 4;
  return most_packed<MatmulArgs>(p, sum, sum);
}
// 8-bit elements are widened to 2 bytes or 4, as the level's instructions want it.
inline int64_t scaled_scratch(const Problem& p) { return most_packed<ScaledArgs>(p, 4, 4); }
inline int64_t vnni_scratch(const Problem& p) { return most_packed<ScaledArgs>(p, 1, 4); }
inline int64_t thin_scratch(const Problem& p) {
  const Sizes s = sizes<MatmulArgs>(p, 0);
  return std::max(packed_scratch(p), thin_bytes(s.batch, s.k * s.parts, p.element == Element::F64 ? 8 : 4));
}

// Sums of a gated product are kept in front of what making them takes.
inline int64_t gated_sums_bytes(const ParamMeta& out, Element e) {
  int64_t bytes = 2 * (e == Element::F64 ? 8 : 4);
  for (int i = 0; i < out.rank; ++i) bytes *= out.shape[i];
  return (bytes + 63) / 64 * 64;
}
inline int64_t gated_scratch(const Problem& p) {
  using Args = GatedMatmulArgs;
  const int64_t sum = p.element == Element::F64 ? 8 : 4;
  int64_t most = 0;
  for (int merged = 0; merged <= p.params[Args::out].rank - 2; ++merged) {
    Sizes s = sizes<Args>(p, merged);
    s.n *= 2;
    most = std::max({most, packed_bytes(s, sum, sum), thin_bytes(s.batch, s.k, sum)});
  }
  return gated_sums_bytes(p.params[Args::out], p.element) + most;
}

template <class Args>
Reason thin_enough(const Problem& p) {
  const ParamMeta& b = p.params[Args::b];
  bool one_b = true;
  for (int i = 0; i < b.rank - 2; ++i) one_b &= b.shape[i] == 1;
  const Sizes s = sizes<Args>(p, one_b ? p.params[Args::out].rank - 2 : 0);
  if (std::min(s.m, s.n) <= kMaxThin) return {};
  return {"shape", "a product with at most 8 rows or columns", "the packed row takes larger ones"};
}

inline Reason blas_opens(const Problem&) {
  if (blas()) return {};
  return {"library", "OpenBLAS (package scipy-openblas32)", blas_origin()};
}

template <class Tag>
constexpr auto gpu_product() {
  const auto plain = row<Tag>("matmul").template args_of<MatmulArgs>().template attrs_of<MatmulAttrs>();
  return plain.in_place_of(1u << MatmulArgs::c);
}
template <class Tag>
constexpr auto product(const char* variant) {
  return gpu_product<Tag>().name(variant).scratch(packed_scratch);
}

inline constexpr Elements kS8 = set_of(Element::I8), kF8 = set_of(Element::F8E4M3);
inline constexpr Elements kS32 = set_of(Element::I32), kScaledFloats = kHalves | Element::F32;

// 8-bit integers are summed exactly; as floats they are rounded once, and by each scale and the bias: 4 halves of an
// eps. Sums of 8-bit floats are built as matmul's, of products that are exact.
template <class Tag>
constexpr auto scaled(const char* variant) {
  const auto plain = row<Tag>("scaled_matmul").name(variant);
  return plain.template args_of<ScaledArgs>().template attrs_of<MatmulAttrs>();
}
template <class Tag>
constexpr auto scaled_integers(const char* exact, const char* floats, WorkspaceRule scratch = nullptr) {
  const auto r = scaled<Tag>(exact).scratch(scratch);
  return table(r.takes(kS8, kS32).sums_in(Element::I32).exact(),
               r.name(floats).takes(kS8, kScaledFloats).sums_in(Element::F32).sum(2));
}
template <class Tag>
constexpr auto scaled_f8(const char* variant) {
  return scaled<Tag>(variant).takes(kF8, kScaledFloats).sums_in(Element::F32).sum(9);
}

// bfdot rounds to odd, once for a pair and once where it is added: an eps each, for 128 pairs of a block 129 eps.
#if defined(__aarch64__)
inline constexpr double kBf16DotSum = 9;
#else
inline constexpr double kBf16DotSum = 8;
#endif

// Sums are built in blocks of 256 products, which bounds their error by 8 eps sqrt(K) for every K up to 2^24.
inline constexpr auto kCpu =
    table(product<ThinRow>("thin")
              .takes(kFloats)
              .sum(8)
              .not_batch_invariant()
              .only_if(thin_enough<MatmulArgs>)
              .scratch(thin_scratch)
              .prefer(40, "Zen4, 2026-11-21"),
          // Products small enough to meet the flushing to zero of vdpbf16ps and bfdot send their rows, or the whole
          // call, to the packed kernel.
          product<Bf16DotRow>("bf16_dot")
              .takes(set_of(Element::BF16))
              .sum(kBf16DotSum)
              .not_batch_invariant()
              .arch(5)
              .prefer(30, "Zen4, 2026-11-21"),
          product<PackedRow>("packed").takes(kFloats).sum(8).prefer(20, "Zen4, 2026-11-21"),
          product<WholeRow>("packed").takes(kInts).exact(),
          // OpenBLAS builds sums in blocks of up to 448 products, and picks kernels by the size of a tile.
          product<BlasRow>("blas")
              .takes(Element::F32 | Element::F64)
              .sum(11)
              .not_batch_invariant()
              .only_if(blas_opens)
              .prefer(10, "Zen4, 2026-11-21"));

template <class... Tags>
constexpr auto at_level(Table<Tags...> t, int level, int preference, const char* where) {
  for (Row& r : t.rows) r.min_arch = level, r.preference = preference, r.measured = where;
  return t;
}
inline constexpr auto kScaledCpu =
    at_level(scaled_integers<VnniRow>("vnni", "vnni_scaled", vnni_scratch), 5, 20, "Zen4, 2026-11-21") +
    scaled_integers<ScaledRow>("packed", "packed_scaled", scaled_scratch) +
    table(scaled_f8<ScaledRow>("packed").scratch(scaled_scratch));

// A decoding step's feed-forward block; the gate's own few ulp are within what its sums are promised.
inline constexpr auto kGated = table(row<GatedThinRow>("gated_matmul")
                                         .name("thin")
                                         .args_of<GatedMatmulArgs>()
                                         .attrs_of<GatedMatmulAttrs>()
                                         .takes(kFloats)
                                         .sum(9)
                                         .not_batch_invariant()
                                         .only_if(thin_enough<GatedMatmulArgs>)
                                         .scratch(gated_scratch));

// GPUs build sums in blocks of 256 products, too, whatever the size of their tiles.
inline constexpr auto kSimt =
    table(gpu_product<TiledRow>().takes(kFloats).sum(8), gpu_product<WholeRow>().takes(kInts).exact());
inline constexpr auto kSimtScaled =
    scaled_integers<ScaledRow>("simt", "simt_scaled") + table(scaled_f8<ScaledRow>("simt"));

// Few rows or columns: B is read once, in another order of sums.
inline constexpr auto kSimtThin =
    table(gpu_product<ThinTiledRow>().takes(kFloats).sum(8).not_batch_invariant().only_if(thin_enough<MatmulArgs>));

// Tensor cores cut off where they add: 17 eps for each 16 products at worst, in blocks of 256. Layouts that 16-byte
// copies cannot read go to tiles without tensor cores, and those of one row have fewer strides.
inline constexpr auto kSimtMma =
    table(gpu_product<MmaRow>().takes(Element::F16 | Element::BF16).sum(17).not_batch_invariant());

// Nobody says in which order Apple's GPUs add the 8 products of a step, nor how they round: each addition is taken to
// cut off, and each product to be rounded by itself. Metal takes row.arch for the number of the Apple family.
inline constexpr int kLeastSquareFamily = 7;
template <class... Tags>
constexpr auto of_family(Table<Tags...> t, int family) {
  for (Row& r : t.rows) r.min_arch = family;
  return t;
}
inline constexpr auto kSimtSquare = table(gpu_product<SquareRow>().takes(kFloats).sum(17));

template <class... Tags>
constexpr auto preferred(Table<Tags...> t, const char* variant, int preference) {
  for (Row& r : t.rows) r.variant = variant, r.preference = preference;
  return t;
}

// cuBLASLt does not say what its RELU makes of NaN, nor how near its GELU comes; its other functions are none of ours.
inline constexpr AttrRange kNoEpilogue[] = {{"activation", kNoActivation, kNoActivation,
                                             "none: cuBLASLt promises nothing about its own",
                                             "the portable rows apply it in f32"}};
inline Reason cublaslt_takes(const Problem& p) {
  const FoundLibrary& found = library(Library::CublasLt);
  if (!found.handle) return {"library", "cuBLASLt", found.reason.c_str()};
  return strided_enough(p);
}

// cuBLASLt says nothing about its errors. These promises hold for sums built one product after another: K terms, each
// added with half an eps, are within 128 eps sqrt(K) up to the K that the rows take. Tensor cores cut instead of
// rounding: twice that. TF32 drops 13 bits of both factors, 2^14 eps of every product, whatever K is.
inline constexpr int kLeastF8Arch = 89;
template <class Row>
constexpr auto by_cublaslt(Row r, const char* variant) {
  r = r.not_batch_invariant().only_if(cublaslt_takes).only_in(kNoEpilogue).arch(kLeastCudaArch);
  return table(
      r.on(Backend::Cuda).name(variant).prefer(5, "").with([](baracuda::Row& x) { x.proof = Proof::Compiled; }));
}
inline constexpr auto kCublasLt =
    join(by_cublaslt(gpu_product<LtRow>().takes(Element::F32 | Element::F64).sum(128), "cublaslt"),
         by_cublaslt(gpu_product<LtRow>().takes(Element::F16 | Element::BF16).sum(256), "cublaslt"),
         by_cublaslt(gpu_product<LtRow>().takes(set_of(Element::F32)).sum(16640).math(MathPrecision::Tf32),
                     "cublaslt_tf32"));

// 8-bit integers to 32 bits, which cuBLASLt multiplies in one layout only: A's rows and B's columns contiguous.
inline Reason cublaslt_scales(const Problem& p) {
  const FoundLibrary& found = library(Library::CublasLt);
  if (!found.handle) return {"library", "cuBLASLt", found.reason.c_str()};
  return scaled_enough(p);
}
// Hopper's tensor cores keep 13 bits behind the largest of 32 products of 8-bit floats while they add them, and add
// four such sums before they leave in f32: 4 * 2^-13, 2^12 eps of f32, and as much again for what nobody has written
// down.
inline constexpr auto kScaledLt =
    table(scaled<ScaledLtRow>("cublaslt").takes(kS8, kS32).sums_in(Element::I32).exact().arch(kLeastCudaArch),
          scaled<ScaledLtRow>("cublaslt")
              .takes(kF8, kScaledFloats)
              .sums_in(Element::F32)
              .sum(8192)
              .not_batch_invariant()
              .arch(kLeastF8Arch));
template <class... Tags>
constexpr auto compiled_for_cuda(Table<Tags...> t, int preference) {
  for (Row& r : t.rows)
    r.backend = Backend::Cuda, r.check = cublaslt_scales, r.proof = Proof::Compiled, r.preference = preference;
  return t;
}

// A table's rows for a GPU with the variants that they have.
template <class... Tags>
constexpr auto with_names(Table<Tags...> on_gpu, const Table<Tags...>& named) {
  for (size_t i = 0; i < named.rows.size(); ++i) on_gpu.rows[i].variant = named.rows[i].variant;
  return on_gpu;
}

inline constexpr auto kTable =
    join(kCpu, kScaledCpu, kGated, preferred(on_cuda(kSimtThin), "simt_thin", 10), kCublasLt,
         preferred(on_cuda(kSimtMma), "simt_mma", 2), on_cuda(kSimt), compiled_for_cuda(kScaledLt, 5),
         with_names(on_cuda(kSimtScaled), kSimtScaled), preferred(on_metal(kSimtThin), "simt_thin", 10),
         preferred(of_family(on_metal(kSimtSquare), kLeastSquareFamily), "simdgroup", 2), on_metal(kSimt),
         with_names(on_metal(kSimtScaled), kSimtScaled));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::matmul
