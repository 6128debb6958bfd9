// Launches an elementwise function: puts dimensions in the order of memory, merges them, and splits what 32-bit indices
// do not reach.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/compute.h"
#include "core/tile.h"
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
  int rank = 0;
  int64_t shape[kMaxDims] = {}, stride[kOperands][kMaxDims] = {};
  char* data[kOperands] = {};
  int64_t bytes[kOperands] = {};  // of an element
  int64_t first = 0;              // how many elements come before this part

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[d];
    return n;
  }

  // Adds a dimension outside of those that there are.
  void add(int64_t size, const int64_t* strides) {
    if (size == 1) return;
    bool joins = rank > 0;
    for (int k = 0; joins && k < kOperands; ++k) joins = strides[k] == stride[k][rank - 1] * shape[rank - 1];
    if (joins) {
      shape[rank - 1] *= size;
      return;
    }
    shape[rank] = size;
    for (int k = 0; k < kOperands; ++k) stride[k][rank] = strides[k];
    ++rank;
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

// The space of these operands, its dimensions in the order of the written one's memory unless they must stay in order.
template <int kOperands>
Merged<kOperands> merged(const IterationSpace& space, const Operand* const* operands, int written, bool in_order) {
  int order[kMaxRank], n = 0;
  for (int d = space.rank - 1; d >= 0; --d) order[n++] = d;
  auto step = [&](int d) { return std::abs(operands[written]->strides[d]); };
  if (!in_order) std::stable_sort(order, order + n, [&](int a, int b) { return step(a) < step(b); });
  Merged<kOperands> m;
  for (int k = 0; k < kOperands; ++k) {
    m.data[k] = static_cast<char*>(operands[k]->data);
    m.bytes[k] = size_of(operands[k]->element);
  }
  for (int i = 0; i < n; ++i) {
    int64_t strides[kOperands];
    for (int k = 0; k < kOperands; ++k) strides[k] = operands[k]->strides[order[i]];
    m.add(space.shape[order[i]], strides);
  }
  return m;
}

// Calls run(part) for parts of the space that 32-bit indices reach.
template <int kOperands, class Run>
Status for_parts(const Merged<kOperands>& s, bool in_order, Run&& run) {
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

template <class F, class C, class X, int kIn, int kOut>
class MapLaunch {
  static constexpr int kOperands = kIn + kOut;
  // Functions that are told an element's place see the dimensions as they were given.
  static constexpr bool kInOrder = !std::is_same_v<X, Nothing>;
  using Body = Map<F, C, kIn, kOut, X>;
  using Space = Merged<kOperands>;

 public:
  MapLaunch(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut],
            const X& extra)
      : launch_(launch), params_() {
    for (int k = 0; k < kOut; ++k) set(k, out[k]);
    for (int k = 0; k < kIn; ++k) {
      set(kOut + k, in[k].operand);
      is_value_[kOut + k] = in[k].is_value;
      if (in[k].is_value) params_.number[k] = bits_of_number<C>(in[k].number);
    }
    params_.extra = extra;
    int written = 0;
    while (written < kOut - 1 && !out[written].data) ++written;
    space_ = merged<kOperands>(space, operand_, written, kInOrder);
  }

  Status run() const {
    return for_parts(space_, kInOrder, [&](const Space& part) { return launch(part); });
  }

 private:
  void set(int k, const Operand& o) {
    operand_[k] = &o;
    params_.element[k] = static_cast<int32_t>(o.element);
  }

  // Whether every operand can be read and written in packs along the innermost dimension.
  bool packable(const Space& s) const {
    if (s.rank == 0 || (s.rank > 1 && s.shape[0] % Body::kPack != 0)) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (!s.data[k] || (k >= kOut && s.stride[k][0] == 0)) continue;
      const bool any = k < kOut && Stores<F>::kAny;
      if (s.stride[k][0] != 1 || !(any || Unpack<C>::kElements >> params_.element[k] & 1u)) return false;
      const int64_t word = std::min<int64_t>(16, Body::kPack * s.bytes[k]);
      if (reinterpret_cast<uintptr_t>(s.data[k]) % word != 0) return false;
      for (int d = 1; d < s.rank; ++d) {
        if (s.stride[k][d] * s.bytes[k] % word != 0) return false;
      }
    }
    return true;
  }

  Status launch(const Space& s) const {
    auto params = params_;
    params.rank = s.rank;
    params.first = s.first;
    params.count = static_cast<uint32_t>(s.count());
    params.packs = packable(s) ? params.count / Body::kPack : 0;
    params.row = divider(s.rank > 0 ? s.shape[0] / Body::kPack : 1);
    for (int d = 0; d < s.rank; ++d) params.shape[d] = divider(s.shape[d]);
    for (int k = 0; k < kOperands; ++k) {
      params.data[k] = is_value_[k] ? nullptr : s.data[k];
      for (int d = 0; d < s.rank; ++d) params.stride[k][d] = static_cast<int32_t>(s.stride[k][d]);
    }
    const int64_t threads = params.packs ? params.packs : params.count;
    return submit<Body>(launch_, {blocks_for(threads, 256)}, 256, params);
  }

  const Launch& launch_;
  typename Body::Params params_;
  const Operand* operand_[kOperands];
  bool is_value_[kOperands] = {};
  Space space_;
};

// Applies F to every element of the space, computing in C.
template <class F, class C, class X = Nothing, int kIn, int kOut>
Status run_map(const Launch& launch, const IterationSpace& space, const Input (&in)[kIn], const Operand (&out)[kOut],
               const X& extra = {}) {
  return MapLaunch<F, C, X, kIn, kOut>(launch, space, in, out, extra).run();
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
