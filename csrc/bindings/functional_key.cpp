#include "bindings/functional_key.h"

#include <type_traits>

#include "bindings/import.h"

namespace baracuda::bindings {

void key_attribute(Key& key, PyObject* v, bool value) {
  if (v == Py_None) return key.put('N');
  if (PyBool_Check(v)) return key.put(v == Py_True ? 't' : 'f');
  if (PyLong_CheckExact(v)) {
    key.put('i');
    int overflow = 0;
    if (value) key.put(PyLong_AsLongLongAndOverflow(v, &overflow));
    key.usable &= overflow == 0;
    return;
  }
  if (PyFloat_CheckExact(v)) {
    key.put('d');
    if (value) key.put(PyFloat_AS_DOUBLE(v));
    return;
  }
  if (PyUnicode_CheckExact(v)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(v, &size);
    key.usable &= text != nullptr;
    PyErr_Clear();
    key.put('s'), key.put(size), key.put(text, text ? size : 0);
    return;
  }
  if (PyList_CheckExact(v)) {
    PyObject* now = PyList_AsTuple(v);  // other threads may change the list while it is read
    key.put('[');
    if (now) key_attribute(key, now, value);
    key.usable &= now != nullptr;
    PyErr_Clear();
    Py_XDECREF(now);
    return;
  }
  if (PyTuple_CheckExact(v)) {
    key.put('('), key.put(PyTuple_GET_SIZE(v));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(v); ++i) key_attribute(key, PyTuple_GET_ITEM(v, i), value);
    return;
  }
  // The miss pins a constant, so that its address is not used again. What may change, or compare equal to others, has
  // no key: such calls are planned each time.
  key.usable &= is_constant(v);
  key.put('o'), key.put(v);
}

void pin(PyObject* pins, PyObject* v) {
  if (PyList_CheckExact(v)) {
    PyObject* now = PyList_AsTuple(v);
    if (now) pin(pins, now);
    PyErr_Clear();
    Py_XDECREF(now);
  } else if (PyTuple_CheckExact(v)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(v); ++i) pin(pins, PyTuple_GET_ITEM(v, i));
  } else if (is_constant(v)) {
    PyList_Append(pins, v);
  }
}

void key_tensor(Key& key, PyObject* object, const TensorView& view) {
  struct {
    char tag;
    Element element;
    Backend device;
    int8_t rank;
    int32_t device_id;
    PyTypeObject* type;
  } const head = {'T', view.element, view.device, static_cast<int8_t>(view.rank), view.device_id, Py_TYPE(object)};
  static_assert(std::has_unique_object_representations_v<decltype(head)>);
  key.put(head);
  key.put(view.shape, sizeof(int64_t) * view.rank);
}

void key_strides(Key& key, const TensorView& view) { key.put(view.strides, sizeof(int64_t) * view.rank); }

}  // namespace baracuda::bindings
