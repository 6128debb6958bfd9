// bc.Tensor's native part: a view and what keeps its memory alive.
#pragma once
#include <Python.h>

#include "core/launch.h"

namespace baracuda::bindings {

// The view of a bc.Tensor, or null for any other object.
const TensorView* own_tensor(PyObject* object);

// The heap type TensorBase, the function allocate(nbytes) -> capsule, and tensor_setup which adds both to the module.
bool tensor_setup(PyObject* module);

}  // namespace baracuda::bindings
