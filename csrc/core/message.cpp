#include "core/message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "core/devices.h"
#include "core/inject.h"
#include "core/sites.h"
#include "core/wanted.h"

namespace baracuda {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A hint as a sentence; names and code keep their case.
std::string sentence(std::string hint) {
  std::string_view first = std::string_view(hint).substr(0, hint.find(' '));
  while (!first.empty() && (first.back() == ',' || first.back() == ':')) first.remove_suffix(1);
  const bool word = !first.empty() && std::all_of(first.begin(), first.end(), is_letter) && first != "baracuda";
  if (word && hint[0] >= 'a') hint[0] = static_cast<char>(hint[0] - 'a' + 'A');
  return " " + hint + ".";
}

// Why a device cannot be used; empty where it can.
std::string reason_of(Backend backend, int32_t device) {
  const BackendState& state = backend_state(backend);
  if (!state.built || !state.present) return state.reason;
  const int32_t count = device_count(backend);
  if (device < count) return "";
  return count == 1 ? "there is 1 device of this backend"
                    : "there are " + std::to_string(count) + " devices of this backend";
}

struct Candidate {
  int32_t row;
  Refusals refusals;
  bool mine;  // of the backend that was asked about
};

// Rows of other backends, whose one reason is that they are, come last.
std::vector<Candidate> candidates_of(const Question& question, const Selection& selection) {
  std::vector<Candidate> out;
  for (Answer& answer : evaluate_all(question)) {
    Candidate c{answer.row, std::move(answer.refusals), row_at(answer.row).backend == question.backend};
    for (const auto& [row, why] : selection.later)
      if (row == c.row) c.refusals = {why};
    out.push_back(std::move(c));
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.mine != b.mine ? a.mine : a.refusals.size() < b.refusals.size();
  });
  return out;
}

NoPlan unavailable(const Question& q, NoPlan out, const std::string& reason, std::string_view subject) {
  const std::string backend = name(q.backend);
  const std::string what =
      backend_state(q.backend).present ? device_name(q.backend, q.device) : "the " + backend + " backend";
  out.unavailable = true;
  out.message = std::string(subject) + ": " + what +
                " cannot be used here: " + (reason.empty() ? "no kernel of " + q.op + " is declared for it" : reason) +
                ". bc.devices() says what can be used here; docs/building.md how a backend is built.";
  return out;
}

}  // namespace

std::string line_of(const Refusal& r) {
  std::string text = r.field.empty() ? "" : r.field + ": ";
  text += r.got.empty() ? "want " + r.want : "got " + r.got + ", want " + r.want;
  return r.hint.empty() ? text : text + " (" + r.hint + ")";
}

std::string message_of(const Refusals& refusals, std::string_view where) {
  const Refusal& first = refusals.front();
  std::string out(where);
  if (!where.empty()) out += ": ";
  if (!first.field.empty()) out += first.field + ": ";
  const bool told = first.code == Code::LaunchFailed || first.code == Code::DeviceMemory;
  out += told ? first.got + "." : "got " + first.got + ", want " + first.want + ".";
  return first.hint.empty() ? out : out + sentence(first.hint);
}

Status status_of(Code code) {
  switch (code) {
    case Code::Misaligned:
    case Code::WorkspaceAlignment:
      return Status::Misaligned;
    case Code::Workspace:
      return Status::Workspace;
    case Code::LaunchFailed:
    case Code::DeviceMemory:
      return Status::Launch;
    case Code::IndexRange:
      return Status::IndexOutOfRange;
    case Code::IntegerDivision:
      return Status::IntegerDivision;
    case Code::ValueRange:
      return Status::ValueOutOfRange;
    case Code::Op:
    case Code::Backend:
    case Code::NotBuilt:
    case Code::NoDevice:
    case Code::Arch:
    case Code::Sku:
    case Code::Deterministic:
    case Code::BatchInvariant:
    case Code::MathPrecision:
    case Code::MaxError:
    case Code::WorkspaceLimit:
      return Status::Unsupported;
    default:
      return Status::InvalidProblem;
  }
}

namespace {

std::string position_of(const Failure& failure) {
  return failure.tensor >= 0 && failure.position >= 0 ? " at element " + std::to_string(failure.position) : "";
}

// What a kernel finds in the data.
struct IndexWords {
  std::string got, want;
  const char* hint;
};
IndexWords words_of(const Failure& f) {
  const int64_t bound = plain_limit(f.limit);
  const std::string value = std::to_string(f.value), limit = std::to_string(bound), most = std::to_string(bound - 1);
  constexpr const char* kPlaces = "they begin with 0, do not fall and end with the number of rows; none is too long";
  switch (wanted_of(f.limit)) {
    case Wanted::Length:
      return {"length " + value, bound > 0 ? "0 <= length <= " + most : "fewer: there is no room",
              "check the lengths against the sizes that they lie in"};
    case Wanted::Slot:
      return {"slot " + value, "-1 <= slot < " + limit, "-1 stands for none; check the slots against the pages"};
    case Wanted::Place:
      return {value,
              f.position == 0 ? "0, where the first begins" : "no less than the entry before and at most " + most,
              kPlaces};
    case Wanted::End:
      return {value + " as the last entry", limit + ", the number of all rows", kPlaces};
    case Wanted::Number:
      return {"a value out of its range", "a value in the range that the descriptor's docstring gives",
              "check the numbers given to the call"};
    case Wanted::Sum:
      return {"a sum of " + value, "a sum of " + limit + ", so that none is left over",
              "check the lengths against what they share"};
    default:
      return {"index " + value, "0 <= index < " + limit, "check the indices against the indexed dimension's size"};
  }
}
Refusal found_index(std::string field, const Failure& f) {
  const IndexWords words = words_of(f);
  return {Code::IndexRange,     std::move(field), words.got + position_of(f), words.want, words.hint,
          plain_limit(f.limit), f.value};
}

Refusal found_division(std::string field, const Failure& f) {
  return {Code::IntegerDivision, std::move(field), "an integer divisor of zero" + position_of(f), "non-zero divisors",
          "mask the zeros first, or divide as floats"};
}

std::string real_text(const Failure& f) {
  char value[32];
  const double wrong = std::bit_cast<double>(f.value);
  std::snprintf(value, sizeof value, "%.6g", std::isnan(wrong) ? std::abs(wrong) : wrong);  // NaN without its sign
  return value;
}

Refusal found_value(std::string field, const Failure& f, ValueRange wanted) {
  return {Code::ValueRange, std::move(field), real_text(f) + position_of(f), name(wanted),
          "check the values given to this call"};
}

}  // namespace

FaultReport report_of(const DeviceFault& fault, Backend backend, int32_t device) {
  const Failure& f = fault.failure;
  const bool known = fault.row >= 0 && fault.row < row_count();
  const Row* row = known ? &row_at(fault.row) : nullptr;
  FaultReport out;
  out.where = row ? std::string(row->op) + " " + name(row->direction) : "row " + std::to_string(fault.row);
  if (fault.site) out.where += " (" + site_text(fault.site) + ")";
  out.where += " on " + device_name(backend, device);
  std::string field;
  if (row && f.tensor >= 0) field = ArgList::at(row->args.tensors, f.tensor);
  if (row && f.tensor < 0 && f.position >= 0) field = ArgList::at(row->args.scalars, static_cast<int>(f.position));
  if (field.empty()) field = f.tensor < 0 ? "a number of the call" : "tensor " + std::to_string(f.tensor);
  if (f.limit == -1)
    out.refusal = found_division(std::move(field), f);
  else if (f.limit < -1)
    out.refusal = found_value(std::move(field), f, static_cast<ValueRange>(-2 - f.limit));
  else
    out.refusal = found_index(std::move(field), f);
  out.refusal.hint += "; the outputs of that call hold no results";
  return out;
}

Refusal refusal_of(const PlanCore& plan, Status status, const Failure& failure) {
  const Signature& s = plan.signature;
  const bool known = failure.tensor >= 0 && failure.tensor < std::ssize(s.slots);
  // A kernel that refuses a scalar's value says which one in `position`.
  const bool number = failure.tensor < 0 && failure.position >= 0 && failure.position < std::ssize(s.scalars);
  const std::string field = known    ? s.params[s.slots[failure.tensor].param].name
                            : number ? s.scalars[failure.position].name
                                     : "";
  const std::string device = device_name(plan.row.backend, plan.question.device);
  switch (status) {
    case Status::IndexOutOfRange:
      return found_index(field, failure);
    case Status::IntegerDivision:
      return found_division(field, failure);
    case Status::ValueOutOfRange:
      return found_value(field, failure, static_cast<ValueRange>(failure.limit));
    case Status::InvalidProblem: {
      const IndexWords words = words_of({.limit = limit_of(Wanted::Number, 0)});
      const bool known = number && failure.limit < -1;
      return {Code::Problem, field, number ? real_text(failure) : words.got,
              known ? name(static_cast<ValueRange>(-2 - failure.limit)) : words.want, words.hint};
    }
    case Status::Launch:
      if (failure.position == kInjectedLaunch)
        return {Code::LaunchFailed, device, kInjectedText, "a launch that works", ""};
      if (std::string reason; const DeviceModule* module = device_module(plan.row.backend, reason))
        return {Code::LaunchFailed, known ? field : device, module->last_error(),
                known ? "memory of " + device : "a device that works", ""};
      [[fallthrough]];
    default:
      return {Code::LaunchFailed, field, "status " + std::to_string(static_cast<int>(status)), "0",
              "please report this call"};
  }
}

NoPlan no_plan(const Question& question, const Selection& selection, std::string_view subject) {
  NoPlan out;
  const std::vector<Candidate> all = candidates_of(question, selection);
  const bool some = std::any_of(all.begin(), all.end(), [](const Candidate& c) { return c.mine; });
  for (const Candidate& c : all)
    if (c.mine || !some) out.refusals.insert(out.refusals.end(), c.refusals.begin(), c.refusals.end());
  const std::string reason = reason_of(question.backend, question.device);
  if (!reason.empty() || (!all.empty() && !some)) return unavailable(question, std::move(out), reason, subject);
  out.message = "No kernel for " + std::string(subject) + " on " + device_name(question.backend, question.device) +
                ". Candidates, nearest miss first:";
  std::string hint;
  for (const Candidate& c : all) {
    if (!c.mine) continue;
    out.message += "\n  " + sku_name(row_at(c.row), question.element);
    for (const Refusal& r : c.refusals) {
      out.message += std::string("\n    [") + name(r.code) + "] " + line_of(r);
      if (hint.empty()) hint = r.hint;
    }
  }
  if (all.empty())
    out.message += "\n  none: no row of the SKU table is for '" + question.op + "', " +
                   kDirectionNames[static_cast<int>(question.direction)];
  if (!hint.empty()) out.message += "\nHint: " + hint + ".";
  return out;
}

}  // namespace baracuda
