#include "bindings/anchor.h"

#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <algorithm>

#include "bindings/import_detail.h"
#include "bindings/tensor.h"

namespace baracuda::bindings {

namespace {

inline bool holds(const Anchor& a) {
  if (a.storage) return torch_storage(a.object) == a.torch;
  if (a.rank < 0) return address_of(self_of(a.object)) == a.data;
  auto* array = reinterpret_cast<PyArrayObject*>(a.object);
  if (PyArray_DATA(array) != a.data || PyArray_NDIM(array) != a.rank) return false;
  const npy_intp* sizes = PyArray_DIMS(array);
  for (int32_t i = 0; i < a.rank; ++i)
    if (sizes[i] != a.sizes[i]) return false;
  return true;
}

}  // namespace

PyObject* Anchors::moved() const {
  for (const Anchor& a : all_)
    if (!holds(a)) [[unlikely]]
      return a.object;
  return nullptr;
}

bool Anchors::add(PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(object); ++k)
      if (!add(PyTuple_GET_ITEM(object, k))) return false;
    return true;
  }
  Anchor a;
  a.object = object;
  if (PyArray_Check(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    a.data = PyArray_DATA(array);
    a.rank = PyArray_NDIM(array);
    if (a.rank > kMaxRank) return true;  // refused when it is imported
    std::copy_n(PyArray_DIMS(array), a.rank, a.sizes);
  } else if (const TensorObject* own = as_tensor(object)) {
    if (!own->movable) return true;
    a.data = address_of(own);
    a.rank = -1;
  } else if (detail::is_torch_type(Py_TYPE(object))) {
    a.storage = PyObject_CallMethod(object, "untyped_storage", nullptr);
    if (!a.storage) {  // one without memory: refused when it is imported, or its producer keeps what it exports
      if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
      PyErr_Clear();
      return true;
    }
    a.torch = torch_storage(object);
  } else {
    return true;
  }
  all_.push_back(std::move(a));
  return true;
}

}  // namespace baracuda::bindings
