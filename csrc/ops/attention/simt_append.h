// Appending to a paged cache on GPUs: a thread per number. Places are checked beside it, and what has a bad one is left
// out.
#pragma once
#include "ops/attention/simt_problem.h"
#include "ops/quant/affine.h"
#include "simt/space.h"

namespace baracuda::attention {

struct PagedAppendProblem {
  // How a number's position among the new tokens moves: their own strides, those of a line of a page, and which
  // sequence and token it is of (of packed tokens the number of the token); and that of its head's scale.
  enum : int { kFrom, kTo, kSequence, kToken, kScale, kTensors };
  simt::Space<kTensors> space;
  BCU_GLOBAL const void* from;
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* table;
  BCU_GLOBAL const void* lens;
  BCU_GLOBAL const void* cu;      // packed tokens: where each sequence's begin, and the total; null: each has `tokens`
  BCU_GLOBAL const void* slots;   // a place for each of packed tokens, -1: none; null: the table says it
  BCU_GLOBAL const float* scale;  // of codes
  int64_t table_stride[2], lens_stride, cu_stride, slot_stride;
  int64_t to_page, to_line;
  int64_t pages, page_size, entries;  // entries of a sequence's row of the table
  int64_t sequences, tokens, total;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t element, table_tensor;  // of indices; lens and cu are the next tensors. Of slots: theirs
  int32_t cache_element;          // of codes
};

// A number as it is kept: the same bits, or a code as op quantize_linear makes it.
template <class From, class To>
struct Kept {
  BCU_DEVICE To of(BCU_CONSTANT PagedAppendProblem&, From x, int64_t) { return x; }
};
template <class From>
struct Kept<From, Codes> {
  BCU_DEVICE uint8_t of(BCU_CONSTANT PagedAppendProblem& p, From x, int64_t at) {
    float v = simt::Stored<From>::load(x), scale = p.scale[at];
    if (p.cache_element == simt::kI8) return uint8_t(int32_t(quant::Coded::f(v, scale, 0.0f, -128.0f, 127.0f)));
    return uint8_t(int32_t(quant::CodedF8<3>::f(v, scale, 1.0f)));
  }
};
template <class To>
struct UnitOf {
  using Type = To;
};
template <>
struct UnitOf<Codes> {
  using Type = uint8_t;
};

template <class From, class To>
struct PagedAppendTokens {
  using Unit = typename UnitOf<To>::Type;
  using Params = PagedAppendProblem;
  enum : int { kThreads = 256, kBlocks = 4, kShared = 0 };

  BCU_DEVICE int64_t place(BCU_CONSTANT Params& p, int64_t b) {
    return p.cu ? simt::load_element<int64_t>(p.cu, p.element, b * p.cu_stride) : b * p.tokens;
  }
  BCU_DEVICE int64_t length(BCU_CONSTANT Params& p, int64_t b) {
    return simt::load_element<int64_t>(p.lens, p.element, b * p.lens_stride);
  }

  BCU_DEVICE void check_place(BCU_CONSTANT Params& p, int64_t b) {
    int64_t at = place(p, b), before = b > 0 ? place(p, b - 1) : 0, limit = b > 0 ? p.total : 0;
    if (b == p.sequences && at != p.total)
      simt::raise(p.fault, p.row, p.table_tensor + 2, b, at, simt::limit_of(simt::kWantEnd, p.total));
    else if (at < before || at > limit)
      simt::raise(p.fault, p.row, p.table_tensor + 2, b, at, simt::limit_of(simt::kWantPlace, limit + 1));
  }
  BCU_DEVICE void check_length(BCU_CONSTANT Params& p, int64_t b) {
    int64_t begin = place(p, b), end = place(p, b + 1), n = length(p, b);
    if (begin < 0 || end < begin || end > p.total) return;
    int64_t limit = p.entries * p.page_size - (end - begin) + 1;
    limit = limit < 0 ? 0 : limit;
    if (uint64_t(n) >= uint64_t(limit))
      simt::raise(p.fault, p.row, p.table_tensor + 1, b, n, simt::limit_of(simt::kWantLength, limit));
  }

  // The last sequence that begins at or before a packed token.
  BCU_DEVICE int64_t sequence(BCU_CONSTANT Params& p, int64_t token) {
    int64_t low = 0, high = p.sequences;
    while (high - low > 1) {
      int64_t middle = (low + high) / 2;
      if (place(p, middle) <= token)
        low = middle;
      else
        high = middle;
    }
    return low;
  }

  BCU_DEVICE void put(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset, int64_t page, int64_t line) {
    int64_t to = page * p.to_page + line * p.to_line + offset[Params::kTo];
    From x = ((BCU_GLOBAL const From*)p.from)[offset[Params::kFrom]];
    ((BCU_GLOBAL Unit*)p.to)[to] = Kept<From, To>::of(p, x, offset[Params::kScale]);
  }
  BCU_DEVICE void put_in_slot(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset) {
    int64_t t = offset[Params::kToken], at = simt::load_element<int64_t>(p.slots, p.element, t * p.slot_stride);
    if (at == -1) return;
    if (uint64_t(at) < uint64_t(p.pages * p.page_size)) return put(p, offset, at / p.page_size, at % p.page_size);
    simt::raise(p.fault, p.row, p.table_tensor, t, at, simt::limit_of(simt::kWantSlot, p.pages * p.page_size));
  }

  BCU_DEVICE void copy(BCU_CONSTANT Params& p, int64_t i) {
    int64_t offset[Params::kTensors];
    simt::locate(p.space, i, offset);
    if (p.slots) return put_in_slot(p, offset);
    int64_t b = offset[Params::kSequence], t = offset[Params::kToken];
    if (p.cu) b = sequence(p, t), t -= place(p, b);
    int64_t n = length(p, b), at = n + t;
    if (n < 0 || t < 0 || at < 0 || at >= p.entries * p.page_size) return;
    int64_t slot = at / p.page_size;
    int64_t page = simt::load_element<int64_t>(p.table, p.element, b * p.table_stride[0] + slot * p.table_stride[1]);
    if (uint64_t(page) >= uint64_t(p.pages)) {
      simt::raise(p.fault, p.row, p.table_tensor, b * p.entries + slot, page, p.pages);
      return;
    }
    put(p, offset, page, at - slot * p.page_size);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), first = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid();
    for (int64_t b = first; p.cu && b <= p.sequences; b += step) check_place(p, b);
    for (int64_t b = first; b < p.sequences; b += step) check_length(p, b);
    for (int64_t i = first; i < p.space.count; i += step) copy(p, i);
  }
};

}  // namespace baracuda::attention
