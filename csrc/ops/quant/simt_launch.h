// Launches the reading and writing of GGUF's blocks, and products with them, on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/formats.h"
#include "ops/quant/simt.h"
#include "ops/quant/simt_linear_launch.h"
#include "ops/quant/simt_product.h"
#include "ops/quant/simt_scaled_launch.h"
#include "ops/quant/skus.h"
#include "simt/index_launch.h"
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

inline ProductParams product_of(const TensorView& x, const TensorView& w, const TensorView& y, Operand ids) {
  ProductParams p{};
  const std::array rows{simt::leading_operand(x), simt::leading_operand(y), ids};
  const int n = w.rank - 2;
  p.s = simt::space_of_rows(simt::leading(x), rows, w.shape[n]);
  p.x = x.data, p.w = w.as<uint8_t>(), p.y = y.data;
  p.depth = x.shape[x.rank - 1], p.x_stride = simt::last_stride(x), p.y_stride = simt::last_stride(y);
  p.w_row = w.shape[n] > 1 ? w.strides[n] : 0, p.w_stride = simt::last_stride(w);
  p.w_each = n > 0 && w.shape[0] > 1 ? w.strides[0] : 0;
  p.element = static_cast<int32_t>(x.element);
  return p;
}

template <template <int> class Products>
Status submit_products(const Launch& launch, int64_t format, const ProductParams& p) {
  if (p.s.count == 0) return Status::Ok;
  Status status = Status::Unsupported;
  with_format(format, [&](auto f) {
    using Body = Products<decltype(f)::kNumber>;
    status = simt::submit<Body>(launch, {simt::blocks_for(p.s.count, Body::kThreads / 32)}, Body::kThreads, p);
  });
  return status;
}
template <template <int> class Products>
Status product(const Launch& launch) {
  using A = ProductArgs;
  const ProductParams p = product_of(launch[A::x], launch[A::w], launch[A::y], {});
  return submit_products<Products>(launch, attributes<ProductAttrs>(launch).format, p);
}
template <template <int> class Products>
Status expert_product(const Launch& launch) {
  using A = ExpertArgs;
  const TensorView &ids = launch[A::ids], &w = launch[A::w];
  ProductParams p = product_of(launch[A::x], w, launch[A::y], operand(ids, space_of(ids)));
  if (p.s.count == 0) return simt::check_indices(launch, A::ids, w.shape[0], false);
  p.ids = simt::index_params(launch, A::ids, w.shape[0], false);
  return submit_products<Products>(launch, attributes<ProductAttrs>(launch).format, p);
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
    with_written_format(attributes<FormatAttrs>(launch).format, [&](auto f) {
      status = quant::submit<Encode<decltype(f)::kNumber>>(
          launch, blocks_of(launch[Args::x], launch[Args::y], decltype(f)::kValues));
    });
    return status;
  }
};

template <>
struct SimtKernel<quant::FloatProduct> {
  static Status run(const Launch& launch) { return quant::product<quant::FloatProducts>(launch); }
};
template <>
struct SimtKernel<quant::IntegerProduct> {
  static Status run(const Launch& launch) { return quant::product<quant::IntegerProducts>(launch); }
};
template <>
struct SimtKernel<quant::FloatExperts> {
  static Status run(const Launch& launch) { return quant::expert_product<quant::FloatProducts>(launch); }
};
template <>
struct SimtKernel<quant::IntegerExperts> {
  static Status run(const Launch& launch) { return quant::expert_product<quant::IntegerProducts>(launch); }
};

}  // namespace baracuda
