#include "bindings/device.h"

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <vector>

#include "bindings/device_detail.h"
#include "bindings/error.h"
#include "bindings/queue.h"
#include "core/devices.h"
#include "core/inject.h"
#include "core/message.h"

namespace py = pybind11;

namespace baracuda::bindings {
namespace {

std::atomic<bool> in_use{false};

[[noreturn]] void throw_no_memory(Place place, const char* why, int64_t bytes) {
  raise_no_memory(device_name(place.backend, place.device), why, bytes);
  throw py::error_already_set();
}

std::string too_few_devices(Backend backend) {
  const int32_t n = device_count(backend);
  return "there " + (n == 1 ? std::string("is 1 device") : "are " + std::to_string(n) + " devices") +
         " of this backend";
}

}  // namespace

void throw_status(const DeviceModule& module, Status status, Place place, int64_t bytes) {
  if (status == Status::Workspace) throw_no_memory(place, module.last_error(), bytes);
  std::string where = device_name(place.backend, place.device);
  raise_refusal({Code::LaunchFailed, where, module.last_error(), "a device that works", ""}, Py_None);
  throw py::error_already_set();
}

const DeviceModule& module_of(Place place) {
  std::string reason;
  const DeviceModule* module = device_module(place.backend, reason);
  if (module && device_info(place.backend, place.device)) return in_use = true, *module;
  std::string name = device_name(place.backend, place.device);
  if (module) reason = too_few_devices(place.backend);
  raise_refusal({Code::NoDevice, "device", name, "a device that can be used", reason}, Py_None);
  throw py::error_already_set();
}

Place place_of(int backend, int device) {
  if (backend <= 0 || backend >= static_cast<int>(Backend::Count)) throw py::value_error("not a device with memory");
  return {static_cast<Backend>(backend), device};
}

namespace {

void allocate_on(const DeviceModule& module, Place place, int64_t bytes, void** out) {
  refuse_in_capture(place, "an allocation", "memory that was made before the capture began");
  if (fails_now(Injected::Alloc)) throw_no_memory(place, kInjectedText, bytes);
  call(module, place, [&] { return module.allocate(place.device, bytes, out); }, bytes);
}

// --- memory ---------------------------------------------------------------------------------------------------------

constexpr const char* kCapsule = "baracuda.device_memory";

void free_device_memory(PyObject* capsule) {
  void* memory = PyCapsule_GetPointer(capsule, kCapsule);
  std::unique_ptr<Place> place(static_cast<Place*>(PyCapsule_GetContext(capsule)));
  std::string reason;
  const DeviceModule* module = device_module(place->backend, reason);
  if (!module) return;
  Py_BEGIN_ALLOW_THREADS module->release(place->device, memory);
  Py_END_ALLOW_THREADS
}

void copy(int backend, int device, uintptr_t to, uintptr_t from, int64_t bytes, int kind, uintptr_t stream) {
  Place place = place_of(backend, device);
  const DeviceModule& module = module_of(place);
  if (bytes == 0) return;
  const bool waits = static_cast<CopyKind>(kind) != CopyKind::OnDevice;
  refuse_in_capture(place, handle_of(stream), waits, "a copy between host and device");
  call(module, place, [&] {
    return module.copy(device, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                       static_cast<CopyKind>(kind), handle_of(stream));
  });
}

// Between two devices of a backend; the stream is one of the target's. What the source has to do first was waited for.
void copy_between(int backend, int to_device, uintptr_t to, int from_device, uintptr_t from, int64_t bytes,
                  uintptr_t stream) {
  Place place = place_of(backend, to_device);
  const DeviceModule& module = module_of(place);
  if (bytes == 0) return;
  refuse_in_capture(place, handle_of(stream), true, "a copy between devices");
  call(module, place, [&] {
    return module.copy_between(to_device, reinterpret_cast<void*>(to), from_device, reinterpret_cast<const void*>(from),
                               bytes, handle_of(stream));
  });
}

void fill(int backend, int device, uintptr_t to, int byte, int64_t bytes, uintptr_t stream) {
  Place place = place_of(backend, device);
  const DeviceModule& module = module_of(place);
  if (bytes == 0) return;
  refuse_in_capture(place, handle_of(stream), false, "a fill");
  call(module, place, [&] { return module.fill(device, reinterpret_cast<void*>(to), byte, bytes, handle_of(stream)); });
}

void synchronize(int backend, int device, uintptr_t stream) {
  Place place = place_of(backend, device);
  const DeviceModule& module = module_of(place);
  refuse_wait_in_capture(place, handle_of(stream));
  call(module, place, [&] { return module.synchronize(device, handle_of(stream)); });
}

// None, or (row, site, tensor, position, value, limit).
py::object take_fault(int backend, int device, uintptr_t stream) {
  Place place = place_of(backend, device);
  const DeviceModule& module = module_of(place);
  DeviceFault found;
  refuse_wait_in_capture(place, handle_of(stream));
  call(module, place, [&] { return module.take_fault(device, handle_of(stream), &found); });
  if (found.row < 0) return py::none();
  const Failure& f = found.failure;
  return py::make_tuple(found.row, found.site, f.tensor, f.position, f.value, f.limit);
}

// Raises what take_fault found.
void raise_fault(int backend, int device, int row, int site, int tensor, int64_t position, int64_t value,
                 int64_t limit) {
  const Place place = place_of(backend, device);
  const FaultReport found = report_of({row, site, {tensor, position, value, limit}}, place.backend, place.device);
  raise_at(found.where, {found.refusal});
  throw py::error_already_set();
}

py::object describe(int backend, int device) {
  const DeviceInfo* info = device_info(place_of(backend, device).backend, device);
  if (!info) return py::none();
  py::dict d;
  d["name"] = info->name, d["arch"] = info->arch, d["units"] = info->units, d["memory"] = info->memory;
  d["driver"] = info->driver, d["runtime"] = info->runtime;
  return d;
}

// The native handle that `stream` means on a device, as an int; 0 is the default stream.
uintptr_t stream_handle_of(int backend, int device, py::object stream) {
  return reinterpret_cast<uintptr_t>(stream_on(place_of(backend, device), stream));
}

// --- scratch --------------------------------------------------------------------------------------------------------

struct Scratch {
  Place place;
  void* stream;
  void* memory;
  int64_t size;
};
struct Scratches {
  std::vector<Scratch> blocks;
  ~Scratches() {
    std::string reason;
    for (Scratch& s : blocks)
      if (const DeviceModule* module = device_module(s.place.backend, reason))
        module->release(s.place.device, s.memory);
  }
};

// --- streams --------------------------------------------------------------------------------------------------------

PyTypeObject* stream_type = nullptr;
PyObject* name_cuda_stream_protocol = nullptr;
PyObject* name_cuda_stream = nullptr;
PyObject* name_device_index = nullptr;

struct StreamObject {
  PyObject_HEAD Place place;
  void* handle;
};

StreamObject* stream_of(PyObject* self) { return reinterpret_cast<StreamObject*>(self); }

// StreamBase(backend, device, blocking)
PyObject* stream_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int backend, device, blocking;
  if (!PyArg_ParseTuple(args, "iip", &backend, &device, &blocking)) return nullptr;
  try {
    Place place = place_of(backend, device);
    const DeviceModule& module = module_of(place);
    void* handle = nullptr;
    call(module, place, [&] { return module.queues->create_stream(device, blocking, &handle); });
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return module.queues->destroy_stream(device, handle), nullptr;
    stream_of(self)->place = place;
    stream_of(self)->handle = handle;
    return self;
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  }
  return nullptr;
}

void stream_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  StreamObject* s = stream_of(self);
  std::string reason;
  if (const DeviceModule* module = s->handle ? device_module(s->place.backend, reason) : nullptr) {
    Py_BEGIN_ALLOW_THREADS module->queues->destroy_stream(s->place.device, s->handle);
    Py_END_ALLOW_THREADS
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* stream_handle(PyObject* self, void*) { return PyLong_FromVoidPtr(stream_of(self)->handle); }
PyObject* stream_place(PyObject* self, void*) {
  return Py_BuildValue("(ii)", static_cast<int>(stream_of(self)->place.backend), stream_of(self)->place.device);
}
PyObject* stream_protocol(PyObject* self, PyObject*) {
  if (stream_of(self)->place.backend != Backend::Cuda)
    return PyErr_Format(PyExc_AttributeError, "__cuda_stream__: this is not a stream of a cuda device");
  return Py_BuildValue("(iN)", 0, PyLong_FromVoidPtr(stream_of(self)->handle));
}

PyGetSetDef stream_getset[] = {{"handle", stream_handle, nullptr, "The native handle, a cudaStream_t.", nullptr},
                               {"_place", stream_place, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef stream_methods[] = {
    {"__cuda_stream__", stream_protocol, METH_NOARGS, "(0, handle): the CUDA stream protocol."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot stream_slots[] = {{Py_tp_new, reinterpret_cast<void*>(&stream_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(&stream_dealloc)},
                              {Py_tp_getset, stream_getset},
                              {Py_tp_methods, stream_methods},
                              {0, nullptr}};
PyType_Spec stream_spec = {"baracuda._core.StreamBase", sizeof(StreamObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, stream_slots};

Imported refuse_stream(Why& why, std::string got, std::string want, std::string hint) {
  why = Refusal{Code::Stream, "stream", std::move(got), std::move(want), std::move(hint)};
  return Imported::Refused;
}

// A handle as a Python int; `named` when an object said that 0 is its default stream.
Imported read_handle(PyObject* value, bool named, void** out, Why& why) {
  if (PyBool_Check(value) || !PyLong_Check(value))
    return refuse_stream(why, Py_TYPE(value)->tp_name, "a handle as an int", "pass the cudaStream_t as an int");
  unsigned long long handle = PyLong_AsUnsignedLongLong(value);
  if (handle == ~0ull && PyErr_Occurred()) {
    PyErr_Clear();
    return refuse_stream(why, "a negative or too large int", "a handle", "pass the cudaStream_t as an int");
  }
  if (handle == 0 && !named)
    return refuse_stream(why, "the integer 0", "None, or a stream",
                         "0 is ambiguous (legacy or per-thread default stream): leave stream out, or name the stream");
  *out = handle_of(handle);
  return Imported::Yes;
}

// An attribute, or null without an exception when there is none.
PyObject* attribute_of(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  if (!found) PyErr_Clear();
  return found;
}

// Streams of frameworks say which device they are of.
bool of_another_device(PyObject* object, const Place& place, Why& why) {
  PyObject* index = attribute_of(object, name_device_index);
  const bool known = index && PyLong_CheckExact(index);
  long device = known ? PyLong_AsLong(index) : -1;
  Py_XDECREF(index);
  PyErr_Clear();
  if (!known || device < 0 || device == place.device) return false;
  refuse_stream(why, "a stream of device " + std::to_string(device),
                "one of " + device_name(place.backend, place.device), "make it on the plan's device");
  return true;
}

// By __cuda_stream__() -> (version, handle), or by torch's attribute cuda_stream.
Imported read_foreign_stream(PyObject* object, const Place& place, void** out, Why& why) {
  if (of_another_device(object, place, why)) return Imported::Refused;
  PyObject* value = nullptr;
  if (PyObject* protocol = attribute_of(object, name_cuda_stream_protocol)) {
    // The protocol's first form was an attribute, today it is a method.
    PyObject* pair = PyCallable_Check(protocol) ? PyObject_CallNoArgs(protocol) : Py_NewRef(protocol);
    Py_DECREF(protocol);
    if (!pair) return Imported::PythonError;
    if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) value = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    if (!value)
      return refuse_stream(why, "something else than (version, handle) from __cuda_stream__", "a stream",
                           "the stream's producer is at fault");
  } else {
    value = attribute_of(object, name_cuda_stream);
  }
  if (!value)
    return refuse_stream(why, Py_TYPE(object)->tp_name, "None, a handle, or an object with __cuda_stream__",
                         "pass bc.Stream, a torch stream, or the cudaStream_t as an int");
  Imported done = read_handle(value, true, out, why);
  Py_DECREF(value);
  return done;
}

}  // namespace

bool devices_in_use() { return in_use; }

void* stream_on(Place place, py::handle stream) {
  Keep keep;
  keep.device = place.backend, keep.device_id = place.device;
  void* handle = nullptr;
  Why why;
  Imported done = import_stream(stream.is_none() ? nullptr : stream.ptr(), keep, &handle, why);
  if (done == Imported::Refused) raise_refusal(*why, Py_None);
  if (done != Imported::Yes) throw py::error_already_set();
  return handle;
}

bool own_stream(PyObject* object, Place* place, void** handle) {
  if (!PyObject_TypeCheck(object, stream_type)) return false;
  *place = stream_of(object)->place, *handle = stream_of(object)->handle;
  return true;
}

Imported import_stream(PyObject* object, const Keep& keep, void** out, Why& why) {
  const Place place = {keep.device, keep.device_id};
  *out = nullptr;
  if (place.backend == Backend::Cpu) {
    if (!object) return Imported::Yes;
    bool zero = PyLong_CheckExact(object) && PyObject_Not(object) == 1;
    return refuse_stream(why, zero ? "the integer 0" : Py_TYPE(object)->tp_name, "None",
                         zero ? "0 is ambiguous (legacy or per-thread default stream): leave stream out, or name the "
                                "stream"
                              : "a cpu plan has no stream: leave it out");
  }
  if (!object) return framework_stream(keep.exchange, place.backend, place.device, out);
  if (PyObject_TypeCheck(object, stream_type)) {
    Place its = stream_of(object)->place;
    if (its.backend != place.backend || its.device != place.device)
      return refuse_stream(why, "a stream of " + device_name(its.backend, its.device),
                           "one of " + device_name(place.backend, place.device), "make it on the plan's device");
    *out = stream_of(object)->handle;
    return Imported::Yes;
  }
  if (PyLong_Check(object)) return read_handle(object, false, out, why);
  return read_foreign_stream(object, place, out, why);
}

bool wait_for_device(Backend backend, int32_t device, void* stream) {
  try {
    synchronize(static_cast<int>(backend), device, reinterpret_cast<uintptr_t>(stream));
    return true;
  } catch (py::error_already_set& e) {
    e.restore();
    return false;
  }
}

PyObject* device_memory(Backend backend, int32_t device, int64_t bytes, void** address) {
  try {
    auto place = std::make_unique<Place>(Place{backend, device});
    const DeviceModule& module = module_of(*place);
    allocate_on(module, *place, bytes, address);
    PyObject* capsule = PyCapsule_New(*address, kCapsule, nullptr);
    if (!capsule) return module.release(device, *address), nullptr;
    PyCapsule_SetContext(capsule, place.release());
    PyCapsule_SetDestructor(capsule, &free_device_memory);
    return capsule;
  } catch (py::error_already_set& e) {
    e.restore();
    return nullptr;
  }
}

void* device_scratch(Backend backend, int32_t device, void* stream, int64_t bytes) {
  thread_local Scratches mine;
  Scratch* block = nullptr;
  for (Scratch& s : mine.blocks)
    if (s.place.backend == backend && s.place.device == device && s.stream == stream) block = &s;
  try {
    Place place = {backend, device};
    const DeviceModule& module = module_of(place);
    refuse_in_capture(place, stream, true, "a function that needs a workspace, which later calls would share");
    if (block && block->size >= bytes) return block->memory;
    if (!block) block = &mine.blocks.emplace_back(Scratch{place, stream, nullptr, 0});
    block->size = 0;
    if (void* old = std::exchange(block->memory, nullptr))  // waits for the kernels that use it
      call(module, place, [&] { return module.release(device, old); });
    allocate_on(module, place, bytes, &block->memory);
    block->size = bytes;
    return block->memory;
  } catch (py::error_already_set& e) {
    e.restore();
    return nullptr;
  }
}

bool device_setup(PyObject* module) {
  name_cuda_stream_protocol = PyUnicode_InternFromString("__cuda_stream__");
  name_cuda_stream = PyUnicode_InternFromString("cuda_stream");
  name_device_index = PyUnicode_InternFromString("device_index");
  py::module_ m = py::reinterpret_borrow<py::module_>(module);
  m.def("inject", [](int kind, int64_t after) {
    if (kind < 0 || kind >= static_cast<int>(Injected::Count)) throw py::value_error("inject: no such kind");
    return calls_left(static_cast<Injected>(kind)).exchange(after);
  });
  m.def("device_count", [](int backend) { return device_count(static_cast<Backend>(backend)); });
  m.def("device_describe", &describe);
  m.def("device_copy", &copy);
  m.def("device_copy_between", &copy_between);
  m.def("device_fill", &fill);
  m.def("device_synchronize", &synchronize);
  m.def("device_take_fault", &take_fault);
  m.def("device_raise_fault", &raise_fault);
  m.def("stream_handle", &stream_handle_of);
  stream_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&stream_spec));
  return stream_type && PyModule_AddObjectRef(module, "StreamBase", reinterpret_cast<PyObject*>(stream_type)) == 0;
}

}  // namespace baracuda::bindings
