#include "bindings/functional.h"

#include <structmember.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "bindings/error.h"
#include "bindings/plan.h"

namespace baracuda::bindings {
namespace {

constexpr int kMaxParams = 16;
constexpr size_t kMaxEntries = 4096;  // per function; then the cache starts anew

enum class ParamKind : uint8_t { Tensor, Scalar, Attribute, Out };

struct FunctionParam {
  PyObject* name;  // interned
  ParamKind kind;
  bool keyword_only;
  PyObject* fallback;  // the default, or null when required
};

// Where an argument of the plan comes from.
struct Source {
  enum class From : uint8_t { Argument, Constant, Allocated } from;
  int32_t index;  // function parameter, or allocation
  PyObject* constant = nullptr;
  int32_t n_dims = -1;  // >= 0: the plan sees dimensions `dims` of the tensor, -1 for an inserted one
  int8_t dims[kMaxRank] = {};
};

struct Allocation {
  PyObject* make;          // callable
  PyObject* args;          // tuple of its positional, then keyword arguments
  PyObject* kwnames;       // or null
  int32_t out_param = -1;  // the function's out= parameter, which takes the place of a new result
};

// What to do for calls of one shape: immutable, shared by the threads that run it.
struct Entry {
  PyObject* plan = nullptr;
  std::vector<Source> sources;
  std::vector<Allocation> allocations;
  std::vector<int32_t> returns;
  ~Entry() {
    Py_XDECREF(plan);
    for (Source& s : sources) Py_XDECREF(s.constant);
    for (Allocation& a : allocations) Py_XDECREF(a.make), Py_XDECREF(a.args), Py_XDECREF(a.kwnames);
  }
};

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> entries;
  std::vector<PyObject*> pins;  // keep objects alive whose address is in a key
  ~Cache() {
    for (PyObject* p : pins) Py_DECREF(p);
  }
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* miss;
  Cache* cache;
  FunctionParam params[kMaxParams];
  int32_t n_params;
};

PyTypeObject* function_type = nullptr;

// --- arguments ------------------------------------------------------------------------------------------------------

int find_param(FunctionObject* f, PyObject* name) {
  for (int i = 0; i < f->n_params; ++i)
    if (f->params[i].name == name) return i;
  for (int i = 0; i < f->n_params; ++i)
    if (PyUnicode_Compare(f->params[i].name, name) == 0) return i;
  return -1;
}

const char* function_name(FunctionObject* f) {
  PyObject* name = f->dict ? PyDict_GetItemString(f->dict, "__name__") : nullptr;
  return name ? PyUnicode_AsUTF8(name) : "function";
}

bool normalise(FunctionObject* f, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** out) {
  int most = 0;
  while (most < f->n_params && !f->params[most].keyword_only) ++most;
  if (nargs > most) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, got %zd", function_name(f), most, nargs);
    return false;
  }
  for (int i = 0; i < f->n_params; ++i) out[i] = i < nargs ? args[i] : nullptr;
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int at = find_param(f, name);
    if (at < 0 || out[at]) {
      PyErr_Format(PyExc_TypeError, at < 0 ? "%s() got an unexpected keyword argument %R" : "%s() got %R twice",
                   function_name(f), name);
      return false;
    }
    out[at] = args[nargs + k];
  }
  for (int i = 0; i < f->n_params; ++i) {
    if (out[i]) continue;
    out[i] = f->params[i].fallback;
    if (!out[i]) {
      PyErr_Format(PyExc_TypeError, "%s() misses its argument %R", function_name(f), f->params[i].name);
      return false;
    }
  }
  return true;
}

// --- keys -----------------------------------------------------------------------------------------------------------

struct Key {
  char bytes[1024];
  size_t n = 0;
  bool usable = true;

  void put(const void* p, size_t size) {
    if (n + size > sizeof bytes) {
      usable = false;
      return;
    }
    std::memcpy(bytes + n, p, size);
    n += size;
  }
  template <class T>
  void put(T v) {
    put(&v, sizeof v);
  }
};

void key_attribute(Key& key, PyObject* v, bool value) {
  if (v == Py_None) return key.put('N');
  if (PyBool_Check(v)) return key.put(v == Py_True ? 't' : 'f');
  if (PyLong_CheckExact(v)) {
    key.put('i');
    int overflow = 0;
    if (value) key.put(PyLong_AsLongLongAndOverflow(v, &overflow));
    key.usable &= overflow == 0;
    return;
  }
  if (PyFloat_CheckExact(v)) {
    key.put('d');
    if (value) key.put(PyFloat_AS_DOUBLE(v));
    return;
  }
  if (PyUnicode_CheckExact(v)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(v, &size);
    key.usable &= text != nullptr;
    PyErr_Clear();
    key.put('s'), key.put(size), key.put(text, text ? size : 0);
    return;
  }
  if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(v);
    key.put(PyTuple_CheckExact(v) ? '(' : '['), key.put(size);
    for (Py_ssize_t i = 0; i < size; ++i) key_attribute(key, PySequence_Fast_GET_ITEM(v, i), value);
    return;
  }
  // The miss pins a constant, so that its address is not used again. What may change, or compare equal to others, has
  // no key: such calls are planned each time.
  key.usable &= is_constant(v);
  key.put('o'), key.put(v);
}

// Keeps what a key holds the address of.
void pin(PyObject* pins, PyObject* v) {
  if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) pin(pins, PySequence_Fast_GET_ITEM(v, i));
  } else if (is_constant(v)) {
    PyList_Append(pins, v);
  }
}

void key_tensor(Key& key, PyObject* object, const TensorView& view) {
  key.put('T');
  key.put(reinterpret_cast<uintptr_t>(Py_TYPE(object)));
  key.put(view.element), key.put(view.device), key.put(view.device_id), key.put(view.rank);
  key.put(view.shape, sizeof(int64_t) * view.rank);
}

bool is_number(PyObject* v) { return PyLong_Check(v) || PyFloat_Check(v); }

struct Arguments {
  PyObject* values[kMaxParams];
  TensorView* views;  // not initialised: filled for the parameters that are tensors
  bool is_tensor[kMaxParams] = {};
  Keep keep;

  Arguments() : views(reinterpret_cast<TensorView*>(memory_)) {}

 private:
  alignas(TensorView) char memory_[kMaxParams * sizeof(TensorView)];
};

// Imports the tensors and writes the key; false with an exception set when a tensor is refused.
bool read_arguments(FunctionObject* f, Arguments& a, Key& key) {
  for (int i = 0; i < f->n_params; ++i) {
    if (PyObject* number = number_of_numpy_scalar(a.values[i])) {
      a.keep.add(number);
      a.values[i] = number;
    } else if (PyErr_Occurred()) {
      return false;
    }
    PyObject* v = a.values[i];
    ParamKind kind = f->params[i].kind;
    if (kind == ParamKind::Attribute || v == Py_None) {
      key_attribute(key, v, true);
      continue;
    }
    if (is_number(v)) {  // the value goes to run, only its kind to the key
      key.put(PyBool_Check(v) ? 't' : PyLong_Check(v) ? 'i' : 'd');
      continue;
    }
    if (PyList_CheckExact(v) || PyTuple_CheckExact(v)) {
      key.usable = false;
      continue;
    }
    Why why;
    Imported done = import_tensor(v, a.views[i], a.keep, why);
    if (done == Imported::Refused) {
      why->field = PyUnicode_AsUTF8(f->params[i].name);
      raise_refusal(*why, reinterpret_cast<PyObject*>(f));
    }
    if (done != Imported::Yes) return false;
    a.is_tensor[i] = true;
    key_tensor(key, v, a.views[i]);
  }
  return true;
}

// --- running --------------------------------------------------------------------------------------------------------

// Workspace of functional calls: one growing block per thread.
struct Scratch {
  void* memory = nullptr;
  int64_t size = 0;
  ~Scratch() { std::free(memory); }
  void* at_least(int64_t bytes) {
    if (bytes <= size) return memory;
    std::free(memory);
    size = (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    memory = std::aligned_alloc(kWorkspaceAlignment, size);
    if (!memory) size = 0;
    return memory;
  }
};
thread_local Scratch scratch;

void apply_dims(const Source& s, TensorView& view) {
  if (s.n_dims < 0) return;
  TensorView out = view;
  out.rank = s.n_dims;
  for (int i = 0; i < s.n_dims; ++i) {
    out.shape[i] = s.dims[i] < 0 ? 1 : view.shape[s.dims[i]];
    out.strides[i] = s.dims[i] < 0 ? 0 : view.strides[s.dims[i]];
  }
  view = out;
}

// A reference to a new result, or to the tensor given as out=.
PyObject* allocate_result(const Allocation& a, const Arguments& args) {
  if (a.out_param >= 0 && args.values[a.out_param] != Py_None) {
    Py_INCREF(args.values[a.out_param]);
    return args.values[a.out_param];
  }
  Py_ssize_t keywords = a.kwnames ? PyTuple_GET_SIZE(a.kwnames) : 0;
  return PyObject_Vectorcall(a.make, &PyTuple_GET_ITEM(a.args, 0), PyTuple_GET_SIZE(a.args) - keywords, a.kwnames);
}

struct Results {
  PyObject* objects[kMaxParams] = {};
  int n = 0;
  ~Results() {
    for (int i = 0; i < n; ++i) Py_XDECREF(objects[i]);
  }
};

PyObject* take_results(const Entry& e, Results& r) {
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

// Fills the plan's frame from the entry's sources; false with refusals or an exception.
bool fill_frame(const Entry& e, PlanObject* plan, Arguments& a, Results& r, Frame& frame, Refusals& refusals) {
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
      done = import_scalar(object, scalar.kind, frame.scalars[plan->param_of[i]], frame.keep, why);
    } else if (const Param& param = plan->core->signature.params[plan->param_of[i]]; param.variadic) {
      done = import_list(frame, param, object, why);
    } else {
      TensorView& view = frame.views[plan->core->signature.params[plan->param_of[i]].first];
      if (s.from == Source::From::Argument && a.is_tensor[s.index])
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
  const FunctionObject* f;
  const Entry& e;
  const PlanObject* plan;
  EntryNames(const FunctionObject* f, const Entry& e, const PlanObject* plan) : f(f), e(e), plan(plan) {}
  std::string of(const std::string& field) const override {
    for (int i = 0; i < plan->n_args; ++i) {
      const Source& s = e.sources[i];
      if (PyUnicode_CompareWithASCIIString(plan->names[i], field.c_str()) != 0) continue;
      int param = s.from == Source::From::Argument    ? s.index
                  : s.from == Source::From::Allocated ? e.allocations[s.index].out_param
                                                      : -1;
      const char* name = param >= 0 ? PyUnicode_AsUTF8(f->params[param].name) : nullptr;
      return name ? name : field;
    }
    return field;
  }
};

PyObject* run_entry(FunctionObject* f, const Entry& e, Arguments& a) {
  auto* plan = reinterpret_cast<PlanObject*>(e.plan);
  Results r;
  for (const Allocation& alloc : e.allocations) {
    r.objects[r.n] = allocate_result(alloc, a);
    if (!r.objects[r.n++]) return nullptr;
  }
  Frame frame(plan);
  Refusals refusals;
  EntryNames names(f, e, plan);
  auto* self = reinterpret_cast<PyObject*>(f);
  if (!fill_frame(e, plan, a, r, frame, refusals))
    return PyErr_Occurred() ? nullptr : raise_refusals(refusals, self, &names);
  if (int64_t bytes = plan->core->workspace_size) {
    frame.call.workspace = scratch.at_least(bytes);
    frame.call.workspace_bytes = bytes;
    if (!frame.call.workspace) return PyErr_NoMemory();
  }
  if (!launch_checked(plan, frame, self, &names)) return nullptr;
  return take_results(e, r);
}

// --- entries from Python --------------------------------------------------------------------------------------------

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

// (plan, sources, allocations, returns), see functional.py's Recipe.
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
    PyObject *constant, *dims;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(sources, i), "iiOO", &from, &index, &constant, &dims)) return nullptr;
    Source s{static_cast<Source::From>(from), index, constant, -1, {}};
    Py_INCREF(constant);
    e->sources.push_back(s);
    if (dims == Py_None) continue;
    Source& last = e->sources.back();
    if (!PyTuple_Check(dims) || PyTuple_GET_SIZE(dims) > kMaxRank) {
      PyErr_SetString(PyExc_ValueError, "a view has at most 8 dimensions");
      return nullptr;
    }
    last.n_dims = static_cast<int32_t>(PyTuple_GET_SIZE(dims));
    for (int d = 0; d < last.n_dims && d < kMaxRank; ++d)
      last.dims[d] = static_cast<int8_t>(PyLong_AsLong(PyTuple_GET_ITEM(dims, d)));
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

// Keeps an entry under its key. What a full cache lets go of is destroyed after the lock: that may run Python code.
void remember(FunctionObject* f, const Arguments& a, const Key& key, const std::shared_ptr<Entry>& entry) {
  PyObject* fresh = PyList_New(0);
  if (!fresh) return PyErr_Clear();
  for (int i = 0; i < f->n_params; ++i) {
    if (a.is_tensor[i])
      PyList_Append(fresh, reinterpret_cast<PyObject*>(Py_TYPE(a.values[i])));
    else if (f->params[i].kind == ParamKind::Attribute)
      pin(fresh, a.values[i]);
  }
  decltype(f->cache->entries) dropped;
  std::vector<PyObject*> unpinned;
  {
    std::lock_guard lock(f->cache->mutex);
    if (f->cache->entries.size() >= kMaxEntries) {
      dropped.swap(f->cache->entries);
      unpinned.swap(f->cache->pins);
    }
    if (f->cache->entries.emplace(std::string(key.bytes, key.n), entry).second && PyList_GET_SIZE(fresh)) {
      f->cache->pins.push_back(fresh);
      fresh = nullptr;
    }
  }
  Py_XDECREF(fresh);
  for (PyObject* p : unpinned) Py_DECREF(p);
}

PyObject* call_miss(FunctionObject* f, Arguments& a, const Key& key) {
  PyObject* values = PyTuple_New(f->n_params);
  if (!values) return nullptr;
  for (int i = 0; i < f->n_params; ++i) {
    Py_INCREF(a.values[i]);
    PyTuple_SET_ITEM(values, i, a.values[i]);
  }
  // (recipe, None) to be kept and run here, or (None, result) of a call that Python carried out.
  PyObject* answer = PyObject_CallOneArg(f->miss, values);
  PyObject *recipe = nullptr, *result = nullptr;
  if (answer && !PyArg_ParseTuple(answer, "OO", &recipe, &result)) Py_CLEAR(answer);
  if (!answer) {
    Py_DECREF(values);
    return nullptr;
  }
  PyObject* out = nullptr;
  if (recipe == Py_None) {
    Py_INCREF(result);
    out = result;
  } else if (std::shared_ptr<Entry> entry = parse_entry(recipe, f->n_params)) {
    if (key.usable && !PyErr_Occurred()) remember(f, a, key, entry);
    out = run_entry(f, *entry, a);
  }
  Py_DECREF(values);
  Py_DECREF(answer);
  return out;
}

PyObject* function_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  Arguments a;
  Key key;
  if (!normalise(f, args, PyVectorcall_NARGS(nargsf), kwnames, a.values)) return nullptr;
  if (!read_arguments(f, a, key)) return nullptr;
  std::shared_ptr<Entry> entry;
  if (key.usable) {
    std::lock_guard lock(f->cache->mutex);
    auto found = f->cache->entries.find(std::string_view(key.bytes, key.n));
    if (found != f->cache->entries.end()) entry = found->second;
  }
  return entry ? run_entry(f, *entry, a) : call_miss(f, a, key);
}

// --- the type -------------------------------------------------------------------------------------------------------

// Function(miss, ((name, kind, keyword_only, has_default, default), ...))
PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *miss, *params;
  if (!PyArg_ParseTuple(args, "OO!", &miss, &PyTuple_Type, &params)) return nullptr;
  if (PyTuple_GET_SIZE(params) > kMaxParams)
    return PyErr_Format(PyExc_ValueError, "a function has at most %d parameters", kMaxParams);
  auto* f = reinterpret_cast<FunctionObject*>(type->tp_alloc(type, 0));
  if (!f) return nullptr;
  f->vectorcall = &function_call;
  f->cache = new Cache();
  Py_INCREF(miss);
  f->miss = miss;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(params); ++i) {
    FunctionParam& p = f->params[i];
    PyObject *name, *fallback;
    int kind, keyword_only, has_default;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(params, i), "OippO", &name, &kind, &keyword_only, &has_default, &fallback)) {
      Py_DECREF(f);
      return nullptr;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    p = {name, static_cast<ParamKind>(kind), keyword_only != 0, has_default ? fallback : nullptr};
    Py_XINCREF(p.fallback);
    ++f->n_params;
  }
  return reinterpret_cast<PyObject*>(f);
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(f->dict);
  Py_VISIT(f->miss);
  return 0;
}

int function_clear(PyObject* self) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  Py_CLEAR(f->dict);
  Py_CLEAR(f->miss);
  return 0;
}

void function_dealloc(PyObject* self) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  function_clear(self);
  for (int i = 0; i < f->n_params; ++i) Py_XDECREF(f->params[i].name), Py_XDECREF(f->params[i].fallback);
  delete f->cache;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* function_repr(PyObject* self) {
  return PyUnicode_FromFormat("<baracuda function %s>", function_name(reinterpret_cast<FunctionObject*>(self)));
}

PyObject* cache_size(PyObject* self, void*) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  std::lock_guard lock(f->cache->mutex);
  return PyLong_FromSize_t(f->cache->entries.size());
}

PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {"_cache_size", cache_size, nullptr, "Calls of different shape that are remembered.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&function_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&function_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(&function_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&function_clear)},
                       {Py_tp_repr, reinterpret_cast<void*>(&function_repr)},
                       {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"baracuda._core.Function", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool functional_setup(PyObject* module) {
  function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return function_type && PyModule_AddObjectRef(module, "Function", reinterpret_cast<PyObject*>(function_type)) == 0;
}

}  // namespace baracuda::bindings
