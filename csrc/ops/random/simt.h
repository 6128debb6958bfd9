// Random fills on GPUs: a thread makes the elements of one Philox block, wherever they lie.
#pragma once
#include "ops/random/math.h"
#include "simt/map.h"

namespace baracuda::random {

// T: float or double, which also says how many elements a block serves.
template <class T>
struct UniformDraw;
template <class T>
struct NormalDraw;

template <>
struct UniformDraw<float> {
  enum : int { kCount = 4 };
  using Target = Interval<float>;
  BCU_DEVICE void draw(Words w, BCU_THREAD const Target& to, BCU_THREAD float* out) {
    out[0] = uniform(fraction(w.x), to);
    out[1] = uniform(fraction(w.y), to);
    out[2] = uniform(fraction(w.z), to);
    out[3] = uniform(fraction(w.w), to);
  }
};
template <>
struct NormalDraw<float> {
  enum : int { kCount = 4 };
  using Target = Moments<float>;
  BCU_DEVICE void draw(Words w, BCU_THREAD const Target& to, BCU_THREAD float* out) {
    Normals<float> a = normals(w.x, w.y), b = normals(w.z, w.w);
    out[0] = to.mean + to.std * a.first;
    out[1] = to.mean + to.std * a.second;
    out[2] = to.mean + to.std * b.first;
    out[3] = to.mean + to.std * b.second;
  }
};
#if BCU_HAS_F64
template <>
struct UniformDraw<double> {
  enum : int { kCount = 2 };
  using Target = Interval<double>;
  BCU_DEVICE void draw(Words w, BCU_THREAD const Target& to, BCU_THREAD double* out) {
    out[0] = uniform(fraction(w.x, w.y), to);
    out[1] = uniform(fraction(w.z, w.w), to);
  }
};
template <>
struct NormalDraw<double> {
  enum : int { kCount = 2 };
  using Target = Moments<double>;
  BCU_DEVICE void draw(Words w, BCU_THREAD const Target& to, BCU_THREAD double* out) {
    Normals<double> z = normals(w);
    out[0] = to.mean + to.std * z.first;
    out[1] = to.mean + to.std * z.second;
  }
};
#endif

// As the host works it out (targets.h), from numbers that only the device knows, which are not checked.
template <class S, class Bits, class T>
BCU_DEVICE T neighbour(T x, bool below) {
  S near = simt::Convert<S>::to(x);
  T v = T(simt::Stored<S>::load(near));
  if (below ? v < x : v >= x) return v;
  return T(simt::Stored<S>::load(math::bit_cast<S>(step(math::bit_cast<Bits>(near), !below))));
}
template <class T>
BCU_DEVICE T stored_neighbour(int32_t element, T x, bool below) {
  if (sizeof(T) == 4 && element == simt::kF16) return neighbour<simt::f16, uint16_t>(x, below);
  if (sizeof(T) == 4 && element == simt::kBF16) return neighbour<simt::bf16, uint16_t>(x, below);
  return neighbour<T, typename math::FloatTraits<T>::Uint>(x, below);
}

// What is drawn from is made of two numbers of the call: by the host, where it knows them.
template <class T>
BCU_DEVICE void make(int32_t element, T low, T high, BCU_THREAD Interval<T>& to) {
  T span = high - low, upper = upper_bits(span);
  T bottom = stored_neighbour(element, low, false), top = stored_neighbour(element, high, true);
  bool none = top < bottom;
  to.low = low, to.span_hi = upper, to.span_lo = span - upper;
  to.bottom = none ? low : bottom, to.top = none ? low : top;
}
template <class T>
BCU_DEVICE void make(int32_t, T mean, T std, BCU_THREAD Moments<T>& to) {
  to.mean = mean, to.std = std;
}

// Fields are read one by one: Metal does not copy structs of parameters whole.
template <class T>
BCU_DEVICE void take(BCU_CONSTANT Interval<T>& p, BCU_THREAD Interval<T>& to) {
  to.low = p.low, to.span_hi = p.span_hi, to.span_lo = p.span_lo, to.bottom = p.bottom, to.top = p.top;
}
template <class T>
BCU_DEVICE void take(BCU_CONSTANT Moments<T>& p, BCU_THREAD Moments<T>& to) {
  to.mean = p.mean, to.std = p.std;
}

template <class Target>
struct FillParams {
  BCU_GLOBAL void* y;
  simt::Number a, b, seed, offset;
  Target target;
  int64_t first;  // the position in the draw of this launch's first element
  int32_t stride[simt::kMaxDims];
  simt::Divider shape[simt::kMaxDims];  // innermost first, in the order of the elements
  int32_t element, rank;
  uint32_t count;
  int32_t packed;  // contiguous, and aligned to a block's elements
};

template <class D, class T>
struct Fill {
  enum : int { kThreads = 256, kShared = 0, kCount = D::kCount };
  using Params = FillParams<typename D::Target>;

  // All elements of a block at once.
  template <class S>
  BCU_DEVICE void store_all(BCU_CONSTANT Params& p, uint32_t at, BCU_THREAD const T* v) {
    simt::Run<S, kCount> run;
    BCU_UNROLL for (int j = 0; j < kCount; ++j) run.v[j] = simt::Convert<S>::to(v[j]);
    *(BCU_GLOBAL simt::Run<S, kCount>*)((BCU_GLOBAL S*)p.y + at) = run;
  }

  BCU_DEVICE void store_one(BCU_CONSTANT Params& p, uint32_t at, T v) {
    int32_t offset = 0;
    for (int d = 0; d < p.rank; ++d) {
      uint32_t next = d + 1 < p.rank ? simt::quotient(p.shape[d], at) : 0u;
      offset += int32_t(at - next * p.shape[d].divisor) * p.stride[d];
      at = next;
    }
    simt::store_element(p.y, p.element, offset, v);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    uint64_t seed = simt::number<uint64_t>(p.seed), offset = simt::number<uint64_t>(p.offset);
    typename D::Target to;
    if (p.a.data || p.b.data)
      make(p.element, simt::number<T>(p.a), simt::number<T>(p.b), to);
    else
      take(p.target, to);
    uint32_t before = uint32_t(p.first % kCount);  // elements of the first block that belong to an earlier launch
    uint32_t blocks = (before + p.count + uint32_t(kCount - 1)) / uint32_t(kCount);
    uint32_t step = ctx.gdim_x() * ctx.bdim();
    for (uint32_t i = ctx.bid_x() * ctx.bdim() + ctx.tid(); i < blocks; i += step) {
      T v[kCount];
      D::draw(block_of(seed, offset + uint64_t(p.first / kCount) + i), to, v);
      uint32_t at = i * uint32_t(kCount) - before;  // wraps where the block starts earlier
      if (p.packed && at + uint32_t(kCount) <= p.count) {
        if (sizeof(T) == 4 && p.element == simt::kF16)
          store_all<simt::f16>(p, at, v);
        else if (sizeof(T) == 4 && p.element == simt::kBF16)
          store_all<simt::bf16>(p, at, v);
        else
          store_all<T>(p, at, v);
      } else {
        for (int j = 0; j < kCount; ++j)
          if (at + uint32_t(j) < p.count) store_one(p, at + uint32_t(j), v[j]);
      }
    }
  }
};

}  // namespace baracuda::random
