// Several plans as one call: every check of all of them comes before the first launch.
#pragma once
#include <Python.h>

namespace baracuda::bindings {

bool group_setup(PyObject* module);

}  // namespace baracuda::bindings
