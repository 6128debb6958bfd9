// Bodies that hold the emulator's matrices and copies to what PTX says of them. Elements are placed by the formulas of
// its "Matrix Fragments for mma.m16n8k16" and of ldmatrix, written out anew here.
#pragma once
#include "ops/matmul/simt_mma.h"

namespace baracuda::simt::probe {

BCU_DEVICE float a_at(int row, int col) { return float((row * 16 + col) * 7 % 23 - 11); }
BCU_DEVICE float b_at(int row, int col) { return float((row * 8 + col) * 5 % 19 - 9) * 0.25f; }
BCU_DEVICE float c_at(int row, int col) { return float(row * 8 + col) * 0.5f - 30.f; }

template <class T>
BCU_DEVICE uint32_t two(float low, float high) {
  T pair[2];
  narrow(low, pair[0]), narrow(high, pair[1]);
  return uint32_t(pair[1].bits) << 16 | pair[0].bits;
}

// Whether the product is right for what this lane has of it.
template <class T>
BCU_DEVICE bool multiplies(BCU_THREAD const Context& ctx) {
  int group = int(ctx.lane()) >> 2, thread = int(ctx.lane()) % 4;
  float a[8], b[4], c[4];
  for (int i = 0; i < 8; ++i) {
    int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;
    int col = i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
    a[i] = a_at(row, col);
  }
  for (int i = 0; i < 4; ++i) {
    int row = i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
    b[i] = b_at(row, group);
    c[i] = c_at(i < 2 ? group : group + 8, thread * 2 + (i & 1));
  }
  uint32_t words_a[4], words_b[2];
  for (int i = 0; i < 4; ++i) words_a[i] = two<T>(a[2 * i], a[2 * i + 1]);
  for (int i = 0; i < 2; ++i) words_b[i] = two<T>(b[2 * i], b[2 * i + 1]);
  Mma<T>::add(ctx, words_a, words_b, c);
  bool right = true;
  for (int i = 0; i < 4; ++i) {
    int row = i < 2 ? group : group + 8, col = thread * 2 + (i & 1);
    float sum = c_at(row, col);
    for (int k = 0; k < 16; ++k) sum += a_at(row, k) * b_at(k, col);
    right = right && c[i] == sum;
  }
  return right;
}

BCU_PROBE(OkMma, 0) {
  bool right = multiplies<f16>(ctx);
  right = multiplies<bf16>(ctx) && right;
  p.y[own(ctx, p)] = right ? 1.f : math::quiet_nan<float>();
}

// Sums are cut off, not rounded: 1 + 2^-24 + 2^-25 stays 1.
BCU_PROBE(OkMmaCutsOff, 0) {
  uint32_t a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
  a[0] = a[1] = ctx.lane() % 4u == 0u ? two<bf16>(0x1p-24f, 0x1p-25f) : 0u;
  b[0] = two<bf16>(1.f, 1.f);
  float c[4] = {1.f, -1.f, 1.f, -1.f};
  Mma<bf16>::add(ctx, a, b, c);
  bool right = c[0] == 1.f && c[2] == 1.f && c[1] == -(1.f - 0x1p-23f) && c[3] == c[1];
  p.y[own(ctx, p)] = right ? 1.f : math::quiet_nan<float>();
}

BCU_PROBE(OkLoadMatrices, 4 * 128) {
  BCU_SHARED uint16_t* mine = (BCU_SHARED uint16_t*)shared + ctx.warp() * 256;
  for (uint32_t i = ctx.lane(); i < 256u; i += 32u) mine[i] = uint16_t(i);
  warp_sync(ctx);
  uint32_t plain[4], transposed[4];
  load_matrices<false>(ctx, mine + ctx.lane() * 8u, plain);
  load_matrices<true>(ctx, mine + ctx.lane() * 8u, transposed);
  uint32_t row = ctx.lane() / 4u, col = ctx.lane() % 4u * 2u;
  bool right = true;
  for (uint32_t i = 0; i < 4u; ++i) {
    uint32_t at = i * 64u + row * 8u + col, across = i * 64u + col * 8u + row;
    right = right && plain[i] == ((at + 1u) << 16 | at) && transposed[i] == ((across + 8u) << 16 | across);
  }
  p.y[own(ctx, p)] = right ? 1.f : math::quiet_nan<float>();
}

// The 8 rows of a matrix in a slice of a product lie in 8 different parts of 16 bytes of the 32 banks.
template <int kTile, bool kAlongK>
BCU_DEVICE bool spreads() {
  using S = matmul::Slice<kTile, kAlongK>;
  bool right = true;
  for (int line = 0; line < kTile; line += 8) {
    for (int k = 0; k < S::kDepth; k += 8) {
      int parts = 0;
      for (int row = 0; row < 8; ++row)
        parts |= 1 << (kAlongK ? S::place(line + row, k) : S::place(line, k + row)) / 8 % 8;
      right = right && parts == 255;
    }
  }
  return right;
}

BCU_PROBE(OkSlices, 0) {
  bool right = spreads<64, false>() && spreads<64, true>() && spreads<128, false>() && spreads<128, true>();
  p.y[own(ctx, p)] = right ? 1.f : math::quiet_nan<float>();
}

// Every thread copies 4 floats in two groups; a neighbour reads them.
BCU_DEVICE void copy_four(BCU_THREAD CopyQueue& queue, BCU_THREAD const Context& ctx, BCU_SHARED float* to,
                          BCU_CONSTANT ProbeParams& p, int bytes) {
  uint32_t from = ctx.tid() % 32u * 4u;
  queue.copy(to + ctx.tid() * 4u, p.x + from, bytes);
  queue.commit();
}

BCU_PROBE(OkCopies, 1024) {
  CopyQueue queue;
  copy_four(queue, ctx, shared, p, 16);
  copy_four(queue, ctx, shared + 512, p, 8);
  queue.wait<1>();
  barrier(ctx);
  uint32_t other = ctx.tid() ^ 65u;
  float first = shared[other * 4u + 3u];
  bool right = first == p.x[other % 32u * 4u + 3u];
  queue.wait<0>();
  barrier(ctx);
  right =
      right && shared[512u + other * 4u + 1u] == p.x[other % 32u * 4u + 1u] && shared[512u + other * 4u + 3u] == 0.f;
  p.y[own(ctx, p)] = right ? first : math::quiet_nan<float>();
}

BCU_PROBE(CopyWithoutWait, 1024) {
  CopyQueue queue;
  copy_four(queue, ctx, shared, p, 16);
  copy_four(queue, ctx, shared + 512, p, 16);
  queue.wait<1>();
  barrier(ctx);
  p.y[own(ctx, p)] = shared[512u + (ctx.tid() ^ 65u) * 4u];
}

BCU_PROBE(CopyWithoutBarrier, 512) {
  CopyQueue queue;
  copy_four(queue, ctx, shared, p, 16);
  queue.wait<0>();
  p.y[own(ctx, p)] = shared[(ctx.tid() ^ 65u) * 4u];
}

// The next copy may arrive while others still read.
BCU_PROBE(CopyBeforeBarrier, 512) {
  CopyQueue queue;
  copy_four(queue, ctx, shared, p, 16);
  queue.wait<0>();
  barrier(ctx);
  float v = shared[(ctx.tid() ^ 65u) * 4u];
  copy_four(queue, ctx, shared, p, 16);
  p.y[own(ctx, p)] = v;
  queue.wait<0>();
}

BCU_PROBE(MisalignedMatrix, 512) {
  BCU_SHARED uint16_t* mine = (BCU_SHARED uint16_t*)shared;
  for (uint32_t i = ctx.tid(); i < 1024u; i += 128u) mine[i] = 0;
  barrier(ctx);
  uint32_t out[4];
  load_matrices<false>(ctx, mine + ctx.lane() * 12u, out);
  p.y[own(ctx, p)] = float(out[0]);
}

}  // namespace baracuda::simt::probe
