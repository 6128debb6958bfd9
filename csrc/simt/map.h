// The elementwise driver of GPU kernels, as host/tile.h is the CPU's: a function of one element, the same that the CPU
// runs, is applied to every element of up to 8 operands of any strides, stored elements and broadcasting.
//
//   struct Silu {
//     template <class C>
//     BCU_FN C f(C x) { ... }          // also bool, or Values<C, 2> where there are two outputs
//   };
//
// One kernel per function and compute type. Where every operand is contiguous along the innermost dimension or does not
// change there, a thread takes 32 bytes of compute type at once: it reads what is stored in 16 byte words first and
// converts afterwards, so that all reads are under way together. Otherwise threads take single elements, neighbours
// next to each other.
#pragma once
#include "core/values.h"
#include "simt/pack.h"
#include "simt/simt.h"

namespace baracuda::simt {

enum : int { kMaxDims = 8 };

// A function that also needs data of its own or an element's place has parameters X and, instead of f,
//   template <class C> BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT X&, int64_t at);
// `at` is then the element's position in the space as it was given; otherwise dimensions are put in another order.
struct Nothing {
  int32_t unused;
};

// Where operands lie: the same for every function of so many.
template <int kIn, int kOut>
struct MapFrame {
  BCU_GLOBAL void* data[kIn + kOut];  // outputs first; null: an output that nobody wants, or an input that is a number
  int64_t number[kIn];                // bits of the compute type
  int64_t first;                      // the position of this launch's first element
  int32_t stride[kIn + kOut][kMaxDims];  // in elements, innermost dimension first
  Divider shape[kMaxDims];
  Divider row;  // packs in a run of the innermost dimension
  int32_t element[kIn + kOut];
  int32_t rank;
  uint32_t count, packs;
};
template <int kIn, int kOut, class X>
struct MapParams {
  MapFrame<kIn, kOut> frame;
  X extra;
};

// F::f of the values in an array.
template <int kIn>
struct Call;
#define BCU_SIMT_CALL(count, ...)               \
  template <>                                   \
  struct Call<count> {                          \
    template <class F, class C>                 \
    BCU_DEVICE auto of(BCU_THREAD const C* a) { \
      return F::f(__VA_ARGS__);                 \
    }                                           \
  };
BCU_SIMT_CALL(1, a[0])
BCU_SIMT_CALL(2, a[0], a[1])
BCU_SIMT_CALL(3, a[0], a[1], a[2])
BCU_SIMT_CALL(4, a[0], a[1], a[2], a[3])
BCU_SIMT_CALL(5, a[0], a[1], a[2], a[3], a[4])
BCU_SIMT_CALL(6, a[0], a[1], a[2], a[3], a[4], a[5])
BCU_SIMT_CALL(7, a[0], a[1], a[2], a[3], a[4], a[5], a[6])
BCU_SIMT_CALL(8, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
#undef BCU_SIMT_CALL

template <class C>
BCU_DEVICE void keep(C result, BCU_THREAD C* out) {
  out[0] = result;
}
template <class C>
BCU_DEVICE void keep(bool result, BCU_THREAD C* out) {
  out[0] = C(result);
}
template <class C, int N>
BCU_DEVICE void keep(Values<C, N> result, BCU_THREAD C* out) {
  BCU_UNROLL for (int k = 0; k < N; ++k) out[k] = result.v[k];
}

template <class F, int kIn, class C>
BCU_DEVICE void invoke(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT Nothing&, int64_t) {
  keep(Call<kIn>::template of<F>(in), out);
}
template <class F, int kIn, class C, class X>
BCU_DEVICE void invoke(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT X& extra, int64_t at) {
  F::apply(in, out, extra, at);
}

// Conversions write any element at once, other functions only those of their compute type.
template <class F>
struct Stores {
  enum : int { kAny = 0 };
};
template <>
struct Stores<Same> {
  enum : int { kAny = 1 };
};

// Takes dimension d's coordinate out of a position.
template <int kIn, int kOut>
BCU_DEVICE void advance(BCU_CONSTANT MapFrame<kIn, kOut>& p, int d, BCU_THREAD uint32_t& rest,
                        BCU_THREAD int32_t* offset) {
  uint32_t next = d + 1 < p.rank ? quotient(p.shape[d], rest) : 0u;
  int32_t c = int32_t(rest - next * p.shape[d].divisor);
  rest = next;
  BCU_UNROLL for (int k = 0; k < kIn + kOut; ++k) offset[k] += c * p.stride[k][d];
}

// The inputs of element `at`, and where its operands lie.
template <int kIn, int kOut, class C>
BCU_DEVICE void read_element(BCU_CONSTANT MapFrame<kIn, kOut>& p, uint32_t at, BCU_THREAD int32_t* offset,
                             BCU_THREAD C* in) {
  BCU_UNROLL for (int k = 0; k < kIn + kOut; ++k) offset[k] = 0;
  uint32_t rest = at;
  for (int d = 0; d < p.rank; ++d) advance(p, d, rest, offset);
  BCU_UNROLL for (int k = 0; k < kIn; ++k) in[k] =
      p.data[kOut + k] ? load_element<C>(p.data[kOut + k], p.element[kOut + k], offset[kOut + k])
                       : from_bits<C>(p.number[k]);
}

// The same for the pack `at`.
template <int kIn, int kOut, class C>
BCU_DEVICE void read_pack(BCU_CONSTANT MapFrame<kIn, kOut>& p, uint32_t at, BCU_THREAD int32_t* offset,
                          BCU_THREAD PackOf<C>* in) {
  uint32_t rest = p.rank > 1 ? quotient(p.row, at) : 0u;
  int32_t c = int32_t(at - rest * p.row.divisor) * PackOf<C>::kCount;
  BCU_UNROLL for (int k = 0; k < kIn + kOut; ++k) offset[k] = c * p.stride[k][0];
  for (int d = 1; d < p.rank; ++d) advance(p, d, rest, offset);
  BCU_UNROLL for (int k = 0; k < kIn; ++k) if (p.stride[kOut + k][0] != 0)
      PackOf<C>::read(in[k], p.data[kOut + k], p.element[kOut + k], offset[kOut + k]);
  BCU_UNROLL for (int k = 0; k < kIn; ++k) {
    if (p.stride[kOut + k][0] != 0)
      PackOf<C>::convert(in[k], p.element[kOut + k]);
    else if (p.data[kOut + k])
      PackOf<C>::fill(in[k], load_element<C>(p.data[kOut + k], p.element[kOut + k], offset[kOut + k]));
    else
      PackOf<C>::fill(in[k], from_bits<C>(p.number[k]));
  }
}

template <class F, class C, int kIn, int kOut, class X>
struct Map {
  enum : int { kOperands = kIn + kOut, kThreads = 256, kShared = 0, kBlocks = 1, kPack = PackOf<C>::kCount };
  using Frame = MapFrame<kIn, kOut>;
  using Params = MapParams<kIn, kOut, X>;

  BCU_DEVICE void element(BCU_CONSTANT Frame& p, BCU_CONSTANT X& extra, uint32_t at) {
    int32_t offset[kOperands];
    C in[kIn], out[kOut];
    read_element(p, at, offset, in);
    invoke<F, kIn>(in, out, extra, p.first + at);
    BCU_UNROLL for (int k = 0; k < kOut; ++k) if (p.data[k]) store_element(p.data[k], p.element[k], offset[k], out[k]);
  }

  BCU_DEVICE void pack(BCU_CONSTANT Frame& p, BCU_CONSTANT X& extra, uint32_t at) {
    int32_t offset[kOperands];
    PackOf<C> in[kIn], out[kOut];
    read_pack(p, at, offset, in);
    BCU_UNROLL for (int j = 0; j < kPack; ++j) {
      C a[kIn], r[kOut];
      BCU_UNROLL for (int k = 0; k < kIn; ++k) a[k] = in[k].v[j];
      invoke<F, kIn>(a, r, extra, p.first + int64_t(at) * kPack + j);
      BCU_UNROLL for (int k = 0; k < kOut; ++k) out[k].v[j] = r[k];
    }
    BCU_UNROLL for (int k = 0; k < kOut; ++k) if (p.data[k])
        PackStore<C, Stores<F>::kAny>::store(p.data[k], p.element[k], offset[k], out[k].v);
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    uint32_t step = ctx.gdim_x() * ctx.bdim(), me = ctx.bid_x() * ctx.bdim() + ctx.tid();
    for (uint32_t at = me; at < p.frame.packs; at += step) pack(p.frame, p.extra, at);
    for (uint32_t at = p.frame.packs * kPack + me; at < p.frame.count; at += step) element(p.frame, p.extra, at);
  }
};

}  // namespace baracuda::simt
