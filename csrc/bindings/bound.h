// plan.bind(...): a call with its tensors frozen.
#pragma once
#include <Python.h>

#include "bindings/plan.h"

namespace baracuda::bindings {

// Imports and checks the frame's arguments and freezes them; null with an exception set.
PyObject* make_bound(PlanObject* plan, Frame& frame);
bool bound_setup(PyObject* module);

}  // namespace baracuda::bindings
