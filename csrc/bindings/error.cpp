#include "bindings/error.h"

#include "bindings/plan.h"

namespace baracuda::bindings {
namespace {

PyObject* error_factory = nullptr;

PyObject* text(const std::string& s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}

bool is_plan(PyObject* caller) { return caller && PyObject_TypeCheck(caller, plan_type); }

// "SoftmaxPlan(softmax.forward.cpu.f32.rows)" or "softmax()"; empty where nobody is known, or by a name of its own.
std::string place_of(PyObject* caller) {
  if (!caller || caller == Py_None) return "";
  if (is_plan(caller)) {
    const PlanCore& core = *reinterpret_cast<PlanObject*>(caller)->core;
    return std::string(Py_TYPE(caller)->tp_name) + "(" + sku_name(core.row, core.question.element) + ")";
  }
  PyObject* name = PyObject_GetAttrString(caller, "__name__");
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  std::string out = text && *text != '_' ? std::string(text) + "()" : "";  // no part of a function
  PyErr_Clear();
  Py_XDECREF(name);
  return out;
}

// A function's caller can pass another `out`, where a plan's could select another plan.
Refusals for_function(Refusals refusals, PyObject* caller) {
  Refusal& first = refusals.front();
  if (!caller || caller == Py_None || is_plan(caller)) return refusals;
  const bool shape = first.code == Code::Shape || first.code == Code::Rank;
  if (!shape && first.code != Code::ElementKind) return refusals;
  if (first.field == "out")
    first.hint =
        std::string("pass a tensor of this ") + (shape ? "shape" : "element") + ", or leave the function to make one";
  else
    first.hint = shape ? "pass a tensor of this shape" : "cast it";
  return refusals;
}

// Sets the exception: of the class with this name, or of the one that the first refusal's code has.
PyObject* raise(const std::string& message, const Refusals& refusals, const char* error_class) {
  PyObject* list = refusals_list(refusals);
  PyObject* said = text(message);
  PyObject* error = list && said ? PyObject_CallFunction(error_factory, "OOz", said, list, error_class) : nullptr;
  Py_XDECREF(said);
  Py_XDECREF(list);
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_XDECREF(error);
  return nullptr;
}

}  // namespace

PyObject* refusal_tuple(const Refusal& r) {
  return Py_BuildValue("(sNNNNLL)", name(r.code), text(r.field), text(r.got), text(r.want), text(r.hint),
                       static_cast<long long>(r.needed), static_cast<long long>(r.actual));
}

PyObject* refusals_list(const Refusals& refusals) {
  PyObject* list = PyList_New(0);
  for (const Refusal& r : refusals) {
    PyObject* tuple = refusal_tuple(r);
    if (!tuple || PyList_Append(list, tuple) < 0) {
      Py_XDECREF(tuple);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(tuple);
  }
  return list;
}

PyObject* raise_refusals(const Refusals& refusals, PyObject* caller, const FieldNames* names) {
  Refusals renamed = refusals;
  for (Refusal& r : renamed)
    if (names) r.field = names->of(r.field);
  return raise(message_of(for_function(renamed, caller), place_of(caller)), renamed, nullptr);
}

PyObject* raise_at(const std::string& where, const Refusals& refusals) {
  return raise(message_of(refusals, where), refusals, nullptr);
}

PyObject* raise_refusal(Refusal refusal, PyObject* caller, const FieldNames* names) {
  return raise_refusals({std::move(refusal)}, caller, names);
}

PyObject* raise_status(const PlanCore& plan, Status status, const Failure& failure, PyObject* caller,
                       const FieldNames* names) {
  return raise_refusal(refusal_of(plan, status, failure), caller, names);
}

PyObject* raise_no_plan(const NoPlan& why) {
  return raise(why.message, why.refusals, why.unavailable ? "BackendUnavailableError" : "UnsupportedError");
}

PyObject* raise_no_memory(const std::string& device, std::string why, int64_t bytes) {
  return raise_refusal({Code::DeviceMemory, device, std::move(why), std::to_string(bytes) + " bytes of memory",
                        "free tensors that are not needed any more", bytes, -1},
                       Py_None);
}

PyObject* raise_over_limit(Refusal refusal) {
  const Refusals refusals{std::move(refusal)};
  return raise(message_of(refusals, ""), refusals, "MemoryLimitError");
}

PyObject* raise_usage(const std::string& text, Code code, const std::string& field) {
  return raise(text, {Refusal{code, field, "", "another call", "", -1, -1}}, "UsageError");
}

PyObject* raise_mistaken(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* positional = PyTuple_New(nargs);
  PyObject* named = PyDict_New();
  for (Py_ssize_t i = 0; positional && i < nargs; ++i) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
  for (Py_ssize_t k = 0; named && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
    if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) < 0) Py_CLEAR(named);
  PyObject* error = positional && named ? PyObject_CallMethod(function, "_mistaken", "OO", positional, named) : nullptr;
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_XDECREF(error);
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return nullptr;
}

PyObject* set_error_factory(PyObject*, PyObject* factory) {
  Py_INCREF(factory);
  Py_XSETREF(error_factory, factory);
  Py_RETURN_NONE;
}

}  // namespace baracuda::bindings
