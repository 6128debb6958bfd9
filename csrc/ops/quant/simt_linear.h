// Layers whose weight is codes with scales, on GPUs: a warp for each column of the result and up to 8 rows of it.
#pragma once
#include "ops/quant/affine.h"
#include "simt/space.h"

namespace baracuda::quant {

struct LinearParams {
  simt::Space<2> s;  // rows of x and y; dimension 0 counts the columns of y
  BCU_GLOBAL const void* x;
  BCU_GLOBAL const void* w;
  BCU_GLOBAL const float* scale;
  BCU_GLOBAL const int32_t* zero;  // null: there is none
  BCU_GLOBAL const void* bias;     // null: none
  BCU_GLOBAL void* y;
  int64_t rows, columns, depth, x_stride, w_row, w_stride, y_stride, bias_stride;
  int64_t rows_each, group, scale_row, scale_stride, zero_row, zero_stride;
  int32_t element, code;
};

// The number that a code stands for.
struct WholeNumbers {
  BCU_DEVICE float at(BCU_CONSTANT LinearParams& p, int64_t row, int64_t k) {
    return simt::load_element<float>(p.w, p.code, row + k * p.w_stride);
  }
};
template <int kMantissa>
struct EightNumbers {
  BCU_DEVICE float at(BCU_CONSTANT LinearParams& p, int64_t row, int64_t k) {
    return F8<kMantissa>::decode(((BCU_GLOBAL const uint8_t*)p.w)[row + k * p.w_stride]);
  }
};
template <int kSign>
struct PackedNumbers {
  BCU_DEVICE float at(BCU_CONSTANT LinearParams& p, int64_t row, int64_t k) {
    uint32_t byte = ((BCU_GLOBAL const uint8_t*)p.w)[row + (k >> 1) * p.w_stride];
    return float(int((byte >> (4u * uint32_t(k & 1)) & 15u) ^ uint32_t(kSign)) - kSign);
  }
};

template <class Numbers>
struct LinearRows {
  using Params = LinearParams;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0, kRows = 8 };

  BCU_DEVICE float weight(BCU_CONSTANT Params& p, int64_t row, int64_t y, int64_t k) {
    int64_t x = k / p.group;
    float zero = p.zero ? float(p.zero[y * p.zero_row + x * p.zero_stride]) : 0.0f;
    return Decoded::f(Numbers::at(p, row, k), p.scale[y * p.scale_row + x * p.scale_stride], zero);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t warps = int64_t(ctx.warps()), blocks = (p.rows + kRows - 1) / kRows * p.columns;
    for (int64_t base = int64_t(ctx.bid_x()) * warps; base < blocks; base += int64_t(ctx.gdim_x()) * warps) {
      int64_t at = base + ctx.warp();
      at = at < blocks ? at : blocks - 1;  // several warps may have the last one
      int64_t first = at / p.columns, column = at - first * p.columns;
      first *= kRows;
      int64_t offset[kRows][2];
      float sums[kRows];
      BCU_UNROLL for (int m = 0; m < kRows; ++m) {
        int64_t row = first + m < p.rows ? first + m : p.rows - 1;
        simt::locate(p.s, row * p.columns + column, offset[m]);
        sums[m] = 0.0f;
      }
      for (int64_t k = int64_t(ctx.lane()); k < p.depth; k += 32) {
        float w = weight(p, column * p.w_row, column / p.rows_each, k);
        BCU_UNROLL for (int m = 0; m < kRows; ++m) {
          if (first + m < p.rows)
            sums[m] += simt::load_element<float>(p.x, p.element, offset[m][0] + k * p.x_stride) * w;
        }
      }
      float bias = p.bias ? simt::load_element<float>(p.bias, p.element, column * p.bias_stride) : 0.0f;
      BCU_UNROLL for (int m = 0; m < kRows; ++m) {
        float sum = simt::warp_reduce<simt::Add>(ctx, sums[m]);
        sum = p.bias ? sum + bias : sum;
        if (ctx.lane() == 0u && base + ctx.warp() < blocks && first + m < p.rows)
          simt::store_element(p.y, p.element, offset[m][1] + column * p.y_stride, sum);
      }
    }
  }
};

}  // namespace baracuda::quant
