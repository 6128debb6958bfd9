// Launches layers whose weight is codes with scales, on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/simt_linear.h"
#include "ops/quant/skus.h"
#include "simt/space_launch.h"

namespace baracuda::quant {

inline LinearParams linear_of(const Launch& launch) {
  using A = LinearArgs;
  const TensorView &x = launch[A::x], &w = launch[A::w], &scale = launch[A::scale], &zero = launch[A::zero_point],
                   &bias = launch[A::bias], &y = launch[A::y];
  LinearParams p{};
  const std::array rows{simt::leading_operand(x), simt::leading_operand(y)};
  p.s = simt::space_of_rows(simt::leading(x), rows, w.shape[0]);
  p.x = x.data, p.w = w.data, p.scale = scale.as<float>(), p.y = y.data;
  p.columns = w.shape[0], p.rows = p.columns > 0 ? p.s.count / p.columns : 0, p.depth = x.shape[x.rank - 1];
  p.x_stride = simt::last_stride(x), p.w_stride = simt::last_stride(w), p.y_stride = simt::last_stride(y);
  p.w_row = w.shape[0] > 1 ? w.strides[0] : 0;
  p.rows_each = std::max<int64_t>(1, p.columns / std::max<int64_t>(1, scale.shape[0]));
  p.group = std::max<int64_t>(1, p.depth / std::max<int64_t>(1, scale.shape[1]));
  p.scale_row = scale.strides[0], p.scale_stride = scale.strides[1];
  if (zero.present()) p.zero = zero.as<int32_t>(), p.zero_row = zero.strides[0], p.zero_stride = zero.strides[1];
  if (bias.present()) p.bias = bias.data, p.bias_stride = bias.strides[0];
  p.element = static_cast<int32_t>(x.element), p.code = static_cast<int32_t>(w.element);
  return p;
}

template <class Numbers>
Status submit_linear(const Launch& launch) {
  using Body = LinearRows<Numbers>;
  const LinearParams p = linear_of(launch);
  if (p.s.count == 0) return Status::Ok;
  const int64_t blocks = (p.rows + Body::kRows - 1) / Body::kRows * p.columns;
  return simt::submit<Body>(launch, {simt::blocks_for(blocks, Body::kThreads / 32)}, Body::kThreads, p);
}

}  // namespace baracuda::quant

namespace baracuda {

template <>
struct SimtKernel<quant::CodeLinear> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const int64_t packed = attributes<LinearAttrs>(launch).packed;
    if (packed == 1) return submit_linear<PackedNumbers<0>>(launch);
    if (packed == 2) return submit_linear<PackedNumbers<8>>(launch);
    switch (launch[LinearArgs::w].element) {
      case Element::F8E4M3:
        return submit_linear<EightNumbers<3>>(launch);
      case Element::F8E5M2:
        return submit_linear<EightNumbers<2>>(launch);
      default:
        return submit_linear<WholeNumbers>(launch);
    }
  }
};

}  // namespace baracuda
