// Launches an elementwise function: puts dimensions in the order of memory, merges them, and splits what 32-bit indices
// do not reach.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/collapse.h"
#include "core/compute.h"
#include "core/operand.h"
#include "simt/launch.h"
#include "simt/map.h"

namespace baracuda::simt {

// What a function reads: a tensor of the space, or a number of the call, which may be a 0-d tensor of the device.
struct Input {
  Operand operand;
  Number number;
  bool is_value = false;
  Input() : number() {}
  Input(const Operand& o) : operand(o), number() {}  // NOLINT: conversions are the point
  Input(const Scalar& s)                             // the element of a number that is no tensor says nothing
      : operand{const_cast<void*>(s.data), s.data ? s.element : Element::F64, {}},
        number(number_of(s)),
        is_value(!s.data) {}
};

// The 8 bytes of a number that from_bits<C> reads.
template <class C>
int64_t bits_of_number(const Number& n) {
  if constexpr (std::is_same_v<C, float>) return math::bit_cast<uint32_t>(n.f);
  if constexpr (std::is_same_v<C, double>) return n.real;
  return n.whole;
}

// An iteration space with its dimensions merged where every operand allows, innermost first.
template <int kOperands>
struct Merged {
  int32_t rank = 0;
  int64_t shape[kMaxDims] = {}, stride[kOperands][kMaxDims] = {};
  char* data[kOperands] = {};
  int64_t bytes[kOperands] = {};  // of an element
  int64_t first = 0;              // how many elements come before this part

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[d];
    return n;
  }

  // Adds n dimensions, dimension(i) of the operands' shape and strides for each, outermost first.
  template <class Dimension, class Stride>
  void fill(int n, const int64_t* sizes, const Dimension& dimension, const Stride& stride_of) {
    for (int i = 0; i < n; ++i) {
      const int from = dimension(i);
      collapse(
          rank, shape, kOperands, sizes[from], [this](int k, int d) -> int64_t& { return stride[k][d]; },
          [&](int k) { return stride_of(k, from); });
    }
    std::reverse(shape, shape + rank);
    for (int k = 0; k < kOperands; ++k) std::reverse(stride[k], stride[k] + rank);
  }

  // The dimension to cut in two because 32-bit indices do not reach all of it; -1: they do. `in_order`: the outermost
  // one, so that positions go on from one part to the next.
  int too_wide(bool in_order) const {
    int widest = -1;
    int64_t most = 0;
    bool wide = count() >= kReach;
    for (int k = 0; k < kOperands; ++k) {
      int64_t reach = 0;
      for (int d = 0; d < rank; ++d) {
        const int64_t extent = std::abs(stride[k][d]) * (shape[d] - 1);
        reach += extent;
        if (extent > most) most = extent, widest = d;
      }
      wide |= reach >= kReach;
    }
    if (!wide) return -1;
    if (widest >= 0 && !in_order) return widest;
    int outermost = rank - 1;
    while (shape[outermost] == 1) --outermost;
    return outermost;
  }
  Merged part(int d, int64_t begin, int64_t size, int64_t elements_before) const {
    Merged m = *this;
    m.shape[d] = size;
    m.first = elements_before;
    for (int k = 0; k < kOperands; ++k) {
      if (m.data[k]) m.data[k] += begin * stride[k][d] * bytes[k];
    }
    return m;
  }
  // Less than 2^31, so that an index and the step of a grid add up to less than 2^32.
  static constexpr int64_t kReach = (int64_t{1} << 31) - (int64_t{1} << 27);
};

// The dimensions of a space by how far they move in an operand, or, `in_order`, as they were given; innermost first.
inline int order_of_memory(const IterationSpace& space, const Operand& o, bool in_order, int* order) {
  int n = 0;
  for (int d = space.rank - 1; d >= 0; --d) {
    int at = n++;
    for (; at > 0 && !in_order && std::abs(o.strides[order[at - 1]]) > std::abs(o.strides[d]); --at)
      order[at] = order[at - 1];
    order[at] = d;
  }
  return n;
}

// The space of these operands, its dimensions in the order of the written one's memory unless they must stay in order.
template <int kOperands>
Merged<kOperands> merged(const IterationSpace& space, const Operand* const* operands, int written, bool in_order) {
  int order[kMaxRank];
  const int n = order_of_memory(space, *operands[written], in_order, order);
  Merged<kOperands> m;
  for (int k = 0; k < kOperands; ++k) {
    m.data[k] = static_cast<char*>(operands[k]->data);
    m.bytes[k] = size_of(operands[k]->element);
  }
  m.fill(
      n, space.shape, [&](int i) { return order[n - 1 - i]; }, [&](int k, int d) { return operands[k]->strides[d]; });
  return m;
}

// Calls run(part) for parts of the space that 32-bit indices reach.
template <int kOperands, class Run>
Status for_parts(const Merged<kOperands>& s, bool in_order, const Run& run) {
  if (s.count() == 0) return Status::Ok;
  const int d = s.too_wide(in_order);
  if (d < 0) return run(s);
  // Halves start at a multiple of 64, so that both may be taken in packs.
  const int64_t half = s.shape[d] >= 128 ? s.shape[d] / 128 * 64 : s.shape[d] / 2;
  int64_t inside = 1;
  for (int i = 0; i < d; ++i) inside *= s.shape[i];
  const Status status = for_parts(s.part(d, 0, half, s.first), in_order, run);
  if (status != Status::Ok) return status;
  return for_parts(s.part(d, half, s.shape[d] - half, s.first + half * inside), in_order, run);
}

// Functions that are told an element's place see the dimensions as they were given.
template <class X>
inline constexpr bool kTellsPlaces = true;
template <>
inline constexpr bool kTellsPlaces<Nothing> = false;

// What launching has to know of a kernel body. All else is the same for every function of so many operands, and
// compiled once.
template <int kIn, int kOut>
struct MapKernel {
  using Frame = MapFrame<kIn, kOut>;
  int pack;
  uint32_t elements;  // which of them packs read, and write unless they write any
  bool stores_any;
  bool in_order;  // kTellsPlaces
  int64_t (*bits)(const Number&);
  Status (*submit)(const Launch&, int64_t threads, const Frame&, void* extra);
};

template <class F, class C, int kIn, int kOut, class X>
Status submit_map(const Launch& launch, int64_t threads, const MapFrame<kIn, kOut>& frame, void* extra) {
  using Body = Map<F, C, kIn, kOut, X>;
  const typename Body::Params params{frame, *static_cast<X*>(extra)};
  return submit<Body>(launch, {blocks_for(threads, Body::kThreads)}, Body::kThreads, params);
}

template <class F, class C, int kIn, int kOut, class X>
inline constexpr MapKernel<kIn, kOut> kMapKernel = {PackOf<C>::kCount,     Unpack<C>::kElements,
                                                    bool(Stores<F>::kAny), kTellsPlaces<X>,
                                                    &bits_of_number<C>,    &submit_map<F, C, kIn, kOut, X>};

template <int kIn, int kOut>
class MapLaunch {
  static constexpr int kOperands = kIn + kOut;
  using Space = Merged<kOperands>;

 public:
  MapLaunch(const Launch& launch, const MapKernel<kIn, kOut>& kernel, void* extra)
      : launch_(launch), kernel_(kernel), extra_(extra) {}

  Status run(const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut]) {
    for (int k = 0; k < kOut; ++k) set(k, out[k]);
    for (int k = 0; k < kIn; ++k) {
      set(kOut + k, in[k].operand);
      is_value_[kOut + k] = in[k].is_value;
      if (in[k].is_value) frame_.number[k] = kernel_.bits(in[k].number);
    }
    int written = 0;
    while (written < kOut - 1 && !out[written].data) ++written;
    return for_parts(merged<kOperands>(space, operand_, written, kernel_.in_order), kernel_.in_order,
                     [&](const Space& part) { return launch(part); });
  }

 private:
  void set(int k, const Operand& o) {
    operand_[k] = &o;
    frame_.element[k] = static_cast<int32_t>(o.element);
  }

  // Whether every operand can be read and written in packs along the innermost dimension.
  bool packable(const Space& s) const {
    if (s.rank == 0 || (s.rank > 1 && s.shape[0] % kernel_.pack != 0)) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (!s.data[k] || (k >= kOut && s.stride[k][0] == 0)) continue;
      const bool any = k < kOut && kernel_.stores_any;
      if (s.stride[k][0] != 1 || !(any || kernel_.elements >> frame_.element[k] & 1u)) return false;
      const int64_t word = std::min<int64_t>(kPackBytes, kernel_.pack * s.bytes[k]);
      if (reinterpret_cast<uintptr_t>(s.data[k]) % word != 0) return false;
      for (int d = 1; d < s.rank; ++d) {
        if (s.stride[k][d] * s.bytes[k] % word != 0) return false;
      }
    }
    return true;
  }

  Status launch(const Space& s) {
    frame_.rank = s.rank;
    frame_.first = s.first;
    frame_.count = static_cast<uint32_t>(s.count());
    frame_.packs = packable(s) ? frame_.count / kernel_.pack : 0;
    frame_.row = divider(s.rank > 0 ? s.shape[0] / kernel_.pack : 1);
    for (int d = 0; d < s.rank; ++d) frame_.shape[d] = divider(s.shape[d]);
    for (int k = 0; k < kOperands; ++k) {
      frame_.data[k] = is_value_[k] ? nullptr : s.data[k];
      for (int d = 0; d < s.rank; ++d) frame_.stride[k][d] = static_cast<int32_t>(s.stride[k][d]);
    }
    return kernel_.submit(launch_, frame_.packs ? frame_.packs : frame_.count, frame_, extra_);
  }

  const Launch& launch_;
  const MapKernel<kIn, kOut>& kernel_;
  void* extra_;
  MapFrame<kIn, kOut> frame_ = {};
  const Operand* operand_[kOperands];
  bool is_value_[kOperands] = {};
};

// Applies F to every element of the space, computing in C.
template <class F, class C, class X = Nothing, int kIn, int kOut>
Status run_map(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut],
               X extra = {}) {
  return MapLaunch<kIn, kOut>(launch, kMapKernel<F, C, kIn, kOut, X>, &extra).run(space, in, out);
}

// The same for a function of floats: computes in f32, or in f64 for f64.
template <class F, class X = Nothing, int kIn, int kOut>
Status map_floats(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut],
                  const X& extra = {}) {
#if BCU_HAS_F64
  if (launch.element == Element::F64) return run_map<F, double, X>(launch, space, in, out, extra);
#endif
  return run_map<F, float, X>(launch, space, in, out, extra);
}

// For a function of integers: computes in int64_t, or in uint64_t for unsigned ones and bool.
template <class F, class X = Nothing, int kIn, int kOut>
Status map_integers(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn],
                    const Operand (&out)[kOut], const X& extra = {}) {
  if (kSigned.has(launch.element)) return run_map<F, int64_t, X>(launch, space, in, out, extra);
  return run_map<F, uint64_t, X>(launch, space, in, out, extra);
}

template <class F, class X = Nothing, int kIn, int kOut>
Status map_real(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut],
                const X& extra = {}) {
  return is_float(launch.element) ? map_floats<F, X>(launch, space, in, out, extra)
                                  : map_integers<F, X>(launch, space, in, out, extra);
}

}  // namespace baracuda::simt
