#include "core/open_sizes.h"

#include <algorithm>

namespace baracuda {
namespace {

// What a row's rules see of tensors at these values of the symbols.
struct SizedProblem {
  ParamMeta metas[kMaxArgs];
  Problem problem;

  SizedProblem(const Question& asked, const Signature& signature, const int64_t* symbols, bool open)
      : problem{asked.attrs.data(), metas, static_cast<int32_t>(asked.params.size()), asked.element, asked.aux} {
    std::copy(asked.params.begin(), asked.params.end(), metas);
    for (size_t p = 0; p < asked.params.size(); ++p) {
      if (metas[p].rank < 0) continue;
      metas[p].fixed |= !open;
      const Slot& slot = signature.slots[signature.params[p].first];
      for (int i = 0; i < metas[p].rank; ++i) metas[p].shape[i] = slot.dims[i].eval(symbols);
    }
  }
};

// Whether the row takes these sizes, and the workspace that it wants for them; false with the reason.
bool needs(const PlanCore& plan, const int64_t* symbols, int64_t& bytes, Refusal& why) {
  bytes = plan.workspace_size;
  // What was prepared for the maxima, such as a library's algorithm, keeps its workspace; launchers of such rows have
  // another kernel at hand for the sizes that the library does not take.
  if (plan.prepared && plan.prepared->workspace >= 0) return true;
  const bool follows = plan.row.workspace && !plan.signature.symbols.empty();
  if (!plan.row.check && !follows) return true;
  const SizedProblem at(plan.question, plan.signature, symbols, false);
  if (const Reason reason = plan.row.check ? plan.row.check(at.problem) : Reason{}) {
    why = {Code::Problem, reason.field, "the sizes of this call", reason.want, reason.hint ? reason.hint : ""};
    return false;
  }
  if (follows) bytes = plan.row.workspace(at.problem);
  return true;
}

// Sizes that a plan was asked about, with what they need: the same ones come again and again.
struct Met {
  uint64_t plan = 0;
  int64_t symbols[kMaxSymbols] = {};
  int64_t workspace = 0;
};
constexpr int kMetBits = 6;
constinit thread_local Met t_met[size_t{1} << kMetBits];

Met& met_at(const PlanCore& plan, const int64_t* symbols) {
  uint64_t at = plan.id;
  for (size_t i = 0; i < plan.signature.symbols.size(); ++i)
    at = (at ^ static_cast<uint64_t>(symbols[i])) * 0x9E3779B97F4A7C15u;
  return t_met[at >> (64 - kMetBits)];
}

}  // namespace

int64_t workspace_at(const PlanCore& plan, const int64_t* symbols) {
  int64_t bytes = 0;
  Refusal unused;
  return needs(plan, symbols, bytes, unused) ? bytes : plan.workspace_size;
}

int64_t workspace_of(const PlanCore& plan, const TensorView* views) {
  const Signature& s = plan.signature;
  if (s.symbols.empty()) return plan.workspace_size;
  int64_t values[kMaxSymbols] = {};
  bool known[kMaxSymbols] = {};
  each_symbol(
      s, views, values, known, [&](size_t k) { return !s.params[s.slots[k].param].present; },
      [](size_t, int32_t) { return false; });
  for (size_t i = 0; i < s.symbols.size(); ++i) values[i] = std::min(values[i], s.symbols[i].max);
  const Met& met = met_at(plan, values);
  const bool seen = met.plan == plan.id && std::equal(values, values + s.symbols.size(), met.symbols);
  return seen ? met.workspace : workspace_at(plan, values);
}

bool sizes_hold(const PlanCore& plan, const TensorView* views, const int64_t* symbols, int64_t& workspace,
                Refusals& out) {
  const size_t n = plan.signature.symbols.size();
  Met& met = met_at(plan, symbols);
  if (met.plan == plan.id && std::equal(symbols, symbols + n, met.symbols)) return workspace = met.workspace, true;
  Shapes shapes(plan.signature, plan.question, views, nullptr);
  plan.rule(shapes);
  Refusal why;
  if (!shapes.done(why) || !needs(plan, symbols, workspace, why)) return out.push_back(std::move(why)), false;
  met.plan = plan.id, met.workspace = workspace;
  std::copy(symbols, symbols + n, met.symbols);
  return true;
}

bool check_sizes(const PlanCore& plan, const TensorView* views, int64_t workspace_bytes, Refusals& refusals) {
  const Signature& s = plan.signature;
  if (s.symbols.empty()) return true;
  int64_t values[kMaxSymbols] = {}, needed = 0;
  bool known[kMaxSymbols] = {};
  each_symbol(
      s, views, values, known, [&](size_t k) { return !s.params[s.slots[k].param].present; },
      [](size_t, int32_t) { return false; });
  if (!sizes_hold(plan, views, values, needed, refusals)) return false;
  if (workspace_bytes >= needed) return true;
  refusals.push_back(few_bytes(workspace_bytes, needed));
  return false;
}

Refusal few_bytes(int64_t got, int64_t needed) {
  return {
      Code::Workspace, "workspace", std::to_string(got) + " bytes", std::to_string(needed) + " bytes", kWorkspaceHint,
      needed,          got};
}

// From 1 on, the symbols are doubled up to their maxima. No rule grows by more than kGrowth where all sizes double, so
// that the first number beyond kMaxBytes is met before one that 64 bits do not hold.
bool workspace_counts(const Row& row, const Question& question, const Signature& signature, Refusal& why) {
  constexpr int kBits = 59;
  static_assert(kMaxElements == int64_t{1} << kBits);
  const size_t n = signature.symbols.size();
  if (!row.workspace || n == 0) return true;
  int64_t symbols[kMaxSymbols] = {};
  for (int bits = 0; bits <= kBits; ++bits) {
    bool all = true;
    for (size_t i = 0; i < n; ++i) {
      symbols[i] = std::min(signature.symbols[i].max, int64_t{1} << bits);
      all &= symbols[i] == signature.symbols[i].max;
    }
    const SizedProblem at(question, signature, symbols, true);
    const bool taken = !row.check || !row.check(at.problem);
    const int64_t bytes = taken ? row.workspace(at.problem) : 0;
    if (bytes < 0 || bytes > kMaxBytes) {
      const Symbol& most = *std::max_element(signature.symbols.begin(), signature.symbols.end(),
                                             [](const Symbol& a, const Symbol& b) { return a.max < b.max; });
      why = {Code::Dim, most.name,
             "sizes up to " + std::to_string(most.max) + ", whose workspace has " +
                 (bytes > 0 ? std::to_string(bytes) + " bytes or more" : "over 2^63 bytes"),
             "a workspace of at most 2^56 bytes", "give bc.Dim(\"" + most.name + "\") a smaller max"};
      return false;
    }
    if (all) return true;
  }
  return true;
}

}  // namespace baracuda
