// Launches the reading and writing of GGUF's blocks on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/formats.h"
#include "ops/quant/simt.h"
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
    with_encoder(attributes<FormatAttrs>(launch).format, [&](auto f) {
      status = quant::submit<Encode<decltype(f)::kNumber>>(
          launch, blocks_of(launch[Args::x], launch[Args::y], decltype(f)::kValues));
    });
    return status;
  }
};

}  // namespace baracuda
