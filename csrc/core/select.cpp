#include "core/select.h"

#include "core/device.h"
#include "core/devices.h"
#include "core/message.h"

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

// Far above all memory that a process has, and from each other.
void* made_up_address(size_t i) { return reinterpret_cast<void*>((uint64_t{1} << 62) + (uint64_t{i + 1} << 52)); }

// Launches the plan once without running anything, so that its kernels are compiled now: those for whole tensors at
// the largest sizes. Others are at their first launch. False with the failure.
bool rehearse(const PlanCore& plan, Refusal& failure) {
  std::string reason;
  const DeviceModule* module = plan.row.backend == Backend::Cpu ? nullptr : device_module(plan.row.backend, reason);
  if (!module || !module->rehearse) return true;
  int64_t largest[kMaxSymbols] = {};
  for (size_t i = 0; i < plan.signature.symbols.size(); ++i) largest[i] = plan.signature.symbols[i].max;
  std::vector<TensorView> views(plan.signature.slots.size());
  for (size_t k = 0; k < views.size(); ++k) {
    const Slot& slot = plan.signature.slots[k];
    TensorView& v = views[k];
    v.rank = plan.signature.params[slot.param].present ? slot.rank : -1;
    v.element = slot.element, v.device = plan.row.backend, v.device_id = plan.question.device;
    v.data = v.present() ? made_up_address(k) : nullptr;
    int64_t step = 1;
    for (int32_t i = v.rank - 1; i >= 0; --i) {
      v.shape[i] = slot.dims[i].eval(largest), v.strides[i] = step;
      step *= v.shape[i];
    }
  }
  std::vector<Scalar> scalars;
  for (const ScalarParam& p : plan.signature.scalars) scalars.push_back(p.value);
  const Call call{views.data(), scalars.data(), made_up_address(views.size()), plan.workspace_size, true};
  Failure found;
  module->rehearse(true);
  const Status status = plan.kernel(launch_of(plan, call, nullptr, &found));
  module->rehearse(false);
  if (status != Status::Launch) return true;
  failure = refusal_of(plan, status, found);
  return false;
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
    out.failed = !workspace_counts(row_at(index), question, signature, out.failure);
    if (out.failed) return out;
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
    out.failed = !rehearse(*plan, out.failure);
    if (!out.failed) out.plan = std::move(plan);
    return out;
  }
  return out;
}

}  // namespace baracuda
