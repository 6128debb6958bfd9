// Plans to bytes and back: the engine's documents, for Python.
#pragma once
#include <Python.h>

namespace baracuda::bindings {

bool document_setup(PyObject* module);

}  // namespace baracuda::bindings
