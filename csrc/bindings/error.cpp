#include "bindings/error.h"

#include <bit>
#include <cstdio>
#include <iterator>

#include "core/devices.h"
#include "core/inject.h"

namespace baracuda::bindings {
namespace {

PyObject* error_factory = nullptr;

PyObject* text(const std::string& s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}

std::string tensor_name(const PlanCore& plan, int slot) {
  if (slot < 0 || slot >= static_cast<int>(plan.signature.slots.size())) return "";
  return plan.signature.params[plan.signature.slots[slot].param].name;
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
  PyObject* list = refusals_list(renamed);
  PyObject* error =
      list ? PyObject_CallFunctionObjArgs(error_factory, list, caller ? caller : Py_None, nullptr) : nullptr;
  Py_XDECREF(list);
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_XDECREF(error);
  return nullptr;
}

PyObject* raise_refusal(Refusal refusal, PyObject* caller, const FieldNames* names) {
  return raise_refusals({std::move(refusal)}, caller, names);
}

PyObject* raise_status(const PlanCore& plan, Status status, const Failure& failure, PyObject* caller,
                       const FieldNames* names) {
  std::string field = tensor_name(plan, failure.tensor);
  std::string at = failure.position >= 0 ? " at element " + std::to_string(failure.position) : "";
  switch (status) {
    case Status::IndexOutOfRange:
      return raise_refusal({Code::IndexRange, field, "index " + std::to_string(failure.value) + at,
                            "0 <= index < " + std::to_string(failure.limit),
                            "check the indices against the indexed dimension's size", failure.limit, failure.value},
                           caller, names);
    case Status::IntegerDivision:
      return raise_refusal({Code::IntegerDivision, field, "an integer divisor of zero" + at, "non-zero divisors",
                            "mask the zeros first, or divide as floats"},
                           caller, names);
    case Status::ValueOutOfRange: {
      char value[32];
      std::snprintf(value, sizeof value, "%.6g", std::bit_cast<double>(failure.value));
      return raise_refusal({Code::ValueRange, field, value + at, name(static_cast<ValueRange>(failure.limit)),
                            "check the values given to this call"},
                           caller, names);
    }
    case Status::InvalidProblem: {
      // A kernel that refuses a scalar's value says which one in `position`.
      const auto& scalars = plan.signature.scalars;
      const bool known = failure.tensor < 0 && failure.position >= 0 && failure.position < std::ssize(scalars);
      return raise_refusal(
          {Code::Problem, known ? scalars[failure.position].name : field, "a value out of its range",
           "a value in the range that the descriptor's docstring gives", "check the scalars given to run"},
          caller, names);
    }
    case Status::Launch:
      if (failure.position == kInjectedLaunch)
        return raise_refusal(
            {Code::LaunchFailed, device_name(plan.row.backend, plan.device_id), kAskedFor, "a launch that works", ""},
            caller, names);
      if (std::string reason; const DeviceModule* module = device_module(plan.row.backend, reason))
        return raise_refusal({Code::LaunchFailed, device_name(plan.row.backend, plan.device_id), module->last_error(),
                              "a device that works", ""},
                             caller, names);
      [[fallthrough]];
    default:
      return raise_refusal({Code::LaunchFailed, field, "status " + std::to_string(static_cast<int>(status)), "0",
                            "please report this call"},
                           caller, names);
  }
}

PyObject* raise_no_memory(const std::string& device, std::string why, int64_t bytes) {
  return raise_refusal({Code::DeviceMemory, device, std::move(why), std::to_string(bytes) + " bytes of memory",
                        "free tensors that are not needed any more", bytes, -1},
                       Py_None);
}

PyObject* set_error_factory(PyObject*, PyObject* factory) {
  Py_INCREF(factory);
  Py_XSETREF(error_factory, factory);
  Py_RETURN_NONE;
}

}  // namespace baracuda::bindings
