// What torch.compile must not look into: the Python code behind functions, which it would trace and compile frame by
// frame.
#pragma once
#include <Python.h>

namespace baracuda::bindings {

// While it lives, Python code that this thread runs is not given to torch.compile. Costs nothing where torch's compiler
// is not loaded.
class Unwatched {
 public:
  Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
  ~Unwatched();

 private:
  PyObject* before_ = nullptr;
};

// Adds the type Opaque: calling one calls its method `_call`, unwatched.
bool opaque_setup(PyObject* module);

}  // namespace baracuda::bindings
