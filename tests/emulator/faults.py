"""The seeded faults: what is replaced where, and what the emulator or the generated tests say of it."""

from __future__ import annotations

from faulty import TEXT, Fault

# Blocks of any number of warps, which nothing may mind.
ANY_WARPS = (
    "simt/rows_launch.h", "static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(wanted)))",
    "static_cast<int32_t>((wanted + 31) / 32 * 32)",
)  # fmt: skip

# A sum over a block by halves, which is one where the number of warps is a power of two.
HALVES = (
    "  v = ctx.lane() < ctx.warps() ? shared[ctx.lane()] : identity;\n  v = warp_reduce<Op>(ctx, v);",
    """\
  for (uint32_t half = ctx.warps() / 2; half > 0; half /= 2) {
    if (ctx.lane() == 0u && ctx.warp() < half)
      shared[ctx.warp()] = Op::of(shared[ctx.warp()], shared[ctx.warp() + half]);
    barrier(ctx);
  }
  v = shared[0];""",
)

# Of three loops over rows in the text, the one for classes.
LOSS_ROWS = """\
C smooth = simt::number<C>(p.smoothing);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, """

FAULTS = [
    Fault(
        "the last element is left out", "gated", "swiglu", "forward",
        "simt/map.h", "at < p.frame.count; at += step) element", "at + 1 < p.frame.count; at += step) element", "error is",
    ),
    Fault(
        "packs that are not aligned", "gated", "swiglu", "backward",
        "simt/map_launch.h", "% word != 0) return false;\n      for", "% 4 != 0) return false;\n      for",
        "MISALIGNED",
    ),
    Fault(
        "offsets of 32 bits", "gated", "swiglu", "forward",
        "simt/map_launch.h", "wide |= reach >= kReach", "wide |= reach < 0", "error is|OUT OF BOUNDS", test="far",
    ),
    Fault(
        "a block that holds two teams", "softmax", "softmax", "forward",
        "simt/rows_launch.h", "s.team_size == 32 ? kWarpRowThreads : s.team_size",
        "std::max(s.team_size, kWarpRowThreads)",
        "error is",
    ),
    Fault(
        "rows end at 2048", "softmax", "log_softmax", "backward",
        "ops/softmax/simt.h", "length = row < p.s.rows ? p.s.length : 0;",
        "length = row < p.s.rows ? (p.s.length < 2048 ? p.s.length : 2048) : 0;", "error is", nth=1,
    ),
    Fault(
        "rows that the registers do not hold", "softmax", "softmax", "forward",
        "ops/softmax/simt_launch.h", "s.length <= int64_t{Registers::kThreads} * Registers::kValues", "true",
        "error is",
    ),
    Fault(
        "no barrier before the next use", "softmax", "softmax", "forward",
        "simt/rows.h", "    barrier(ctx);\n    return v;", "    return v;", "RACE",
    ),
    Fault(
        "no barrier in a sum over a block", "softmax", "softmax", "forward",
        "simt/reduce.h", "  barrier(ctx);\n  return v;", "  return v;", "RACE",
    ),
    Fault(
        "no barrier before the next use", "reduce", "argmax", "forward",
        "simt/fold.h", "    barrier(ctx);\n    return s;", "    return s;", "RACE",
    ),
    Fault(
        "the last of equals", "reduce", "argmin", "forward",
        "simt/fold.h", "b.position < a.position ? b : a", "b.position > a.position ? b : a", "error is",
    ),
    Fault(
        "strips past the end", "reduce", "sum", "forward",
        "simt/fold.h", "begin + p.per < p.s.length ? begin + p.per : p.s.length", "begin + p.per",
        "error is|OUT OF BOUNDS",
    ),
    Fault(
        "warps that are not there", "reduce", "mean", "forward",
        "simt/reduce.h", "ctx.lane() < ctx.warps() ? shared[ctx.lane()] : identity", "shared[ctx.lane()]",
        "UNINITIALISED|OUT OF BOUNDS",
    ),
    Fault(
        "ids are not checked", "embedding", "embedding", "forward",
        "simt/copy_rows.h", "if (uint64_t(at) >= uint64_t(p.limit)) {", "if (p.limit < 0) {",
        "OUT OF BOUNDS|DID NOT RAISE",
        test="indices",
    ),
    Fault(
        "one id too many", "embedding", "embedding", "forward",
        "simt/copy_rows.h", "uint64_t(at) >= uint64_t(p.limit)", "uint64_t(at) > uint64_t(p.limit)",
        "OUT OF BOUNDS|DID NOT RAISE", test="indices",
    ),
    Fault(
        "ids are not checked", "embedding", "embedding", "backward",
        "simt/index.h", "if (uint64_t(id) < uint64_t(p.limit)) return true;", "if (id < p.limit) return true;",
        "OUT OF BOUNDS|DID NOT RAISE", test="indices",
    ),
    Fault(
        "ids of more than six bits", "embedding", "embedding", "backward",
        "simt/sort_launch.h", "(ids >> p.shift) > 0", "(ids >> p.shift) > 63", "error is|RACE",
    ),
    Fault(
        "no barrier before the next round of a prefix sum", "embedding", "embedding", "backward",
        "simt/prefix.h", "    before += all;\n    barrier(ctx);", "    before += all;", "RACE",
    ),
    Fault(
        "no barrier behind the counts", "embedding", "embedding", "backward",
        "simt/sort.h", "p, first);\n    barrier(ctx);", "p, first);", "RACE|UNINITIALISED",
    ),
    Fault(
        "the first run of an id is all", "embedding", "embedding", "backward",
        "simt/sorted_fold.h", "has_id(p.sorted, next, id); next += kRun", "next < entry; next += kRun", "error is",
    ),
    Fault(
        "runs from the wrong entry on", "embedding", "embedding", "backward",
        "simt/sorted_fold.h", "runs = (begin - first + kRun - 1) / kRun,", "runs = (begin - first) / kRun,",
        "error is|RACE",
    ),
    Fault(
        "sums that are not atomic", "embedding", "embedding", "backward",
        "ops/embedding/simt.h",
        "simt::atomic_add((BCU_GLOBAL simt::AtomicF32*)p.weight + id * p.weight_row + column * p.weight_column, x);",
        "((BCU_GLOBAL float*)p.weight)[id * p.weight_row + column * p.weight_column] += x;", "RACE",
    ),
    Fault(
        "a bag's last id", "embedding", "embedding_bag", "forward",
        "ops/embedding/simt_bag.h", "at + j < range.end ?", "at + j + 1 < range.end ?", "error is",
    ),
    Fault(
        "a maximum's row gets a gradient each time", "embedding", "embedding_bag", "backward",
        "ops/embedding/simt_bag.h",
        "      return false;\n    return p.chosen", "      return true;\n    return p.chosen", "error is",
    ),
    Fault(
        "offsets are not checked", "embedding", "embedding_bag", "forward",
        "ops/embedding/simt_bag.h", "  if (r.begin < 0 || r.end > p.offsets.limit) r.end = r.begin;\n", "",
        "OUT OF BOUNDS", test="offsets",
    ),
    Fault(
        "negative indices do not count from the end", "indexing", "take", "forward",
        "simt/index.h", "p.wrap && given < 0 ? given + p.limit : given", "given", "error is|IndexOutOfRange",
    ),
    Fault(
        "indices of 32 bits", "indexing", "gather", "forward",
        "ops/indexing/simt.h", "place[0] = id * p.step", "place[0] = int32_t(id * p.step)", "error is|OUT OF BOUNDS",
        test="far",
    ),
    Fault(
        "a bad index has a place", "indexing", "scatter", "forward",
        "ops/indexing/simt_spread.h", "good ? offset[1] + id * p.step : p.places", "offset[1] + id * p.step",
        "OUT OF BOUNDS", test="indices",
    ),
    Fault(
        "every index writes", "indexing", "index_fill", "forward",
        "ops/indexing/simt_spread.h", " || simt::has_id(p.sorted, entry + 1, place)", "", "RACE",
    ),
    Fault(
        "the first of equal indices stays", "indexing", "scatter", "forward",
        "ops/indexing/simt_spread.h", "simt::has_id(p.sorted, entry + 1, place)",
        "(entry > 0 && simt::has_id(p.sorted, entry - 1, place))", "error is",
    ),
    Fault(
        "no barrier behind the places of digits", "indexing", "scatter_reduce", "forward",
        "simt/sort.h", "        sum += n;\n      }\n    }\n    barrier(ctx);", "        sum += n;\n      }\n    }",
        "RACE|UNINITIALISED",
    ),
    Fault(
        "the last entry of a tile", "indexing", "gather", "backward",
        "simt/sort.h", "if (first + i >= p.count) break;", "if (first + i + 1 >= p.count) break;",
        "error is|UNINITIALISED|OUT OF BOUNDS", nth=1,
    ),
    Fault(
        "a chunk's last element", "indexing", "nonzero", "forward",
        "simt/chosen.h", "begin + Chosen::kChunk < p.n ? begin + Chosen::kChunk : p.n;\n      uint32_t",
        "begin + Chosen::kChunk <= p.n ? begin + Chosen::kChunk - 1 : p.n;\n      uint32_t", "error is|RACE",
    ),
    Fault(
        "positions are not checked", "rope", "rope", "forward",
        "ops/rope/simt.h", "uint64_t(at) < uint64_t(p.limit)", "at < p.limit", "OUT OF BOUNDS|DID NOT RAISE",
        test="indices",
    ),
    Fault(
        "rows of 32 bits", "rope", "rope", "backward",
        "simt/space.h", "offset[k] += c * s.stride[k][d]", "offset[k] += int32_t(c * s.stride[k][d])",
        "error is|OUT OF BOUNDS",
        test="far",
    ),
    Fault(
        "no barrier between slices", "matmul", "matmul", "forward",
        "ops/matmul/simt.h", "      simt::barrier(ctx);\n    }", "    }", "RACE|UNINITIALISED",
    ),
    Fault(
        "tiles past the edge", "matmul", "matmul", "forward",
        "ops/matmul/simt.h", "if (i >= p.m || j >= p.n) return;", "if (i >= p.m) return;",
        "OUT OF BOUNDS|error is|RACE",
    ),
    Fault(
        "no activation", "matmul", "matmul", "forward",
        "ops/matmul/simt.h", "S::store(activate(p.activation, v))", "S::store(v)", "error is",
    ),
    Fault(
        "8-bit tiles past the edge", "matmul", "scaled_matmul", "forward",
        "ops/matmul/simt_quantized.h", "if (i < p.m && j < p.n) {\n      auto", "if (i < p.m) {\n      auto",
        "OUT OF BOUNDS|error is|RACE", element="i8",
    ),
    Fault(
        "no barrier before the next copies", "matmul", "matmul", "forward",
        "ops/matmul/simt_mma.h", "wait<kStages - 2>();\n      simt::barrier(ctx);", "wait<kStages - 2>();",
        "RACE|UNINITIALISED", element="bf16", test="mma",
    ),
    Fault(
        "a copy that nobody waits for", "matmul", "matmul", "forward",
        "ops/matmul/simt_mma.h", "wait<kStages - 2>();", "wait<kStages - 1>();", "RACE", element="bf16",
        test="mma",
    ),
    Fault(
        "columns in the order of rows", "matmul", "matmul", "forward",
        "ops/matmul/simt_mma.h", "B::template fragment<false>", "B::template fragment<true>", "error is", element="bf16",
        test="mma",
    ),
    Fault(
        "packs past the edge", "matmul", "matmul", "forward",
        "ops/matmul/simt_mma.h", "!inside ? 0 : left < 8 ? int(left) : 8", "!inside ? 0 : 8", "error is",
        element="bf16", test="mma",
    ),
    Fault(
        "a tensor's last elements", "optim", "adamw", "forward",
        "ops/optim/simt.h", "place.end = place.begin + s.chunk < s.count[low] ? place.begin + s.chunk : s.count[low];",
        "place.end = place.begin + s.chunk;", "OUT OF BOUNDS|error is",
    ),
    Fault(
        "no room for a ninth dimension", "optim", "adamw", "forward",
        "simt/space.h", "kSpaceDims = kMaxDims + 1", "kSpaceDims = kMaxDims", "OUT OF BOUNDS|error is",
    ),
    Fault(
        "no barrier behind the rows of a slice", "attention", "scaled_dot_product_attention", "forward",
        "ops/attention/simt.h", "simt::barrier(ctx);", "", "RACE|UNINITIALISED", nth=1,
    ),
    Fault(
        "no barrier before the next values", "attention", "scaled_dot_product_attention", "forward",
        "ops/attention/simt.h", "simt::barrier(ctx);", "", "RACE|UNINITIALISED", nth=2,
    ),
    Fault(
        "no barrier behind the values", "attention", "scaled_dot_product_attention", "forward",
        "ops/attention/simt.h", "simt::barrier(ctx);", "", "RACE|UNINITIALISED", nth=3,
    ),
    Fault(
        "keys end at 64", "attention", "scaled_dot_product_attention", "forward",
        "ops/attention/simt_forward.h", "key < w.end; key += B::kKeys", "key < w.end && key < 64; key += B::kKeys",
        "error is",
    ),
    Fault(
        "keys end at 2048", "attention", "scaled_dot_product_attention", "forward",
        "ops/attention/simt_forward.h", "key < w.end; key += B::kKeys", "key < w.end && key < 2048; key += B::kKeys",
        "error is",
    ),
    Fault(
        "no barrier before the next use", "norm", "rms_norm", "backward",
        "simt/reduce.h", "  barrier(ctx);\n  return v;", "  return v;", "RACE",
    ),
    Fault(
        "no barrier behind the sums of lanes", "norm", "rms_norm", "backward",
        "simt/rows.h", "    shared[ctx.tid()] = v;\n    barrier(ctx);", "    shared[ctx.tid()] = v;",
        "RACE|UNINITIALISED",
    ),
    Fault(
        "rows end at 2048", "norm", "rms_norm", "forward",
        "ops/norm/simt.h", "length = row < p.s.rows ? p.s.length : 0;",
        "length = row < p.s.rows ? (p.s.length < 2048 ? p.s.length : 2048) : 0;", "error is",
    ),
    Fault(
        "rows end at 2048", "norm", "rms_norm", "backward",
        "ops/norm/simt_backward.h", "length = row < p.s.rows ? p.s.length : 0,",
        "length = row < p.s.rows ? (p.s.length < 2048 ? p.s.length : 2048) : 0,", "error is",
    ),
    Fault(
        "no barrier before the next use", "loss", "cross_entropy", "forward",
        "simt/reduce.h", "  barrier(ctx);\n  return v;", "  return v;", "RACE",
    ),
    Fault(
        "no barrier before the next use", "loss", "cross_entropy_fused", "forward",
        "simt/rows.h", "    barrier(ctx);\n    return v;", "    return v;", "RACE",
    ),
    Fault(
        "classes end at 2048", "loss", "cross_entropy", "forward",
        "ops/loss/simt.h", "length = row < p.s.rows ? p.s.length : 0,",
        "length = row < p.s.rows ? (p.s.length < 2048 ? p.s.length : 2048) : 0,", "error is",
    ),
    Fault(
        "a mean over no target is zero", "loss", "cross_entropy", "forward",
        "ops/loss/simt.h", "p.totals[0] = total;", "p.totals[0] = total > C(0) ? total : C(1);", "error is",
    ),
    Fault(
        "a mean over no target is zero", "loss", "cross_entropy_fused", "forward",
        "ops/loss/simt.h", "p.totals[0] = total;", "p.totals[0] = total > C(0) ? total : C(1);", "error is",
    ),
    Fault(
        "a gradient without a target is 0 / 0", "loss", "cross_entropy", "backward",
        "ops/loss/simt.h", "C d = target >= 0 ? math::exp(v[j] - g.shift) * g.scale - spread[j] : C(0);",
        "C d = (math::exp(v[j] - g.shift) * g.scale - spread[j]) * (target >= 0 ? C(1) : C(0));", "error is",
    ),
    Fault(
        "ignored targets count", "loss", "cross_entropy", "backward",
        "ops/loss/simt.h", "count += t >= 0 ? 1 : 0;", "count += 1;", "error is",
    ),
    Fault(
        "sums of halves of a block", "softmax", "softmax", "forward",
        "simt/reduce.h", *HALVES, "error is", also=(ANY_WARPS,),
    ),
    Fault(
        "blocks that end within a warp", "softmax", "softmax", "forward",
        "simt/rows_launch.h", ANY_WARPS[1], "static_cast<int32_t>(wanted)", "CudaError|threads",
    ),
]  # fmt: skip

# In the quantizing epilogue, which norms and gated activations share.
FAULTS += [
    Fault(name, family, op, "forward", "ops/quant/simt_coded_rows.h", right, wrong, says)
    for name, family, op, right, wrong, says in (
        ("codes in another order", "gated", "swiglu_quantize", "& 255u) << (8 * j)", "& 255u) << (8 * (3 - j))", "error is"),
        ("one scale for all groups", "norm", "rms_norm_quantize", "put_scale(p, row, g, s.scale)",
         "put_scale(p, row, 0, s.scale)", "error is|RACE|UNINITIALISED"),
        ("packs of rows that have none", "norm", "rms_norm_quantize", "if (p.codes.packed) {\n simt::Word word;",
         "if (true) {\n simt::Word word;", "error is|MISALIGNED|OUT OF BOUNDS|RACE"),
    )
]  # fmt: skip

# Faults of the text that ships, which no other compiler than Apple's and this harness reads.
TEXT_FAULTS = [
    Fault(
        "no barrier in a sum over a block", "softmax", "softmax", "forward",
        TEXT, "v = warp_reduce<Op>(ctx, v); barrier(ctx); return v;", "v = warp_reduce<Op>(ctx, v); return v;", "RACE",
        backend="metal",
    ),
    Fault(
        "no barrier before the next use", "norm", "rms_norm", "backward",
        TEXT, "v = warp_reduce<Op>(ctx, v); barrier(ctx); return v;", "v = warp_reduce<Op>(ctx, v); return v;", "RACE",
        backend="metal",
    ),
    Fault(
        "no barrier before the next use", "loss", "cross_entropy", "forward",
        TEXT, "v = warp_reduce<Op>(ctx, v); barrier(ctx); return v;", "v = warp_reduce<Op>(ctx, v); return v;", "RACE",
        backend="metal",
    ),
    Fault(
        "a group is every warp's", "norm", "layer_norm_quantize", "forward",
        TEXT, "g += team.size / 32u) {", "g += 1) {", "RACE", backend="metal",
    ),
    Fault(
        "offsets of 32 bits", "layout", "copy", "forward",
        "simt/map_launch.h", "wide |= reach >= kReach", "wide |= reach < 0",
        "error is|OUT OF BOUNDS|INTEGER OVERFLOW", test="far", backend="metal",
    ),
    Fault(
        "sums of halves of a block", "softmax", "softmax", "backward", TEXT, *HALVES, "error is", also=(ANY_WARPS,),
        backend="metal",
    ),
    Fault(
        "ids are not checked", "embedding", "embedding", "backward",
        TEXT, "if (uint64_t(id) < uint64_t(p.limit)) return true;", "if (id < p.limit) return true;",
        "OUT OF BOUNDS|DID NOT RAISE", test="indices", backend="metal",
    ),
    Fault(
        "keys end at 2048", "attention", "scaled_dot_product_attention", "backward",
        TEXT, "key < last; key += B::kKeys", "key < last && key < 2048; key += B::kKeys", "error is", backend="metal",
    ),
    Fault(
        "a barrier of no memory", "softmax", "softmax", "forward",
        TEXT, "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup); }",
        "metal::threadgroup_barrier(metal::mem_flags::mem_none); }", "without mem_threadgroup", backend="metal",
    ),
    Fault(
        "classes end at 2048", "loss", "cross_entropy", "forward",
        TEXT, LOSS_ROWS + "length = row < p.s.rows ? p.s.length : 0,",
        LOSS_ROWS + "length = row < p.s.rows ? (p.s.length < 2048 ? p.s.length : 2048) : 0,", "error is", backend="metal",
    ),
    Fault(
        "a mean over no target is zero", "loss", "cross_entropy", "forward",
        TEXT, "p.totals[0] = total;", "p.totals[0] = total > C(0) ? total : C(1);", "error is", backend="metal",
    ),
    Fault(
        "halves of one distance", "reduce", "argmax", "forward",
        TEXT, "uint(ulong(v) >> 32), arg);", "uint(ulong(v) >> 32), 0u);", "error is", backend="metal",
    ),
    Fault(
        "ids are not checked", "embedding", "embedding", "forward",
        TEXT, "if (uint64_t(at) >= uint64_t(p.limit)) {", "if (p.limit < 0) {",
        "OUT OF BOUNDS|DID NOT RAISE", test="indices", backend="metal",
    ),
    Fault(
        "no barrier behind the counts", "indexing", "index_add", "forward",
        TEXT, "p, first);\n    barrier(ctx);", "p, first);", "RACE|UNINITIALISED", backend="metal",
    ),
    Fault(
        "a bad index has a place", "indexing", "index_copy", "forward",
        TEXT, "good ? offset[1] + id * p.step : p.places", "offset[1] + id * p.step", "OUT OF BOUNDS",
        test="indices", backend="metal",
    ),
    Fault(
        "rows of 32 bits", "rope", "rope", "backward",
        TEXT, "offset[k] += c * s.stride[k][d]", "offset[k] += int32_t(c * s.stride[k][d])",
        "error is|OUT OF BOUNDS", test="far", backend="metal",
    ),
    Fault(
        "shared memory of half a block", "softmax", "softmax", "forward",
        TEXT, "threadgroup float4 shared[(BCU_UNPACK body::kShared + 4) / 4];", "threadgroup float4 shared[1];",
        "OUT OF BOUNDS|error is", backend="metal",
    ),
    Fault(
        "the lane for the thread", "softmax", "softmax", "forward",
        TEXT, "uint tid [[thread_index_in_threadgroup]]", "uint tid [[thread_index_in_simdgroup]]",
        "error is|RACE|UNINITIALISED", backend="metal",
    ),
    Fault(
        "sums are read before others have stored them", "matmul", "matmul", "forward",
        TEXT, "      simt::warp_sync(ctx);\n      BCU_UNROLL for (int r = 0;", "      BCU_UNROLL for (int r = 0;",
        "RACE|UNINITIALISED", backend="metal",
    ),
    Fault(
        "a matrix as its transpose", "matmul", "matmul", "forward",
        TEXT, "Square::template load<true>(", "Square::template load<false>(", "error is", backend="metal",
    ),
    Fault(
        "results of an old highest score", "attention", "scaled_dot_product_attention", "forward",
        TEXT, "result[x] *= factors[x / kEach];", ";", "error is", backend="metal",
    ),
    Fault(
        "strips are written while others read them", "attention", "scaled_dot_product_attention", "forward",
        TEXT, "+= strip[r * kStrip + lane];\n      simt::warp_sync(ctx);", "+= strip[r * kStrip + lane];",
        "RACE|UNINITIALISED", backend="metal",
    ),
    Fault(
        "keys that rows may not use", "attention", "scaled_dot_product_attention", "forward",
        TEXT, "result[(r + i) * kEach + e] += a[i] < C(0) ? C(0) : a[i] * b[e];",
        "result[(r + i) * kEach + e] += a[i] * b[e];", "error is", backend="metal",
    ),
    Fault(
        "rounding towards zero", "gated", "swiglu", "forward",
        TEXT, "{ out = bf16(x); }", "{ out = as_type<bf16>(ushort(as_type<uint>(x) >> 16)); }", "error is",
        element="bf16", backend="metal",
    ),
]  # fmt: skip

# In what calls cuBLASLt, on the library that does what its callers do not forbid.
LIBRARY_FAULTS = [
    Fault(name, "matmul", "matmul", "forward", f"ops/matmul/{file}", right, wrong, r"\d+ failed", test="cublaslt")
    for name, file, right, wrong in (
        ("f32 is read as TF32", "cublaslt.h", "if (math != MathPrecision::Tf32) denied |= api::kReadsTf32;", ""),
        ("sums are added in any way", "cublaslt.h", "uint32_t(api::kNoReduction | api::kReduceInComputeType)", "7u"),
        ("a workspace begins anywhere", "cublaslt.h", "reinterpret_cast<void*>(start * kWorkspaceStart)", "launch.workspace"),
        ("packs at odd addresses", "cublaslt.h", "const bool aligned = packed(calls);", "const bool aligned = true;"),
        ("C is not read", "cublaslt.h", "beta = calls.c ? C(calls.beta) : C(0);", "beta = C(0);"),
        ("another device", "cublaslt.h", "inline Status run(const Launch& launch) {\n  cuda::DeviceGuard guard(launch.device);",
         "inline Status run(const Launch& launch) {\n  cuda::DeviceGuard guard(0);"),
        ("calls that do not move", "cublaslt.h", "y += at * calls.loop_y[i]", "y += 0"),
        ("lines of X for Y", "strided.h", "s.y_transposed, s.ldy)", "s.y_transposed, s.ldx)"),
    )
] + [
    Fault(name, "matmul", "scaled_matmul", "forward", f"ops/matmul/{file}", right, wrong, r"\d+ failed", "i8", "cublaslt")
    for name, file, right, wrong in (
        ("no scales", "cublaslt.h", "calls.scale_x = g.scale_b.data, calls.scale_y = g.scale_a.data;", ""),
        ("results of the factors' element", "cublaslt.h", "result = type_of(kind.result);", "result = type;"),
        ("alpha as a float", "cublaslt.h", "return multiply<int32_t>(", "return multiply<float>("),
        ("strides of factors for results", "strided.h", "s.stride_d = strides[3][i] / result;",
         "s.stride_d = strides[3][i] / factor;"),
    )
]  # fmt: skip
