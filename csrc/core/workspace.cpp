// What a plan whose sizes are symbols needs for the sizes of one call.
#include "core/plan.h"

namespace baracuda {

int64_t workspace_at(const PlanCore& plan, const int64_t* symbols) {
  const Question& asked = plan.question;
  // What was prepared for the maxima, such as a library's algorithm, keeps its workspace.
  const bool is_kept = plan.prepared && plan.prepared->workspace >= 0;
  if (!plan.row.workspace || is_kept || plan.signature.symbols.empty()) return plan.workspace_size;
  ParamMeta metas[kMaxArgs];
  std::copy(asked.params.begin(), asked.params.end(), metas);
  for (size_t p = 0; p < asked.params.size(); ++p) {
    if (metas[p].rank >= 0) metas[p].fixed = true;
    const Slot& slot = plan.signature.slots[plan.signature.params[p].first];
    for (int i = 0; i < metas[p].rank; ++i) metas[p].shape[i] = slot.dims[i].eval(symbols);
  }
  const Problem problem{asked.attrs.data(), metas, static_cast<int32_t>(asked.params.size()), asked.element, asked.aux};
  // The rule may rely on what the row takes: it was not asked about others when plans were fixed to them.
  if (plan.row.check && plan.row.check(problem)) return plan.workspace_size;
  return std::min(plan.row.workspace(problem), plan.workspace_size);
}

}  // namespace baracuda
