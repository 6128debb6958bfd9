#include "bindings/plan.h"

#include <structmember.h>

#include "bindings/bound.h"
#include "bindings/device.h"
#include "bindings/error.h"
#include "bindings/queue.h"
#include "bindings/trace.h"
#include "core/devices.h"

namespace baracuda::bindings {

PyTypeObject* plan_type = nullptr;

namespace {

PyObject *name_workspace, *name_stream, *name_out;

std::string arg_name(PlanObject* plan, int arg) { return PyUnicode_AsUTF8(plan->names[arg]); }

int find_name(PlanObject* plan, PyObject* name) {
  for (int i = 0; i < plan->n_args; ++i)
    if (plan->names[i] == name) return i;
  for (int i = 0; i < plan->n_args; ++i)
    if (PyUnicode_Compare(plan->names[i], name) == 0) return i;
  return -1;
}

std::string all_names(PlanObject* plan) {
  std::string out;
  for (int i = 0; i < plan->n_args; ++i) out += (i ? ", " : "") + arg_name(plan, i);
  return out;
}

// Distributes positional and keyword arguments over the frame.
bool collect(PlanObject* plan, Frame& f, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Why& why) {
  if (nargs > plan->n_args) {
    why = Refusal{Code::UnknownArgument, "", std::to_string(nargs) + " positional arguments",
                  "at most " + std::to_string(plan->n_args), "the signature is (" + all_names(plan) + ")"};
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) f.args[i] = args[i];
  Py_ssize_t n_keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < n_keywords; ++k)
    if (!place_keyword(plan, f, PyTuple_GET_ITEM(kwnames, k), args[nargs + k], false, why)) return false;
  return true;
}

Imported import_arg(PlanObject* plan, Frame& f, int arg, Why& why) {
  const Signature& s = plan->core->signature;
  PyObject* value = f.args[arg];
  Imported done;
  if (arg >= plan->n_tensors) {
    const ScalarParam& scalar = s.scalars[plan->param_of[arg]];
    Scalar& out = f.scalars[plan->param_of[arg]];
    if (!value && scalar.has_default) {
      out = scalar.value;
      return Imported::Yes;
    }
    done = value ? import_scalar(value, scalar, out, f.keep, why) : Imported::Refused;
  } else {
    const Param& param = s.params[plan->param_of[arg]];
    if (value && param.variadic) return import_list(f, arg, param, value, why);
    done = value ? import_tensor(value, f.views[param.first], f.keep, why) : Imported::Refused;
  }
  if (!value)
    why = Refusal{Code::MissingArgument, "", "nothing", "an argument", "the signature is (" + all_names(plan) + ")"};
  if (done == Imported::Refused && why->field.empty()) why->field = arg_name(plan, arg);
  return done;
}

// An argument that was refused: the checks of the others go on without it.
void pass_over(PlanObject* plan, Frame& f, int arg) {
  const Signature& s = plan->core->signature;
  if (arg >= plan->n_tensors) {
    f.scalars[plan->param_of[arg]].data = nullptr;
    return;
  }
  const Param& param = s.params[plan->param_of[arg]];
  for (int i = 0; i < param.count; ++i) f.views[param.first + i].rank = -1;
}

Imported import_workspace(const PlanCore& plan, Frame& f, Why& why) {
  TensorView view;
  Imported done = import_tensor(f.workspace, view, f.keep, why);
  if (done == Imported::Refused) {
    why->field = "workspace";
    if (why->code == Code::NotATensor) why->want = "a uint8 tensor", why->hint = kWorkspaceHint;
  }
  if (done != Imported::Yes) return done;
  if (view.device != plan.row.backend || view.device_id != plan.question.device) {
    why = Refusal{Code::Device, "workspace", device_name(view.device, view.device_id),
                  device_name(plan.row.backend, plan.question.device), "allocate it on the plan's device"};
    return Imported::Refused;
  }
  if (!is_contiguous(view) || view.read_only) {
    why = Refusal{Code::Workspace, "workspace", "a strided or read-only tensor", "contiguous writable memory",
                  kWorkspaceHint};
    return Imported::Refused;
  }
  // A question's workspace may be a shape: any aligned address stands for it.
  f.call.workspace = view.unbacked ? reinterpret_cast<void*>(kWorkspaceAlignment) : view.data;
  f.call.workspace_bytes = view.numel() * size_of(view.element);
  return Imported::Yes;
}

PyObject* result_of(PlanObject* plan, Frame& f) {
  if (plan->n_outputs == 1) {
    PyObject* out = f.args[plan->outputs[0]];
    Py_INCREF(out);
    return out;
  }
  PyObject* tuple = PyTuple_New(plan->n_outputs);
  for (int i = 0; tuple && i < plan->n_outputs; ++i) {
    PyObject* out = f.args[plan->outputs[i]];
    Py_INCREF(out);
    PyTuple_SET_ITEM(tuple, i, out);
  }
  return tuple;
}

PyObject* plan_run(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* plan = reinterpret_cast<PlanObject*>(self);
  Frame frame(plan);
  Why why;
  if (!collect(plan, frame, args, nargs, kwnames, why)) return raise_refusal(*why, self);
  return run_frame(plan, frame);
}

// can_implement's work: every refusal of a call as a list of tuples.
PyObject* plan_check(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* plan = reinterpret_cast<PlanObject*>(self);
  Frame frame(plan);
  Refusals refusals;
  Why why;
  if (!collect(plan, frame, args, nargs, kwnames, why)) {
    refusals.push_back(*why);
  } else {
    frame.call.dry = frame.keep.dry = frame.keep.looks = true;
    import_frame(plan, frame, true, refusals);
    if (PyErr_Occurred()) return nullptr;
    check_call(*plan->core, frame.call, true, refusals);
  }
  if (PyErr_Occurred()) return nullptr;
  return refusals_list(refusals);
}

PyObject* plan_bind(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* plan = reinterpret_cast<PlanObject*>(self);
  Frame frame(plan);
  Why why;
  if (!collect(plan, frame, args, nargs, kwnames, why)) return raise_refusal(*why, self);
  return make_bound(plan, frame);
}

// Bytes of workspace at these values of the symbols, which the caller has checked.
PyObject* plan_workspace_at(PyObject* self, PyObject* values) {
  const PlanCore& core = *reinterpret_cast<PlanObject*>(self)->core;
  int64_t symbols[kMaxSymbols] = {};
  if (!PyTuple_Check(values) || PyTuple_GET_SIZE(values) != static_cast<Py_ssize_t>(core.signature.symbols.size()))
    return PyErr_Format(PyExc_TypeError, "want a tuple with a value per symbol");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) symbols[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(values, i));
  return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(workspace_at(core, symbols));
}

PyObject* get_symbols(PyObject* self, void*) {
  const auto& symbols = reinterpret_cast<PlanObject*>(self)->core->signature.symbols;
  PyObject* found = PyDict_New();
  for (size_t i = 0; found && i < symbols.size(); ++i) {
    PyObject* most = PyLong_FromLongLong(symbols[i].max);
    if (!most || PyDict_SetItemString(found, symbols[i].name.c_str(), most) < 0) Py_CLEAR(found);
    Py_XDECREF(most);
  }
  return found;
}
PyObject* get_row(PyObject* self, void*) {
  return PyLong_FromLong(reinterpret_cast<PlanObject*>(self)->core->row_index);
}
PyObject* get_workspace(PyObject* self, void*) {
  return PyLong_FromLongLong(reinterpret_cast<PlanObject*>(self)->core->workspace_size);
}
PyObject* get_elements(PyObject* self, void*) {
  const PlanCore& core = *reinterpret_cast<PlanObject*>(self)->core;
  return Py_BuildValue("(ii)", static_cast<int>(core.question.element), static_cast<int>(core.question.aux));
}
PyObject* new_ref(PyObject* o) {
  Py_INCREF(o);
  return o;
}
PyObject* get_descriptor(PyObject* self, void*) { return new_ref(reinterpret_cast<PlanObject*>(self)->descriptor); }
PyObject* get_origin(PyObject* self, void*) { return new_ref(reinterpret_cast<PlanObject*>(self)->origin); }
PyObject* get_arguments(PyObject* self, void*) {
  auto* plan = reinterpret_cast<PlanObject*>(self);
  PyObject* tuple = PyTuple_New(plan->n_args);
  for (int i = 0; tuple && i < plan->n_args; ++i) PyTuple_SET_ITEM(tuple, i, new_ref(plan->names[i]));
  return tuple;
}

void plan_dealloc(PyObject* self) {
  auto* plan = reinterpret_cast<PlanObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  for (int i = 0; i < plan->n_args; ++i) Py_XDECREF(plan->names[i]);
  Py_XDECREF(plan->descriptor);
  Py_XDECREF(plan->origin);
  delete plan->core;
  type->tp_free(self);
  Py_DECREF(type);
}

template <class F>
PyCFunction as_c(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef methods[] = {{"run", as_c(&plan_run), METH_FASTCALL | METH_KEYWORDS,
                          "run(*tensors, *scalars, workspace=None, stream=None)\n--\n\nChecks the arguments, launches "
                          "the kernel and returns the output(s)."},
                         {"bind", as_c(&plan_bind), METH_FASTCALL | METH_KEYWORDS,
                          "bind(*tensors, *scalars, workspace=None, stream=None)\n--\n\nFreezes the arguments and "
                          "gives a callable with the lowest cost."},
                         {"_check", as_c(&plan_check), METH_FASTCALL | METH_KEYWORDS, nullptr},
                         {"_workspace_at", &plan_workspace_at, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"_row", get_row, nullptr, nullptr, nullptr},
    {"_elements", get_elements, nullptr, nullptr, nullptr},
    {"_symbols", get_symbols, nullptr, nullptr, nullptr},
    {"_origin", get_origin, nullptr, nullptr, nullptr},
    {"workspace_size", get_workspace, nullptr, "Bytes of workspace that run needs at most; 0 means none.", nullptr},
    {"descriptor", get_descriptor, nullptr, "The descriptor that this plan was selected for.", nullptr},
    {"arguments", get_arguments, nullptr, "Names of run's arguments, in order.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&plan_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {
    "baracuda._core.RawPlan", sizeof(PlanObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

Frame::Frame(const PlanObject* plan) {
  const PlanCore& core = *plan->core;
  size_t n = core.signature.slots.size();
  // Lists of tensors can be long; their views are the only thing that is allocated for a call.
  views = reinterpret_cast<TensorView*>(n > kInlineViews ? PyMem_RawMalloc(n * sizeof(TensorView)) : view_memory_);
  scalars = reinterpret_cast<Scalar*>(scalar_memory_);
  for (int i = 0; i < plan->n_args; ++i) args[i] = nullptr;
  for (int i = 0; i < plan->n_absent; ++i) views[plan->absent[i]].rank = -1, views[plan->absent[i]].data = nullptr;
  for (int i = 0; i < plan->n_absent_scalars; ++i) scalars[plan->absent_scalars[i]] = Scalar();
  call.views = views;
  call.scalars = scalars;
  keep.device = core.row.backend;
  keep.device_id = core.question.device;
}

Frame::~Frame() {
  if (reinterpret_cast<char*>(views) != view_memory_) PyMem_RawFree(views);
}

Imported import_list(Frame& f, int arg, const Param& param, PyObject* value, Why& why) {
  // A snapshot: importing may run Python code, and a bound plan outlives changes of the caller's list.
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) f.keep.ran_python = true;
  PyObject* fast = PySequence_Tuple(value);
  if (!fast) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Imported::PythonError;
    PyErr_Clear();
    why = Refusal{Code::NotATensor, param.name, Py_TYPE(value)->tp_name, "a list of tensors",
                  "pass one tensor per planned shape"};
    return Imported::Refused;
  }
  f.keep.add(fast);
  f.lists[arg] = fast;
  Py_ssize_t n = PyTuple_GET_SIZE(fast);
  if (n != param.count) {
    why = Refusal{Code::ListLength, param.name, std::to_string(n) + " tensors", std::to_string(param.count),
                  "pass one tensor per planned shape"};
    return Imported::Refused;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    Imported done = import_tensor(PyTuple_GET_ITEM(fast, i), f.views[param.first + i], f.keep, why);
    if (done == Imported::Refused) why->field = param.name + "[" + std::to_string(i) + "]";
    if (done != Imported::Yes) return done;
  }
  return Imported::Yes;
}

Imported import_moved(Frame& f, int arg, const Param& param, Why& why) {
  Imported done = Imported::Yes;
  for (int32_t k = 0; done == Imported::Yes && k < param.count; ++k) {
    PyObject* object = param.variadic ? PyTuple_GET_ITEM(f.lists[arg], k) : f.args[arg];
    if (may_move(object)) done = import_tensor(object, f.views[param.first + k], f.keep, why);
    if (done == Imported::Refused) why->field = param.name;
  }
  return done;
}

namespace {

// The code of one argument's producer may have moved the memory of those that were read before it.
bool import_again(PlanObject* plan, Frame& f, Refusals& refusals) {
  Imported done = Imported::Yes;
  Why why;
  for (int i = 0; done == Imported::Yes && i <= plan->n_args; ++i) {
    if (i < plan->n_tensors)
      done = import_moved(f, i, plan->core->signature.params[plan->param_of[i]], why);
    else if (i < plan->n_args)
      done = f.args[i] && may_move(f.args[i]) ? import_arg(plan, f, i, why) : Imported::Yes;
    else if (f.workspace && may_move(f.workspace))
      done = import_workspace(*plan->core, f, why);
  }
  if (done == Imported::Refused) refusals.push_back(*why);
  return done == Imported::Yes;
}

}  // namespace

bool place_keyword(PlanObject* plan, Frame& f, PyObject* name, PyObject* value, bool replace, Why& why) {
  int at = find_name(plan, name);
  if (at < 0 && PyUnicode_Compare(name, name_workspace) == 0) {
    f.workspace = value == Py_None ? nullptr : value;
    return true;
  }
  if (at < 0 && PyUnicode_Compare(name, name_stream) == 0) {
    f.stream = value == Py_None ? nullptr : value;
    return true;
  }
  if (at < 0 && plan->n_outputs == 1 && PyUnicode_Compare(name, name_out) == 0) at = plan->outputs[0];
  if (at >= 0 && (replace || !f.args[at])) {
    f.args[at] = value;
    return true;
  }
  const char* given = PyUnicode_AsUTF8(name);
  PyErr_Clear();  // a name may hold surrogates
  why = Refusal{Code::UnknownArgument, given ? given : "", at < 0 ? "an unknown argument" : "the argument twice",
                "one of " + all_names(plan) + ", workspace, stream", "see print(plan.signature)"};
  return false;
}

bool import_frame(PlanObject* plan, Frame& f, bool all, Refusals& refusals) {
  Why why;
  for (int i = 0; i < plan->n_args + 2; ++i) {
    Imported done = Imported::Yes;
    if (i < plan->n_args) {
      const int slot = plan->slot_of[i];
      if (slot >= 0 && f.args[i]) {
        done = import_tensor(f.args[i], f.views[slot], f.keep, why);
        if (done == Imported::Refused) why->field = arg_name(plan, i);
      } else {
        done = import_arg(plan, f, i, why);
      }
    } else if (i == plan->n_args && f.workspace) {
      done = import_workspace(*plan->core, f, why);
    } else if (i > plan->n_args && (f.stream || f.keep.exchange)) {
      done = import_stream(f.stream, f.keep, &f.stream_handle, why);
    }
    if (done == Imported::Yes) continue;
    if (done == Imported::PythonError) return false;
    refusals.push_back(*why);
    why.reset();
    if (!all) return false;
    if (i < plan->n_args) pass_over(plan, f, i);
  }
  f.keep.unbacked |= tracing();
  f.call.dry |= f.keep.unbacked;
  if (f.keep.ran_python && refusals.empty()) return import_again(plan, f, refusals);
  return refusals.empty();
}

namespace {

// f(tensor) for an output, or for each of a list of them as it is now: other threads may change the list.
template <class F>
void each_output(const PlanObject* plan, PyObject* const* args, F&& f) {
  for (int i = 0; i < plan->n_outputs; ++i) {
    PyObject* out = args[plan->outputs[i]];
    if (!PyTuple_CheckExact(out) && !PyList_CheckExact(out)) {
      f(out);
      continue;
    }
    PyObject* now = PySequence_Tuple(out);
    for (Py_ssize_t k = 0; now && k < PyTuple_GET_SIZE(now); ++k) f(PyTuple_GET_ITEM(now, k));
    if (!now) PyErr_Clear();
    Py_XDECREF(now);
  }
}

}  // namespace

bool writes_torch(const PlanObject* plan, PyObject* const* args) {
  bool any = false;
  each_output(plan, args, [&](PyObject* out) { any |= is_torch_tensor(out); });
  return any;
}

void bump_versions(const PlanObject* plan, PyObject* const* args) {
  each_output(plan, args, [](PyObject* out) {
    if (is_torch_tensor(out)) bump_torch_version(out);
  });
}

bool releases_gil(const PlanCore& plan, const Call& call) {
  // Below this many bytes a CPU kernel is shorter than giving the interpreter back and taking it again. A launch on a
  // device may wait for room in its queue, and what is in there for Python callbacks.
  constexpr int64_t kBytes = 64 * 1024;
  return plan.row.backend != Backend::Cpu || call_bytes(plan, call) > kBytes;
}

bool check_frame(PlanObject* plan, Frame& f, PyObject* caller, const FieldNames* names) {
  Refusals refusals;
  if (check_call(*plan->core, f.call, false, refusals))
    return f.keep.unbacked || may_launch(*plan->core, f.stream_handle, caller);
  raise_refusals(refusals, caller, names);
  return false;
}

bool launch_frame(PlanObject* plan, Frame& f, PyObject* caller, const FieldNames* names) {
  if (f.keep.unbacked) [[unlikely]]
    return !tracing() || record(plan, f, {caller});
  Failure failure;
  Status status;
  if (releases_gil(*plan->core, f.call)) {
    Py_BEGIN_ALLOW_THREADS status = launch(*plan->core, f.call, f.stream_handle, &failure);
    Py_END_ALLOW_THREADS
  } else {
    status = launch(*plan->core, f.call, f.stream_handle, &failure);
  }
  if (f.keep.torch) bump_versions(plan, f.args);  // also after an error in the data: the outputs may be half written
  if (status == Status::Ok) return true;
  raise_status(*plan->core, status, failure, caller, names);
  return false;
}

bool launch_checked(PlanObject* plan, Frame& f, PyObject* caller, const FieldNames* names) {
  return check_frame(plan, f, caller, names) && launch_frame(plan, f, caller, names);
}

PyObject* run_frame(PlanObject* plan, Frame& f) {
  Refusals refusals;
  if (!import_frame(plan, f, false, refusals))
    return PyErr_Occurred() ? nullptr : raise_refusals(refusals, reinterpret_cast<PyObject*>(plan));
  return launch_checked(plan, f, reinterpret_cast<PyObject*>(plan)) ? result_of(plan, f) : nullptr;
}

PyObject* make_plan(PyTypeObject* cls, PlanCore* core, PyObject* descriptor, PyObject* origin) {
  auto* plan = reinterpret_cast<PlanObject*>(cls->tp_alloc(cls, 0));
  if (!plan) {
    delete core;
    return nullptr;
  }
  plan->core = core;
  plan->descriptor = new_ref(descriptor);
  plan->origin = new_ref(origin);
  const Signature& s = core->signature;
  for (size_t p = 0; p < s.params.size(); ++p) {
    if (!s.params[p].present) {
      plan->absent[plan->n_absent++] = s.params[p].first;
      continue;
    }
    if (s.params[p].role != Role::In) plan->outputs[plan->n_outputs++] = plan->n_args;
    plan->param_of[plan->n_args] = static_cast<int32_t>(p);
    plan->slot_of[plan->n_args] = s.params[p].variadic ? -1 : s.params[p].first;
    plan->names[plan->n_args++] = PyUnicode_InternFromString(s.params[p].name.c_str());
  }
  plan->n_tensors = plan->n_args;
  for (size_t k = 0; k < s.scalars.size(); ++k) {
    if (!s.scalars[k].present) {
      plan->absent_scalars[plan->n_absent_scalars++] = static_cast<int32_t>(k);
      continue;
    }
    plan->param_of[plan->n_args] = static_cast<int32_t>(k);
    plan->slot_of[plan->n_args] = -1;
    plan->names[plan->n_args++] = PyUnicode_InternFromString(s.scalars[k].name.c_str());
  }
  return reinterpret_cast<PyObject*>(plan);
}

bool plan_setup(PyObject* module) {
  name_workspace = PyUnicode_InternFromString("workspace");
  name_stream = PyUnicode_InternFromString("stream");
  name_out = PyUnicode_InternFromString("out");
  plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return plan_type && PyModule_AddObjectRef(module, "RawPlan", reinterpret_cast<PyObject*>(plan_type)) == 0;
}

}  // namespace baracuda::bindings
