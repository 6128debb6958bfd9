// Refusals as Python objects and exceptions; the exception classes live in baracuda/errors.py.
#pragma once
#include <Python.h>

#include "core/plan.h"

namespace baracuda::bindings {

PyObject* refusal_tuple(const Refusal& r);  // (code, field, got, want, hint, needed, actual)
PyObject* refusals_list(const Refusals& r);
// Sets the exception that errors.py makes of the refusals; always returns null.
PyObject* raise_refusals(const Refusals& refusals, PyObject* plan);
PyObject* raise_refusal(Refusal refusal, PyObject* plan);
// The exception for a launch that did not return Ok.
PyObject* raise_status(const PlanCore& plan, Status status, const Failure& failure, PyObject* object);

PyObject* set_error_factory(PyObject* self, PyObject* factory);

}  // namespace baracuda::bindings
