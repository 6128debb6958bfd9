#include "bindings/bound.h"

#include <structmember.h>

#include "bindings/error.h"
#include "bindings/queue.h"

namespace baracuda::bindings {
namespace {

PyTypeObject* bound_type = nullptr;

struct BoundObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PlanObject* plan;
  std::vector<TensorView>* views;
  Scalar scalars[kMaxScalars];
  PyObject* args[kMaxArgs];  // strong references, so that the memory stays
  PyObject* kept;            // capsules and lists behind the views
  PyObject* workspace;
  PyObject* stream;
  PyObject* result;
  const void* exchange;  // who is asked at each call for its current stream, when no stream was given
  void* stream_handle;
  Call call;
  bool release_gil;
  bool writes_torch;
};

PyObject* bound_call(PyObject* self, PyObject* const*, size_t nargsf, PyObject* kwnames) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  if (PyVectorcall_NARGS(nargsf) || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return PyErr_Format(PyExc_TypeError, "a bound plan takes no arguments; use rebind(name=tensor) to change one");
  Failure failure;
  Status status;
  const PlanCore& plan = *b->plan->core;
  void* stream = b->stream_handle;
  if (b->exchange && framework_stream(b->exchange, plan.row.backend, plan.device_id, &stream) != Imported::Yes)
    return nullptr;
  if (!may_launch(plan, stream, reinterpret_cast<PyObject*>(b->plan))) return nullptr;
  if (b->release_gil) {
    Py_BEGIN_ALLOW_THREADS status = launch(plan, b->call, stream, &failure);
    Py_END_ALLOW_THREADS
  } else {
    status = launch(plan, b->call, stream, &failure);
  }
  if (b->writes_torch) bump_versions(b->plan, b->args);
  if (status != Status::Ok) return raise_status(plan, status, failure, reinterpret_cast<PyObject*>(b->plan));
  Py_INCREF(b->result);
  return b->result;
}

void adopt(BoundObject* b, Frame& f) {
  PlanObject* plan = b->plan;
  b->views->assign(f.views, f.views + plan->core->signature.slots.size());
  std::copy(f.scalars, f.scalars + plan->core->signature.scalars.size(), b->scalars);
  for (int i = 0; i < plan->n_args; ++i) {
    Py_XINCREF(f.args[i]);
    Py_XSETREF(b->args[i], f.args[i]);
  }
  PyObject* kept = PyList_New(0);
  for (int i = 0; i < f.keep.n; ++i) PyList_Append(kept, f.keep.refs[i]);
  if (f.keep.more) PyList_Append(kept, f.keep.more);
  Py_XSETREF(b->kept, kept);
  Py_XINCREF(f.workspace);
  Py_XSETREF(b->workspace, f.workspace);
  Py_XINCREF(f.stream);
  Py_XSETREF(b->stream, f.stream);
  b->stream_handle = f.stream_handle;
  b->exchange = f.stream ? nullptr : f.keep.exchange;
  b->call = f.call;
  b->call.views = b->views->data();
  b->call.scalars = b->scalars;
  b->release_gil = releases_gil(*plan->core, b->call);
  b->writes_torch = writes_torch(plan, b->args);
  PyObject* result = nullptr;
  if (plan->n_outputs == 1) {
    result = b->args[plan->outputs[0]];
    Py_INCREF(result);
  } else {
    result = PyTuple_New(plan->n_outputs);
    for (int i = 0; i < plan->n_outputs; ++i) {
      PyObject* out = b->args[plan->outputs[i]];
      Py_INCREF(out);
      PyTuple_SET_ITEM(result, i, out);
    }
  }
  Py_XSETREF(b->result, result);
}

// rebind(x=..., step=...): replaces some arguments; nothing changes when the new call would be refused.
PyObject* bound_rebind(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  if (nargs) return PyErr_Format(PyExc_TypeError, "rebind takes keyword arguments only, such as rebind(x=tensor)");
  PlanObject* plan = b->plan;
  Frame f(plan);
  std::copy(b->args, b->args + plan->n_args, f.args);
  f.workspace = b->workspace;
  f.stream = b->stream;
  // Importing may run Python code; what it could do to this object must not free what is being read.
  Keep held;
  for (int i = 0; i < plan->n_args; ++i) {
    if (!f.args[i]) continue;
    Py_INCREF(f.args[i]);
    held.add(f.args[i]);
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    Why why;
    if (!place_keyword(plan, f, PyTuple_GET_ITEM(kwnames, k), args[k], true, why))
      return raise_refusal(*why, reinterpret_cast<PyObject*>(plan));
  }
  Refusals refusals;
  if (!import_frame(plan, f, false, refusals) || !check_call(*plan->core, f.call, false, refusals))
    return PyErr_Occurred() ? nullptr : raise_refusals(refusals, reinterpret_cast<PyObject*>(plan));
  adopt(b, f);
  Py_INCREF(self);
  return self;
}

int bound_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyObject*>(b->plan));
  for (PyObject* a : b->args) Py_VISIT(a);
  Py_VISIT(b->kept);
  Py_VISIT(b->workspace);
  Py_VISIT(b->stream);
  Py_VISIT(b->result);
  return 0;
}

int bound_clear(PyObject* self) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  for (PyObject*& a : b->args) Py_CLEAR(a);
  Py_CLEAR(b->kept);
  Py_CLEAR(b->workspace);
  Py_CLEAR(b->stream);
  Py_CLEAR(b->result);
  return 0;
}

void bound_dealloc(PyObject* self) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  bound_clear(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(b->plan));
  delete b->views;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get_plan(PyObject* self, void*) {
  auto* plan = reinterpret_cast<PyObject*>(reinterpret_cast<BoundObject*>(self)->plan);
  Py_INCREF(plan);
  return plan;
}

PyMethodDef methods[] = {
    {"rebind", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&bound_rebind)), METH_FASTCALL | METH_KEYWORDS,
     "rebind(**arguments)\n--\n\nReplaces some of the frozen arguments; an error changes nothing."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {{"plan", get_plan, nullptr, "The plan that is bound.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&bound_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(&bound_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&bound_clear)},
                       {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"baracuda._core.BoundPlan", sizeof(BoundObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* make_bound(PlanObject* plan, Frame& frame) {
  auto* b = reinterpret_cast<BoundObject*>(bound_type->tp_alloc(bound_type, 0));
  if (!b) return nullptr;
  b->vectorcall = &bound_call;
  Py_INCREF(reinterpret_cast<PyObject*>(plan));
  b->plan = plan;
  b->views = new std::vector<TensorView>();
  adopt(b, frame);
  return reinterpret_cast<PyObject*>(b);
}

bool bound_setup(PyObject* module) {
  bound_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return bound_type && PyModule_AddObjectRef(module, "BoundPlan", reinterpret_cast<PyObject*>(bound_type)) == 0;
}

}  // namespace baracuda::bindings
