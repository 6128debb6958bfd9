// Making tensors: new memory, somebody else's, other frameworks' tensors, and shapes without any.
#include <algorithm>
#include <cstring>
#include <string>

#include "bindings/device.h"
#include "bindings/error.h"
#include "bindings/import_detail.h"
#include "bindings/scope.h"
#include "bindings/tensor.h"
#include "bindings/trace.h"
#include "core/checked.h"
#include "core/inject.h"
#include "core/overlap.h"

namespace baracuda::bindings {
namespace {

constexpr const char* kEmptyDoc =
    "empty(shape, element='f32', *, device='cpu')\n--\n\n"
    "A tensor of uninitialised memory, at least 64-byte aligned.\n\n"
    "Memory of up to 256 KiB on the cpu comes from a pool, which keeps what tensors gave back: at most 1 MiB of each "
    "of\n"
    "44 sizes. From 8 MiB on the system is asked for huge pages. Where only shapes are asked for (`infer` of "
    "functions)\n"
    "it has none.\n\n"
    "Args:\n"
    "    shape: Sizes, at most 8, or a single one.\n"
    "    element: Element kind, by name or as any framework's dtype.\n"
    "    device: Where the memory shall be.\n\n"
    "Raises:\n"
    "    DeviceMemoryError: The device has not that much memory left.\n";
constexpr const char* kFromPointerDoc =
    "from_pointer(ptr, shape, element, strides=None, device='cpu', nbytes=None, owner=None)\n--\n\n"
    "A tensor of memory that somebody else holds.\n\n"
    "Args:\n"
    "    ptr: Address of the first element.\n"
    "    shape: Sizes.\n"
    "    element: Element kind.\n"
    "    strides: In elements; row-major by default.\n"
    "    device: Where the memory is.\n"
    "    nbytes: Bytes known to be valid from `ptr` on; checked against what the view reaches.\n"
    "    owner: An object that keeps the memory alive. A tensor without one can be given another address: `rebase`.\n\n"
    "Raises:\n"
    "    BufferTooSmallError: If the view reaches past `nbytes`, or before `ptr`.\n";

// --- arguments
// --------------------------------------------------------------------------------------------------------

struct Parameters {
  const char* function;
  const char* names[7];
  int n, required, positional;
};

std::string text_of(PyObject* name) {
  const char* found = PyUnicode_AsUTF8(name);
  if (!found) PyErr_Clear();
  return found ? found : "?";
}

// Puts arguments in their places, null for those that were not given. False with UsageError.
bool place(const Parameters& p, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, PyObject** out) {
  std::fill_n(out, p.n, nullptr);
  if (n > p.positional) {
    raise_usage(std::string(p.function) + "() takes at most " + std::to_string(p.positional) +
                    " positional arguments, got " + std::to_string(n) + ".",
                Code::UnknownArgument, "");
    return false;
  }
  std::copy_n(args, n, out);
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int at = 0;
    while (at < p.n && PyUnicode_CompareWithASCIIString(name, p.names[at]) != 0) ++at;
    if (at == p.n || out[at]) {
      std::string known;
      for (int i = 0; i < p.n; ++i) known += std::string(i ? ", " : "") + p.names[i];
      raise_usage(std::string(p.function) +
                      (at == p.n ? "() got an unexpected argument '" : "() got twice the argument '") + text_of(name) +
                      "'. It takes (" + known + ").",
                  Code::UnknownArgument, text_of(name));
      return false;
    }
    out[at] = args[n + k];
  }
  for (int i = 0; i < p.required; ++i) {
    if (out[i]) continue;
    raise_usage(std::string(p.function) + "() misses its argument '" + p.names[i] + "'.", Code::MissingArgument,
                p.names[i]);
    return false;
  }
  return true;
}

// Whether these are plain ints inside the limits; else the answer is Python's, which has the words for what is not.
bool read_plain(PyObject* tuple, int64_t least, int64_t below, int64_t* out, int32_t* rank) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  if (n > kMaxRank) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (!PyLong_CheckExact(item)) return false;
    int overflow;
    out[i] = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow || out[i] < least || out[i] >= below) return false;
  }
  *rank = static_cast<int32_t>(n);
  return true;
}

bool read_tuple(PyObject* tuple, int64_t least, int64_t below, int64_t* out, int32_t* rank) {
  if (!tuple) return false;
  const bool read = PyTuple_CheckExact(tuple) && read_plain(tuple, least, below, out, rank);
  if (!read) PyErr_Format(PyExc_TypeError, "want a tuple of ints, got %R", tuple);
  Py_DECREF(tuple);
  return read;
}

bool read_shape(PyObject* shape, TensorView& view) {
  if (PyTuple_CheckExact(shape) && read_plain(shape, 0, kMaxElements, view.shape, &view.rank) &&
      countable(view.shape, view.rank))
    return true;
  return read_tuple(PyObject_CallOneArg(tensor_hooks.sizes, shape), 0, kMaxElements, view.shape, &view.rank);
}

void dense(TensorView& view) {
  int64_t step = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.strides[i] = step;
    step *= view.shape[i];
  }
}

bool read_strides(PyObject* strides, TensorView& view) {
  if (!strides || strides == Py_None) return dense(view), true;
  int32_t rank;
  if (PyTuple_CheckExact(strides) && read_plain(strides, 1 - kMostStride, kMostStride, view.strides, &rank) &&
      rank == view.rank)
    return true;
  PyObject* shape = tuple_of(view.shape, view.rank);
  PyObject* steps = shape ? PyObject_CallFunctionObjArgs(tensor_hooks.steps, strides, shape, nullptr) : nullptr;
  Py_XDECREF(shape);
  return read_tuple(steps, 1 - kMostStride, kMostStride, view.strides, &rank);
}

// Answers of a Python function by what it was asked: names, types and dtypes, which mean the same for ever.
class Remembered {
 public:
  // A new reference, or null with an exception set.
  PyObject* ask(PyObject* function, PyObject* question) {
    PyObject* known = Py_XNewRef(PyDict_GetItemWithError(answers_, question));
    if (known) return known;
    PyErr_Clear();  // it has no hash
    PyObject* answer = PyObject_CallOneArg(function, question);
    const bool lasting = PyUnicode_CheckExact(question) || is_constant(question);
    if (answer && lasting && PyDict_GET_SIZE(answers_) < kMost && PyDict_SetItem(answers_, question, answer) < 0)
      Py_CLEAR(answer);
    return answer;
  }
  bool setup() { return (answers_ = PyDict_New()) != nullptr; }

 private:
  static constexpr Py_ssize_t kMost = 256;
  PyObject* answers_ = nullptr;
};
Remembered elements, places;

bool read_element(PyObject* element, TensorView& view) {
  if (!element) return view.element = Element::F32, true;
  const bool member = Py_TYPE(element) == reinterpret_cast<PyTypeObject*>(tensor_hooks.element);
  PyObject* found = member ? Py_NewRef(element) : elements.ask(tensor_hooks.coerce, element);
  if (!found) return false;
  view.element = static_cast<Element>(PyLong_AsLong(found));
  Py_DECREF(found);
  return true;
}

bool read_device(PyObject* device, TensorView& view) {
  view.device = Backend::Cpu, view.device_id = 0;
  if (!device || (PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0)) return true;
  PyObject* found = places.ask(tensor_hooks.place, device);
  int backend = 0;
  const bool read = found && PyArg_ParseTuple(found, "ii", &backend, &view.device_id);
  view.device = static_cast<Backend>(backend);
  Py_XDECREF(found);
  return read;
}

// --- new memory
// -------------------------------------------------------------------------------------------------------

PyObject* new_on_host(const TensorView& view, int64_t bytes) {
  if (fails_now(Injected::Alloc)) return raise_no_memory("cpu", kInjectedText, bytes);
  const HostMemory memory = take_host_memory(bytes);
  if (!memory.data) return raise_no_memory("cpu", "no memory", bytes);
  TensorObject* made = new_tensor(view, nullptr);
  if (!made) return give_host_memory(memory), nullptr;
  made->memory = memory;
  made->view.data = memory.data;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* new_on_device(TensorView& view, int64_t bytes) {
  PyObject* memory = device_memory(view.device, view.device_id, bytes, &view.data);
  TensorObject* made = memory ? new_tensor(view, memory) : nullptr;
  Py_XDECREF(memory);
  return reinterpret_cast<PyObject*>(made);
}

PyObject* new_memory(TensorView& view, int64_t bytes) {
  return view.device == Backend::Cpu ? new_on_host(view, bytes) : new_on_device(view, bytes);
}

PyObject* new_counted(TensorView& view, int64_t bytes, PyObject* tracker) {
  if (tracker && !reserve(tracker, bytes, view.device, view.device_id)) return nullptr;
  PyObject* made = new_memory(view, bytes);
  if (tracker && made) track(self_of(made), tracker);
  if (tracker && !made) give_back(tracker, bytes);
  return made;
}

constexpr Parameters kEmpty{"empty", {"shape", "element", "device"}, 3, 1, 2};

constexpr Parameters kEmptyStrided{"empty_strided", {"shape", "strides", "element", "device"}, 4, 3, 3};

// Where only shapes are asked for it has no memory.
PyObject* new_empty(TensorView& view) {
  if (inferring()) {
    view.unbacked = true;
    if (!stand_in_address(view)) return nullptr;
    return reinterpret_cast<PyObject*>(new_tensor(view, nullptr));
  }
  const int64_t bytes = view.numel() * size_of(view.element);
  if (!current_arena() && !current_tracker()) return new_memory(view, bytes);
  PyObject *arena = Py_XNewRef(current_arena()), *tracker = Py_XNewRef(current_tracker());
  PyObject* made = arena ? reinterpret_cast<PyObject*>(take_from_arena(arena, view, bytes)) : nullptr;
  if (!made && !PyErr_Occurred()) made = new_counted(view, bytes, tracker);
  Py_XDECREF(arena), Py_XDECREF(tracker);
  return made;
}

PyObject* make_empty(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyObject* given[3];
  TensorView view;
  if (!place(kEmpty, args, n, kwnames, given) || !read_shape(given[0], view) || !read_element(given[1], view) ||
      !read_device(given[2], view))
    return nullptr;
  dense(view);
  return new_empty(view);
}

// Of strides without gaps.
PyObject* make_empty_strided(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyObject* given[4];
  TensorView view;
  if (!place(kEmptyStrided, args, n, kwnames, given) || !read_shape(given[0], view) || !read_strides(given[1], view) ||
      !read_element(given[2], view) || !read_device(given[3], view))
    return nullptr;
  return new_empty(view);
}

// Zeros in a tensor of the host whose elements lie together.
PyObject* clear_memory(PyObject*, PyObject* tensor) {
  const TensorObject* t = as_tensor(tensor);
  if (!t || t->view.device != Backend::Cpu || t->view.unbacked || !is_contiguous(t->view))
    return PyErr_Format(PyExc_TypeError, "clear: want a contiguous tensor on the cpu");
  if (const int64_t bytes = t->view.numel() * size_of(t->view.element)) std::memset(address_of(t), 0, bytes);
  Py_RETURN_NONE;
}

// --- somebody else's memory
// -------------------------------------------------------------------------------------------

bool read_address(const char* function, PyObject* ptr, TensorView& view) {
  const bool whole = PyLong_Check(ptr) && !PyBool_Check(ptr);
  int overflow = 0;
  const int64_t address = whole ? PyLong_AsLongLongAndOverflow(ptr, &overflow) : -1;
  view.data = reinterpret_cast<void*>(address);
  if (!overflow && address >= 0 && (address || view.numel() == 0)) return true;
  refuse_tensor(function, "ptr=" + text_of(ptr), "the address of the first element");
  return false;
}

// Whether the view stays inside the bytes that are known to be valid.
bool inside(PyObject* nbytes, const TensorView& view) {
  if (!nbytes || nbytes == Py_None) return true;
  const long long valid = PyLong_Check(nbytes) ? PyLong_AsLongLong(nbytes) : -1;
  if (valid < 0) {
    if (PyErr_Occurred()) PyErr_Clear();
    return refuse_tensor("from_pointer", "nbytes=" + text_of(nbytes), "the bytes that are valid from ptr on"), false;
  }
  __int128 low = 0, high = 1;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] == 0) return true;
    const __int128 step = static_cast<__int128>(view.shape[i] - 1) * view.strides[i];
    (step < 0 ? low : high) += step;
  }
  low *= size_of(view.element), high *= size_of(view.element);
  if (low >= 0 && high <= valid) return true;
  const auto shown = [](__int128 n) { return static_cast<int64_t>(std::clamp<__int128>(n, INT64_MIN, INT64_MAX)); };
  raise_refusal({Code::BufferTooSmall, "from_pointer",
                 "a view that reaches from byte " + std::to_string(shown(low)) + " to " + std::to_string(shown(high)),
                 "one inside the " + std::to_string(valid) + " bytes that are valid from ptr on",
                 "pass a smaller shape, other strides or the right nbytes", shown(high), valid},
                Py_None);
  return false;
}

constexpr Parameters kFromPointer{
    "from_pointer", {"ptr", "shape", "element", "strides", "device", "nbytes", "owner"}, 7, 3, 7};

PyObject* make_from_pointer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyObject* given[7];
  TensorView view;
  if (!place(kFromPointer, args, n, kwnames, given) || !read_device(given[4], view) || !read_shape(given[1], view) ||
      !read_element(given[2], view) || !read_strides(given[3], view) || !read_address("from_pointer", given[0], view) ||
      !inside(given[5], view))
    return nullptr;
  PyObject* owner = given[6] == Py_None ? nullptr : given[6];
  TensorObject* made = new_tensor(view, owner);
  if (made) made->movable = !owner;
  return reinterpret_cast<PyObject*>(made);
}

// borrow(value, *held): a tensor of any framework's memory, which it keeps alive together with what is held.
PyObject* make_borrowed(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 1) return PyErr_Format(PyExc_TypeError, "borrow() takes a tensor");
  TensorView view;
  Keep keep;
  Why why;
  keep.lasts = true;
  const Imported done = import_tensor(args[0], view, keep, why);
  if (done == Imported::Refused) return raise_refusal(*why, Py_None);
  if (done != Imported::Yes) return nullptr;
  PyObject* owner = n == 1 && keep.n == 0 ? Py_NewRef(args[0]) : PyTuple_New(n + keep.n);
  if (!owner) return nullptr;
  for (Py_ssize_t i = 0; owner != args[0] && i < n + keep.n; ++i)
    PyTuple_SET_ITEM(owner, i, Py_NewRef(i < n ? args[i] : keep.refs[i - n]));
  TensorObject* made = new_tensor(view, owner);
  Py_DECREF(owner);
  return reinterpret_cast<PyObject*>(made);
}

// share(tensor, backend, device): a tensor of the host's on a device that can use its memory where it is; else why not.
PyObject* make_shared(PyObject*, PyObject* args) {
  PyObject* tensor;
  int backend, device;
  if (!PyArg_ParseTuple(args, "O!ii", tensor_type, &tensor, &backend, &device)) return nullptr;
  TensorView view;
  read_view(self_of(tensor), view);
  view.device = static_cast<Backend>(backend), view.device_id = device;
  std::string reason;
  const DeviceModule* module = device_module(view.device, reason);
  if (!module || !module->objects || view.numel() == 0)
    return PyUnicode_FromString(module ? "the device cannot use memory of the host" : reason.c_str());
  Adopted shared{module, device, nullptr};
  const Extent reached = extent(view);
  const auto begin = static_cast<uintptr_t>(reached.begin);
  if (module->objects->share(device, reinterpret_cast<void*>(begin), static_cast<int64_t>(reached.end - reached.begin),
                             &shared.address) != Status::Ok)
    return PyUnicode_FromString(module->last_error());
  view.data = static_cast<char*>(shared.address) + (reinterpret_cast<uintptr_t>(view.data) - begin);
  PyObject* capsule = detail::capsule_of(shared);
  PyObject* owner = capsule ? Py_BuildValue("(ON)", tensor, capsule) : nullptr;  // which go from the last to the first
  PyObject* made = owner ? reinterpret_cast<PyObject*>(new_tensor(view, owner)) : nullptr;
  Py_XDECREF(owner);
  return made;
}

// stand_in(shape, strides, element, read_only, backend, device): a shape without memory, for questions.
PyObject* make_stand_in(PyObject*, PyObject* args) {
  PyObject *shape, *strides, *element;
  int read_only, backend, device;
  if (!PyArg_ParseTuple(args, "OOOpii", &shape, &strides, &element, &read_only, &backend, &device)) return nullptr;
  TensorView view;
  if (!read_shape(shape, view) || !read_strides(strides, view) || !read_element(element, view)) return nullptr;
  view.read_only = read_only, view.unbacked = true;
  view.device = static_cast<Backend>(backend), view.device_id = device;
  if (!stand_in_address(view)) return nullptr;
  return reinterpret_cast<PyObject*>(new_tensor(view, nullptr));
}

PyObject* get_pooled_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(pooled_bytes()); }

template <class F>
constexpr PyCFunction as_c(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

}  // namespace

bool make_setup() { return elements.setup() && places.setup(); }

PyObject* rebase(PyObject* self, PyObject* address) {
  TensorObject* t = self_of(self);
  if (!t->movable)
    return refuse_tensor("rebase", "a tensor that owns its memory, or has it from an owner or from another tensor",
                         "one that from_pointer made without an owner");
  TensorView view;
  read_view(t, view);
  if (!read_address("rebase", address, view)) return nullptr;
  int64_t nobody = 0;
  if (!t->lent.compare_exchange_strong(nobody, kMoving))
    return refuse_tensor("rebase", "a tensor whose memory " + std::to_string(nobody) + " views, arrays or exports show",
                         "one that nothing else shows", "drop them first, or make a new tensor with from_pointer");
  __atomic_store_n(&t->view.data, view.data, __ATOMIC_RELAXED);
  t->lent.store(0);
  return Py_NewRef(self);
}

PyMethodDef make_functions[] = {
    {"empty", as_c(&make_empty), METH_FASTCALL | METH_KEYWORDS, kEmptyDoc},
    {"empty_strided", as_c(&make_empty_strided), METH_FASTCALL | METH_KEYWORDS,
     "A tensor of uninitialised memory with strides that leave no gaps."},
    {"from_pointer", as_c(&make_from_pointer), METH_FASTCALL | METH_KEYWORDS, kFromPointerDoc},
    {"borrow", as_c(&make_borrowed), METH_FASTCALL, "A tensor of the memory of another, of any framework."},
    {"share", &make_shared, METH_VARARGS, "A tensor of the host's memory on a device, or why there is none."},
    {"stand_in", &make_stand_in, METH_VARARGS, "A shape without memory."},
    {"pooled_bytes", &get_pooled_bytes, METH_NOARGS, "Bytes that the pool of host memory keeps."},
    {"clear", &clear_memory, METH_O, "Writes zeros."},
    {nullptr, nullptr, 0, nullptr}};

// --- capsules
// ---------------------------------------------------------------------------------------------------------

Imported own_capsule(PyObject* capsule, bool lasts, PyObject** tensor, Why& why) {
  TensorView view;
  Keep keep;
  keep.lasts = lasts;
  keep.device = Backend::Any;
  const Imported done = import_tensor(capsule, view, keep, why);
  if (done != Imported::Yes) return done;
  PyObject* owner = PyTuple_New(keep.n);
  if (!owner) return Imported::PythonError;
  for (int i = 0; i < keep.n; ++i) PyTuple_SET_ITEM(owner, i, Py_NewRef(keep.refs[i]));
  *tensor = reinterpret_cast<PyObject*>(new_tensor(view, owner));
  Py_DECREF(owner);
  return *tensor ? Imported::Yes : Imported::PythonError;
}

Imported own_members(PyObject* sequence, bool lasts, PyObject** tuple, Py_ssize_t* at, Why& why) {
  PyObject* now = PySequence_Tuple(sequence);
  if (!now) return Imported::PythonError;
  Imported done = Imported::Yes;
  PyObject* owned = nullptr;  // a tuple of our own, once there is a capsule
  for (Py_ssize_t k = 0; done == Imported::Yes && k < PyTuple_GET_SIZE(now); ++k) {
    PyObject *item = PyTuple_GET_ITEM(now, k), *tensor = nullptr;
    if (!PyCapsule_CheckExact(item)) continue;
    *at = k;
    done = own_capsule(item, lasts, &tensor, why);
    if (done == Imported::Yes && !owned) {
      owned = PyTuple_New(PyTuple_GET_SIZE(now));
      for (Py_ssize_t i = 0; owned && i < PyTuple_GET_SIZE(now); ++i)
        PyTuple_SET_ITEM(owned, i, Py_NewRef(PyTuple_GET_ITEM(now, i)));
      if (!owned) done = Imported::PythonError;
    }
    if (done == Imported::Yes) {
      PyTuple_SET_ITEM(owned, k, tensor);
      Py_DECREF(item);  // of the reference that `owned` had; `now` has another
    } else {
      Py_XDECREF(tensor);
    }
  }
  if (done != Imported::Yes) {
    Py_XDECREF(owned);
    Py_DECREF(now);
    return done;
  }
  if (owned) Py_DECREF(now);
  *tuple = owned ? owned : now;
  return done;
}

}  // namespace baracuda::bindings
