#include "bindings/recipe.h"

#include <cstdlib>
#include <string>

#include "bindings/device.h"
#include "bindings/error.h"
#include "core/inject.h"

namespace baracuda::bindings {
namespace {

// Workspace of functional calls: one growing block per thread.
struct Scratch {
  void* memory = nullptr;
  int64_t size = 0;
  ~Scratch() { std::free(memory); }
  // Null with an exception when the memory cannot be had.
  void* at_least(int64_t bytes) {
    if (bytes <= size) return memory;
    if (fails_now(Injected::Alloc)) return raise_no_memory("cpu", kInjectedText, bytes);
    std::free(memory);
    size = (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    memory = std::aligned_alloc(kWorkspaceAlignment, size);
    if (!memory) size = 0, raise_no_memory("cpu", "no memory", bytes);
    return memory;
  }
};
thread_local Scratch scratch;

void apply_dims(const Source& s, TensorView& view) {
  if (s.n_dims < 0) return;
  TensorView out = view;
  out.rank = s.n_dims;
  for (int i = 0; i < s.n_dims; ++i) {
    const bool one = s.dims[i] < 0 || view.shape[s.dims[i]] == 1;
    out.shape[i] = s.dims[i] < 0 ? 1 : view.shape[s.dims[i]];
    out.strides[i] = s.dims[i] < 0 ? 0 : view.strides[s.dims[i]];
    if (!s.fitted || (!one && s.sizes[i] > out.shape[i])) continue;
    if (one && s.sizes[i] != 1) out.strides[i] = 0;
    out.shape[i] = s.sizes[i];
  }
  view = out;
}

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
  PyObject* module = PyImport_ImportModule("baracuda.results");
  PyObject* made =
      module ? PyObject_CallMethod(module, "allocated", "OOO", a.make, a.args, a.kwnames ? a.kwnames : Py_None)
             : nullptr;
  Py_XDECREF(module);
  return made;
}

// A reference to a new result, or to the tensor given as out=. What a call without data makes has none either.
PyObject* allocate_result(const Allocation& a, const Arguments& args) {
  if (a.out_param >= 0 && args.values[a.out_param] != Py_None) {
    Py_INCREF(args.values[a.out_param]);
    return args.values[a.out_param];
  }
  if (args.keep.unbacked) return allocate_by_python(a);
  Py_ssize_t keywords = a.kwnames ? PyTuple_GET_SIZE(a.kwnames) : 0;
  PyObject* made =
      PyObject_Vectorcall(a.make, &PyTuple_GET_ITEM(a.args, 0), PyTuple_GET_SIZE(a.args) - keywords, a.kwnames);
  return made || !PyErr_ExceptionMatches(PyExc_Exception) || raised_by_us() ? made : allocate_by_python(a);
}

struct Results {
  PyObject* objects[kMaxParams] = {};
  int n = 0;
  ~Results() {
    for (int i = 0; i < n; ++i) Py_XDECREF(objects[i]);
  }
};

// None from a function that only writes to its arguments.
PyObject* take_results(const Entry& e, Results& r) {
  if (e.returns.empty()) return Py_NewRef(Py_None);
  if (e.returns.size() == 1) {
    Py_INCREF(r.objects[e.returns[0]]);
    return r.objects[e.returns[0]];
  }
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(e.returns.size()));
  for (size_t i = 0; tuple && i < e.returns.size(); ++i) {
    Py_INCREF(r.objects[e.returns[i]]);
    PyTuple_SET_ITEM(tuple, i, r.objects[e.returns[i]]);
  }
  return tuple;
}

// Fills the plan's frame from the entry's sources; false with refusals or an exception. `again`: only what the code of
// some argument's producer may have moved.
bool fill_frame(const Entry& e, PlanObject* plan, Arguments& a, Results& r, Frame& frame, Refusals& refusals,
                bool again = false) {
  for (int i = 0; i < plan->n_args; ++i) {
    const Source& s = e.sources[i];
    PyObject* object = s.from == Source::From::Argument   ? a.values[s.index]
                       : s.from == Source::From::Constant ? s.constant
                                                          : r.objects[s.index];
    frame.args[i] = object;
    Why why;
    Imported done = Imported::Yes;
    if (i >= plan->n_tensors) {
      const ScalarParam& scalar = plan->core->signature.scalars[plan->param_of[i]];
      done = import_scalar(object, scalar, frame.scalars[plan->param_of[i]], frame.keep, why);
    } else if (const Param& param = plan->core->signature.params[plan->param_of[i]]; param.variadic) {
      done = again ? import_moved(frame, i, param, why) : import_list(frame, i, param, object, why);
    } else if (!again || may_move(object)) {
      TensorView& view = frame.views[plan->core->signature.params[plan->param_of[i]].first];
      const bool read = s.from == Source::From::Argument && a.is_tensor[s.index];
      if (read && again) done = import_same(object, a.views[s.index], frame.keep, why);
      if (read)
        view = a.views[s.index];
      else
        done = import_tensor(object, view, frame.keep, why);
      if (done == Imported::Yes) apply_dims(s, view);
    }
    if (done == Imported::Yes) continue;
    if (done == Imported::Refused) {
      if (why->field.empty()) why->field = PyUnicode_AsUTF8(plan->names[i]);
      refusals.push_back(*why);
    }
    return false;
  }
  return true;
}

// The function's own names for the plan's arguments.
struct EntryNames : FieldNames {
  const FunctionParam* params;
  const Entry& e;
  const PlanObject* plan;
  EntryNames(const FunctionParam* params, const Entry& e, const PlanObject* plan) : params(params), e(e), plan(plan) {}
  std::string of(const std::string& field) const override {
    for (int i = 0; i < plan->n_args; ++i) {
      const Source& s = e.sources[i];
      if (PyUnicode_CompareWithASCIIString(plan->names[i], field.c_str()) != 0) continue;
      int param = s.from == Source::From::Argument    ? s.index
                  : s.from == Source::From::Allocated ? e.allocations[s.index].out_param
                                                      : -1;
      const char* name = param >= 0 ? PyUnicode_AsUTF8(params[param].name) : nullptr;
      return name ? name : field;
    }
    return field;
  }
};

// Every index inside its table; a rule that got one wrong must not read past them.
bool sound(const Entry& e, int n_params) {
  auto* plan = reinterpret_cast<PlanObject*>(e.plan);
  int made = static_cast<int>(e.allocations.size());
  bool ok = static_cast<int>(e.sources.size()) == plan->n_args && made <= kMaxParams;
  for (const Source& s : e.sources) {
    int limit = s.from == Source::From::Argument ? n_params : s.from == Source::From::Allocated ? made : s.index + 1;
    ok = ok && s.index >= 0 && s.index < limit;
    for (int d = 0; d < s.n_dims; ++d) ok = ok && s.dims[d] >= -1 && s.dims[d] < kMaxRank;
  }
  for (const Allocation& a : e.allocations) ok = ok && a.out_param < n_params;
  for (int32_t r : e.returns) ok = ok && r >= 0 && r < made;
  return ok;
}

}  // namespace

std::shared_ptr<Entry> parse_entry(PyObject* t, int n_params) {
  auto e = std::make_shared<Entry>();
  PyObject *plan, *sources, *allocations, *returns;
  if (!PyArg_ParseTuple(t, "O!O!O!O!", plan_type, &plan, &PyTuple_Type, &sources, &PyTuple_Type, &allocations,
                        &PyTuple_Type, &returns))
    return nullptr;
  Py_INCREF(plan);
  e->plan = plan;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i) {
    int from, index;
    PyObject *constant, *dims, *sizes;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(sources, i), "iiOOO", &from, &index, &constant, &dims, &sizes))
      return nullptr;
    Source s{static_cast<Source::From>(from), index, constant, -1, {}, sizes != Py_None, {}};
    Py_INCREF(constant);
    e->sources.push_back(s);
    if (dims == Py_None) continue;
    Source& last = e->sources.back();
    const bool sized = !last.fitted || (PyTuple_Check(sizes) && PyTuple_Size(sizes) == PyTuple_Size(dims));
    if (!PyTuple_Check(dims) || PyTuple_GET_SIZE(dims) > kMaxRank || !sized) {
      PyErr_SetString(PyExc_ValueError, "a view has at most 8 dimensions, and a size for each where it has some");
      return nullptr;
    }
    last.n_dims = static_cast<int32_t>(PyTuple_GET_SIZE(dims));
    for (int d = 0; d < last.n_dims && d < kMaxRank; ++d)
      last.dims[d] = static_cast<int8_t>(PyLong_AsLong(PyTuple_GET_ITEM(dims, d)));
    for (int d = 0; last.fitted && d < last.n_dims; ++d) last.sizes[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, d));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(allocations); ++i) {
    Allocation a{};
    PyObject *args, *kwnames;
    int out_param;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(allocations, i), "OO!Oi", &a.make, &PyTuple_Type, &args, &kwnames,
                          &out_param))
      return nullptr;
    Py_INCREF(a.make), Py_INCREF(args);
    a.args = args;
    a.kwnames = kwnames == Py_None ? nullptr : kwnames;
    Py_XINCREF(a.kwnames);
    a.out_param = out_param;
    e->allocations.push_back(a);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(returns); ++i)
    e->returns.push_back(static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(returns, i))));
  if (PyErr_Occurred()) return nullptr;
  if (sound(*e, n_params)) return e;
  PyErr_SetString(PyExc_ValueError, "a recipe names arguments or results that do not exist");
  return nullptr;
}

namespace {

// The stream of a call: the current one of the framework whose tensors came.
bool prepare_device(const PlanCore& plan, const Arguments& a, Frame& frame) {
  if (plan.row.backend == Backend::Cpu || frame.keep.unbacked) return true;
  const void* exchange = a.keep.exchange ? a.keep.exchange : frame.keep.exchange;
  return framework_stream(exchange, plan.row.backend, plan.question.device, &frame.stream_handle) == Imported::Yes;
}

bool take_workspace(const PlanCore& plan, Frame& frame) {
  const int64_t bytes = plan.workspace_size;
  if (!bytes) return true;
  frame.call.workspace_bytes = bytes;
  if (frame.keep.unbacked) {  // any aligned address stands for it
    frame.call.workspace = reinterpret_cast<void*>(kWorkspaceAlignment);
    return true;
  }
  const bool here = plan.row.backend == Backend::Cpu;
  frame.call.workspace = here ? scratch.at_least(bytes)
                              : device_scratch(plan.row.backend, plan.question.device, frame.stream_handle, bytes);
  return frame.call.workspace != nullptr;
}

}  // namespace

PyObject* run_entry(PyObject* function, const FunctionParam* params, const Entry& e, Arguments& a) {
  auto* plan = reinterpret_cast<PlanObject*>(e.plan);
  Results r;
  for (const Allocation& alloc : e.allocations) {
    r.objects[r.n] = allocate_result(alloc, a);
    if (!r.objects[r.n++]) return nullptr;
  }
  Frame frame(plan);
  Refusals refusals;
  frame.keep.torch = a.keep.torch;
  frame.call.dry = frame.keep.unbacked = a.keep.unbacked;
  EntryNames names(params, e, plan);
  if (!fill_frame(e, plan, a, r, frame, refusals) ||
      (frame.keep.ran_python && !fill_frame(e, plan, a, r, frame, refusals, true)))
    return PyErr_Occurred() ? nullptr : raise_refusals(refusals, function, &names);
  if (!prepare_device(*plan->core, a, frame) || !take_workspace(*plan->core, frame)) return nullptr;
  if (!launch_checked(plan, frame, function, &names)) return nullptr;
  return take_results(e, r);
}

}  // namespace baracuda::bindings
