// A tensor [n, channels, spatial...] as kernels see it: with kAxes axes.
#pragma once
#include <cstdlib>

#include "core/launch.h"
#include "ops/conv/problem.h"

namespace baracuda::conv {

// Strides are in elements; those of size 1 are 0.
struct Planes {
  char* data = nullptr;
  Element element = Element::F32;
  int64_t outer = 0, channel = 0;  // strides
  int64_t size[kAxes] = {1, 1, 1}, stride[kAxes] = {};

  explicit Planes(const TensorView& t) : data(t.as<char>()), element(t.element) {
    auto step = [&](int i) { return t.shape[i] == 1 ? 0 : t.strides[i]; };
    outer = step(0), channel = step(1);
    const int spatial = t.rank - 2;
    for (int i = 0; i < spatial; ++i)
      size[kAxes - spatial + i] = t.shape[2 + i], stride[kAxes - spatial + i] = step(2 + i);
  }
  char* at(int64_t n, int64_t c, int64_t d, int64_t h, int64_t w) const {
    return data + (n * outer + c * channel + d * stride[0] + h * stride[1] + w * stride[2]) * size_of(element);
  }
  // Whether neighbours in memory belong to different channels.
  bool channels_last() const { return std::abs(channel) < std::abs(stride[2]) && channel != 0; }
};

}  // namespace baracuda::conv
