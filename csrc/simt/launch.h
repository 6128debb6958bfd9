// The host's side of a kernel body: submit() puts one launch on the stream of a call. The same launchers serve every
// target: nvcc compiles them with the bodies, the tests' emulator compiles them with a submit of its own.
#pragma once
#include <cstring>

#include "core/launch.h"
#include "simt/simt.h"

namespace baracuda::simt {

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};
inline constexpr int64_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;

// Runs Body::run on grid.x * grid.y * grid.z blocks of `threads` (a multiple of 32, at most Body::kThreads). A grid
// with a zero is nothing to do.
template <class Body>
Status submit(const Launch& launch, Grid grid, int threads, const typename Body::Params& params);

// Where the kernels of the call's device report what they find wrong in the data.
Fault* fault_of(const Launch& launch);

static_assert(int(Element::Bool) == kBool && int(Element::U64) == kU64 && int(Element::I8) == kI8 &&
              int(Element::I64) == kI64 && int(Element::F16) == kF16 && int(Element::BF16) == kBF16 &&
              int(Element::F32) == kF32 && int(Element::F64) == kF64);
static_assert(int(ValueRange::Finite) == kFinite && int(ValueRange::Unit) == kUnit &&
              int(ValueRange::NotNegative) == kNotNegative && int(ValueRange::PositiveSum) == kPositiveSum);

// Bodies launched on so many blocks loop over what is left: the tests build with 3, so that they have to.
#ifndef BCU_MOST_BLOCKS
#define BCU_MOST_BLOCKS kMaxGridX
#endif
constexpr int64_t blocks_for(int64_t work, int64_t per_block) {
  int64_t n = (work + per_block - 1) / per_block;
  return n < BCU_MOST_BLOCKS ? n : BCU_MOST_BLOCKS;
}

// Exact for numerators below 2^31.
inline Divider divider(int64_t divisor) {
  Divider d{static_cast<uint32_t>(divisor), 0, 0};
  if (divisor <= 1) return d.divisor = 1, d;
  while ((uint64_t{1} << d.shift) < static_cast<uint64_t>(divisor)) ++d.shift;
  d.shift -= 1;  // divisor > 2^shift, so that the magic number fits in 32 bits
  d.magic = static_cast<uint32_t>(((uint64_t{1} << (32 + d.shift)) + divisor - 1) / divisor);
  return d;
}

// A scalar of the call as bodies read it.
inline Number number_of(const Scalar& s) {
  Number n{};
  n.data = s.data;
  n.element = static_cast<int32_t>(s.element);
  if (s.data) return n;
  const bool is_float = s.kind == Scalar::Kind::Float;
  const double d = is_float ? s.f : s.kind == Scalar::Kind::Int ? double(s.i) : double(s.u);
  n.f = static_cast<float>(d);
  std::memcpy(&n.real, &d, 8);
  n.whole = !is_float ? s.i : d < 0x1p63 ? static_cast<int64_t>(d) : static_cast<int64_t>(static_cast<uint64_t>(d));
  return n;
}

// Calls f(T{}) with the type that an f16, bf16, f32 or f64 element is stored as. Metal has no f64.
template <class Function>
Status with_float(Element e, Function&& f) {
  switch (e) {
    case Element::F16:
      return f(f16{});
    case Element::BF16:
      return f(bf16{});
    case Element::F32:
      return f(float{});
#if BCU_HAS_F64
    case Element::F64:
      return f(double{});
#endif
    default:
      return Status::Unsupported;
  }
}

// The 8 bytes of a number that from_bits<C> reads.
template <class C>
int64_t bits_of(C value) {
  if constexpr (sizeof(C) == 4) return math::bit_cast<uint32_t>(value);
  return math::bit_cast<int64_t>(static_cast<double>(value));
}

}  // namespace baracuda::simt

#if defined(__CUDACC__)
#include "simt/submit_cuda.h"
#elif defined(BCU_METAL_LAUNCHERS)
#include "simt/submit_metal.h"
#else
#include "simt/submit_host.h"
#endif
