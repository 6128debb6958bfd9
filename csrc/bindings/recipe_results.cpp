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
PyObject* allocate_by_python(const Allocation& a, PyObject* strides) {
  PyErr_Clear();
  PyObject* module = PyImport_ImportModule("baracuda.memory.results");
  PyObject* order = strides ? Py_BuildValue("(OO)", a.ordered.make, strides) : Py_NewRef(Py_None);
  PyObject* made = module && order ? PyObject_CallMethod(module, "allocated", "OOOO", a.make, a.args,
                                                         a.kwnames ? a.kwnames : Py_None, order)
                                   : nullptr;
  Py_XDECREF(module), Py_XDECREF(order);
  return made;
}

// Whether all tensors that decide lie as fresh ones do, which is the usual case: so does the result then.
bool all_fresh(const Ordered& o, const Arguments& args) {
  for (const Source& s : o.by) {
    const TensorView& view = args.views[s.index];
    if (args.is_tensor[s.index] && (s.n_dims >= 0 || !is_fresh({view.rank, view.shape, view.strides}))) return false;
  }
  return true;
}

// Strides of a result that does not lie in C order in this call.
bool find_strides(const Ordered& o, const Arguments& args, int64_t* strides) {
  Lying operands[kMaxOrdering];
  TensorView seen[kMaxOrdering];
  size_t n = 0;
  for (const Source& s : o.by) {
    if (!args.is_tensor[s.index]) continue;
    const TensorView* view = &args.views[s.index];
    if (s.n_dims >= 0) seen[n] = *view, apply_dims(s, seen[n], args.counted), view = &seen[n];
    operands[n++] = {view->rank, view->shape, view->strides};
  }
  return order_strides(o.rule, o.of, {operands, n}, o.rank, o.sizes, strides);
}

PyObject* tuple_of_strides(const int64_t* strides, int rank) {
  PyObject* made = PyTuple_New(rank);
  for (int i = 0; made && i < rank; ++i) PyTuple_SET_ITEM(made, i, PyLong_FromLongLong(strides[i]));
  return made;
}

// A result with strides of its own, of a tuple of them.
PyObject* allocate_strided(const Allocation& a, PyObject* strides, bool unbacked) {
  if (unbacked) return allocate_by_python(a, strides);
  const Py_ssize_t n = PyTuple_GET_SIZE(a.args), keywords = a.kwnames ? PyTuple_GET_SIZE(a.kwnames) : 0;
  std::vector<PyObject*> given{PyTuple_GET_ITEM(a.args, 0), strides};
  for (Py_ssize_t i = 1; i < n; ++i) given.push_back(PyTuple_GET_ITEM(a.args, i));
  PyObject* made = PyObject_Vectorcall(a.ordered.make, given.data(), n + 1 - keywords, a.kwnames);
  return made || !PyErr_ExceptionMatches(PyExc_Exception) || raised_by_us() ? made : allocate_by_python(a, strides);
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
  const Ordered& o = a.ordered;
  if (o.strides) return allocate_strided(a, o.strides, args.keep.unbacked);
  int64_t strides[kMaxRank];
  if (o.make && o.rank > 1 && !all_fresh(o, args) && find_strides(o, args, strides)) {
    PyObject* made = nullptr;
    if (a.torch && !args.keep.unbacked) return torch_empty(a.kind, strides);
    if (o.numpy && (made = numpy_empty(o.numpy, o.rank, o.sizes, strides))) return made;
    PyErr_Clear();
    PyObject* steps = tuple_of_strides(strides, o.rank);
    made = steps ? allocate_strided(a, steps, args.keep.unbacked) : nullptr;
    Py_XDECREF(steps);
    return made;
  }
  if (args.keep.unbacked) return allocate_by_python(a, nullptr);
  Py_ssize_t keywords = a.kwnames ? PyTuple_GET_SIZE(a.kwnames) : 0;
  PyObject* made = a.torch ? torch_empty(a.kind)
                           : PyObject_Vectorcall(a.make, &PyTuple_GET_ITEM(a.args, 0),
                                                 PyTuple_GET_SIZE(a.args) - keywords, a.kwnames);
  return made || !PyErr_ExceptionMatches(PyExc_Exception) || raised_by_us() ? made : allocate_by_python(a, nullptr);
}

}  // namespace baracuda::bindings
