// GGUF's blocks on GPUs: a thread for each value that is read, and one for each block that is written.
#pragma once
#include "ops/quant/encode_grids.h"
#include "simt/space.h"

namespace baracuda::quant {

struct BlocksParams {
  simt::Space<2> s;  // rows of values and of bytes; dimension 0 counts what a thread takes
  BCU_GLOBAL void* values;
  BCU_GLOBAL uint8_t* bytes;
  int64_t value_stride, byte_stride;  // along the rows
  int32_t element;
};

struct StridedBytes {
  BCU_GLOBAL uint8_t* data;
  int64_t stride;
  BCU_METHOD uint32_t operator()(int at) const { return data[at * stride]; }
  BCU_METHOD void put(int at, uint32_t byte) const { data[at * stride] = uint8_t(byte); }
};
struct StridedValues {
  BCU_GLOBAL const void* data;
  int64_t first, stride;
  int32_t element;
  BCU_METHOD float operator()(int at) const { return simt::load_element<float>(data, element, first + at * stride); }
};

template <int kFormat>
struct Decode {
  using Params = BlocksParams;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    using F = Blocks<kFormat>;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t k = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); k < p.s.count; k += step) {
      int64_t row[2], at = simt::locate(p.s, k, row);
      int64_t block = at / F::kValues;
      int j = int(at - block * F::kValues);
      StridedBytes b;
      b.data = p.bytes + row[1] + block * F::kBytes * p.byte_stride, b.stride = p.byte_stride;
      simt::store_element(p.values, p.element, row[0] + at * p.value_stride, value_of<kFormat>(b, j >> 4, j & 15));
    }
  }
};

template <int kFormat>
struct Encode {
  using Params = BlocksParams;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    using F = Blocks<kFormat>;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t k = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); k < p.s.count; k += step) {
      int64_t row[2], block = simt::locate(p.s, k, row);
      StridedValues x;
      x.data = p.values, x.first = row[0] + block * F::kValues * p.value_stride;
      x.stride = p.value_stride, x.element = p.element;
      StridedBytes b;
      b.data = p.bytes + row[1] + block * F::kBytes * p.byte_stride, b.stride = p.byte_stride;
      Encoder<kFormat>::encode(x, b);
    }
  }
};

}  // namespace baracuda::quant
