// bc.functional's functions: a call that was seen before goes from arguments to kernel without a Python frame.
#pragma once
#include <Python.h>

namespace baracuda::bindings {

bool functional_setup(PyObject* module);

}  // namespace baracuda::bindings
