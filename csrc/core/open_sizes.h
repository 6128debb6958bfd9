// Plans whose sizes are symbols: what a call's sizes are, whether they go together, and what they need.
#pragma once
#include "core/plan.h"

namespace baracuda {

// Reads the symbols from the tensors: first from sizes that are a bare symbol, then from those derived from one.
// `found(slot, symbol)` of each that became known says whether to stop.
template <class Skipped, class Found>
inline bool each_symbol(const Signature& s, const TensorView* views, int64_t* values, bool* known,
                        const Skipped& skipped, const Found& found) {
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t k = 0; k < s.slots.size(); ++k) {
      if (skipped(k) || views[k].rank != s.slots[k].rank) continue;
      for (int i = 0; i < s.slots[k].rank; ++i) {
        const DimExpr& d = s.slots[k].dims[i];
        if (d.symbol < 0 || known[d.symbol] || (pass == 0 && !d.bare())) continue;
        const int64_t got = d.solve(views[k].shape[i]);
        if (got < 0) continue;  // its size is refused when all are compared
        known[d.symbol] = true;
        values[d.symbol] = got;
        if (found(k, d.symbol)) return true;
      }
    }
  }
  return false;
}

// Asks the op's rule, the row's check and its workspace at these values of the symbols, which the tensors have; false
// with the reason.
bool sizes_hold(const PlanCore& plan, const TensorView* views, const int64_t* symbols, int64_t& workspace,
                Refusals& out);

// Bytes of workspace that a call of these tensors needs, where the plan takes them.
BCU_API int64_t workspace_of(const PlanCore& plan, const TensorView* views);

Refusal few_bytes(int64_t got, int64_t needed);

}  // namespace baracuda
