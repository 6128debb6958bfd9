#include "bindings/trace.h"

#include <utility>

#include "bindings/tensor.h"

namespace baracuda::bindings {
namespace {

constinit thread_local PyObject* t_tracer = nullptr;

// Appends, and lets go of the item; false with an exception set.
bool append(PyObject* list, PyObject* item) {
  const bool done = item && PyList_Append(list, item) == 0;
  Py_XDECREF(item);
  return done;
}

// (object, address, shape, strides, element)
PyObject* seen(PyObject* object, const TensorView& view) {
  return Py_BuildValue("OnNNi", object ? object : Py_None, reinterpret_cast<Py_ssize_t>(view.data),
                       tuple_of(view.shape, view.rank), tuple_of(view.strides, view.rank),
                       static_cast<int>(view.element));
}

PyObject* number_of(PyObject* object, const Scalar& scalar) {
  if (scalar.data) {
    TensorView view;
    view.data = const_cast<void*>(scalar.data), view.element = scalar.element;
    return seen(object, view);
  }
  switch (scalar.kind) {
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(scalar.f);
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(scalar.i);
    case Scalar::Kind::Unsigned:
      return PyLong_FromUnsignedLongLong(scalar.u);
  }
  Py_UNREACHABLE();
}

// Takes the lists over.
bool give(PyObject* what, Caller caller, PyObject* tensors, PyObject* numbers, bool complete) {
  PyObject* done = complete ? PyObject_CallMethod(t_tracer, "launch", "OOOOO", what, caller.object,
                                                  caller.values ? caller.values : Py_None, tensors, numbers)
                            : nullptr;
  Py_XDECREF(tensors);
  Py_XDECREF(numbers);
  Py_XDECREF(done);
  return done != nullptr;
}

bool add_tensors(PyObject* list, const PlanObject* plan, const Frame& f) {
  const PlanCore& core = *plan->core;
  for (int i = 0; i < plan->n_tensors; ++i) {
    const int32_t param = plan->param_of[i], first = core.first[param];
    if (plan->slot_of[i] >= 0) {
      if (!append(list, seen(f.args[i], f.views[first]))) return false;
      continue;
    }
    for (int32_t k = 0; k < core.first[param + 1] - first; ++k)
      if (!append(list, seen(PyTuple_GET_ITEM(f.lists[i], k), f.views[first + k]))) return false;
  }
  return true;
}

PyObject* exchange_tracer(PyObject*, PyObject* now) {
  PyObject* before = std::exchange(t_tracer, now == Py_None ? nullptr : Py_NewRef(now));
  return before ? before : Py_NewRef(Py_None);
}

PyObject* get_tracer(PyObject*, PyObject*) { return Py_NewRef(t_tracer ? t_tracer : Py_None); }

PyMethodDef functions[] = {{"exchange_tracer", &exchange_tracer, METH_O, "exchange_tracer(tracer)"},
                           {"tracer", &get_tracer, METH_NOARGS, "tracer()"},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool tracing() { return t_tracer != nullptr; }

bool stand_in_address(TensorView& view) {
  if (!t_tracer) return true;
  PyObject* address = PyObject_CallMethod(t_tracer, "address", "NNiii", tuple_of(view.shape, view.rank),
                                          tuple_of(view.strides, view.rank), static_cast<int>(view.element),
                                          static_cast<int>(view.device), static_cast<int>(view.device_id));
  if (address) view.data = reinterpret_cast<void*>(PyLong_AsSsize_t(address));
  Py_XDECREF(address);
  return address && !PyErr_Occurred();
}

PyObject* shown_sizes(const TensorView& view, PyObject* sizes) {
  if (!t_tracer || !view.unbacked || !sizes) return sizes;
  return PyObject_CallMethod(t_tracer, "sizes", "(N)", sizes);
}

bool shown_length(const TensorView& view) {
  if (!t_tracer || !view.unbacked) return true;
  PyObject* done = PyObject_CallMethod(t_tracer, "length", "L", static_cast<long long>(view.shape[0]));
  Py_XDECREF(done);
  return done != nullptr;
}

bool shown_key(const TensorView& view, PyObject* key) {
  if (!t_tracer || !view.unbacked) return true;
  PyObject* done = PyObject_CallMethod(t_tracer, "key", "NO", tuple_of(view.shape, view.rank), key);
  Py_XDECREF(done);
  return done != nullptr;
}

bool shown_ones(const TensorView& view) {
  if (!t_tracer || !view.unbacked) return true;
  PyObject* done = PyObject_CallMethod(t_tracer, "ones", "(N)", tuple_of(view.shape, view.rank));
  Py_XDECREF(done);
  return done != nullptr;
}

bool record(PlanObject* plan, const Frame& frame, Caller caller) {
  PyObject *tensors = PyList_New(0), *numbers = PyList_New(0);
  bool good = tensors && numbers && add_tensors(tensors, plan, frame);
  for (int i = plan->n_tensors; good && i < plan->n_args; ++i)
    good = append(numbers, number_of(frame.args[i], frame.scalars[plan->param_of[i]]));
  return give(reinterpret_cast<PyObject*>(plan), caller, tensors, numbers, good);
}

bool record(programs::ProgramObject* program, const TensorView* views, PyObject* const* objects, const Scalar* scalars,
            Caller caller) {
  PyObject *tensors = PyList_New(0), *numbers = PyList_New(0);
  bool good = tensors && numbers;
  const size_t n = programs::n_tensors(program);
  for (size_t i = 0; good && i < n; ++i) good = append(tensors, seen(objects[i], views[i]));
  for (size_t i = 0; good && i < program->core->scalars().size(); ++i)
    good = append(numbers, number_of(objects[n + i], scalars[i]));
  return give(reinterpret_cast<PyObject*>(program), caller, tensors, numbers, good);
}

PyObject* returned(PyObject* function, PyObject* results) {
  PyObject* done = results ? PyObject_CallMethod(t_tracer, "returned", "OO", function, results) : nullptr;
  if (!done) Py_CLEAR(results);
  Py_XDECREF(done);
  return results;
}

bool trace_setup(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace baracuda::bindings
