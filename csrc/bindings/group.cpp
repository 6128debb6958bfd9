#include "bindings/group.h"

#include <memory>
#include <string>
#include <vector>

#include "bindings/plan.h"

namespace baracuda::bindings {
namespace {

// The caller's numbering of lists of which a plan got a part: params[0] of the plan may be params[3] of the caller.
struct Places : FieldNames {
  PyObject* places;  // borrowed: a tuple of ints, or None
  explicit Places(PyObject* places) : places(places) {}
  std::string of(const std::string& field) const override {
    const size_t open = field.find('[');
    if (places == Py_None || open == std::string::npos) return field;
    const Py_ssize_t at = static_cast<Py_ssize_t>(std::stoll(field.substr(open + 1)));
    if (at >= PyTuple_GET_SIZE(places)) return field;
    const long long place = PyLong_AsLongLong(PyTuple_GET_ITEM(places, at));
    return field.substr(0, open + 1) + std::to_string(place) + "]";
  }
};

struct Part {
  PlanObject* plan;
  Frame frame;
  Places names;
  Part(PlanObject* plan, PyObject* places) : plan(plan), frame(plan), names(places) {}
  PyObject* self() const { return reinterpret_cast<PyObject*>(plan); }
};
using Parts = std::vector<std::unique_ptr<Part>>;

// One (plan, arguments, places); null with an exception set when it is refused.
std::unique_ptr<Part> read_part(PyObject* item) {
  PyObject *plan, *args, *places;
  if (!PyArg_ParseTuple(item, "O!O!O", plan_type, &plan, &PyTuple_Type, &args, &places)) return nullptr;
  if (places != Py_None && !PyTuple_Check(places)) {
    PyErr_SetString(PyExc_TypeError, "places are a tuple or None");
    return nullptr;
  }
  auto part = std::make_unique<Part>(reinterpret_cast<PlanObject*>(plan), places);
  Frame& f = part->frame;
  if (PyTuple_GET_SIZE(args) != part->plan->n_args) {
    PyErr_SetString(PyExc_TypeError, "a plan in a group takes all of its arguments");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) f.args[i] = PyTuple_GET_ITEM(args, i);
  Refusals refusals;
  if (!import_frame(part->plan, f, false, refusals)) {
    if (!PyErr_Occurred()) raise_refusals(refusals, part->self(), &part->names);
    return nullptr;
  }
  return check_frame(part->plan, f, part->self(), &part->names) ? std::move(part) : nullptr;
}

bool apart(const Parts& parts) {
  std::vector<Planned> calls;
  for (const auto& part : parts) calls.push_back({part->plan->core, &part->frame.call});
  Refusals refusals;
  size_t at = 0;
  if (check_apart(calls, refusals, at)) return true;
  raise_refusals(refusals, parts[at]->self(), &parts[at]->names);
  return false;
}

PyObject* run_group(PyObject*, PyObject* calls) {
  PyObject* items = PySequence_Tuple(calls);
  if (!items) return nullptr;
  Parts parts;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(items); ++i) {
    parts.push_back(read_part(PyTuple_GET_ITEM(items, i)));
    good = parts.back() != nullptr;
  }
  good = good && (parts.size() < 2 || apart(parts));
  for (size_t i = 0; good && i < parts.size(); ++i)
    good = launch_frame(parts[i]->plan, parts[i]->frame, parts[i]->self(), &parts[i]->names);
  parts.clear();
  Py_DECREF(items);
  return good ? Py_NewRef(Py_None) : nullptr;
}

PyMethodDef methods[] = {
    {"run_group", &run_group, METH_O,
     "run_group(((plan, arguments, places), ...)): runs plans, none of them before all were checked."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool group_setup(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace baracuda::bindings
