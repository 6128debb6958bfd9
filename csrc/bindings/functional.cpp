#include "bindings/functional.h"

#include <structmember.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "bindings/error.h"
#include "bindings/functional_key.h"
#include "bindings/gil.h"
#include "bindings/import_detail.h"
#include "bindings/opaque.h"
#include "bindings/recipe.h"
#include "bindings/tensor.h"
#include "bindings/trace.h"
#include "core/float_state.h"

namespace baracuda::bindings {
namespace {

constexpr size_t kMaxEntries = 4096;  // per function; then the cache starts anew

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};

struct Cache {
  using Entries = std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>>;
  GilMutex mutex;
  Entries entries;
  const Entries::value_type* last = nullptr;  // found last: most calls ask for it again, and need no hash
  std::vector<PyObject*> pins;                // keep objects alive whose address is in a key
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
  Params all_params() const { return {params, static_cast<size_t>(n_params)}; }
};

PyTypeObject* function_type = nullptr;

// --- arguments ------------------------------------------------------------------------------------------------------

int find_param(FunctionObject* f, PyObject* name) {
  for (int i = 0; i < f->n_params; ++i)
    if (f->params[i].name == name && f->params[i].kind != ParamKind::Rest) return i;
  for (int i = 0; i < f->n_params; ++i)
    if (PyUnicode_Compare(f->params[i].name, name) == 0 && f->params[i].kind != ParamKind::Rest) return i;
  for (int i = 0; i < f->n_params; ++i)
    if (f->params[i].kind != ParamKind::Rest && PySequence_Contains(f->params[i].others, name) == 1) return i;
  return -1;
}

bool refuse_call(FunctionObject* f, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  raise_mistaken(reinterpret_cast<PyObject*>(f), args, nargs, kwnames);
  return false;
}

const char* function_name(FunctionObject* f) {
  PyObject* name = f->dict ? PyDict_GetItemString(f->dict, "__name__") : nullptr;
  return name ? PyUnicode_AsUTF8(name) : "function";
}

// All positional arguments from one on, as a tuple.
PyObject* rest_of(Arguments& a, PyObject* const* args, Py_ssize_t n) {
  PyObject* rest = PyTuple_New(std::max<Py_ssize_t>(n, 0));
  if (!rest) return nullptr;
  for (Py_ssize_t k = 0; k < n; ++k) PyTuple_SET_ITEM(rest, k, Py_NewRef(args[k]));
  a.keep.add(rest);
  return rest;
}

bool normalise(FunctionObject* f, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Arguments& a) {
  PyObject** out = a.values;
  int most = 0;
  while (most < f->n_params && !f->params[most].keyword_only && f->params[most].kind != ParamKind::Rest) ++most;
  const bool rest = most < f->n_params && f->params[most].kind == ParamKind::Rest;
  if (nargs > most && !rest) return refuse_call(f, args, nargs, kwnames);
  for (int i = 0; i < f->n_params; ++i) out[i] = i < nargs && i < most ? args[i] : nullptr;
  if (rest && !(out[most] = rest_of(a, args + most, nargs - most))) return false;
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int at = find_param(f, name);
    if (at < 0 || out[at]) return refuse_call(f, args, nargs, kwnames);
    out[at] = args[nargs + k];
  }
  for (int i = 0; i < f->n_params; ++i) {
    if (out[i]) continue;
    out[i] = f->params[i].fallback;
    if (!out[i]) return refuse_call(f, args, nargs, kwnames);
  }
  return true;
}

// --- keys -----------------------------------------------------------------------------------------------------------

bool is_number(PyObject* v) { return PyLong_Check(v) || PyFloat_Check(v); }

bool refuse_argument(FunctionObject* f, const Refusal& why) {
  raise_refusal(why, reinterpret_cast<PyObject*>(f));
  return false;
}

// What the type of a stand-in has, an argument without data: it is called with the function and all its arguments, and
// what it gives is the result. Null for everything else.
PyObject* stand_in_hook(PyObject* v) {
  static PyObject* const name = PyUnicode_InternFromString("__baracuda_function__");
  PyObject* found = PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(v)), name);
  if (!found) PyErr_Clear();
  return found;
}

PyObject* call_stand_in(PyObject* hook, FunctionObject* f, const Arguments& a) {
  PyObject* values = PyTuple_New(f->n_params);
  for (int i = 0; values && i < f->n_params; ++i) PyTuple_SET_ITEM(values, i, Py_NewRef(a.values[i]));
  PyObject* found =
      values ? PyObject_CallFunctionObjArgs(hook, reinterpret_cast<PyObject*>(f), values, nullptr) : nullptr;
  Py_XDECREF(values);
  Py_DECREF(hook);
  return found;
}

bool refuse_member(FunctionObject* f, int i, Py_ssize_t k, Refusal& why) {
  why.field = std::string(PyUnicode_AsUTF8(f->params[i].name)) + "[" + std::to_string(k) + "]";
  return refuse_argument(f, why);
}

// Further positional arguments may be one list. Whether all of them can be tensors: what they are otherwise, Python
// says.
bool unwrap_rest(Arguments& a, PyObject*& v, bool& good) {
  PyObject* seen = v;
  if (PyTuple_GET_SIZE(v) == 1 && (PyList_Check(PyTuple_GET_ITEM(v, 0)) || PyTuple_Check(PyTuple_GET_ITEM(v, 0)))) {
    seen = PySequence_Tuple(PyTuple_GET_ITEM(v, 0));
    if (!seen) return false;
    a.keep.add(seen);
  }
  good = true;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(seen); ++k) {
    PyObject* member = PyTuple_GET_ITEM(seen, k);
    good &= member != Py_None && !is_number(member) && !PyList_Check(member) && !PyTuple_Check(member) &&
            !PyUnicode_Check(member);
  }
  if (good) v = seen;
  return true;
}

// A list of tensors: its value is a copy from here on, since importing may run Python code.
bool read_list(FunctionObject* f, int i, Arguments& a, Key& key, PyObject*& hook) {
  PyObject*& v = a.values[i];
  bool good = PyList_Check(v) || PyTuple_Check(v);
  if (f->params[i].kind == ParamKind::Rest && !unwrap_rest(a, v, good)) return false;
  if (!good) {
    key.usable = false;
    return true;
  }
  PyObject* now = nullptr;
  Why why;
  Py_ssize_t at = 0;
  Imported done = own_members(v, false, &now, &at, why);
  if (done == Imported::Refused) return refuse_member(f, i, at, *why);
  if (done != Imported::Yes) return false;
  a.keep.add(now);
  v = now;
  key.put('L'), key.put(PyTuple_GET_SIZE(now));
  a.first_member[i] = static_cast<int32_t>(a.members.size());
  a.members.grow(PyTuple_GET_SIZE(now));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(now); ++k) {
    TensorView& view = a.members[a.first_member[i] + k];
    done = import_tensor(PyTuple_GET_ITEM(now, k), view, a.keep, why);
    if (done == Imported::Refused && (hook = stand_in_hook(PyTuple_GET_ITEM(now, k)))) return false;
    if (done == Imported::Refused) return refuse_member(f, i, k, *why);
    if (done != Imported::Yes) return false;
    key_tensor(key, PyTuple_GET_ITEM(now, k), view);
  }
  return true;
}

// What most arguments are: no NumPy scalars.
bool common_argument(PyObject* v) {
  return v == Py_None || PyLong_CheckExact(v) || PyFloat_CheckExact(v) || PyList_CheckExact(v) ||
         detail::exchange_apis.find(Py_TYPE(v));
}

// Imports the tensors and writes the key; false with an exception set when a tensor is refused, or with the hook of a
// stand-in.
bool read_arguments(FunctionObject* f, Arguments& a, Key& key, PyObject*& hook) {
  for (int i = 0; i < f->n_params; ++i) {
    if (!common_argument(a.values[i])) {
      if (PyObject* number = number_of_numpy_scalar(a.values[i]))
        a.keep.add(number), a.values[i] = number;
      else if (PyErr_Occurred())
        return false;
    }
    PyObject* v = a.values[i];
    ParamKind kind = f->params[i].kind;
    a.first_member[i] = -1;
    if (kind == ParamKind::List || kind == ParamKind::Rest) {
      if (!read_list(f, i, a, key, hook)) return false;
      continue;
    }
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
    Imported done = Imported::Yes;
    if (PyCapsule_CheckExact(v)) {
      done = own_capsule(v, false, &v, why);
      if (done == Imported::Yes) a.keep.add(v), a.values[i] = v;
    }
    if (done == Imported::Yes) done = import_tensor(v, a.views[i], a.keep, why);
    if (done == Imported::Refused) {
      if ((hook = stand_in_hook(v))) return false;
      why->field = PyUnicode_AsUTF8(f->params[i].name);
      return refuse_argument(f, *why);
    }
    if (done != Imported::Yes) return false;
    a.is_tensor[i] = true;
    key_tensor(key, v, a.views[i]);
  }
  return true;
}

void add_strides(FunctionObject* f, const Arguments& a, Key& key) {
  key.strided = true;
  key.put('S');
  for (int i = 0; i < f->n_params; ++i)
    if (a.is_tensor[i]) key_strides(key, a.views[i]);
  for (const TensorView& view : a.members.all()) key_strides(key, view);
}

// --- entries from Python --------------------------------------------------------------------------------------------

void pin_types(PyObject* pins, PyObject* list) {
  for (Py_ssize_t k = 0; PyTuple_Check(list) && k < PyTuple_GET_SIZE(list); ++k)
    PyList_Append(pins, reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(list, k))));
}

// Keeps an entry under its key. What a full cache lets go of is destroyed after the lock: that may run Python code.
void remember(FunctionObject* f, const Arguments& a, const Key& key, const std::shared_ptr<Entry>& entry) {
  PyObject* fresh = PyList_New(0);
  if (!fresh) return PyErr_Clear();
  for (int i = 0; i < f->n_params; ++i) {
    if (a.is_tensor[i])
      PyList_Append(fresh, reinterpret_cast<PyObject*>(Py_TYPE(a.values[i])));
    else if (f->params[i].kind == ParamKind::List || f->params[i].kind == ParamKind::Rest)
      pin_types(fresh, a.values[i]);
    else if (f->params[i].kind == ParamKind::Attribute)
      pin(fresh, a.values[i]);
  }
  decltype(f->cache->entries) dropped;
  std::vector<PyObject*> unpinned;
  {
    std::lock_guard lock(f->cache->mutex);
    if (f->cache->entries.size() >= kMaxEntries) {
      f->cache->last = nullptr;
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

// Where strides matter, a note says so under the key without them.
void remember_all(FunctionObject* f, const Arguments& a, Key& key, const std::shared_ptr<Entry>& entry) {
  if (!key.usable) return;
  if (entry->has_program() && !key.strided) {
    auto note = std::make_shared<Entry>();
    note->strided = true;
    remember(f, a, key, note);
    add_strides(f, a, key);
  }
  if (key.usable) remember(f, a, key, entry);
}

PyObject* call_miss(FunctionObject* f, Arguments& a, Key& key) {
  PyObject* values = PyTuple_New(f->n_params);
  if (!values) return nullptr;
  for (int i = 0; i < f->n_params; ++i) {
    Py_INCREF(a.values[i]);
    PyTuple_SET_ITEM(values, i, a.values[i]);
  }
  // (recipe, None) to be kept and run here, or (None, result) of a call that Python carried out.
  PyObject* answer = nullptr;
  {
    const Unwatched unwatched;
    answer = PyObject_CallOneArg(f->miss, values);
  }
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
    if (!PyErr_Occurred()) remember_all(f, a, key, entry);
    a.keep.ran_python = true;  // the rule did
    // The rule may have moved memory that was read before.
    if (read_again(reinterpret_cast<PyObject*>(f), f->all_params(), a))
      out = run_entry(reinterpret_cast<PyObject*>(f), f->all_params(), *entry, a);
  }
  Py_DECREF(values);
  Py_DECREF(answer);
  return out;
}

// Inlined, as fill_frame is: every call passes here.
[[gnu::always_inline]] inline std::shared_ptr<Entry> find_entry(FunctionObject* f, const Key& key) {
  if (!key.usable) return nullptr;
  const std::string_view wanted(key.bytes, key.n);
  Cache& cache = *f->cache;
  std::lock_guard lock(cache.mutex);
  if (cache.last && cache.last->first == wanted) return cache.last->second;
  auto found = cache.entries.find(wanted);
  if (found == cache.entries.end()) return nullptr;
  cache.last = &*found;
  return found->second;
}

PyObject* function_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  const FloatState own;  // of numbers that compositions compute, too
  Arguments a;
  Key key;
  if (!normalise(f, args, PyVectorcall_NARGS(nargsf), kwnames, a)) return nullptr;
  PyObject* hook = nullptr;
  if (!read_arguments(f, a, key, hook)) return hook ? call_stand_in(hook, f, a) : nullptr;
  // The code of one argument's producer may have moved the memory of those that were read before it.
  if (a.keep.ran_python && !read_again(self, f->all_params(), a)) return nullptr;
  std::shared_ptr<Entry> entry = find_entry(f, key);
  if (entry && entry->strided) {
    add_strides(f, a, key);
    entry = find_entry(f, key);
  }
  // Without data Python answers what only data say.
  if (entry && entry->then.entry && (a.keep.unbacked || tracing())) entry = nullptr;
  return entry ? run_entry(self, f->all_params(), *entry, a) : call_miss(f, a, key);
}

// --- the type -------------------------------------------------------------------------------------------------------

// Function(miss, ((name, kind, keyword_only, has_default, default, other names), ...))
PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *miss, *params;
  if (!PyArg_ParseTuple(args, "OO!", &miss, &PyTuple_Type, &params)) return nullptr;
  if (PyTuple_GET_SIZE(params) > kMaxParams)
    return PyErr_Format(PyExc_ValueError, "a function has at most %d parameters", kMaxParams);
  auto* f = reinterpret_cast<FunctionObject*>(type->tp_alloc(type, 0));
  if (!f) return nullptr;
  f->vectorcall = &function_call;
  // Before 3.12 subclasses that Python code makes do not inherit it, and each call makes a tuple of its arguments.
  if (type->tp_call == &PyVectorcall_Call && !PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL))
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  f->cache = new Cache();
  Py_INCREF(miss);
  f->miss = miss;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(params); ++i) {
    FunctionParam& p = f->params[i];
    PyObject *name, *fallback, *others;
    int kind, keyword_only, has_default;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(params, i), "OippOO!", &name, &kind, &keyword_only, &has_default, &fallback,
                          &PyTuple_Type, &others)) {
      Py_DECREF(f);
      return nullptr;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    p = {name, static_cast<ParamKind>(kind), keyword_only != 0, has_default ? fallback : nullptr, Py_NewRef(others)};
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
  for (int i = 0; i < f->n_params; ++i)
    Py_XDECREF(f->params[i].name), Py_XDECREF(f->params[i].fallback), Py_XDECREF(f->params[i].others);
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

// For tests that must see a call being planned.
PyObject* forget(PyObject* self, PyObject*) {
  auto* f = reinterpret_cast<FunctionObject*>(self);
  decltype(f->cache->entries) dropped;
  std::vector<PyObject*> unpinned;
  {
    std::lock_guard lock(f->cache->mutex);
    f->cache->last = nullptr;
    dropped.swap(f->cache->entries);
    unpinned.swap(f->cache->pins);
  }
  for (PyObject* p : unpinned) Py_DECREF(p);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"_forget", forget, METH_NOARGS, "Remembers no call any more."},
                         {nullptr, nullptr, 0, nullptr}};
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
                       {Py_tp_methods, methods},
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
