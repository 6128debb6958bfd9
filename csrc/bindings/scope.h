// Where a thread's new tensors come from: what counts their bytes, and the block that they lie in.
#pragma once
#include <Python.h>

#include "bindings/tensor.h"

namespace baracuda::bindings {

// bc.MemoryTracker and the base of bc.TensorArena that are the calling thread's, or null. Borrowed, and only until
// Python code may run: a finaliser may exchange them.
PyObject* current_tracker();
PyObject* current_arena();

// Counts bytes that are about to be allocated. False with MemoryLimitError, and nothing counted, where a limit is
// passed.
bool reserve(PyObject* tracker, int64_t bytes, Backend backend, int32_t device);
void give_back(PyObject* tracker, int64_t bytes);
// From here on the tensor's bytes, which were reserved, are given back when it goes.
void track(TensorObject* tensor, PyObject* tracker);
void untrack(TensorObject* tensor);

// A tensor in an arena; null without an exception where it does not fit, or lies on another device.
TensorObject* take_from_arena(PyObject* arena, const TensorView& view, int64_t bytes);

// Bytes of a call's workspace, counted by the thread's tracker while the call runs.
class Charge {
 public:
  Charge() = default;
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (tracker_) give_back(tracker_, bytes_);
    Py_XDECREF(tracker_);
  }
  // False with MemoryLimitError.
  bool take(int64_t bytes, Backend backend, int32_t device);

 private:
  PyObject* tracker_ = nullptr;
  int64_t bytes_ = 0;
};

bool scope_setup(PyObject* module);

}  // namespace baracuda::bindings
