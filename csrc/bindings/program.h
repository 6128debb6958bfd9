// Programs for Python: the raw type that bc.Program is made of, and programs with their arguments bound.
#pragma once
#include <Python.h>

namespace baracuda::bindings {

bool program_setup(PyObject* module);

}  // namespace baracuda::bindings
