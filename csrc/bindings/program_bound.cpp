// Programs whose arguments are frozen: a call without checks of them, for one thread.
#include <Python.h>
#include <structmember.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "bindings/program_detail.h"

namespace baracuda::bindings::programs {
namespace {

PyTypeObject* bound_type;

// ----------------------------------------------------------------------------------------------------

struct Binding {
  Program::Bound frame{nullptr, nullptr};
  PyObject* held = nullptr;  // a tuple of the arguments
  PyObject* kept = nullptr;  // what else their memory needs
  PyObject* result = nullptr;
  Anchors anchors;
  bool torch = false;
  ~Binding() {
    Py_XDECREF(held);
    Py_XDECREF(kept);
    Py_XDECREF(result);
  }
};

struct BoundObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  ProgramObject* program;
  Binding* binding;
  std::atomic<bool> busy;
};

PyObject* bound_call(PyObject* self, PyObject* const*, size_t nargsf, PyObject* kwnames) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  if (PyVectorcall_NARGS(nargsf) || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return raise_usage("a bound program takes no arguments; bind others with program.bind(...)", Code::UnknownArgument,
                       "");
  if (!b->binding || b->busy.exchange(true, std::memory_order_acquire))
    return raise_one(b->program, {Code::Busy, "", "a bound program while another call of it is under way",
                                  "one at a time", "bind once for each thread"});
  Binding& now = *b->binding;
  PyObject* out = nullptr;
  ProgramFailure failure;
  if (now.anchors.moved() || b->program->anchors->moved()) {
    raise_one(b->program, {Code::Moved, "", "a tensor that was given other memory since it was bound",
                           "the memory that was bound", "bind it anew"});
  } else {
    const bool done =
        without_gil(b->program->release_gil, [&] { return b->program->core->replay(*now.frame, failure); });
    if (now.torch) bump(b->program, &PyTuple_GET_ITEM(now.held, 0));
    out = done ? Py_NewRef(now.result) : raise_failure(b->program, failure);
  }
  b->busy.store(false, std::memory_order_release);
  return out;
}

int bound_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyObject*>(b->program));
  if (!b->binding) return 0;
  Py_VISIT(b->binding->held);
  Py_VISIT(b->binding->kept);
  Py_VISIT(b->binding->result);
  return 0;
}

int bound_clear(PyObject* self) {
  delete std::exchange(reinterpret_cast<BoundObject*>(self)->binding, nullptr);
  return 0;
}

void bound_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  bound_clear(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<BoundObject*>(self)->program));
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot bound_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&bound_dealloc)},
                             {Py_tp_traverse, reinterpret_cast<void*>(&bound_traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&bound_clear)},
                             {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                             {Py_tp_members, bound_members},
                             {0, nullptr}};
PyType_Spec bound_spec = {"baracuda._core.BoundProgram", sizeof(BoundObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                              Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          bound_slots};

}  // namespace

PyObject* program_bind(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  Call call(p);
  call.keep.lasts = true;
  if (!collect(p, call, args, nargs, kwnames)) return nullptr;
  auto binding = std::make_unique<Binding>();
  for (PyObject* a : call.args)
    if (a && a != Py_None && !binding->anchors.add(a)) return nullptr;
  if (!import_call(p, call)) return nullptr;
  for (PyObject* a : call.made)
    if (!binding->anchors.add(a)) return nullptr;
  binding->held = PyTuple_New(std::ssize(call.args));
  binding->kept = PyList_New(0);
  if (!binding->held || !binding->kept) return nullptr;
  for (size_t i = 0; i < call.args.size(); ++i)
    PyTuple_SET_ITEM(binding->held, i, Py_NewRef(call.args[i] ? call.args[i] : Py_None));
  for (int i = 0; i < call.keep.n; ++i) PyList_Append(binding->kept, call.keep.refs[i]);
  if (call.keep.more) PyList_Append(binding->kept, call.keep.more);
  ProgramFailure failure;
  binding->frame = p->core->bind(call.views.data(), call.scalars.data(), call.stream_handle, failure);
  if (!binding->frame) return raise_failure(p, failure);
  binding->torch = call.keep.torch;
  binding->result = result_of(p, call.args.data());
  auto* b = binding->result ? reinterpret_cast<BoundObject*>(bound_type->tp_alloc(bound_type, 0)) : nullptr;
  if (!b) return nullptr;
  new (&b->busy) std::atomic<bool>(false);
  b->vectorcall = &bound_call;
  b->program = reinterpret_cast<ProgramObject*>(Py_NewRef(self));
  b->binding = binding.release();
  return reinterpret_cast<PyObject*>(b);
}

bool bound_setup() {
  bound_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&bound_spec));
  return bound_type != nullptr;
}

}  // namespace baracuda::bindings::programs
