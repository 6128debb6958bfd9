// Small bodies, broken and correct, that test the emulator: test_emulator.py says what each build must report. 2 blocks
// of 128 threads; x holds p.n = 128 floats, y 256, `counter` one word.
#pragma once
#include "simt/simt.h"

namespace baracuda::simt::probe {

struct ProbeParams {
  BCU_GLOBAL const float* x;
  BCU_GLOBAL float* y;
  BCU_GLOBAL AtomicU32* counter;
  int64_t stray;  // floats from y to memory that is not the launch's
  int32_t n;
};

#define BCU_PROBE(name, shared_floats)                                                                             \
  struct name {                                                                                                    \
    enum : int { kThreads = 128, kShared = shared_floats };                                                        \
    using Params = ProbeParams;                                                                                    \
    BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT ProbeParams&);       \
  };                                                                                                               \
  inline void name::run([[maybe_unused]] BCU_THREAD const Context& ctx, [[maybe_unused]] BCU_SHARED float* shared, \
                        BCU_CONSTANT ProbeParams& p)

BCU_DEVICE int64_t own(BCU_THREAD const Context& ctx, BCU_CONSTANT ProbeParams& p) {
  return int64_t(ctx.bid_x()) * p.n + ctx.tid();
}

// ---- correct ones

BCU_PROBE(OkBlockReduce, 4) {
  float sum = block_reduce<Add>(ctx, p.x[ctx.tid()], 0.f, shared);
  float most = block_reduce<Larger>(ctx, p.x[ctx.tid()], -1e30f, shared);
  p.y[own(ctx, p)] = sum + most;
}

BCU_PROBE(OkWarpSync, 32) {
  BCU_SHARED float* w = shared + ctx.warp() * 8;
  if (ctx.lane() < 8u) w[ctx.lane()] = p.x[ctx.tid()];
  warp_sync(ctx);
  float v = w[ctx.lane() & 7];
  warp_sync(ctx);
  if (ctx.lane() < 8u) w[ctx.lane()] = v + 1.f;
  warp_sync(ctx);
  p.y[own(ctx, p)] = v + w[7 - (ctx.lane() & 7)];
}

BCU_PROBE(OkShuffles, 0) {
  float v = p.x[ctx.tid()];
  float down = shuffle_down(ctx, v, 1u), up = shuffle_up(ctx, v, 1u);
  double wide = shuffle(ctx, double(v), 5u);
  float expected = p.x[ctx.warp() * 32 + 5];
  if (ctx.lane() < 31u && down != p.x[ctx.tid() + 1]) expected = 0.f;
  if (ctx.lane() > 0u && up != p.x[ctx.tid() - 1]) expected = 0.f;
  if (shuffle_xor(ctx, v, 3u) != p.x[ctx.tid() ^ 3u]) expected = 0.f;
  p.y[own(ctx, p)] = float(wide) == expected ? 1.f : math::quiet_nan<float>();
}

BCU_PROBE(OkAtomics, 0) {
  atomic_add((BCU_GLOBAL AtomicF32*)p.y, 1.f);
  atomic_add(p.counter, 2u);
}

BCU_PROBE(OkBarrierAll, 0) {
  p.y[own(ctx, p)] = p.x[ctx.tid()];
  barrier_all(ctx);
  float v = p.y[int64_t(ctx.bid_x()) * p.n + (ctx.tid() ^ 64u)];
  barrier_all(ctx);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(OkNeighbourBytes, 0) {
  BCU_GLOBAL uint8_t* bytes = (BCU_GLOBAL uint8_t*)p.y;
  for (int k = 0; k < 4; ++k) bytes[(int64_t(ctx.bid_x()) * 4 + k) * p.n + ctx.tid()] = uint8_t(ctx.tid());
}

BCU_PROBE(OkPacks, 0) {
  BCU_GLOBAL const Pack<float>* x = (BCU_GLOBAL const Pack<float>*)p.x;
  BCU_GLOBAL Pack<float>* y = (BCU_GLOBAL Pack<float>*)p.y;
  if (ctx.tid() < 32u) y[ctx.bid_x() * 32u + ctx.tid()] = x[ctx.tid()];
}

BCU_PROBE(OkFault, 0) {
  if (ctx.tid() % 2u) raise((BCU_GLOBAL Fault*)p.counter, 1, 2, 3, 4, 5);
  p.y[own(ctx, p)] = 1.f;
}

// ---- races in shared memory

BCU_PROBE(MissingBarrier, 4) {
  float v = warp_reduce<Add>(ctx, p.x[ctx.tid()]);
  if (ctx.lane() == 0u) shared[ctx.warp()] = v;
  p.y[own(ctx, p)] = shared[3 - ctx.warp()];
}

BCU_PROBE(WriteAfterRead, 4) {
  float sum = 0.f;
  for (int round = 0; round < 2; ++round) {
    float v = warp_reduce<Add>(ctx, p.x[ctx.tid()]);
    if (ctx.lane() == 0u) shared[ctx.warp()] = v;
    barrier(ctx);
    sum += shared[3 - ctx.warp()];
  }
  p.y[own(ctx, p)] = sum;
}

BCU_PROBE(SharedCounter, 1) {
  if (ctx.tid() == 0u) shared[0] = 0.f;
  barrier(ctx);
  shared[0] += p.x[ctx.tid()];
  barrier(ctx);
  p.y[own(ctx, p)] = shared[0];
}

BCU_PROBE(MissingWarpSync, 32) {
  BCU_SHARED float* w = shared + ctx.warp() * 8;
  if (ctx.lane() < 8u) w[ctx.lane()] = p.x[ctx.tid()];
  p.y[own(ctx, p)] = w[7 - (ctx.lane() & 7)];
}

BCU_PROBE(ShuffleIsNoSync, 32) {
  BCU_SHARED float* w = shared + ctx.warp() * 8;
  if (ctx.lane() < 8u) w[ctx.lane()] = p.x[ctx.tid()];
  float v = shuffle_xor(ctx, p.x[ctx.tid()], 1u);
  p.y[own(ctx, p)] = v + w[7 - (ctx.lane() & 7)];
}

BCU_PROBE(WarpSyncAcrossWarps, 128) {
  shared[ctx.tid()] = p.x[ctx.tid()];
  warp_sync(ctx);
  p.y[own(ctx, p)] = shared[ctx.tid() ^ 32u];
}

BCU_PROBE(UninitialisedShared, 32) {
  if (ctx.lane() == 0u) shared[ctx.warp()] = p.x[ctx.tid()];
  barrier(ctx);
  float v = shared[ctx.lane()];
  p.y[own(ctx, p)] = ctx.lane() < ctx.warps() ? v : 0.f;
}

BCU_PROBE(SharedFromLastBlock, 128) {
  if (ctx.bid_x() == 0u) shared[ctx.tid()] = 1.f;
  barrier(ctx);
  p.y[own(ctx, p)] = shared[ctx.tid()];
}

// ---- races in global memory

BCU_PROBE(BlocksWriteTheSame, 0) { p.y[ctx.tid()] = p.x[ctx.tid()] + float(ctx.bid_x()); }

BCU_PROBE(BlockReadsAnother, 0) {
  if (ctx.bid_x() == 0u)
    p.y[ctx.tid()] = p.x[ctx.tid()];
  else
    p.y[p.n + ctx.tid()] = p.y[ctx.tid()];
}

BCU_PROBE(NeedsBarrierAll, 0) {
  p.y[own(ctx, p)] = p.x[ctx.tid()];
  barrier(ctx);
  float v = p.y[int64_t(ctx.bid_x()) * p.n + (ctx.tid() ^ 64u)];
  barrier_all(ctx);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(WarpSyncForGlobal, 0) {
  p.y[own(ctx, p)] = p.x[ctx.tid()];
  warp_sync(ctx);
  float v = p.y[int64_t(ctx.bid_x()) * p.n + (ctx.tid() ^ 1u)];
  barrier_all(ctx);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(PlainAmongAtomics, 0) {
  atomic_add((BCU_GLOBAL AtomicF32*)p.y, p.x[ctx.tid()]);
  if (ctx.tid() == 5u && ctx.bid_x() == 1u) p.y[0] += 1.f;
}

BCU_PROBE(ReadAfterOthersAtomics, 0) {
  atomic_add((BCU_GLOBAL AtomicF32*)p.y, p.x[ctx.tid()]);
  barrier_all(ctx);
  p.y[1 + own(ctx, p) % (p.n * 2 - 1)] = p.y[0];
}

BCU_PROBE(ByteInAWord, 0) {
  if (ctx.tid() == 0u) p.y[own(ctx, p)] = 1.f;
  if (ctx.tid() == 1u) ((BCU_GLOBAL uint8_t*)(p.y + int64_t(ctx.bid_x()) * p.n))[2] = 3;
}

// ---- control flow

BCU_PROBE(DivergentBarrier, 64) {
  if (ctx.tid() < 40u) {
    shared[ctx.tid()] = 1.f;
    barrier(ctx);
  }
  p.y[own(ctx, p)] = p.x[ctx.tid()];
}

BCU_PROBE(EarlyReturn, 4) {
  if (ctx.tid() >= 100u) return;
  p.y[own(ctx, p)] = block_reduce<Add>(ctx, p.x[ctx.tid()], 0.f, shared);
}

BCU_PROBE(TwoBarriers, 0) {
  if (ctx.tid() < 64u)
    barrier(ctx);
  else
    barrier(ctx);
  p.y[own(ctx, p)] = p.x[ctx.tid()];
}

BCU_PROBE(DivergentShuffle, 0) {
  float v = p.x[ctx.tid()];
  if (ctx.lane() < 16u) v += shuffle_xor(ctx, v, 8u);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(DivergentTripCount, 0) {
  float v = p.x[ctx.tid()];
  for (uint32_t i = 0; i <= ctx.lane() / 16u; ++i) v += shuffle_xor(ctx, v, 1u);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(TwoShuffles, 0) {
  float v = p.x[ctx.tid()];
  if (ctx.lane() % 2u)
    v = shuffle_xor(ctx, v, 1u);
  else
    v = shuffle_xor(ctx, v, 1u);
  p.y[own(ctx, p)] = v;
}

BCU_PROBE(ShufflePastTheEnd, 0) { p.y[own(ctx, p)] = shuffle_down(ctx, p.x[ctx.tid()], 1u); }

// ---- addresses and numbers

BCU_PROBE(ReadPastTheEnd, 0) { p.y[own(ctx, p)] = p.x[ctx.tid() + 1]; }

BCU_PROBE(WritePastTheEnd, 0) { p.y[own(ctx, p) + 1 + (ctx.bid_x() ? 0 : p.n)] = p.x[ctx.tid()]; }

BCU_PROBE(ReadBeforeTheStart, 0) { p.y[own(ctx, p)] = p.x[int64_t(ctx.tid()) - 1]; }

BCU_PROBE(FarAway, 0) { p.y[own(ctx, p)] = p.x[int64_t(ctx.tid()) << 24]; }

BCU_PROBE(PastShared, 96) {
  shared[ctx.tid()] = p.x[ctx.tid()];
  barrier(ctx);
  p.y[own(ctx, p)] = shared[ctx.tid()];
}

BCU_PROBE(PastParams, 0) {
  BCU_CONSTANT int32_t* words = &p.n;
  p.y[own(ctx, p)] = p.x[ctx.tid()] + float(words[2]);
}

BCU_PROBE(WritesParams, 0) { const_cast<ProbeParams&>(p).n = 3; }

BCU_PROBE(MemoryOfNoTensor, 0) { p.y[own(ctx, p)] = p.y[p.stray + ctx.tid()]; }

BCU_PROBE(NullPointer, 0) { p.y[own(ctx, p)] = *((BCU_GLOBAL const float*)(p.stray * 0)); }

BCU_PROBE(MisalignedPack, 0) {
  BCU_GLOBAL const Pack<float>* packs = (BCU_GLOBAL const Pack<float>*)(p.x + 2);
  Pack<float> a = packs[ctx.tid() & 15u];
  p.y[own(ctx, p)] = a.v[0] + a.v[3];
}

BCU_PROBE(Overflow, 0) {
  int32_t big = p.n * 100000000;
  p.y[own(ctx, p)] = p.x[ctx.tid()] + float(big);
}

BCU_PROBE(ShiftTooFar, 0) { p.y[own(ctx, p)] = float(1 << (ctx.lane() + 1u)); }

BCU_PROBE(PastLocalArray, 0) {
  float local[4] = {1.f, 2.f, 3.f, 4.f};
  p.y[own(ctx, p)] = local[p.n & 255];
}

BCU_PROBE(StackOverflow, 0) {
  volatile char big[300 << 10];
  big[ctx.tid()] = char(p.n);
  p.y[own(ctx, p)] = float(big[ctx.tid()]);
}

}  // namespace baracuda::simt::probe

#include "mma_probes.h"

// clang-format off: it never settles on such a list
#define BCU_PROBES(X) \
  X(OkBlockReduce) X(OkWarpSync) X(OkShuffles) X(OkAtomics) X(OkBarrierAll) X(OkNeighbourBytes) X(OkPacks) \
  X(OkFault) X(OkMma) X(OkMmaCutsOff) X(OkLoadMatrices) X(OkSlices) X(OkCopies) X(MissingBarrier) \
  X(WriteAfterRead) X(SharedCounter) X(MissingWarpSync) X(ShuffleIsNoSync) \
  X(WarpSyncAcrossWarps) X(UninitialisedShared) X(SharedFromLastBlock) X(BlocksWriteTheSame) \
  X(BlockReadsAnother) X(NeedsBarrierAll) X(WarpSyncForGlobal) X(PlainAmongAtomics) X(ReadAfterOthersAtomics) \
  X(ByteInAWord) X(DivergentBarrier) X(EarlyReturn) X(TwoBarriers) X(DivergentShuffle) X(DivergentTripCount) \
  X(TwoShuffles) X(ShufflePastTheEnd) X(ReadPastTheEnd) X(WritePastTheEnd) X(ReadBeforeTheStart) X(FarAway) \
  X(PastShared) X(PastParams) X(WritesParams) X(MemoryOfNoTensor) X(NullPointer) X(MisalignedPack) X(Overflow) \
  X(ShiftTooFar) X(PastLocalArray) X(StackOverflow) X(CopyWithoutWait) X(CopyWithoutBarrier) X(CopyBeforeBarrier) \
  X(MisalignedMatrix)
// clang-format on
