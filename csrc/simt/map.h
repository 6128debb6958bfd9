// The elementwise driver of GPU kernels, as core/tile.h is the CPU's: a functor of one compute type is applied to every
// element of up to 8 operands of any strides and stored elements.
//
//   struct Silu {
//     enum : int { kIn = 1, kOut = 1 };
//     template <class C, class X>  // X: the functor's own parameters, or Nothing
//     BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT X& extra, int64_t at);
//   };
#pragma once
#include "simt/simt.h"

namespace baracuda::simt {

enum : int { kMaxDims = 8 };

struct Nothing {
  int32_t unused;
};

// Operands: outputs first. Null data marks an output that nobody wants.
template <int kOperands, class X>
struct MapParams {
  BCU_GLOBAL void* data[kOperands];
  int64_t stride[kOperands][kMaxDims];  // in elements, innermost dimension first
  int64_t shape[kMaxDims];              // innermost first
  Divider divider[kMaxDims];
  int32_t element[kOperands];
  int32_t rank;
  int64_t count;
  X extra;
};

template <class Index>
struct UnsignedOf {
  using type = uint64_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};

// Any strides, any stored elements. Index: int32_t where all counts and offsets fit, int64_t otherwise.
template <class F, class C, class X, class Index>
struct MapStrided {
  enum : int { kOperands = F::kIn + F::kOut, kThreads = 256, kShared = 0 };
  using Params = MapParams<F::kIn + F::kOut, X>;
  using Unsigned = typename UnsignedOf<Index>::type;

  BCU_DEVICE uint32_t divide(BCU_CONSTANT Params& p, int d, uint32_t x) { return quotient(p.divider[d], x); }
  BCU_DEVICE uint64_t divide(BCU_CONSTANT Params& p, int d, uint64_t x) { return x / uint64_t(p.shape[d]); }

  BCU_DEVICE void element(BCU_CONSTANT Params& p, Index at) {
    Index offset[kOperands];
    for (int k = 0; k < kOperands; ++k) offset[k] = 0;
    Unsigned rest = Unsigned(at);
    for (int d = 0; d < p.rank; ++d) {
      Unsigned next = d + 1 < p.rank ? divide(p, d, rest) : Unsigned(0);
      Index c = Index(rest - next * Unsigned(p.shape[d]));
      rest = next;
      BCU_UNROLL for (int k = 0; k < kOperands; ++k) offset[k] += c * Index(p.stride[k][d]);
    }
    C in[F::kIn > 0 ? F::kIn : 1], out[F::kOut];
    BCU_UNROLL for (int k = 0; k < F::kIn; ++k) in[k] =
        load_element<C>(p.data[F::kOut + k], p.element[F::kOut + k], int64_t(offset[F::kOut + k]));
    F::apply(in, out, p.extra, int64_t(at));
    BCU_UNROLL for (int k = 0; k < F::kOut; ++k) if (p.data[k])
        store_element(p.data[k], p.element[k], int64_t(offset[k]), out[k]);
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    Index step = Index(ctx.gdim_x()) * Index(ctx.bdim());
    for (Index at = Index(ctx.bid_x()) * Index(ctx.bdim()) + Index(ctx.tid()); at < Index(p.count); at += step)
      element(p, at);
  }
};

// All operands contiguous, 16-byte aligned and stored as T.
template <class F, class T, class X>
struct MapPacked {
  enum : int { kOperands = F::kIn + F::kOut, kThreads = 256, kShared = 0 };
  using Params = MapParams<F::kIn + F::kOut, X>;
  using C = ComputeOf<T>;

  BCU_DEVICE void one(BCU_CONSTANT Params& p, int64_t at) {
    C in[F::kIn > 0 ? F::kIn : 1], out[F::kOut];
    BCU_UNROLL for (int k = 0; k < F::kIn; ++k) in[k] = Stored<T>::load(((BCU_GLOBAL const T*)p.data[F::kOut + k])[at]);
    F::apply(in, out, p.extra, at);
    BCU_UNROLL for (int k = 0; k < F::kOut; ++k) if (p.data[k])((BCU_GLOBAL T*)p.data[k])[at] =
        Stored<T>::store(out[k]);
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t packs = p.count / Pack<T>::kCount, step = int64_t(ctx.gdim_x()) * ctx.bdim();
    int64_t me = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid();
    for (int64_t i = me; i < packs; i += step) {
      Pack<T> in[F::kIn > 0 ? F::kIn : 1], out[F::kOut];
      BCU_UNROLL for (int k = 0; k < F::kIn; ++k) in[k] = ((BCU_GLOBAL const Pack<T>*)p.data[F::kOut + k])[i];
      BCU_UNROLL for (int j = 0; j < Pack<T>::kCount; ++j) {
        C a[F::kIn > 0 ? F::kIn : 1], b[F::kOut];
        BCU_UNROLL for (int k = 0; k < F::kIn; ++k) a[k] = Stored<T>::load(in[k].v[j]);
        F::apply(a, b, p.extra, i * Pack<T>::kCount + j);
        BCU_UNROLL for (int k = 0; k < F::kOut; ++k) out[k].v[j] = Stored<T>::store(b[k]);
      }
      BCU_UNROLL for (int k = 0; k < F::kOut; ++k) if (p.data[k])((BCU_GLOBAL Pack<T>*)p.data[k])[i] = out[k];
    }
    int64_t tail = packs * Pack<T>::kCount + me;
    if (tail < p.count) one(p, tail);
  }
};

}  // namespace baracuda::simt
