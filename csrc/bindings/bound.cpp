#include "bindings/bound.h"

#include <structmember.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "bindings/anchor.h"
#include "bindings/error.h"
#include "bindings/queue.h"
#include "bindings/tensor.h"

namespace baracuda::bindings {
namespace {

PyTypeObject* bound_type = nullptr;

// What one call of a bound plan needs. Never changed: rebind makes another one.
struct Binding {
  std::vector<TensorView> views;
  Scalar scalars[kMaxScalars];
  PyObject* args[kMaxArgs] = {};   // strong references: tensors, tuples of them, and numbers
  PyObject* given[kMaxArgs] = {};  // of the outputs, what the caller gave, which is a list where `args` has a tuple
  PyObject* kept = nullptr;        // capsules behind the views
  PyObject* workspace = nullptr;
  PyObject* stream = nullptr;
  PyObject* result = nullptr;
  const void* exchange = nullptr;  // who is asked at each call for its current stream, when no stream was given
  void* stream_handle = nullptr;
  Anchors anchors;
  Call call;
  bool release_gil = false;
  bool writes_torch = false;

  Binding() = default;
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  ~Binding() {
    for (PyObject* a : args) Py_XDECREF(a);
    for (PyObject* g : given) Py_XDECREF(g);
    Py_XDECREF(kept), Py_XDECREF(workspace), Py_XDECREF(stream), Py_XDECREF(result);
  }
};

struct BoundObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PlanObject* plan;
  Binding* binding;  // null once the garbage collector has cleared it
  std::atomic<bool> busy;
};

// A bound plan is for one thread, and one call at a time; whoever comes meanwhile is refused.
class Turn {
 public:
  explicit Turn(BoundObject* b) : b_(b) {
#ifdef Py_GIL_DISABLED
    mine_ = !b->busy.exchange(true, std::memory_order_acquire);
#else  // nobody comes between: the interpreter is held
    mine_ = !b->busy.load(std::memory_order_relaxed);
    if (mine_) b->busy.store(true, std::memory_order_relaxed);
#endif
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { end(); }
  // Null with an exception where it is not this caller's turn.
  Binding* binding() const {
    if (mine_ && b_->binding) [[likely]]
      return b_->binding;
    auto* plan = reinterpret_cast<PyObject*>(b_->plan);
    if (mine_)
      raise_refusal({Code::Busy, "", "a bound plan that the garbage collector has taken apart", "a live one", ""},
                    plan);
    else
      raise_refusal({Code::Busy, "", "a bound plan while another call or rebind of it is under way", "one at a time",
                     "bind once for each thread, and do not call it from what rebind's tensors run"},
                    plan);
    return nullptr;
  }
  void end() {
    if (mine_) b_->busy.store(false, std::memory_order_release);
    mine_ = false;
  }

 private:
  BoundObject* b_;
  bool mine_;
};

std::string name_of_argument(PlanObject* plan, PyObject* const* args, PyObject* object) {
  for (int i = 0; i < plan->n_args; ++i) {
    const char* name = PyUnicode_AsUTF8(plan->names[i]);
    if (args[i] == object) return name;
    for (Py_ssize_t k = 0; args[i] && PyTuple_CheckExact(args[i]) && k < PyTuple_GET_SIZE(args[i]); ++k)
      if (PyTuple_GET_ITEM(args[i], k) == object) return name + ("[" + std::to_string(k) + "]");
  }
  return "workspace";
}

PyObject* refuse_moved(PlanObject* plan, PyObject* const* args, PyObject* object) {
  const std::string name = name_of_argument(plan, args, object);
  return raise_refusal(
      {Code::Moved, name, "a tensor that was given other memory since it was bound (rebase, resize, set_, .data = ...)",
       "the memory that was bound", "rebind it: rebind(" + name.substr(0, name.find('[')) + "=...)"},
      reinterpret_cast<PyObject*>(plan));
}

PyObject* bound_call(PyObject* self, PyObject* const*, size_t nargsf, PyObject* kwnames) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  if (PyVectorcall_NARGS(nargsf) || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return raise_usage("a bound plan takes no arguments; use rebind(name=tensor) to change one", Code::UnknownArgument,
                       "");
  Turn turn(b);
  Binding* now = turn.binding();
  if (!now) return nullptr;
  auto* caller = reinterpret_cast<PyObject*>(b->plan);
  const PlanCore& plan = *b->plan->core;
  if (PyObject* moved = now->anchors.moved()) return refuse_moved(b->plan, now->args, moved);
  void* stream = now->stream_handle;
  if (now->exchange &&
      framework_stream(now->exchange, plan.row.backend, plan.question.device, &stream) != Imported::Yes)
    return nullptr;
  if (!may_launch(plan, stream, caller)) return nullptr;
  if (Refusals unfit; plan.looks && !check_numbers(plan, now->call, unfit)) return raise_refusals(unfit, caller);
  Failure failure;
  Status status;
  if (now->release_gil) {
    Py_BEGIN_ALLOW_THREADS status = launch(plan, now->call, stream, &failure);
    Py_END_ALLOW_THREADS
  } else {
    status = launch(plan, now->call, stream, &failure);
  }
  if (now->writes_torch) bump_versions(b->plan, now->args);
  if (status != Status::Ok) return raise_status(plan, status, failure, caller);
  return Py_NewRef(now->result);
}

PyObject* result_of(PlanObject* plan, PyObject* const* given) {
  if (plan->n_outputs == 1) return Py_NewRef(given[plan->outputs[0]]);
  PyObject* tuple = PyTuple_New(plan->n_outputs);
  for (int i = 0; tuple && i < plan->n_outputs; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(given[plan->outputs[i]]));
  return tuple;
}

// Makes a call's arguments such that they can be imported again: lists as they are now, capsules owned. What the caller
// gave for each is kept in `given`. False with an exception set.
bool settle(PlanObject* plan, Frame& f, PyObject** given) {
  std::copy(f.args, f.args + plan->n_args, given);
  for (int i = 0; i <= plan->n_args; ++i) {
    PyObject*& value = i < plan->n_args ? f.args[i] : f.workspace;
    const bool variadic = i < plan->n_tensors && plan->slot_of[i] < 0;
    PyObject* own = nullptr;
    Why why;
    Py_ssize_t at = -1;
    Imported done = Imported::Yes;
    if (value && variadic)
      done = own_members(value, true, &own, &at, why);
    else if (value && PyCapsule_CheckExact(value))
      done = own_capsule(value, true, &own, why);
    if (done == Imported::PythonError && variadic && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();  // no sequence: the import has the words for it
      continue;
    }
    if (done == Imported::Refused) {
      why->field = i < plan->n_args ? PyUnicode_AsUTF8(plan->names[i]) : "workspace";
      if (at >= 0) why->field += "[" + std::to_string(at) + "]";
      raise_refusal(*why, reinterpret_cast<PyObject*>(plan));
    }
    if (done != Imported::Yes) return false;
    if (!own) continue;
    f.keep.add(own);
    value = own;
    if (i < plan->n_args && !variadic) given[i] = own;  // a capsule that was consumed is of no use to the caller
  }
  return true;
}

PyObject* reference(PyObject* o) { return Py_XNewRef(o); }

// A checked binding of the frame's arguments, or null with an exception set.
std::unique_ptr<Binding> bind_frame(PlanObject* plan, Frame& f, PyObject* const* given) {
  auto b = std::make_unique<Binding>();
  for (int i = 0; i < plan->n_args; ++i) b->args[i] = reference(f.args[i]);
  for (int i = 0; i < plan->n_outputs; ++i) b->given[plan->outputs[i]] = reference(given[plan->outputs[i]]);
  b->workspace = reference(f.workspace);
  b->stream = reference(f.stream);
  // Before the import: what the code of a producer moves meanwhile is found after it.
  for (int i = 0; i <= plan->n_args; ++i) {
    PyObject* value = i < plan->n_args ? b->args[i] : b->workspace;
    if (value && !b->anchors.add(value)) return nullptr;
  }
  Refusals refusals;
  if (!import_frame(plan, f, false, refusals) || !check_call(*plan->core, f.call, false, refusals)) {
    if (!PyErr_Occurred()) raise_refusals(refusals, reinterpret_cast<PyObject*>(plan));
    return nullptr;
  }
  if (PyObject* moved = b->anchors.moved()) return refuse_moved(plan, b->args, moved), nullptr;
  if (f.keep.unbacked) {
    raise_refusal({Code::NullData, "", "a shape without memory", "tensors", "bind where there is data"},
                  reinterpret_cast<PyObject*>(plan));
    return nullptr;
  }
  b->views.assign(f.views, f.views + plan->core->signature.slots.size());
  std::copy(f.scalars, f.scalars + plan->core->signature.scalars.size(), b->scalars);
  b->kept = PyList_New(0);
  for (int i = 0; b->kept && i < f.keep.n; ++i) PyList_Append(b->kept, f.keep.refs[i]);
  if (b->kept && f.keep.more) PyList_Append(b->kept, f.keep.more);
  b->stream_handle = f.stream_handle;
  b->exchange = f.stream ? nullptr : f.keep.exchange;
  b->call = f.call;
  b->call.views = b->views.data();
  b->call.scalars = b->scalars;
  b->release_gil = releases_gil(*plan->core, b->call);
  b->writes_torch = writes_torch(plan, b->args);
  b->result = result_of(plan, b->given);
  if (PyErr_Occurred()) return nullptr;
  return b;
}

// rebind(x=..., step=...): replaces some arguments; nothing changes when the new call would be refused.
PyObject* bound_rebind(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  if (nargs)
    return raise_usage("rebind takes keyword arguments only, such as rebind(x=tensor)", Code::UnknownArgument, "");
  Turn turn(b);
  Binding* now = turn.binding();
  if (!now) return nullptr;
  PlanObject* plan = b->plan;
  Frame f(plan);
  f.keep.lasts = true;
  std::copy(now->args, now->args + plan->n_args, f.args);
  f.workspace = now->workspace;
  f.stream = now->stream;
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    Why why;
    if (!place_keyword(plan, f, PyTuple_GET_ITEM(kwnames, k), args[k], true, why))
      return raise_refusal(*why, reinterpret_cast<PyObject*>(plan));
  }
  PyObject* given[kMaxArgs];
  if (!settle(plan, f, given)) return nullptr;
  for (int i = 0; i < plan->n_outputs; ++i) {  // an output that stays is what the caller gave for it before
    const int out = plan->outputs[i];
    if (f.args[out] == now->args[out]) given[out] = now->given[out];
  }
  std::unique_ptr<Binding> next = bind_frame(plan, f, given);
  if (!next) return nullptr;
  std::unique_ptr<Binding> old(std::exchange(b->binding, next.release()));
  turn.end();  // what the old references end may run code that calls this again
  return Py_NewRef(self);
}

int bound_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyObject*>(b->plan));
  if (!b->binding) return 0;
  for (PyObject* a : b->binding->args) Py_VISIT(a);
  for (PyObject* g : b->binding->given) Py_VISIT(g);
  Py_VISIT(b->binding->kept);
  Py_VISIT(b->binding->workspace);
  Py_VISIT(b->binding->stream);
  Py_VISIT(b->binding->result);
  return 0;
}

int bound_clear(PyObject* self) {
  delete std::exchange(reinterpret_cast<BoundObject*>(self)->binding, nullptr);
  return 0;
}

void bound_dealloc(PyObject* self) {
  auto* b = reinterpret_cast<BoundObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  bound_clear(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(b->plan));
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
  frame.keep.lasts = true;
  PyObject* given[kMaxArgs];
  std::unique_ptr<Binding> binding = settle(plan, frame, given) ? bind_frame(plan, frame, given) : nullptr;
  if (!binding) return nullptr;
  auto* b = reinterpret_cast<BoundObject*>(bound_type->tp_alloc(bound_type, 0));
  if (!b) return nullptr;
  b->vectorcall = &bound_call;
  Py_INCREF(reinterpret_cast<PyObject*>(plan));
  b->plan = plan;
  b->binding = binding.release();
  return reinterpret_cast<PyObject*>(b);
}

bool bound_setup(PyObject* module) {
  bound_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return bound_type && PyModule_AddObjectRef(module, "BoundPlan", reinterpret_cast<PyObject*>(bound_type)) == 0;
}

}  // namespace baracuda::bindings
