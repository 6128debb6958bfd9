#include "core/capability.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>

#include "core/devices.h"
#include "core/document.h"
#include "core/evaluate.h"

namespace baracuda {
namespace {

constexpr const char* kStates[] = {"declared", "built", "present", "usable"};
constexpr int kStateCount = 4;
// What architectures are called whose devices need not be here: "cuda:sm_90", "metal:apple9".
constexpr struct {
  Backend backend;
  const char* prefix;
} kArchitectures[] = {{Backend::Cuda, "cuda:sm_"}, {Backend::Metal, "metal:apple"}};

bool given(const Reader& r, const char* name) { return r.has(name) && !r.at(name).null(); }

bool read_number(std::string_view text, int32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text[0] != '-';
}

// A device that is here, or an architecture.
void read_place(const Reader& r, Question& q) {
  const std::string& text = r.text();
  for (const ModuleLevel& level : kModuleLevels) {
    if (text != std::string("cpu:") + level.name) continue;
    q.backend = Backend::Cpu, q.arch = level.arch;
    return;
  }
  for (const auto& [backend, prefix] : kArchitectures) {
    if (!text.starts_with(prefix) ||
        !read_number(std::string_view(text).substr(std::string_view(prefix).size()), q.arch))
      continue;
    q.backend = backend;
    return;
  }
  for (const Backend backend : {Backend::Cuda, Backend::Metal}) {
    if (text != name(backend)) continue;
    q.backend = backend;
    return;
  }
  read_device(r, q.backend, q.device);
}

void read_preference(const Reader& r, Preference& p) {
  r.only({"backend", "sku", "deterministic", "batch_invariant", "math_precision", "max_error", "max_workspace_bytes",
          "threads"});
  if (given(r, "sku")) p.sku = r.at("sku").text();
  if (given(r, "deterministic")) p.deterministic = r.at("deterministic").boolean();
  if (given(r, "batch_invariant")) p.batch_invariant = r.at("batch_invariant").boolean();
  if (given(r, "math_precision"))
    p.math =
        static_cast<MathPrecision>(r.at("math_precision").one_of(kMathNames, static_cast<int>(MathPrecision::Count)));
  if (given(r, "max_error")) p.max_error = r.at("max_error").number();
  if (!(p.max_error >= 0)) r.at("max_error").wrong("a number of at least 0");
  if (given(r, "max_workspace_bytes")) p.max_workspace_bytes = r.at("max_workspace_bytes").integer(0);
}

// Pairs of names and numbers; names that no row of the op has are wrong.
void read_attributes(const Reader& r, Question& q) {
  for (const Reader& pair : r.items(kMaxArgs)) {
    const std::vector<Reader> parts = pair.items(2);
    if (parts.size() != 2) pair.wrong("a name and a number");
    const std::string& name = parts[0].text();
    const auto rows = rows_of(q.op, Direction::Any);
    const bool known = std::any_of(rows.begin(), rows.end(), [&](int32_t row) {
      const AttrList& attrs = row_at(row).attrs;
      return std::any_of(attrs.begin(), attrs.end(), [&](const AttrField& f) { return name == f.name; });
    });
    if (!known) parts[0].wrong("an attribute of the op");
    q.given.emplace_back(name, parts[1].number());
  }
}

// Whether the question is about kernels that promise in ulp and others that promise in sum.
bool bounds_differ(const Question& q) {
  bool found[std::size(kBoundNames)] = {};
  for (int32_t i = 0; i < row_count(); ++i) {
    const Row& row = row_at(i);
    const bool asked =
        (q.op.empty() || q.op == row.op) && (q.direction == Direction::Any || q.direction == row.direction);
    if (asked) found[static_cast<int>(row.guarantee.bound.kind)] = true;
  }
  return found[static_cast<int>(BoundKind::Ulp)] && found[static_cast<int>(BoundKind::Sum)];
}

Question read_question(const Reader& r) {
  r.only({"op", "direction", "element", "index_element", "device", "rank", "alignment", "attributes", "preference",
          "state"});
  Question q;
  if (given(r, "op")) q.op = r.at("op").text();
  if (given(r, "op") && rows_of(q.op, Direction::Any).empty())
    r.at("op").wrong("an op of the SKU table; functions of several plans are asked about by their steps");
  if (given(r, "direction")) q.direction = static_cast<Direction>(r.at("direction").one_of(kDirectionNames, 2));
  if (given(r, "element")) q.element = read_element(r.at("element"));
  if (given(r, "index_element")) q.aux = read_element(r.at("index_element"));
  if (given(r, "device")) read_place(r.at("device"), q);
  if (given(r, "rank")) q.rank = static_cast<int32_t>(r.at("rank").integer(0, INT32_MAX));
  if (given(r, "alignment")) q.alignment = static_cast<int32_t>(r.at("alignment").integer(0, INT32_MAX));
  if (given(r, "attributes")) read_attributes(r.at("attributes"), q);
  if (given(r, "preference")) read_preference(r.at("preference"), q.preference);
  if (std::isfinite(q.preference.max_error) && bounds_differ(q))
    r.at("preference")
        .at("max_error")
        .wrong("none, or an op with a direction: constants of ulp and of sum are no measure of each other");
  return q;
}

Json element_or_null(Element e) { return e == Element::Any ? Json() : Json(name(e)); }

Json write_sku(const Row& row, int32_t index, const Question& q) {
  Json out = Json::object();
  out.set("name", sku_name(row, q.element));
  out.set("op", row.op);
  out.set("direction", name(row.direction));
  out.set("family", family_of(index));
  out.set("backend", name(row.backend));
  out.set("element", element_or_null(q.element));
  out.set("aux_element", element_or_null(q.aux));
  out.set("variant", row.variant);
  out.set("level", row.backend == Backend::Cpu ? backend_state(Backend::Cpu).level : "");
  out.set("max_rank", row.max_rank);
  out.set("in_place_safe", bool(row.flags & kInPlaceSafe));
  out.set("capture_safe", row.backend == Backend::Cuda && (row.flags & kCaptureSafe));
  out.set("preference", row.preference);
  out.set("measured", row.measured);
  out.set("precision_guarantee", write_guarantee(row.guarantee, q.element == Element::Any ? Element::F32 : q.element));
  return out;
}

Json write_refusal(const Refusal& r) {
  Json out = Json::object();
  out.set("code", name(r.code));
  out.set("field", r.field);
  out.set("got", r.got);
  out.set("want", r.want);
  out.set("hint", r.hint);
  out.set("needed", r.needed);
  out.set("actual", r.actual);
  return out;
}

Json write_support(const Answer& answer, const Json& sku) {
  Json out = Json::object();
  out.set("verdict", kVerdictNames[static_cast<int>(answer.verdict)]);
  Json& refusals = out.set("refusals", Json::list());
  for (const Refusal& r : answer.refusals) refusals.add(write_refusal(r));
  Json& depends = out.set("depends", Json::list());
  for (const std::string& on : answer.depends) depends.add(on);
  out.set("sku", sku);
  return out;
}

// How far a row is from running: its place among kStates.
int state_of(const Row& row, const Answer& answer, const Question& q) {
  const BackendState& backend = backend_state(row.backend);
  if (!backend.present || q.arch >= 0) return backend.built ? 1 : 0;
  return answer.refusals.empty() ? 3 : 2;
}

Json write_row(const Answer& answer, const Question& q, const std::string& asked) {
  const Row& row = row_at(answer.row);
  const BackendState& backend = backend_state(row.backend);
  const int state = state_of(row, answer, q);
  const bool elsewhere = q.arch >= 0 && state == 1;
  Json out = Json::object();
  const Json sku = write_sku(row, answer.row, q);
  out.set("sku", sku);
  Json& elements = out.set("elements", Json::list());
  for (int i = 0; i < kElementCount; ++i)
    if (row.elements.has(static_cast<Element>(i))) elements.add(kElementInfo[i].name);
  out.set("state", kStates[state]);
  out.set("verified", name(row.proof));
  out.set("support", write_support(answer, sku));
  out.set("reason", elsewhere ? "asked about " + asked + ", not about a device that is here"
                              : std::string(backend.present ? "" : backend.reason));
  out.set("step_of", "");
  return out;
}

}  // namespace

Json write_guarantee(const Guarantee& g, Element element) {
  Json out = Json::object();
  out.set("math_precision", kMathNames[static_cast<int>(g.math)]);
  out.set("accumulator", name(g.accumulator == Element::Count ? compute_element(element) : g.accumulator));
  out.set("bound", kBoundNames[static_cast<int>(g.bound.kind)]);
  out.set("c", g.bound.c);
  out.set("deterministic", g.deterministic);
  out.set("bit_stable_on_same_hardware", g.bit_stable);
  out.set("thread_invariant", g.thread_invariant);
  out.set("batch_invariant", g.batch_invariant);
  return out;
}

Json answer_question(const Reader& r) {
  check_kind(r, "question");
  r.only({"schema", "kind", "question"});
  const Reader asked = r.at("question");
  const Question q = read_question(asked);
  const int least = given(asked, "state") ? asked.at("state").one_of(kStates, kStateCount) : 0;
  Json out = Json::object();
  out.set("schema", kSchema);
  out.set("kind", "capabilities");
  Json& held = out.set("capabilities", Json::object());
  held.set("question", asked.json());
  Json rows = Json::list();
  for (const Answer& answer : evaluate_all(q))
    if (state_of(row_at(answer.row), answer, q) >= least)
      rows.add(write_row(answer, q, given(asked, "device") ? asked.at("device").text() : ""));
  held.set("rows", std::move(rows));
  return out;
}

}  // namespace baracuda
