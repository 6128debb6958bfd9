// Numbers: Python's, NumPy's, and 0-d tensors whose memory is read at launch.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "bindings/import_detail.h"
#include "core/float_state.h"
#include "core/number.h"
#include "core/plan.h"

namespace baracuda::bindings {

using detail::refuse;

namespace {

Imported taken(bool yes) { return yes ? Imported::Yes : Imported::Refused; }

std::string text_beyond(PyObject* integer) {
  const double about = PyLong_AsDouble(integer);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return "a number beyond all floats";
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", about);
  return text;
}

Imported import_whole(PyObject* integer, const ScalarParam& param, Scalar& scalar, Why& why) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (!overflow) return taken(take_whole(param, number, scalar, why));
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(integer) : 0;
  if (overflow > 0 && !PyErr_Occurred()) return taken(take_whole(param, __int128{large}, scalar, why));
  PyErr_Clear();
  why = out_of_range(param, text_beyond(integer));
  return Imported::Refused;
}

}  // namespace

Imported import_scalar(PyObject* object, const ScalarParam& param, Scalar& scalar, Keep& keep, Why& why) {
  const Scalar::Kind kind = param.kind;
  if (PyFloat_CheckExact(object) && kind == Scalar::Kind::Float)
    return taken(take_real(param, PyFloat_AS_DOUBLE(object), scalar, why));
  if (PyLong_CheckExact(object)) {
    if (kind != Scalar::Kind::Float) return import_whole(object, param, scalar, why);
    const double real = PyLong_AsDouble(object);
    if (real != -1 || !PyErr_Occurred()) return taken(take_real(param, real, scalar, why));
    PyErr_Clear();  // too large for a double, which is said below
  }
  if (PyLong_Check(object) || PyFloat_Check(object) || PyArray_IsScalar(object, Generic)) {
    // Conversions that would drop an imaginary part or read a text are no numbers.
    bool number = !PyArray_IsScalar(object, ComplexFloating) && !PyArray_IsScalar(object, Flexible) &&
                  !PyArray_IsScalar(object, Datetime) && !PyArray_IsScalar(object, Timedelta);
    if (!number) return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "a real number", "pass a float or int");
    if (kind != Scalar::Kind::Float) {
      const bool whole = PyFloat_Check(object) && PyFloat_AS_DOUBLE(object) == std::floor(PyFloat_AS_DOUBLE(object)) &&
                         std::isfinite(PyFloat_AS_DOUBLE(object));
      PyObject* integer = whole ? PyLong_FromDouble(PyFloat_AS_DOUBLE(object)) : PyNumber_Index(object);
      if (!integer) {
        PyErr_Clear();
        return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "an integer", "pass an int");
      }
      const Imported done = import_whole(integer, param, scalar, why);
      Py_DECREF(integer);
      return done;
    }
    const FloatState own;  // subnormal numbers of NumPy's f32, too
    const double real = PyFloat_AsDouble(object);
    if (!PyErr_Occurred()) return taken(take_real(param, real, scalar, why));
    if (!PyErr_ExceptionMatches(PyExc_OverflowError) && !PyErr_ExceptionMatches(PyExc_TypeError))
      return Imported::PythonError;
    PyErr_Clear();
    return refuse(why, Code::ScalarKind, "a number out of range", "a number that fits a double",
                  "pass a number in this range");
  }
  TensorView view;
  Imported done = import_tensor(object, view, keep, why);
  if (done != Imported::Yes) {
    if (done == Imported::Refused && why->code == Code::NotATensor) why->want = "a number or a 0-d tensor";
    return done;
  }
  return taken(take_tensor(param, view, keep.device, keep.device_id, scalar, why));
}

PyObject* number_of_numpy_scalar(PyObject* object) {
  if (PyArray_CheckExact(object) || !PyArray_IsScalar(object, Generic)) return nullptr;
  if (PyArray_IsScalar(object, LongDouble)) return PyNumber_Float(object);
  return PyObject_CallMethod(object, "item", nullptr);
}

bool is_constant(PyObject* object) {
  if (PyType_Check(object) || PyArray_DescrCheck(object)) return true;
  PyTypeObject* type = Py_TYPE(object);
  const char* meta = Py_TYPE(type)->tp_name;
  return std::strcmp(meta, "EnumType") == 0 || std::strcmp(meta, "EnumMeta") == 0 ||
         std::strcmp(type->tp_name, "torch.dtype") == 0;
}

}  // namespace baracuda::bindings
