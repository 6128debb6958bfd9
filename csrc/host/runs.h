// A strided tensor walked in logical (row-major) order as runs of equal stride, and pieces of it moved to and from
// compute-type buffers. For kernels that need to know which element they are at; elementwise ones use the tile driver.
#pragma once
#include <cstdint>

#include "core/collapse.h"
#include "core/compute.h"
#include "core/launch.h"
#include "host/convert.h"

namespace baracuda {

// The tensor with dimensions of size 1 dropped and neighbours merged where one stride serves both; the rank is >= 1.
struct MergedView {
  char* data = nullptr;
  Element element = Element::F32;
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};

  explicit MergedView(const TensorView& t) : data(t.as<char>()), element(t.element) {
    for (int i = 0; i < t.rank; ++i) {
      collapse(
          rank, shape, 1, t.shape[i], [this](int, int d) -> int64_t& { return strides[d]; },
          [&](int) { return t.strides[i]; });
    }
    if (rank == 0) shape[0] = 1, strides[0] = 1, rank = 1;
  }

  bool contiguous() const { return rank == 1 && strides[0] == 1; }
  char* at(int64_t offset) const { return data + offset * size_of(element); }
};

// f(offset, stride, position, n) for the runs that make up logical elements [begin, begin + count): element
// `begin + position + k` lies `offset + k * stride` elements from the tensor's data, for k < n.
template <class F>
inline void for_each_run(const MergedView& t, int64_t begin, int64_t count, F&& f) {
  const int inner = t.rank - 1;
  int64_t index[kMaxRank];
  int64_t rest = begin, offset = 0;
  for (int d = inner; d >= 0; --d) {
    index[d] = t.shape[d] > 0 ? rest % t.shape[d] : 0;
    rest = t.shape[d] > 0 ? rest / t.shape[d] : 0;
    offset += index[d] * t.strides[d];
  }
  for (int64_t position = 0; position < count;) {
    const int64_t left = t.shape[inner] - index[inner];
    const int64_t n = left < count - position ? left : count - position;
    f(offset, t.strides[inner], position, n);
    position += n;
    offset -= index[inner] * t.strides[inner];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d]) break;
      offset -= t.shape[d] * t.strides[d];
      index[d] = 0;
    }
  }
}

template <class C>
inline void load_span(const MergedView& t, int64_t begin, int64_t count, C* dst) {
  for_each_run(t, begin, count, [&](int64_t offset, int64_t stride, int64_t position, int64_t n) {
    load<C>(t.element, t.at(offset), stride, dst + position, n);
  });
}

template <class C>
inline void store_span(const MergedView& t, int64_t begin, int64_t count, const C* src) {
  for_each_run(t, begin, count, [&](int64_t offset, int64_t stride, int64_t position, int64_t n) {
    store<C>(t.element, t.at(offset), stride, src + position, n);
  });
}

// Stretches of a tensor in compute type, one after another: the tensor's own memory where that is possible, else a
// buffer, which is filled once where all elements are one.
inline constexpr int64_t kStretch = 1024;
template <class C>
class Stretch {
 public:
  explicit Stretch(const TensorView& t)
      : view_(t),
        direct_(view_.contiguous() && t.element == element_of<C>),
        constant_(view_.rank == 1 && view_.strides[0] == 0) {
    if (constant_ && view_.shape[0] > 0) load<C>(view_.element, view_.data, 0, buffer_, kStretch);
  }
  bool direct() const { return direct_; }
  // At most kStretch elements, unless it is direct.
  C* get(int64_t begin, int64_t n) {
    if (direct_) return reinterpret_cast<C*>(view_.at(begin));
    if (!constant_) load_span(view_, begin, n, buffer_);
    return buffer_;
  }
  void put(int64_t begin, int64_t n) {
    if (!direct_) store_span(view_, begin, n, buffer_);
  }

 private:
  MergedView view_;
  bool direct_, constant_;
  alignas(64) C buffer_[kStretch];
};

}  // namespace baracuda
