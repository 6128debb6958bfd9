#include "core/evaluate.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/checked.h"
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

// Rules of workspaces multiply sizes of a tensor with what threads and blocks take, and none of that may be lost.
constexpr int64_t kMostWorkedOn = int64_t{1} << 48;

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
      refuse(Code::Direction, "direction", name(q.direction), name(row.direction));
    const std::string& sku = q.preference.sku;
    if (!sku.empty() && sku != row.variant && sku != sku_name(row, q.element))
      refuse(Code::Sku, "preference.sku", sku, sku_name(row, q.element), "drop the sku or name this one");
  }

  void machine() {
    // A backend that is not asked about is not opened: that would start its driver, which does not survive a fork.
    if (q.backend != Backend::Any && q.backend != row.backend)
      return refuse(Code::Backend, "device", name(q.backend), name(row.backend), "ask for this row's backend");
    if (q.arch >= 0) {
      if (q.arch < row.min_arch) too_old(std::to_string(q.arch));
      return;
    }
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
      too_old(device ? device->name : state.level);
    }
  }
  void too_old(std::string got) {
    refuse(Code::Arch, "device", std::move(got), "architecture level " + std::to_string(row.min_arch) + " or newer");
  }

  void elements() {
    if (q.element == Element::Any) {
      depends("element");
    } else if (!row.elements.has(q.element)) {
      refuse(Code::ElementKind, "element", name(q.element), "one of " + names_of(row.elements),
             "cast the tensors, or ask capabilities() which rows take this element");
    }
    if (row.aux.empty()) {
      if (q.aux != Element::Any && !q.has_problem)
        refuse(Code::AuxElement, "aux_element", name(q.aux), "none: the op has no second element");
    } else {
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
    // Rows of an op promise in one kind of bound (tests/test_contract.py), beside exact ones: constants are compared.
    if (g.bound.c > p.max_error)
      refuse(Code::MaxError, "preference.max_error", brief(p.max_error),
             "at least " + brief(g.bound.c) + ", the constant of this row's bound: " +
                 kBoundNames[static_cast<int>(g.bound.kind)] + "(" + brief(g.bound.c) + ")",
             "allow a larger max_error, or none");
  }

  // An attribute's number, if the question says it.
  std::optional<double> attribute(const char* wanted) const {
    for (const auto& [called, value] : q.given)
      if (called == wanted) return value;
    for (size_t i = 0; q.has_problem && i < row.attrs.size(); ++i)
      if (std::strcmp(row.attrs[i].name, wanted) == 0)
        return std::strcmp(row.attrs[i].type, "f64") == 0 ? std::bit_cast<double>(q.attrs[i])
                                                          : static_cast<double>(q.attrs[i]);
    return {};
  }
  // False where an attribute is not known that decides.
  bool attributes() {
    for (const auto& [called, value] : q.given) {
      const auto same = [&](const AttrField& field) { return called == field.name; };
      if (std::none_of(row.attrs.begin(), row.attrs.end(), same))
        refuse(Code::Problem, "attributes", called, "an op with this attribute");
    }
    bool known = true;
    for (const AttrRange& range : row.ranges) {
      const std::optional<double> value = attribute(range.name);
      known &= value.has_value();
      if (value && !(*value >= range.least && *value <= range.most))
        refuse(Code::Problem, range.name, q.has_problem ? "" : brief(*value), range.want, range.hint);
    }
    return known;
  }

  void problem() {
    const bool known = attributes();
    if (!q.has_problem) {
      if (row.check || !known) depends("descriptor");
      return;
    }
    if (row.check && answer.refusals.empty()) {
      if (Reason r = row.check(q.problem())) refuse(Code::Problem, r.field, "", r.want, r.hint ? r.hint : "");
    }
    // The rules of a row may rely on its own element and rank limits, so they are asked last.
    if (!answer.refusals.empty() || !row.workspace) return;
    for (const ParamMeta& m : q.params) {
      int64_t elements = 0;
      if (m.rank < 0 || (count_elements(m.shape, m.rank, elements) && elements < kMostWorkedOn)) continue;
      return refuse(Code::WorkspaceLimit, "sizes", "a tensor of 2^48 elements or more",
                    "fewer, of a row with a workspace", "give smaller sizes, or Dims of a smaller max");
    }
    answer.workspace = row.workspace(q.problem());
    if (answer.workspace < 0 || answer.workspace > kMaxBytes)
      return refuse(Code::WorkspaceLimit, "sizes", "a workspace of more than 2^56 bytes", "at most 2^56 bytes",
                    "give smaller sizes, or Dims of a smaller max");
    if (answer.workspace > q.preference.max_workspace_bytes)
      refuse(Code::WorkspaceLimit, "preference.max_workspace_bytes", std::to_string(q.preference.max_workspace_bytes),
             std::to_string(answer.workspace));
  }
};

// What a row's rules see of a parameter: its first tensor, at the largest sizes.
ParamMeta meta_of(const Param& p, const Signature& s, const int64_t* largest) {
  ParamMeta m;
  if (p.count == 0) return m;
  const Slot& slot = s.slots[p.first];
  m.element = slot.element;
  if (!p.present) return m;
  m.rank = slot.rank;
  for (int i = 0; i < slot.rank; ++i) {
    m.shape[i] = slot.dims[i].eval(largest);
    m.fixed &= slot.dims[i].symbol < 0;
  }
  return m;
}

}  // namespace

void take_signature(Question& q, const Signature& s, const std::vector<NamedStrides>& promised) {
  int64_t largest[kMaxSymbols] = {};
  for (size_t i = 0; i < s.symbols.size(); ++i) largest[i] = s.symbols[i].max;
  q.has_problem = true;
  q.rank = 0;
  for (const Param& p : s.params) {
    ParamMeta m = meta_of(p, s, largest);
    for (int32_t i = 0; p.present && i < p.count; ++i) q.rank = std::max(q.rank, s.slots[p.first + i].rank);
    if (p.present && p.reads && p.role == Role::In && m.element != q.element) q.reads.push_back(m.element);
    for (const NamedStrides& given : promised) {
      if (given.name != p.name || static_cast<int32_t>(given.strides.size()) != m.rank || m.rank == 0) continue;
      m.strided = true;
      std::copy(given.strides.begin(), given.strides.end(), m.strides);
    }
    q.params.push_back(m);
  }
  std::sort(q.reads.begin(), q.reads.end());
  q.reads.erase(std::unique(q.reads.begin(), q.reads.end()), q.reads.end());
}

std::string sku_name(const Row& row, Element element) {
  return std::string(row.op) + "." + name(row.direction) + "." + name(row.backend) + "." + name(element) + "." +
         row.variant;
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
  for (const int32_t i : rows_of(question.op, question.direction)) {
    const bool others = question.backend != Backend::Any && question.backend != row_at(i).backend;
    if (question.has_problem || !others) out.push_back(evaluate(i, question));
  }
  return out;
}

}  // namespace baracuda
