// Products with GGUF's blocks on GPUs: a warp for each element of the result.
#pragma once
#include "ops/quant/product.h"
#include "ops/quant/simt.h"
#include "simt/index.h"

namespace baracuda::quant {

struct ProductParams {
  simt::Space<3> s;       // rows of x and y, and which weight is each row's; dimension 0 counts the columns of y
  simt::IndexParams ids;  // without data: there is one weight
  BCU_GLOBAL const void* x;
  BCU_GLOBAL uint8_t* w;
  BCU_GLOBAL void* y;
  int64_t depth, x_stride, w_each, w_row, w_stride, y_stride;
  int32_t element;
};

// `w`: where the row of weights begins.
BCU_DEVICE StridedBytes block_of(BCU_CONSTANT ProductParams& p, int64_t w, int64_t byte) {
  StridedBytes b;
  b.data = p.w + w + byte * p.w_stride, b.stride = p.w_stride;
  return b;
}

// Dot::unit() is the sum of unit t of a row, of kUnit values. Lanes take every 32nd.
template <class Dot>
struct EachResult {
  using Params = ProductParams;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t warps = int64_t(ctx.warps()), units = p.depth / Dot::kUnit;
    for (int64_t base = int64_t(ctx.bid_x()) * warps; base < p.s.count; base += int64_t(ctx.gdim_x()) * warps) {
      int64_t at = base + ctx.warp(), row[3], id = 0;
      at = at < p.s.count ? at : p.s.count - 1;  // several warps may have the last one
      int64_t column = simt::locate(p.s, at, row);
      bool good = !p.ids.data || simt::read_index(p.ids, row[2], at / p.s.shape[0], id);
      int64_t w = (good ? id : int64_t(0)) * p.w_each + column * p.w_row;
      float sum = 0.0f;
      for (int64_t t = int64_t(ctx.lane()); t < units && good; t += 32) sum += Dot::unit(p, row[0], w, t);
      sum = simt::warp_reduce<simt::Add>(ctx, sum);
      if (ctx.lane() == 0u && base + ctx.warp() < p.s.count && good)
        simt::store_element(p.y, p.element, row[1] + column * p.y_stride, sum);
    }
  }
};

template <int kFormat>
struct FloatDot {
  enum : int { kUnit = 16, kGroups = Blocks<kFormat>::kValues / 16 };
  BCU_DEVICE float unit(BCU_CONSTANT ProductParams& p, int64_t row, int64_t w, int64_t t) {
    int64_t block = t / kGroups;
    int g = int(t - block * kGroups);
    StridedBytes b = block_of(p, w, block * Blocks<kFormat>::kBytes);
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i)
      sum += simt::load_element<float>(p.x, p.element, row + (16 * t + i) * p.x_stride) * value_of<kFormat>(b, g, i);
    return sum;
  }
};

template <int kFormat>
struct IntegerDot {
  using F = Blocks<kFormat>;
  enum : int { kUnit = F::kValues };
  BCU_DEVICE float value(BCU_CONSTANT ProductParams& p, int64_t first, int i) {
    return simt::load_element<float>(p.x, p.element, first + i * p.x_stride);
  }
  BCU_DEVICE float unit(BCU_CONSTANT ProductParams& p, int64_t row, int64_t w, int64_t t) {
    StridedBytes b = block_of(p, w, t * F::kBytes);
    int64_t first = row + t * kUnit * p.x_stride;
    uint32_t most = 0u;
    for (int i = 0; i < kUnit; ++i) {
      uint32_t bits = math::bit_cast<uint32_t>(value(p, first, i)) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
    Step step = step_of(most);
    float sum = 0.0f;
    for (int g = 0; g < kUnit / 16; g += F::kGroup / 16) {
      int products = 0, codes = 0;
      for (int i = 0; i < F::kGroup; ++i) {
        int code = nearest(value(p, first, 16 * g + i) * step.by);
        products += code * F::code(b, g + i / 16, i % 16), codes += code;
      }
      sum += finite(F::scale(b, g)) * float(products);
      if (F::kLow != 0) sum += finite(F::low(b, g)) * float(codes);
    }
    return sum * step.scale;
  }
};

template <int kFormat>
using FloatProducts = EachResult<FloatDot<kFormat>>;
template <int kFormat>
using IntegerProducts = EachResult<IntegerDot<kFormat>>;

}  // namespace baracuda::quant
