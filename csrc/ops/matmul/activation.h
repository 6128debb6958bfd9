// What may be applied to a finished sum of products before it is rounded. On every backend.
#pragma once
#include "baracuda/math/activation.h"

namespace baracuda::matmul {

enum Activation : int32_t { kNoActivation, kRelu, kGelu, kGeluTanh, kSilu };

template <class T>
BCU_FN T relu(T x) {  // NaN stays NaN
  return x < T(0) ? T(0) : x;
}
template <class T>
BCU_FN T gelu_tanh(T x) {  // x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as 0.5 x (1 + tanh(u))
  return math::sigmoid_product(x, x * (T(1.59576912160573071176) + T(0.07135481627260024877) * x * x));
}

template <class T>
BCU_FN T activate(int32_t activation, T x) {
  switch (activation) {
    case kRelu:
      return relu(x);
    case kGelu:
      return math::gelu(x);
    case kGeluTanh:
      return gelu_tanh(x);
    case kSilu:
      return math::silu(x);
    default:
      return x;
  }
}

}  // namespace baracuda::matmul
