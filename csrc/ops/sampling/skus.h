// The SKU table of drawing tokens from logits.
#pragma once
#include "core/parallel.h"
#include "core/row.h"

namespace baracuda::sampling {

// probabilities: whether those of what is kept are the result, not its logits.
BCU_ATTRS(FilterAttrs, (i64, probabilities))

// What a row is drawn with: a number for all rows each, or a column of `controls`, in this order.
BCU_ARGS(SampleArgs, (logits, counts, mask, controls, y),
         (temperature, top_k, top_p, min_p, typical_p, repetition, presence, frequency, seed, offset))
BCU_ARGS(FilterArgs, (logits, counts, mask, controls, y),
         (temperature, top_k, top_p, min_p, typical_p, repetition, presence, frequency))
inline constexpr int64_t kControls = 8;
BCU_ARGS(VerifyArgs, (draft, draft_tokens, target, y, accepted), (seed, offset))
BCU_ARGS(TreeArgs, (tokens, parents, target, y, path, accepted), (seed, offset))

struct Sample {};
struct Filter {};
struct Verify {};
struct VerifyTree {};

inline constexpr Elements kLogits = kHalves | Element::F32;
inline int64_t tokens_of(const ParamMeta& logits) { return logits.rank > 0 ? logits.shape[logits.rank - 1] : 1; }
inline int64_t rows_in(const ParamMeta& logits) { return logits.rank > 1 ? logits.shape[0] : 1; }
constexpr int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// What the CPU keeps of each row, and works in per thread: logits as they are drawn from, entries that are put in
// order, and sums of weights that lie close together.
inline constexpr int64_t kBins = 8192;
struct Scratch {
  int64_t results, logits, entries, per_thread, bytes;
  Scratch(int64_t rows, int64_t tokens)
      : results(whole_lines(rows * 8)),
        logits(whole_lines(tokens * 4)),
        entries(whole_lines(tokens * 8)),
        per_thread(logits + entries + 2 * kBins * 8),
        bytes(results + max_threads() * per_thread) {}
};
inline int64_t scratch_of(const Problem& p) {
  const ParamMeta& logits = p.params[SampleArgs::logits];
  return Scratch(rows_in(logits), tokens_of(logits)).bytes;
}

static_assert(int{VerifyArgs::target} == TreeArgs::target);
inline int64_t verify_scratch(const Problem& p) {
  const ParamMeta& target = p.params[VerifyArgs::target];
  return whole_lines((target.rank > 0 ? target.shape[0] : 1) * 8);
}

template <class Tag, class Args>
constexpr auto drafts(const char* op) {
  return row<Tag>(op)
      .name("rows")
      .takes(kLogits, Element::I64 | Element::I32)
      .exact()
      .template args_of<Args>()
      .not_batch_invariant();
}

template <bool kSimt>
constexpr auto rows() {
  const auto sample = row<Sample>("sample_tokens").name("bins").takes(kLogits).exact().args_of<SampleArgs>();
  const auto filter =
      row<Filter>("filter_logits").name("bins").takes(kLogits).ulp(2).args_of<FilterArgs>().attrs_of<FilterAttrs>();
  const auto verify = drafts<Verify, VerifyArgs>("verify_draft");
  const auto tree = drafts<VerifyTree, TreeArgs>("verify_tree");
  if constexpr (kSimt)
    return table(sample.not_batch_invariant(), filter, verify, tree);
  else
    return table(sample.not_batch_invariant().scratch(&scratch_of), filter.scratch(&scratch_of),
                 verify.scratch(&verify_scratch), tree.scratch(&verify_scratch));
}

inline constexpr auto kTable = rows<false>() + on_cuda(rows<true>()) + on_metal(rows<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::sampling
