// What is changed by threads that hold the interpreter's lock only, and needs no other where there is one: instructions
// that exclude other processors cost a small call a tenth of its time.
#pragma once
#include <Python.h>

#include <mutex>

namespace baracuda::bindings {

#ifdef Py_GIL_DISABLED
using GilMutex = std::mutex;
#else
struct GilMutex {
  void lock() {}
  void unlock() {}
};
#endif

}  // namespace baracuda::bindings
