#pragma once
#include <Python.h>

namespace baracuda::bindings {

bool torch_empty_setup(PyObject* module);

}  // namespace baracuda::bindings
