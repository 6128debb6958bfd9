// Refusals as Python objects and exceptions; the exception classes live in baracuda/describe/errors.py.
#pragma once
#include <Python.h>

#include "core/message.h"
#include "core/plan.h"

namespace baracuda::bindings {

PyObject* refusal_tuple(const Refusal& r);  // (code, field, got, want, hint, needed, actual)
PyObject* refusals_list(const Refusals& r);
// What the caller knows an argument as, where that is not the plan's name for it.
struct FieldNames {
  virtual std::string of(const std::string& field) const = 0;

 protected:
  ~FieldNames() = default;
};

// Sets the exception that errors.py makes of the refusals; always returns null. `caller` is the plan or the function.
PyObject* raise_refusals(const Refusals& refusals, PyObject* caller, const FieldNames* names = nullptr);
PyObject* raise_refusal(Refusal refusal, PyObject* caller, const FieldNames* names = nullptr);
// The exception for a launch that did not return Ok.
PyObject* raise_status(const PlanCore& plan, Status status, const Failure& failure, PyObject* caller,
                       const FieldNames* names = nullptr);

// With words of the caller's own for where it happened.
PyObject* raise_at(const std::string& where, const Refusals& refusals);
// That for a question that has no plan.
PyObject* raise_no_plan(const NoPlan& why);
// The exception for memory that could not be had; always returns null.
PyObject* raise_no_memory(const std::string& device, std::string why, int64_t bytes);
// That for memory that somebody's limit does not allow.
PyObject* raise_over_limit(Refusal refusal);

// That for a call which its signature does not allow; always returns null.
PyObject* raise_usage(const std::string& text, Code code, const std::string& field);

// That which a function's `_mistaken` makes of arguments that its signature does not take; always returns null.
PyObject* raise_mistaken(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

PyObject* set_error_factory(PyObject* self, PyObject* factory);

}  // namespace baracuda::bindings
