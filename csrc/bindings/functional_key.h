// What makes two calls of a function alike: the key under which a recipe is kept.
#pragma once
#include <Python.h>

#include <cstring>

#include "core/launch.h"

namespace baracuda::bindings {

struct Key {
  char bytes[4096];  // a list of some 80 matrices
  size_t n = 0;
  bool usable = true;
  bool strided = false;  // it has strides, too

  void put(const void* p, size_t size) {
    if (n + size > sizeof bytes) {
      usable = false;
      return;
    }
    std::memcpy(bytes + n, p, size);
    n += size;
  }
  template <class T>
  void put(T v) {
    put(&v, sizeof v);
  }
};

// An argument that decides the plan; of a number only the kind unless `value`.
void key_attribute(Key& key, PyObject* v, bool value);
void key_tensor(Key& key, PyObject* object, const TensorView& view);
void key_strides(Key& key, const TensorView& view);
// Adds what a key holds the address of to the list `pins`.
void pin(PyObject* pins, PyObject* v);

}  // namespace baracuda::bindings
