// plan.bind(...): a call with its tensors frozen.
#pragma once
#include <Python.h>

#include "bindings/plan.h"

namespace baracuda::bindings {

// Takes over the frame's views, which have been checked.
PyObject* make_bound(PlanObject* plan, Frame& frame);
bool bound_setup(PyObject* module);

}  // namespace baracuda::bindings
