// bc.Tensor's native part: a view and what keeps its memory alive.
#pragma once
#include <Python.h>

#include "bindings/import.h"
#include "core/launch.h"

namespace baracuda::bindings {

// The view of a bc.Tensor, or null for any other object.
const TensorView* own_tensor(PyObject* object);

// A bc.Tensor that has taken a bare capsule over: a new reference in `tensor`. Refused: `why` says so.
Imported own_capsule(PyObject* capsule, bool lasts, PyObject** tensor, Why& why);
// A tuple of what a sequence holds now, its capsules owned. Refused: `at` says which one.
Imported own_members(PyObject* sequence, bool lasts, PyObject** tuple, Py_ssize_t* at, Why& why);

// The heap type TensorBase, the function allocate(nbytes) -> capsule, and tensor_setup which adds both to the module.
bool tensor_setup(PyObject* module);

}  // namespace baracuda::bindings
