// Numbers: Python's, NumPy's, and 0-d tensors whose memory is read at launch.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "bindings/import_detail.h"
#include "core/plan.h"

namespace baracuda::bindings {

using detail::refuse;

namespace {

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

// Refuses a number below the parameter's least, and NaN where there is one.
Imported in_range(const ScalarParam& param, const Scalar& scalar, Why& why) {
  if (!param.has_least || scalar.as_f64() >= param.least) return Imported::Yes;
  why = Refusal{Code::ScalarKind, "", text_of(scalar.as_f64()), "a number >= " + text_of(param.least),
                "pass a number in this range"};
  return Imported::Refused;
}

std::string text_of_whole(PyObject* integer) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (!overflow) return std::to_string(number);
  const double about = PyLong_AsDouble(integer);
  if (!PyErr_Occurred()) return text_of(about);
  PyErr_Clear();
  return "a number beyond all floats";
}

// Takes a Python int that the parameter's kind and element hold.
Imported import_whole(PyObject* integer, const ScalarParam& param, Scalar& scalar, Why& why) {
  const WholeRange range = whole_range(param);
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  bool held = !overflow && number >= range.least && (number < 0 || static_cast<uint64_t>(number) <= range.most);
  scalar.i = number;
  if (overflow > 0 && range.most > uint64_t{INT64_MAX}) {
    scalar.u = PyLong_AsUnsignedLongLong(integer);
    held = !PyErr_Occurred();
    PyErr_Clear();
  }
  if (held) return in_range(param, scalar, why);
  why = out_of_range(param, text_of_whole(integer));
  return Imported::Refused;
}

}  // namespace

Imported import_scalar(PyObject* object, const ScalarParam& param, Scalar& scalar, Keep& keep, Why& why) {
  const Scalar::Kind kind = param.kind;
  scalar.kind = kind;
  scalar.data = nullptr;
  if (PyFloat_CheckExact(object) && kind == Scalar::Kind::Float) {
    scalar.f = PyFloat_AS_DOUBLE(object);
    return in_range(param, scalar, why);
  }
  if (PyLong_Check(object) || PyFloat_Check(object) || PyArray_IsScalar(object, Generic)) {
    // Conversions that would drop an imaginary part or read a text are no numbers.
    bool number = !PyArray_IsScalar(object, ComplexFloating) && !PyArray_IsScalar(object, Flexible) &&
                  !PyArray_IsScalar(object, Datetime) && !PyArray_IsScalar(object, Timedelta);
    if (!number) return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "a real number", "pass a float or int");
    if (kind != Scalar::Kind::Float) {
      PyObject* integer = PyNumber_Index(object);
      if (!integer) {
        PyErr_Clear();
        return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "an integer", "pass an int");
      }
      const Imported done = import_whole(integer, param, scalar, why);
      Py_DECREF(integer);
      return done;
    }
    scalar.f = PyFloat_AsDouble(object);
    if (!PyErr_Occurred()) return in_range(param, scalar, why);
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
  bool fits = kind == Scalar::Kind::Float ? kReal.has(view.element) : (kInts | kBool).has(view.element);
  const bool here = view.device == keep.device && view.device_id == keep.device_id;
  if (view.numel() != 1 || !here || !fits)
    return refuse(why, Code::ScalarKind, "a tensor of several elements, of another element, or on another device",
                  kind == Scalar::Kind::Float ? "a number or a real 0-d tensor on the plan's device"
                                              : "an int or an integer 0-d tensor on the plan's device",
                  "pass x.item()");
  if (!view.data && !view.unbacked)
    return refuse(why, Code::NullData, "no data", "a number or a 0-d tensor", "pass a number");
  scalar.data = view.data;
  scalar.element = view.element;
  return Imported::Yes;
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
