#include "core/select.h"

#include "core/device.h"
#include "core/devices.h"

namespace baracuda {
namespace {

// What a device needs before its first launch is made now, not in run. False with the failure.
bool prepare_device(const PlanCore& plan, Refusal& failure) {
  std::string reason;
  const DeviceModule* module = plan.row.backend == Backend::Cpu ? nullptr : device_module(plan.row.backend, reason);
  if (!module || module->prepare(plan.question.device) == Status::Ok) return true;
  failure = {Code::LaunchFailed, device_name(plan.row.backend, plan.question.device), module->last_error(),
             "a device that works", ""};
  return false;
}

// Lets the row make what its launches need.
Status prepare_row(PlanCore& plan, Refusal& why) {
  const Question& question = plan.question;
  const Prepare prepare = find_prepare(plan.row_index);
  if (!prepare) return Status::Ok;
  Prepared* made = nullptr;
  Reason reason;
  const Preparation p{question.problem(), &plan.row, question.device, question.preference.max_workspace_bytes};
  const Status status = prepare(p, &made, &reason);
  if (status == Status::Ok) {
    if (made->workspace >= 0) plan.workspace_size = made->workspace;
    plan.prepared.reset(made);
  } else if (status == Status::Unsupported) {
    why = {Code::Problem, reason.field, "", reason.want, reason.hint ? reason.hint : ""};
  } else {
    std::string unused;
    why = {Code::LaunchFailed, device_name(plan.row.backend, plan.question.device),
           device_module(plan.row.backend, unused)->last_error(), "a device that works", ""};
  }
  return status;
}

// Asks the op's rule at the largest sizes; false with the reason. What kernels rely on is checked here for all that
// comes after: the checks and the workspace of rows, and calls of these very sizes.
bool goes_together(ShapeRule rule, const Question& question, const Signature& signature, Refusal& why) {
  if (!rule) {
    why = {Code::Problem, "op", question.op, "an op that shapes.h of its family has a rule for", ""};
    return false;
  }
  int64_t largest[kMaxSymbols] = {};
  for (size_t i = 0; i < signature.symbols.size(); ++i) largest[i] = signature.symbols[i].max;
  Shapes shapes(signature, question, nullptr, largest);
  rule(shapes);
  return shapes.done(why);
}

}  // namespace

Selection select(const Question& question, Signature signature, int32_t threads) {
  Selection out;
  const std::span<const int32_t> rows = rows_of(question.op, question.direction);
  if (rows.empty()) return out;
  const ShapeRule rule = shape_rule(rows.front());
  out.failed = !goes_together(rule, question, signature, out.failure);
  if (out.failed) return out;
  for (const int32_t index : rows) {
    if (row_at(index).backend != question.backend) continue;
    const Answer answer = evaluate(index, question);
    if (answer.verdict != Verdict::Yes) continue;
    auto plan = std::make_unique<PlanCore>();
    plan->row_index = index;
    plan->row = row_at(index);
    std::string reason;
    plan->kernel = find_kernel(index, reason);
    plan->rule = rule;
    plan->question = question;
    plan->workspace_size = answer.workspace;
    plan->threads = threads;
    if (!plan->kernel)
      out.failure = {Code::NotBuilt, "device", name(question.backend), "a kernel for this row", reason};
    out.failed = !plan->kernel || !prepare_device(*plan, out.failure);
    if (out.failed) return out;
    Refusal why;
    const Status status = prepare_row(*plan, why);
    if (status == Status::Unsupported) {
      out.later.emplace_back(index, why);
      continue;
    }
    out.failed = status != Status::Ok;
    out.failure = why;
    if (out.failed) return out;
    plan->signature = std::move(signature);
    finish(*plan);
    out.plan = std::move(plan);
    return out;
  }
  return out;
}

}  // namespace baracuda
