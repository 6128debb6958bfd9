// Launches an elementwise functor: merges dimensions, then takes the packed body where all operands are contiguous and
// stored alike, and the strided one with the narrowest index otherwise.
#pragma once
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <type_traits>

#include "core/tile.h"
#include "simt/launch.h"
#include "simt/map.h"

namespace baracuda::simt {

// An iteration space with its dimensions merged where every operand allows, innermost first.
template <int kOperands>
struct Merged {
  int rank = 0;
  int64_t count = 1;
  int64_t shape[kMaxDims], stride[kOperands][kMaxDims];
  int64_t reach = 0;  // the farthest offset of any operand, in elements

  Merged(const IterationSpace& space, std::span<const Operand* const> operands) {
    for (int d = space.rank - 1; d >= 0; --d) {
      count *= space.shape[d];
      if (space.shape[d] == 1) continue;
      bool joins = rank > 0;
      for (size_t k = 0; joins && k < operands.size(); ++k)
        joins = operands[k]->strides[d] == stride[k][rank - 1] * shape[rank - 1];
      if (joins) {
        shape[rank - 1] *= space.shape[d];
        continue;
      }
      shape[rank] = space.shape[d];
      for (size_t k = 0; k < operands.size(); ++k) stride[k][rank] = operands[k]->strides[d];
      ++rank;
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      int64_t far = 0;
      for (int d = 0; d < rank; ++d) far += std::abs(stride[k][d]) * (shape[d] - 1);
      reach = std::max(reach, far);
    }
  }
  bool narrow() const { return count < (int64_t{1} << 30) && reach < (int64_t{1} << 31); }
};

template <class F, class C, class X>
class MapLaunch {
  static constexpr int kIn = F::kIn, kOut = F::kOut, kOperands = kIn + kOut;
  using Params = MapParams<kOperands, X>;

 public:
  MapLaunch(const Launch& launch, const IterationSpace& space, std::span<const Operand> in,
            std::span<const Operand> out, const X& extra)
      : launch_(launch), operands_(list(in, out)), merged_(space, operands_), params_() {
    params_.extra = extra;
    params_.count = merged_.count;
    params_.rank = merged_.rank;
    for (int d = 0; d < merged_.rank; ++d) {
      params_.shape[d] = merged_.shape[d];
      params_.divider[d] = merged_.narrow() ? divider(merged_.shape[d]) : Divider{1, 0, 0};
    }
    for (int k = 0; k < kOperands; ++k) {
      params_.data[k] = operands_[k]->data;
      params_.element[k] = static_cast<int32_t>(operands_[k]->element);
      std::copy_n(merged_.stride[k], merged_.rank, params_.stride[k]);
    }
  }

  Status run() {
    if (params_.count == 0) return Status::Ok;
    if (packable()) {
      Element e = operands_[0]->element;
      if constexpr (std::is_same_v<C, float>) {
        if (e == Element::F32) return packed<float>();
        if (e == Element::F16) return packed<f16>();
        if (e == Element::BF16) return packed<bf16>();
      }
#if BCU_HAS_F64
      if constexpr (std::is_same_v<C, double>) return packed<double>();
#endif
    }
    return merged_.narrow() ? strided<int32_t>() : strided<int64_t>();
  }

 private:
  static std::array<const Operand*, kOperands> list(std::span<const Operand> in, std::span<const Operand> out) {
    std::array<const Operand*, kOperands> all;
    for (int k = 0; k < kOut; ++k) all[k] = &out[k];
    for (int k = 0; k < kIn; ++k) all[kOut + k] = &in[k];
    return all;
  }

  bool packable() const {
    Element e = operands_[0]->element;
    if (merged_.rank > 1) return false;
    for (int k = 0; k < kOperands; ++k) {
      const Operand& o = *operands_[k];
      if (!o.data) continue;
      if (o.element != e || (merged_.rank == 1 && merged_.stride[k][0] != 1)) return false;
      if (reinterpret_cast<uintptr_t>(o.data) % 16 != 0) return false;
    }
    return size_of(e) >= 2 && (std::is_same_v<C, double> ? e == Element::F64 : is_float(e) && e != Element::F64);
  }

  template <class T>
  Status packed() {
    using Body = MapPacked<F, T, X>;
    return submit<Body>(launch_, {blocks_for((params_.count + 7) / 8 * 8, 256 * Pack<T>::kCount)}, 256, params_);
  }
  template <class Index>
  Status strided() {
    using Body = MapStrided<F, C, X, Index>;
    return submit<Body>(launch_, {blocks_for(params_.count, 256)}, 256, params_);
  }

  const Launch& launch_;
  std::array<const Operand*, kOperands> operands_;
  Merged<kOperands> merged_;
  Params params_;
};

// Applies F to every element of the space, computing in C.
template <class F, class C, class X = Nothing>
Status run_map(const Launch& launch, const IterationSpace& space, std::span<const Operand> in,
               std::span<const Operand> out, const X& extra = {}) {
  return MapLaunch<F, C, X>(launch, space, in, out, extra).run();
}

// The same for a functor of floats: computes in f32, or in f64 for f64.
template <class F, class X = Nothing>
Status map_floats(const Launch& launch, const IterationSpace& space, std::span<const Operand> in,
                  std::span<const Operand> out, const X& extra = {}) {
#if BCU_HAS_F64
  if (launch.element == Element::F64) return run_map<F, double, X>(launch, space, in, out, extra);
#endif
  return run_map<F, float, X>(launch, space, in, out, extra);
}

}  // namespace baracuda::simt
