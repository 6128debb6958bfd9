// Tensors by the DLPack protocol. Whoever reads a capsule takes it over: it is renamed, so that nobody else does, and
// its deleter is called once, when the last view of it is gone.
#include <cstring>

#include "bindings/device.h"
#include "bindings/import_detail.h"

namespace baracuda::bindings::detail {
namespace {

constexpr const char* kOwned = "baracuda.dlpack";

template <class Managed>
void drop_managed(PyObject* owner) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(owner, kOwned));
  if (!m->deleter) return;
  // The producer's code may be Python, and this may be called while an error is on its way.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  m->deleter(m);
  PyErr_Restore(type, value, trace);
}

Imported refuse_used(Why& why) {
  return refuse(why, Code::Capsule, "a capsule that was consumed already", "dltensor_versioned or dltensor",
                "a capsule can be used once: ask the tensor for a fresh one, or keep bc.from_dlpack(capsule)");
}

// Two threads may come with one capsule; other libraries' consumers are only kept out by the GIL.
std::mutex consuming;

template <class Managed>
Imported take_over(PyObject* capsule, Managed* m, const char* name, const char* used, Keep& keep, Why& why) {
  PyObject* owner = PyCapsule_New(m, kOwned, nullptr);
  if (!owner) return Imported::PythonError;
  {
    std::lock_guard lock(consuming);
    if (!PyCapsule_IsValid(capsule, name)) {
      Py_DECREF(owner);
      return refuse_used(why);
    }
    PyCapsule_SetName(capsule, used);
    PyCapsule_SetDestructor(owner, &drop_managed<Managed>);
  }
  keep.add(owner);
  return Imported::Yes;
}

bool is_tracer(PyObject* object) {
  const char* type = Py_TYPE(object)->tp_name;
  const size_t length = std::strlen(type);
  return length >= 6 && std::strcmp(type + length - 6, "Tracer") == 0;
}

// What __dlpack__ raised, as a refusal; interrupts and the like stay exceptions.
Imported explain_raised(PyObject* object, Why& why) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return Imported::PythonError;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* c = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string message = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (c && *c) message += std::string(": ") + c;
  Py_XDECREF(text), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  PyErr_Clear();
  if (is_tracer(object))
    return refuse(why, Code::NullData, "a traced value of jax, which has no data", "an array with data",
                  "call it outside of what jax traces (jit, vmap, grad), or in jax.pure_callback; F.<name>.infer gives "
                  "the shapes of its results");
  why = Refusal{Code::Capsule, "", std::string(Py_TYPE(object)->tp_name) + ".__dlpack__() raised " + message,
                "a tensor that can be exported", "copy it to a plain array first"};
  return Imported::Refused;
}

// Whether the tensor is on a device whose producers order the consumer's stream after their work unless told not to.
bool on_cuda(PyObject* object) {
  PyObject* place = PyObject_CallMethodNoArgs(object, names.dlpack_device);
  int kind = 0, id = 0;
  const bool known = place && PyTuple_Check(place) && PyArg_ParseTuple(place, "ii", &kind, &id);
  Py_XDECREF(place);
  PyErr_Clear();
  return known && (kind == kDLCUDA || kind == kDLCUDAManaged);
}

}  // namespace

Imported import_capsule(PyObject* capsule, TensorView& view, Keep& keep, Why& why) {
  const char* name = PyCapsule_GetName(capsule);
  Imported done;
  if (name && std::strcmp(name, "dltensor_versioned") == 0) {
    auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, name));
    if (m->version.major != DLPACK_MAJOR_VERSION)
      return refuse(why, Code::Capsule, "a DLPack capsule of another major version", "DLPack 1.x",
                    "update the library it came from");
    view.read_only = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    done = from_dl(m->dl_tensor, view, keep, why);
    if (done != Imported::Yes || keep.looks) return done;
    return take_over(capsule, m, "dltensor_versioned", "used_dltensor_versioned", keep, why);
  }
  if (name && std::strcmp(name, "dltensor") == 0) {
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, name));
    view.read_only = true;  // a legacy capsule cannot say whether writing is allowed
    done = from_dl(m->dl_tensor, view, keep, why);
    if (done != Imported::Yes || keep.looks) return done;
    return take_over(capsule, m, "dltensor", "used_dltensor", keep, why);
  }
  if (name && std::strncmp(name, "used_dltensor", 13) == 0) return refuse_used(why);
  why = Refusal{Code::Capsule, "", std::string("a capsule named ") + (name ? name : "nothing"),
                "dltensor_versioned or dltensor", "ask the tensor for one: x.__dlpack__()"};
  return Imported::Refused;
}

Imported import_bare_capsule(PyObject* capsule, TensorView& view, Keep& keep, Why& why) {
  const bool looks = std::exchange(keep.looks, true);
  Imported done = import_capsule(capsule, view, keep, why);
  keep.looks = looks;
  if (done != Imported::Yes) return done;
  const bool here = keep.device == Backend::Any || keep.device == view.device;
  if (view.device != Backend::Cpu && here && !keep.lasts)
    return refuse(why, Code::Capsule, "a bare capsule of memory on a device", "a tensor that outlives the launch",
                  "pass bc.from_dlpack(capsule), and keep it until the kernel is done");
  return looks ? done : import_capsule(capsule, view, keep, why);
}

Imported import_protocol(PyObject* object, TensorView& view, Keep& keep, Why& why) {
  // Ordering is the caller's: -1 asks a producer on a device for no synchronisation. Others want no stream at all.
  const bool unordered = devices_in_use() && on_cuda(object);
  PyObject *args[3] = {object, names.version, names.no_sync}, *old_args[2] = {object, names.no_sync};
  PyObject* capsule = PyObject_VectorcallMethod(names.dlpack, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                                unordered ? names.max_version_stream_kw : names.max_version_kw);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer from before max_version
    PyErr_Clear();
    capsule = PyObject_VectorcallMethod(names.dlpack, unordered ? old_args : args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                        unordered ? names.stream_kw : nullptr);
  }
  if (!capsule) return explain_raised(object, why);
  keep.add(capsule);
  keep.ran_python = true;
  if (!PyCapsule_CheckExact(capsule))
    return refuse(why, Code::Capsule, "something else than a capsule from __dlpack__", "a DLPack capsule",
                  "the tensor's producer is at fault");
  return import_capsule(capsule, view, keep, why);
}

}  // namespace baracuda::bindings::detail
