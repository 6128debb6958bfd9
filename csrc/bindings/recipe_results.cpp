// What a recipe's results are made of.
#include "bindings/recipe.h"

namespace baracuda::bindings {
namespace {

// Whether the exception that is set is one of ours already, which carry refusals.
bool raised_by_us() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const bool ours = value && PyObject_HasAttrString(value, "refusals");
  PyErr_Restore(type, value, trace);
  return ours;
}

// The result again, which failed at NumPy or torch for want of memory most likely: results.py has the error for it.
PyObject* allocate_by_python(const Allocation& a) {
  PyErr_Clear();
  PyObject* module = PyImport_ImportModule("baracuda.memory.results");
  PyObject* made =
      module ? PyObject_CallMethod(module, "allocated", "OOO", a.make, a.args, a.kwnames ? a.kwnames : Py_None)
             : nullptr;
  Py_XDECREF(module);
  return made;
}

// A tuple of sizes with what was counted in the places of kCounted; null with an exception.
PyObject* with_counted(PyObject* sizes, int64_t counted) {
  PyObject* out = PyTuple_New(PyTuple_GET_SIZE(sizes));
  for (Py_ssize_t i = 0; out && i < PyTuple_GET_SIZE(sizes); ++i) {
    const int64_t size = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
    PyObject* now = PyLong_FromLongLong(size == kCounted ? counted : size);
    if (!now) Py_CLEAR(out);
    if (now) PyTuple_SET_ITEM(out, i, now);
  }
  return out;
}

// A result whose size was counted.
PyObject* allocate_counted(const Allocation& a, const Arguments& args) {
  Allocation now = a;  // of borrowed references
  now.sized = false;
  for (int i = 0; i < now.kind.rank; ++i)
    if (now.kind.sizes[i] == kCounted) now.kind.sizes[i] = args.counted;
  now.kind.shape = with_counted(PyTuple_GET_ITEM(a.args, 0), args.counted);
  now.args = now.kind.shape ? PyTuple_New(PyTuple_GET_SIZE(a.args)) : nullptr;
  for (Py_ssize_t i = 0; now.args && i < PyTuple_GET_SIZE(a.args); ++i)
    PyTuple_SET_ITEM(now.args, i, Py_NewRef(i == 0 ? now.kind.shape : PyTuple_GET_ITEM(a.args, i)));
  PyObject* made = now.args ? allocate_result(now, args) : nullptr;
  Py_XDECREF(now.args), Py_XDECREF(now.kind.shape);
  return made;
}

}  // namespace

PyObject* allocate_result(const Allocation& a, const Arguments& args) {
  if (a.sized) return allocate_counted(a, args);
  if (a.out_param >= 0 && args.values[a.out_param] != Py_None) {
    Py_INCREF(args.values[a.out_param]);
    return args.values[a.out_param];
  }
  if (args.keep.unbacked) return allocate_by_python(a);
  Py_ssize_t keywords = a.kwnames ? PyTuple_GET_SIZE(a.kwnames) : 0;
  PyObject* made = a.torch ? torch_empty(a.kind)
                           : PyObject_Vectorcall(a.make, &PyTuple_GET_ITEM(a.args, 0),
                                                 PyTuple_GET_SIZE(a.args) - keywords, a.kwnames);
  return made || !PyErr_ExceptionMatches(PyExc_Exception) || raised_by_us() ? made : allocate_by_python(a);
}

}  // namespace baracuda::bindings
