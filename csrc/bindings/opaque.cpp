#include "bindings/opaque.h"

#include <structmember.h>

#include <atomic>
#include <cstddef>

namespace baracuda::bindings {
namespace {

PyObject *name_compiler, *name_call;
std::atomic<PyObject*> set_callback{nullptr};  // torch's function, once it is known

// Torch's function that says who is given the frames of this thread, or null: there is no compiler, or another one than
// is known here.
PyObject* callback_setter() {
  PyObject* compiler = PyImport_GetModule(name_compiler);
  if (!compiler) return PyErr_Clear(), nullptr;
  Py_DECREF(compiler);
  if (PyObject* known = set_callback.load(std::memory_order_acquire)) return known;
  PyObject* module = PyImport_ImportModule("torch._C._dynamo.eval_frame");
  PyObject* found = module ? PyObject_GetAttrString(module, "set_eval_frame") : nullptr;
  Py_XDECREF(module);
  PyErr_Clear();
  PyObject* none = nullptr;
  if (found && !set_callback.compare_exchange_strong(none, found)) Py_DECREF(found);
  return set_callback.load(std::memory_order_acquire);
}

struct OpaqueObject {
  PyObject_HEAD vectorcallfunc vectorcall;
};

PyObject* opaque_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Unwatched unwatched;
  PyObject* call = PyObject_GetAttr(self, name_call);
  PyObject* result = call ? PyObject_Vectorcall(call, args, nargsf, kwnames) : nullptr;
  Py_XDECREF(call);
  return result;
}

PyObject* opaque_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<OpaqueObject*>(self)->vectorcall = &opaque_call;
  return self;
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpaqueObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&opaque_new)},
                       {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"baracuda._core.Opaque", sizeof(OpaqueObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

Unwatched::Unwatched() {
  PyObject* set = callback_setter();
  before_ = set ? PyObject_CallOneArg(set, Py_None) : nullptr;
  if (set && !before_) PyErr_Clear();
}

Unwatched::~Unwatched() {
  if (!before_) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* now = PyObject_CallOneArg(set_callback.load(std::memory_order_acquire), before_);
  if (!now) PyErr_Clear();
  Py_XDECREF(now);
  Py_DECREF(before_);
  PyErr_Restore(type, value, trace);
}

bool opaque_setup(PyObject* module) {
  name_compiler = PyUnicode_InternFromString("torch._dynamo");
  name_call = PyUnicode_InternFromString("_call");
  PyObject* type = PyType_FromSpec(&spec);
  return type && PyModule_AddObject(module, "Opaque", type) == 0;
}

}  // namespace baracuda::bindings
