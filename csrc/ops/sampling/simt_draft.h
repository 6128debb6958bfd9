// Verification of draft tokens on GPUs, a row by a block.
#pragma once
#include "ops/sampling/draft.h"
#include "simt/simt.h"

namespace baracuda::sampling {

struct DraftParams {
  BCU_GLOBAL const void *draft, *draft_tokens, *target, *parents;  // draft of a chain, parents of a tree
  BCU_GLOBAL int64_t *y, *accepted, *path;
  int64_t rows, drafted, vocabulary;
  int64_t draft_strides[3], token_strides[2], target_strides[3], y_strides[2], accepted_stride;
  int64_t parent_strides[2], path_strides[2];  // in elements
  simt::Number seed, offset;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;  // in the table
  int32_t draft_element, token_element, target_element;
  int32_t draft_tensor, token_tensor, target_tensor, parent_tensor;  // as faults name them
};

struct VerifyDraft {
  using Params = DraftParams;
  enum : int { kThreads = 512, kShared = 2 * kThreads + 64 };

  BCU_DEVICE float draft_of(BCU_CONSTANT Params& p, int64_t row, int64_t i, int64_t token) {
    return simt::load_element<float>(p.draft, p.draft_element,
                                     row * p.draft_strides[0] + i * p.draft_strides[1] + token * p.draft_strides[2]);
  }
  BCU_DEVICE float target_of(BCU_CONSTANT Params& p, int64_t row, int64_t i, int64_t token) {
    return simt::load_element<float>(p.target, p.target_element,
                                     row * p.target_strides[0] + i * p.target_strides[1] + token * p.target_strides[2]);
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t row, int64_t i, int64_t token) {
    p.y[row * p.y_strides[0] + i * p.y_strides[1]] = token;
  }

  // How many tokens are kept: by one thread.
  BCU_DEVICE int64_t judge(BCU_CONSTANT Params& p, int64_t row) {
    uint64_t seed = simt::number<uint64_t>(p.seed), offset = simt::number<uint64_t>(p.offset);
    int64_t kept = 0;
    bool going = true;
    for (int64_t i = 0; i < p.drafted; ++i) {
      int64_t token = simt::load_element<int64_t>(p.draft_tokens, p.token_element,
                                                  row * p.token_strides[0] + i * p.token_strides[1]);
      bool there = token >= 0 && token < p.vocabulary;
      if (!there) simt::raise(p.fault, p.row, p.token_tensor, row * p.drafted + i, token, p.vocabulary);
      going = going && there &&
              accepts(target_of(p, row, i, token), draft_of(p, row, i, token),
                      deciding_word(seed, offset, row * (p.drafted + 1) + i));
      if (going) put(p, row, i, token), ++kept;
    }
    p.accepted[row * p.accepted_stride] = kept;
    for (int64_t i = kept; i <= p.drafted; ++i) put(p, row, i, -1);
    return kept;
  }

  BCU_DEVICE float weight_at(BCU_CONSTANT Params& p, int64_t row, int64_t i, int64_t token, bool beyond_draft) {
    float v = target_of(p, row, i, token);
    return beyond_draft ? beyond(v, draft_of(p, row, i, token)) : v;
  }
  // What is no probability counts as 0, and is told.
  BCU_DEVICE int32_t largest(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p,
                             int64_t row, int64_t i, bool beyond_draft) {
    int32_t most = 1;
    for (int64_t k = ctx.tid(); k < p.vocabulary; k += ctx.bdim()) {
      float v = target_of(p, row, i, k);
      if (!random::is_weight(v))
        simt::raise_value(p.fault, p.row, p.target_tensor, (row * (p.drafted + 1) + i) * p.vocabulary + k, v,
                          simt::kNotNegative);
      float d = beyond_draft ? draft_of(p, row, i, k) : 0.0f;
      if (!random::is_weight(d))
        simt::raise_value(p.fault, p.row, p.draft_tensor, (row * p.drafted + i) * p.vocabulary + k, d,
                          simt::kNotNegative);
      v = beyond_draft ? beyond(v, d) : v;
      int32_t e = random::is_weight(v) ? random::Parts<float>::exponent(v) : 1;
      most = e > most ? e : most;
    }
    return simt::block_reduce<simt::Larger>(ctx, most, int32_t(1), (BCU_SHARED int32_t*)shared);
  }

  // A token, or -1 where nothing has weight.
  BCU_DEVICE int64_t draw(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p,
                          int64_t row, int64_t i, bool beyond_draft) {
    BCU_SHARED uint64_t* sums = (BCU_SHARED uint64_t*)shared;
    BCU_SHARED int64_t* found = (BCU_SHARED int64_t*)(shared + 2 * kThreads);
    int32_t most = largest(ctx, shared, p, row, i, beyond_draft), bits = random::weight_bits(p.vocabulary);
    int64_t per = (p.vocabulary + ctx.bdim() - 1) / ctx.bdim(), first = int64_t(ctx.tid()) * per;
    int64_t last = first + per < p.vocabulary ? first + per : p.vocabulary;
    uint64_t own = 0;
    for (int64_t k = first; k < last; ++k) {
      float v = weight_at(p, row, i, k, beyond_draft);
      own += random::is_weight(v) ? random::weight_of(v, most, bits) : uint64_t(0);
    }
    sums[ctx.tid()] = own;
    if (ctx.tid() == 0u) *found = -1;
    simt::barrier(ctx);
    uint64_t before = 0, sum = 0;
    for (uint32_t k = 0; k < ctx.bdim(); ++k) {
      before = k == ctx.tid() ? sum : before;
      sum += sums[k];
    }
    uint64_t drawn = 0;
    if (sum != 0u)
      drawn =
          drawn_below(simt::number<uint64_t>(p.seed), simt::number<uint64_t>(p.offset), row * (p.drafted + 1) + i, sum);
    if (drawn >= before && drawn - before < own) {
      uint64_t left = drawn - before;
      for (int64_t k = first; k < last; ++k) {
        float v = weight_at(p, row, i, k, beyond_draft);
        uint64_t w = random::is_weight(v) ? random::weight_of(v, most, bits) : uint64_t(0);
        if (left < w) {
          *found = k;
          break;
        }
        left -= w;
      }
    }
    simt::barrier(ctx);
    int64_t token = *found;
    simt::barrier(ctx);
    return token;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED int64_t* kept = (BCU_SHARED int64_t*)shared;
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      if (ctx.tid() == 0u) *kept = judge(p, row);
      simt::barrier(ctx);
      int64_t i = *kept;
      simt::barrier(ctx);
      int64_t token = draw(ctx, shared, p, row, i, i < p.drafted);
      if (token < 0 && i < p.drafted) token = draw(ctx, shared, p, row, i, false);
      if (ctx.tid() == 0u) {
        if (token < 0)
          simt::raise_value(p.fault, p.row, p.target_tensor, (row * (p.drafted + 1) + i) * p.vocabulary, 0.0f,
                            simt::kPositiveSum);
        put(p, row, i, token);
      }
      simt::barrier(ctx);
    }
  }
};

// From place to place of a tree, so long as what is drawn is the token of a child.
struct WalkTree {
  using Params = DraftParams;
  enum : int { kThreads = VerifyDraft::kThreads, kShared = VerifyDraft::kShared };

  BCU_DEVICE int64_t parent_of(BCU_CONSTANT Params& p, int64_t row, int64_t i) {
    return simt::load_element<int64_t>(p.parents, p.token_element, row * p.parent_strides[0] + i * p.parent_strides[1]);
  }
  // The first child of place i that holds the token, or -1: by one thread.
  BCU_DEVICE int64_t child_of(BCU_CONSTANT Params& p, int64_t row, int64_t i, int64_t token) {
    for (int64_t k = i; k < p.drafted; ++k) {
      int64_t held = simt::load_element<int64_t>(p.draft_tokens, p.token_element,
                                                 row * p.token_strides[0] + k * p.token_strides[1]);
      if (held == token && parent_of(p, row, k) == i) return k;
    }
    return -1;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED int64_t* child = (BCU_SHARED int64_t*)shared;
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      for (int64_t k = ctx.tid(); k < p.drafted; k += ctx.bdim()) {
        int64_t parent = parent_of(p, row, k);
        if (parent < 0 || parent > k) simt::raise(p.fault, p.row, p.parent_tensor, row * p.drafted + k, parent, k + 1);
      }
      int64_t i = 0, kept = 0;
      for (bool going = true; going;) {
        int64_t token = VerifyDraft::draw(ctx, shared, p, row, i, false);
        if (ctx.tid() == 0u) {
          if (token < 0)
            simt::raise_value(p.fault, p.row, p.target_tensor, (row * (p.drafted + 1) + i) * p.vocabulary, 0.0f,
                              simt::kPositiveSum);
          VerifyDraft::put(p, row, kept, token);
          *child = token < 0 ? -1 : child_of(p, row, i, token);
          if (*child >= 0) p.path[row * p.path_strides[0] + kept * p.path_strides[1]] = *child;
        }
        simt::barrier(ctx);
        int64_t next = *child;
        simt::barrier(ctx);
        going = next >= 0;
        kept += going ? 1 : 0, i = next + 1;
      }
      if (ctx.tid() == 0u) {
        p.accepted[row * p.accepted_stride] = kept;
        for (int64_t k = kept; k < p.drafted; ++k) {
          VerifyDraft::put(p, row, k + 1, -1);
          p.path[row * p.path_strides[0] + k * p.path_strides[1]] = -1;
        }
      }
    }
  }
};

}  // namespace baracuda::sampling
