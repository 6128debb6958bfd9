#include "core/evaluate.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/devices.h"

namespace baracuda {
namespace {

std::string brief(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

std::string names_of(Elements set) {
  std::string out;
  for (int i = 0; i < kElementCount; ++i) {
    if (!set.has(static_cast<Element>(i))) continue;
    out += out.empty() ? "" : ", ";
    out += kElementInfo[i].name;
  }
  return out;
}

struct Judge {
  const Row& row;
  const Question& q;
  Answer& answer;

  void refuse(Code code, std::string field, std::string got, std::string want, std::string hint = "") {
    answer.refusals.push_back({code, std::move(field), std::move(got), std::move(want), std::move(hint)});
  }
  void depends(const char* on) { answer.depends.push_back(on); }

  void identity() {
    if (!q.op.empty() && q.op != row.op) refuse(Code::Op, "op", q.op, row.op);
    if (q.direction != Direction::Any && q.direction != row.direction)
      refuse(Code::Direction, "direction", q.direction == Direction::Forward ? "forward" : "backward",
             row.direction == Direction::Forward ? "forward" : "backward");
    const std::string& sku = q.preference.sku;
    if (!sku.empty() && sku != row.variant && sku != sku_name(row, q.element))
      refuse(Code::Sku, "preference.sku", sku, sku_name(row, q.element), "drop the sku or name this one");
  }

  void machine() {
    // A backend that is not asked about is not opened: that would start its driver, which does not survive a fork.
    if (q.backend != Backend::Any && q.backend != row.backend)
      return refuse(Code::Backend, "device", name(q.backend), name(row.backend), "ask for this row's backend");
    const BackendState& state = backend_state(row.backend);
    if (!state.built) {
      refuse(Code::NotBuilt, "device", name(row.backend), "a wheel with this backend", state.reason);
    } else if (!state.present) {
      refuse(Code::NoDevice, "device", name(row.backend), "a device of this backend", state.reason);
    } else if (q.device > 0 && !device_info(row.backend, q.device)) {
      refuse(Code::NoDevice, "device", device_name(row.backend, q.device),
             "one of the " + std::to_string(device_count(row.backend)) + " devices that are here",
             "bc.devices() lists them");
    } else if (const DeviceInfo* device = q.device > 0 ? device_info(row.backend, q.device) : nullptr;
               (device ? device->arch : state.arch) < row.min_arch) {
      refuse(Code::Arch, "device", device ? device->name : state.level,
             "architecture level " + std::to_string(row.min_arch) + " or newer");
    }
  }

  void elements() {
    if (q.element == Element::Any) {
      depends("element");
    } else if (!row.elements.has(q.element)) {
      refuse(Code::ElementKind, "element", name(q.element), "one of " + names_of(row.elements),
             "cast the tensors, or ask capabilities() which rows take this element");
    }
    if (!row.aux.empty()) {
      if (q.aux == Element::Any)
        depends("aux_element");
      else if (!row.aux.has(q.aux))
        refuse(Code::AuxElement, "aux_element", name(q.aux), "one of " + names_of(row.aux));
    }
    for (Element e : q.reads) {
      if (e == q.element || row.convertible.has(e)) continue;
      refuse(Code::ElementKind, "element", name(e),
             row.convertible.empty() ? std::string("the same element for all inputs")
                                     : "one of " + names_of(row.convertible),
             "cast this input first");
    }
  }

  void layout() {
    if (q.rank > row.max_rank)
      refuse(Code::Rank, "rank", std::to_string(q.rank), "at most " + std::to_string(row.max_rank));
    if ((row.flags & kContiguous) && !q.contiguous)
      refuse(Code::Layout, "layout", "any strides", "contiguous tensors",
             "promise it: select(..., layout=\"contiguous\")");
    if (row.alignment > 1 && q.alignment < row.alignment)
      refuse(Code::Alignment, "alignment", std::to_string(q.alignment), std::to_string(row.alignment) + " bytes",
             "promise it: select(..., alignment=" + std::to_string(row.alignment) + ")");
  }

  void promises() {
    const Preference& p = q.preference;
    const Guarantee& g = row.guarantee;
    if (p.deterministic && !g.deterministic) refuse(Code::Deterministic, "preference.deterministic", "True", "False");
    if (p.batch_invariant && !g.batch_invariant)
      refuse(Code::BatchInvariant, "preference.batch_invariant", "True", "False");
    if (g.math != MathPrecision::Ieee && p.math != g.math)
      refuse(Code::MathPrecision, "preference.math_precision", "ieee", "reduced precision",
             "ask for this math_precision");
    double promised = g.bound.kind == BoundKind::Exact ? 0.5 : g.bound.c;
    if (promised > p.max_error)
      refuse(Code::MaxError, "preference.max_error", brief(p.max_error), "at least " + brief(promised),
             "allow a larger max_error, or none");
  }

  void problem() {
    if (!q.has_problem) {
      if (row.check) depends("descriptor");
      return;
    }
    if (row.check && answer.refusals.empty()) {
      if (Reason r = row.check(q.problem())) refuse(Code::Problem, r.field, "", r.want, r.hint ? r.hint : "");
    }
    // The rules of a row may rely on its own element and rank limits, so they are asked last.
    if (!answer.refusals.empty() || !row.workspace) return;
    answer.workspace = row.workspace(q.problem());
    if (answer.workspace > q.preference.max_workspace_bytes)
      refuse(Code::WorkspaceLimit, "preference.max_workspace_bytes", std::to_string(q.preference.max_workspace_bytes),
             std::to_string(answer.workspace));
  }
};

}  // namespace

std::string sku_name(const Row& row, Element element) {
  std::string out = row.op;
  out += row.direction == Direction::Forward ? ".forward." : ".backward.";
  out += std::string(name(row.backend)) + "." + name(element) + "." + row.variant;
  return out;
}

Answer evaluate(int32_t index, const Question& question) {
  Answer answer;
  answer.row = index;
  Judge judge{row_at(index), question, answer};
  judge.identity();
  judge.machine();
  judge.elements();
  judge.layout();
  judge.promises();
  judge.problem();
  answer.verdict = !answer.refusals.empty() ? Verdict::No : answer.depends.empty() ? Verdict::Yes : Verdict::Depends;
  return answer;
}

std::vector<Answer> evaluate_all(const Question& question) {
  std::vector<Answer> out;
  for (const int32_t i : rows_of(question.op, question.direction)) out.push_back(evaluate(i, question));
  return out;
}

}  // namespace baracuda
