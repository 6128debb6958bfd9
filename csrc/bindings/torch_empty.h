// Results that are torch tensors, made by torch's own C++ functions in memory of our pool.
#pragma once
#include <Python.h>

#include "core/launch.h"

namespace baracuda::bindings {

// What a torch tensor of the CPU's memory is made of; shape and dtype are borrowed.
struct TorchEmpty {
  int64_t sizes[kMaxRank];
  int32_t rank = 0;
  int8_t scalar_type = 0;
  PyObject *shape = nullptr, *dtype = nullptr;
};

// Whether make(*args) is a call of _core.torch_empty, and of what.
bool is_torch_empty(PyObject* make, PyObject* args, TorchEmpty& out);
// A new tensor, with strides of its own where they are not null; null with an exception.
PyObject* torch_empty(const TorchEmpty& wanted, const int64_t* strides = nullptr);

bool torch_empty_setup(PyObject* module);

}  // namespace baracuda::bindings
