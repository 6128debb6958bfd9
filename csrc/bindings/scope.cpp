#include "bindings/scope.h"

#include <structmember.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/devices.h"
#include "core/overlap.h"

namespace baracuda::bindings {
namespace {

constinit thread_local PyObject* t_tracker = nullptr;
constinit thread_local PyObject* t_arena = nullptr;

constexpr int64_t kNoLimit = -1;

// No Python code may run, and no Python object be made, while the mutex is held: a collection that comes with an
// allocation may free tensors, whose end takes the mutex.
struct Tracker {
  std::atomic<int64_t> live{0}, peak{0}, limit{kNoLimit};
  std::atomic<int64_t> allocations{0}, refused{0};
  std::mutex mutex;
  std::unordered_set<TensorObject*> tensors;
};
struct TrackerObject {
  PyObject_HEAD Tracker* of;
};
Tracker& tracker_of(PyObject* self) { return *reinterpret_cast<TrackerObject*>(self)->of; }

// Whether the bytes were within the limit, and are counted now.
bool count(Tracker& t, int64_t bytes) {
  const int64_t limit = t.limit.load();
  int64_t now = t.live.load();
  do {
    if (limit != kNoLimit && (bytes > limit || now > limit - bytes)) return ++t.refused, false;
  } while (!t.live.compare_exchange_weak(now, now + bytes));
  now += bytes;
  for (int64_t peak = t.peak.load(); peak < now && !t.peak.compare_exchange_weak(peak, now);) {
  }
  return ++t.allocations, true;
}

int64_t bytes_of(const TensorObject* t) { return t->view.numel() * size_of(t->view.element); }

// --- MemoryTracker --------------------------------------------------------------------------------------------------

constexpr const char* kTrackerDoc =
    "MemoryTracker(limit=None)\n--\n\n"
    "Counts bytes that are in use, and refuses those that would pass a limit. Threads may share one.\n\n"
    "An Engine has one for its tensors; by itself it counts what `alloc` and `free` are told.\n\n"
    "Args:\n"
    "    limit: The most bytes at once; None for no limit, 0 lets nothing be allocated.\n";

// A number of bytes, or -1 with an exception.
int64_t read_bytes(const char* what, PyObject* given) {
  const bool whole = PyLong_Check(given) && !PyBool_Check(given);
  const long long bytes = whole ? PyLong_AsLongLong(given) : -1;
  PyErr_Clear();
  if (bytes < 0) refuse_tensor(what, text_of(given), "a number of bytes");
  return bytes;
}

PyObject* tracker_new(PyTypeObject* type, PyObject* args, PyObject* named) {
  static const char* names[] = {"limit", nullptr};
  PyObject* limit = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, named, "|O", const_cast<char**>(names), &limit)) return nullptr;
  const int64_t most = limit == Py_None ? kNoLimit : read_bytes("limit", limit);
  if (most < 0 && PyErr_Occurred()) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  reinterpret_cast<TrackerObject*>(self)->of = new Tracker;
  tracker_of(self).limit = most;
  return self;
}

void tracker_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<TrackerObject*>(self)->of;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* tracker_alloc(PyObject* self, PyObject* given) {
  const int64_t bytes = read_bytes("alloc", given);
  if (bytes < 0 || !reserve(self, bytes, Backend::Any, 0)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* tracker_free(PyObject* self, PyObject* given) {
  const int64_t bytes = read_bytes("free", given);
  if (bytes < 0) return nullptr;
  Tracker& t = tracker_of(self);
  int64_t now = t.live.load();
  do {
    if (bytes > now)
      return refuse_tensor("free", std::to_string(bytes) + " bytes", "at most the " + std::to_string(now) + " in use");
  } while (!t.live.compare_exchange_weak(now, now - bytes));
  Py_RETURN_NONE;
}

struct Seen {
  int64_t shape[kMaxRank];
  int32_t rank;
  Element element;
  int64_t bytes;
};

PyObject* tracker_alive(PyObject* self, PyObject*) {
  Tracker& t = tracker_of(self);
  std::vector<Seen> all;
  {
    std::lock_guard lock(t.mutex);
    all.reserve(t.tensors.size());
    for (const TensorObject* tensor : t.tensors) {
      Seen& one = all.emplace_back(Seen{{}, tensor->view.rank, tensor->view.element, bytes_of(tensor)});
      std::copy_n(tensor->view.shape, one.rank, one.shape);
    }
  }
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(all.size()));
  for (size_t i = 0; list && i < all.size(); ++i) {
    PyObject* one =
        Py_BuildValue("(NOL)", tuple_of(all[i].shape, all[i].rank), element_members[static_cast<int>(all[i].element)],
                      static_cast<long long>(all[i].bytes));
    if (one)
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), one);
    else
      Py_CLEAR(list);
  }
  return list;
}

PyObject* reset_peak(PyObject* self, PyObject*) {
  Tracker& t = tracker_of(self);
  t.peak = t.live.load();
  Py_RETURN_NONE;
}

PyObject* get_allocated(PyObject* self, void*) { return PyLong_FromLongLong(tracker_of(self).live); }
PyObject* get_peak(PyObject* self, void*) { return PyLong_FromLongLong(tracker_of(self).peak); }
PyObject* get_allocations(PyObject* self, void*) { return PyLong_FromLongLong(tracker_of(self).allocations); }
PyObject* get_refused(PyObject* self, void*) { return PyLong_FromLongLong(tracker_of(self).refused); }
PyObject* get_tensors(PyObject* self, void*) {
  Tracker& t = tracker_of(self);
  size_t n = 0;
  {
    std::lock_guard lock(t.mutex);
    n = t.tensors.size();
  }
  return PyLong_FromSize_t(n);
}
PyObject* get_limit(PyObject* self, void*) {
  const int64_t limit = tracker_of(self).limit;
  return limit == kNoLimit ? Py_NewRef(Py_None) : PyLong_FromLongLong(limit);
}
int set_limit(PyObject* self, PyObject* given, void*) {
  const int64_t bytes = !given || given == Py_None ? kNoLimit : read_bytes("limit", given);
  if (bytes < 0 && PyErr_Occurred()) return -1;
  tracker_of(self).limit = bytes;
  return 0;
}

PyMethodDef tracker_methods[] = {
    {"alloc", &tracker_alloc, METH_O,
     "alloc($self, bytes, /)\n--\n\nCounts bytes.\n\nRaises:\n    MemoryLimitError: They would pass the limit; nothing "
     "is counted then.\n"},
    {"free", &tracker_free, METH_O, "free($self, bytes, /)\n--\n\nGives bytes back that `alloc` counted."},
    {"alive", &tracker_alive, METH_NOARGS,
     "alive($self)\n--\n\nShape, element and bytes of every tensor that is counted and still there."},
    {"reset_peak", &reset_peak, METH_NOARGS, "reset_peak($self)\n--\n\nLets `peak` begin again at what is in use."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef tracker_getset[] = {{"allocated", get_allocated, nullptr, "Bytes in use.", nullptr},
                                {"peak", get_peak, nullptr, "The most bytes that were in use at once.", nullptr},
                                {"limit", get_limit, set_limit, "The most bytes at once, or None.", nullptr},
                                {"allocations", get_allocations, nullptr, "How often bytes were counted.", nullptr},
                                {"refused", get_refused, nullptr, "How often the limit refused some.", nullptr},
                                {"tensors", get_tensors, nullptr, "How many counted tensors are still there.", nullptr},
                                {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class F>
PyType_Slot slot(int number, F* f) {
  return {number, reinterpret_cast<void*>(f)};
}

// --- the base of TensorArena ----------------------------------------------------------------------------------------

constexpr int64_t kApart = 64;

struct ArenaObject {
  PyObject_HEAD PyObject* block;  // a tensor of bytes
  int64_t used, peak, overflows;
};
ArenaObject* arena_of(PyObject* self) { return reinterpret_cast<ArenaObject*>(self); }
int64_t size_of_block(const ArenaObject* a) { return self_of(a->block)->view.numel(); }

// ArenaBase(block)
PyObject* arena_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* block;
  if (!PyArg_ParseTuple(args, "O!", tensor_type, &block)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self) arena_of(self)->block = Py_NewRef(block);
  return self;
}

void arena_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(arena_of(self)->block);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* rewind(PyObject* self, PyObject* to) {
  const int64_t at = read_bytes("reset", to);
  if (at < 0) return nullptr;
  if (at > arena_of(self)->used)
    return refuse_tensor("reset", text_of(to), "at most the " + std::to_string(arena_of(self)->used) + " in use");
  arena_of(self)->used = at;
  Py_RETURN_NONE;
}

// _extent(tensor): the bytes of the block between which its elements lie, or None where they are not all in it.
PyObject* arena_extent(PyObject* self, PyObject* tensor) {
  const TensorObject* t = as_tensor(tensor);
  if (!t) return PyErr_Format(PyExc_TypeError, "_extent: want a bc.Tensor");
  const TensorView &view = t->view, &block = self_of(arena_of(self)->block)->view;
  const bool placed = view.device == block.device && view.device_id == block.device_id && !view.unbacked;
  if (!placed || !addressable(view)) Py_RETURN_NONE;
  const Extent reached = extent(view);
  const intptr_t first = reinterpret_cast<intptr_t>(block.data);
  if (reached.begin < first || reached.end > first + arena_of(self)->used) Py_RETURN_NONE;
  return Py_BuildValue("LL", static_cast<long long>(reached.begin - first),
                       static_cast<long long>(reached.end - first));
}

PyMethodDef arena_methods[] = {{"_extent", &arena_extent, METH_O, "Between which of its bytes a tensor lies."},
                               {"_rewind", &rewind, METH_O, "Has the next tensors lie from there on."},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef arena_members[] = {
    {"_block", T_OBJECT, offsetof(ArenaObject, block), READONLY, "The memory, as a tensor of bytes."},
    {"used", T_LONGLONG, offsetof(ArenaObject, used), READONLY, "Bytes in use, those between tensors too."},
    {"peak", T_LONGLONG, offsetof(ArenaObject, peak), READONLY, "The most bytes that were in use."},
    {"overflows", T_LONGLONG, offsetof(ArenaObject, overflows), READONLY,
     "How many tensors did not fit, and got memory of their own."},
    {nullptr, 0, 0, 0, nullptr}};

// exchange_memory(tracker | None, arena | None): what the thread's new tensors come from; returns what they did.
PyObject* exchange_memory(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "exchange_memory(tracker, arena)");
  const auto given = [](PyObject* o) { return o == Py_None ? nullptr : Py_NewRef(o); };
  PyObject* before = PyTuple_New(2);
  if (!before) return nullptr;
  PyObject* tracker = std::exchange(t_tracker, given(args[0]));
  PyObject* arena = std::exchange(t_arena, given(args[1]));
  PyTuple_SET_ITEM(before, 0, tracker ? tracker : Py_NewRef(Py_None));
  PyTuple_SET_ITEM(before, 1, arena ? arena : Py_NewRef(Py_None));
  return before;
}

// exchange_arena(arena | None): the same of the arena alone.
PyObject* exchange_arena(PyObject*, PyObject* given) {
  PyObject* before = std::exchange(t_arena, given == Py_None ? nullptr : Py_NewRef(given));
  return before ? before : Py_NewRef(Py_None);
}

PyMethodDef functions[] = {{"exchange_memory", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&exchange_memory)),
                            METH_FASTCALL, "exchange_memory(tracker, arena)"},
                           {"exchange_arena", &exchange_arena, METH_O, "exchange_arena(arena)"},
                           {nullptr, nullptr, 0, nullptr}};

bool add_type(PyObject* module, const char* name, PyType_Spec& spec) {
  PyObject* type = PyType_FromSpec(&spec);
  return type && PyModule_AddObject(module, name, type) == 0;
}

}  // namespace

PyObject* current_tracker() { return t_tracker; }
PyObject* current_arena() { return t_arena; }

bool reserve(PyObject* tracker, int64_t bytes, Backend backend, int32_t device) {
  Tracker& t = tracker_of(tracker);
  if (count(t, bytes)) return true;
  const std::string live = std::to_string(t.live.load()), limit = std::to_string(t.limit.load());
  raise_over_limit({Code::DeviceMemory, backend == Backend::Any ? "MemoryTracker" : device_name(backend, device),
                    std::to_string(bytes) + " bytes beside the " + live + " in use pass the limit of " + limit,
                    "at most " + limit + " bytes at once", "free tensors that are not needed any more, or allow more",
                    bytes, -1});
  return false;
}

void give_back(PyObject* tracker, int64_t bytes) { tracker_of(tracker).live -= bytes; }

void track(TensorObject* tensor, PyObject* tracker) {
  tensor->tracker = Py_NewRef(tracker);
  Tracker& t = tracker_of(tracker);
  std::lock_guard lock(t.mutex);
  t.tensors.insert(tensor);
}

void untrack(TensorObject* tensor) {
  PyObject* tracker = std::exchange(tensor->tracker, nullptr);
  {
    Tracker& t = tracker_of(tracker);
    std::lock_guard lock(t.mutex);
    t.tensors.erase(tensor);
  }
  give_back(tracker, bytes_of(tensor));
  Py_DECREF(tracker);
}

TensorObject* take_from_arena(PyObject* from, const TensorView& view, int64_t bytes) {
  ArenaObject* arena = arena_of(from);
  const TensorView& block = self_of(arena->block)->view;
  if (block.device != view.device || block.device_id != view.device_id) return nullptr;
  const int64_t size = size_of_block(arena);
  if (bytes > size - arena->used) return ++arena->overflows, nullptr;
  // A new object may set off a collection, whose finalisers may make tensors here: the place is read behind it.
  TensorObject* made = new_tensor(view, arena->block);
  if (!made) return nullptr;
  if (bytes > size - arena->used) return ++arena->overflows, Py_DECREF(made), nullptr;
  made->view.data = static_cast<char*>(block.data) + arena->used;
  arena->used = std::min(size, arena->used + (bytes + kApart - 1) / kApart * kApart);
  arena->peak = std::max(arena->peak, arena->used);
  return made;
}

bool Charge::take(int64_t bytes, Backend backend, int32_t device) {
  if (!t_tracker || !bytes) return true;
  PyObject* tracker = Py_NewRef(t_tracker);
  if (!reserve(tracker, bytes, backend, device)) return Py_DECREF(tracker), false;
  tracker_ = tracker, bytes_ = bytes;
  return true;
}

bool scope_setup(PyObject* module) {
  static PyType_Slot tracker_slots[] = {slot(Py_tp_new, &tracker_new),
                                        slot(Py_tp_dealloc, &tracker_dealloc),
                                        slot(Py_tp_methods, tracker_methods),
                                        slot(Py_tp_getset, tracker_getset),
                                        {Py_tp_doc, const_cast<char*>(kTrackerDoc)},
                                        {0, nullptr}};
  static PyType_Spec tracker_spec = {"baracuda.MemoryTracker", sizeof(TrackerObject), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, tracker_slots};
  static PyType_Slot arena_slots[] = {slot(Py_tp_new, &arena_new),
                                      slot(Py_tp_dealloc, &arena_dealloc),
                                      slot(Py_tp_methods, arena_methods),
                                      slot(Py_tp_members, arena_members),
                                      {0, nullptr}};
  static PyType_Spec arena_spec = {"baracuda._core.ArenaBase", sizeof(ArenaObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, arena_slots};
  return add_type(module, "MemoryTracker", tracker_spec) && add_type(module, "ArenaBase", arena_spec) &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace baracuda::bindings
