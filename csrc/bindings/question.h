// Questions of Python to the evaluator, and plans for them.
#pragma once
#include <pybind11/pybind11.h>

namespace baracuda::bindings {

void question_setup(pybind11::module_& m);

}  // namespace baracuda::bindings
