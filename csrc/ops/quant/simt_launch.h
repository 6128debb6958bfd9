// Launches the reading and writing of GGUF's blocks, and products with them, on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/formats.h"
#include "ops/quant/simt.h"
#include "ops/quant/simt_product.h"
#include "ops/quant/simt_scaled_launch.h"
#include "ops/quant/skus.h"
#include "simt/space_launch.h"

namespace baracuda::quant {

// `each`: values that a thread takes.
inline BlocksParams blocks_of(const TensorView& values, const TensorView& bytes, int64_t each) {
  BlocksParams p{};
  const int64_t units = values.shape[values.rank - 1] / each;
  const std::array rows{simt::leading_operand(values), simt::leading_operand(bytes)};
  p.s = simt::space_of_rows(simt::leading(values), rows, units);
  p.values = values.data, p.bytes = bytes.as<uint8_t>();
  p.value_stride = simt::last_stride(values), p.byte_stride = simt::last_stride(bytes);
  p.element = static_cast<int32_t>(values.element);
  return p;
}

template <class Body>
Status submit(const Launch& launch, const BlocksParams& p) {
  if (p.s.count == 0) return Status::Ok;
  return simt::submit<Body>(launch, {simt::blocks_for(p.s.count, Body::kThreads)}, Body::kThreads, p);
}

inline ProductParams product_of(const Launch& launch) {
  const TensorView &x = launch[ProductArgs::x], &w = launch[ProductArgs::w], &y = launch[ProductArgs::y];
  ProductParams p{};
  const std::array rows{simt::leading_operand(x), simt::leading_operand(y)};
  p.s = simt::space_of_rows(simt::leading(x), rows, w.shape[0]);
  p.x = x.data, p.w = w.as<uint8_t>(), p.y = y.data;
  p.depth = x.shape[x.rank - 1], p.x_stride = simt::last_stride(x), p.y_stride = simt::last_stride(y);
  p.w_row = w.shape[0] > 1 ? w.strides[0] : 0, p.w_stride = simt::last_stride(w);
  p.element = static_cast<int32_t>(x.element);
  return p;
}

template <template <int> class Products>
Status submit_products(const Launch& launch) {
  const ProductParams p = product_of(launch);
  if (p.s.count == 0) return Status::Ok;
  Status status = Status::Unsupported;
  with_format(attributes<ProductAttrs>(launch).format, [&](auto f) {
    using Body = Products<decltype(f)::kNumber>;
    status = simt::submit<Body>(launch, {simt::blocks_for(p.s.count, Body::kThreads / 32)}, Body::kThreads, p);
  });
  return status;
}

}  // namespace baracuda::quant

namespace baracuda {

template <>
struct SimtKernel<quant::Dequantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    Status status = Status::Unsupported;
    with_format(attributes<FormatAttrs>(launch).format, [&](auto f) {
      status = quant::submit<Decode<decltype(f)::kNumber>>(launch, blocks_of(launch[Args::y], launch[Args::x], 1));
    });
    return status;
  }
};

template <>
struct SimtKernel<quant::Quantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    Status status = Status::Unsupported;
    with_format(attributes<FormatAttrs>(launch).format, [&](auto f) {
      status = quant::submit<Encode<decltype(f)::kNumber>>(
          launch, blocks_of(launch[Args::x], launch[Args::y], decltype(f)::kValues));
    });
    return status;
  }
};

template <>
struct SimtKernel<quant::FloatProduct> {
  static Status run(const Launch& launch) { return quant::submit_products<quant::FloatProducts>(launch); }
};
template <>
struct SimtKernel<quant::IntegerProduct> {
  static Status run(const Launch& launch) { return quant::submit_products<quant::IntegerProducts>(launch); }
};

}  // namespace baracuda
