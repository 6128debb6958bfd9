#include "bindings/tensor.h"

#include <dlpack/dlpack.h>
#include <structmember.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "bindings/device.h"
#include "bindings/error.h"
#include "core/inject.h"

namespace baracuda::bindings {
namespace {

PyTypeObject* base_type = nullptr;
PyTypeObject* tensor_class = nullptr;  // bc.Tensor

struct TensorObject {
  PyObject_HEAD TensorView view;
  PyObject* owner;  // keeps the memory alive
  int64_t nbytes;   // extent known to be valid from view.data on, or -1
};

constexpr size_t kHugePage = size_t(2) << 20;

void free_memory(PyObject* capsule) { std::free(PyCapsule_GetPointer(capsule, "baracuda.memory")); }

PyObject* allocate(PyObject*, PyObject* arg) {
  long long nbytes = PyLong_AsLongLong(arg);
  if (nbytes == -1 && PyErr_Occurred()) return nullptr;
  if (nbytes < 0) return PyErr_Format(PyExc_ValueError, "allocate: got %lld bytes, want at least 0", nbytes);
  bool large = size_t(nbytes) >= 4 * kHugePage;
  size_t align = large ? kHugePage : 64;
  size_t rounded = (size_t(nbytes) + align - 1) / align * align;
  if (fails_now(Injected::Alloc)) return raise_no_memory("cpu", kAskedFor, nbytes);
  void* memory = std::aligned_alloc(align, rounded ? rounded : align);
  if (!memory) return raise_no_memory("cpu", "no memory", nbytes);
  if (large) madvise(memory, rounded, MADV_HUGEPAGE);
  PyObject* capsule = PyCapsule_New(memory, "baracuda.memory", &free_memory);
  if (!capsule) std::free(memory);
  return capsule;
}

bool read_sizes(PyObject* sequence, int64_t* out, int want, const char* what) {
  PyObject* fast = PySequence_Fast(sequence, what);
  if (!fast) return false;
  bool ok = PySequence_Fast_GET_SIZE(fast) == want;
  if (!ok) PyErr_Format(PyExc_ValueError, "%s: got %zd entries, want %d", what, PySequence_Fast_GET_SIZE(fast), want);
  for (int i = 0; ok && i < want; ++i) {
    out[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
    ok = !(out[i] == -1 && PyErr_Occurred());
  }
  Py_DECREF(fast);
  return ok;
}

// TensorBase(address, element, shape, strides, owner, nbytes, read_only, unbacked=False, backend=0, device=0); Python's
// bc.Tensor has the friendly constructors.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned long long address;
  int element, read_only, unbacked = 0, backend = 0, device = 0;
  long long nbytes;
  PyObject *shape, *strides, *owner;
  if (!PyArg_ParseTuple(args, "KiOOOLp|pii", &address, &element, &shape, &strides, &owner, &nbytes, &read_only,
                        &unbacked, &backend, &device))
    return nullptr;
  if (element < 0 || element >= kElementCount || backend < 0 || backend >= static_cast<int>(Backend::Count))
    return PyErr_Format(PyExc_ValueError, "TensorBase: got element %d, backend %d", element, backend);
  Py_ssize_t rank = PySequence_Size(shape);
  if (rank < 0) return nullptr;
  if (rank > kMaxRank) return PyErr_Format(PyExc_ValueError, "shape: got rank %zd, want at most 8", rank);
  auto* self = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->view = TensorView{};
  self->view.data = reinterpret_cast<void*>(address);
  self->view.rank = static_cast<int32_t>(rank);
  self->view.element = static_cast<Element>(element);
  self->view.read_only = read_only;
  self->view.unbacked = unbacked;
  self->view.device = static_cast<Backend>(backend);
  self->view.device_id = device;
  self->nbytes = nbytes;
  Py_INCREF(owner);
  self->owner = owner;
  if (!read_sizes(shape, self->view.shape, rank, "shape") ||
      !read_sizes(strides, self->view.strides, rank, "strides")) {
    Py_DECREF(self);
    return nullptr;
  }
  for (int i = 0; i < self->view.rank; ++i) {
    if (self->view.shape[i] >= 0) continue;
    Py_DECREF(self);
    return PyErr_Format(PyExc_ValueError, "shape: got a negative size");
  }
  return reinterpret_cast<PyObject*>(self);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<TensorObject*>(self)->owner);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<TensorObject*>(self)->owner);
  return 0;
}

void tensor_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  tensor_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* sizes_tuple(const int64_t* values, int n) {
  PyObject* out = PyTuple_New(n);
  for (int i = 0; out && i < n; ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(values[i]));
  return out;
}

const TensorView& view_of(PyObject* self) { return reinterpret_cast<TensorObject*>(self)->view; }

PyObject* get_shape(PyObject* self, void*) { return sizes_tuple(view_of(self).shape, view_of(self).rank); }
PyObject* get_strides(PyObject* self, void*) { return sizes_tuple(view_of(self).strides, view_of(self).rank); }
PyObject* get_element(PyObject* self, void*) { return PyLong_FromLong(static_cast<int>(view_of(self).element)); }
PyObject* get_address(PyObject* self, void*) { return PyLong_FromVoidPtr(view_of(self).data); }
PyObject* get_place(PyObject* self, void*) {
  return Py_BuildValue("(ii)", static_cast<int>(view_of(self).device), view_of(self).device_id);
}
PyObject* get_read_only(PyObject* self, void*) { return PyBool_FromLong(view_of(self).read_only); }
PyObject* get_extent(PyObject* self, void*) {
  return PyLong_FromLongLong(reinterpret_cast<TensorObject*>(self)->nbytes);
}
PyObject* get_owner(PyObject* self, void*) {
  PyObject* owner = reinterpret_cast<TensorObject*>(self)->owner;
  Py_INCREF(owner);
  return owner;
}

// What an exported capsule owns: the DLPack struct, its sizes, and a reference to the memory's owner.
template <class Managed>
struct Export {
  Managed tensor;
  int64_t sizes[2 * kMaxRank];
};

template <class Managed>
void delete_export(Managed* m) {
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_XDECREF(static_cast<PyObject*>(m->manager_ctx));
  PyGILState_Release(gil);
  delete reinterpret_cast<Export<Managed>*>(m);
}

template <class Managed>
constexpr const char* capsule_name() {
  return std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
}

template <class Managed>
void drop_capsule(PyObject* capsule) {
  const char* name = capsule_name<Managed>();
  if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer renamed it and owns the tensor now
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  m->deleter(m);
}

DLDevice dl_device(const TensorView& view) {
  DLDeviceType type = view.device == Backend::Cuda ? kDLCUDA : view.device == Backend::Metal ? kDLMetal : kDLCPU;
  return {type, view.device_id};
}

template <class Managed>
PyObject* export_capsule(PyObject* self) {
  const TensorView& view = view_of(self);
  auto* e = new Export<Managed>{};
  std::memcpy(e->sizes, view.shape, sizeof view.shape);
  std::memcpy(e->sizes + kMaxRank, view.strides, sizeof view.strides);
  Managed& m = e->tensor;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m.flags = view.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  }
  m.deleter = &delete_export<Managed>;
  m.manager_ctx = self;
  Py_INCREF(self);
  DLTensor& t = m.dl_tensor;
  t.data = view.data;
  t.device = dl_device(view);
  t.ndim = view.rank;
  t.dtype = {info(view.element).dl_code, info(view.element).dl_bits, 1};
  t.shape = e->sizes;
  t.strides = e->sizes + kMaxRank;
  t.byte_offset = 0;
  PyObject* capsule = PyCapsule_New(&m, capsule_name<Managed>(), &drop_capsule<Managed>);
  if (!capsule) delete_export(&m);
  return capsule;
}

// Makes the memory safe to use on a consumer's stream. A bc.Tensor does not know which streams write to it, so that all
// are waited for, unless the consumer says -1.
bool ready_for(const TensorView& view, PyObject* stream) {
  if (view.device == Backend::Cpu) return true;
  if (stream != Py_None) {
    long long handle = PyLong_AsLongLong(stream);
    if (handle == -1) return !PyErr_Occurred();
    if (handle == 0) {
      PyErr_SetString(PyExc_ValueError, "__dlpack__: stream 0 is ambiguous: pass 1, 2, a handle, or -1");
      return false;
    }
  }
  return wait_for_device(view.device, view.device_id);
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO", const_cast<char**>(keywords), &stream, &version, &device,
                                   &copy))
    return nullptr;
  if (view_of(self).unbacked)
    return PyErr_Format(PyExc_BufferError, "bc.Tensor: a shape without memory cannot be exported");
  if (copy == Py_True) return PyErr_Format(PyExc_BufferError, "bc.Tensor: exports its memory, never a copy");
  const DLDevice mine = dl_device(view_of(self));
  int kind = mine.device_type, id = mine.device_id, major = 0, minor = 0;
  if (device != Py_None && !PyArg_ParseTuple(device, "ii", &kind, &id)) return nullptr;
  if (kind != mine.device_type || id != mine.device_id)
    return PyErr_Format(PyExc_BufferError,
                        "bc.Tensor: lies on DLPack device (%d, %d), not on (%d, %d): copy it with .to() first",
                        static_cast<int>(mine.device_type), mine.device_id, kind, id);
  if (!ready_for(view_of(self), stream)) return nullptr;
  if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor)) return nullptr;
  if (major >= 1) return export_capsule<DLManagedTensorVersioned>(self);
  if (view_of(self).read_only)
    return PyErr_Format(PyExc_BufferError, "bc.Tensor: is read-only, which only DLPack 1.0 and later can say");
  return export_capsule<DLManagedTensor>(self);
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  const DLDevice mine = dl_device(view_of(self));
  return Py_BuildValue("(ii)", static_cast<int>(mine.device_type), mine.device_id);
}

PyGetSetDef getset[] = {{"shape", get_shape, nullptr, "Sizes of the dimensions.", nullptr},
                        {"strides", get_strides, nullptr, "Strides in elements.", nullptr},
                        {"_element", get_element, nullptr, nullptr, nullptr},
                        {"address", get_address, nullptr, "Address of the first element.", nullptr},
                        {"_place", get_place, nullptr, nullptr, nullptr},
                        {"read_only", get_read_only, nullptr, "Whether writing is refused.", nullptr},
                        {"_extent", get_extent, nullptr, nullptr, nullptr},
                        {"_owner", get_owner, nullptr, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&tensor_dlpack)),
                          METH_VARARGS | METH_KEYWORDS, "Exports the tensor as a DLPack capsule."},
                         {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "DLPack's (device type, device id)."},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&tensor_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&tensor_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(&tensor_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&tensor_clear)},
                       {Py_tp_getset, getset},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"baracuda._core.TensorBase", sizeof(TensorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
PyMethodDef allocate_def = {"allocate", &allocate, METH_O,
                            "64-byte aligned memory, owned by the capsule that is returned."};
PyObject* capsule_address(PyObject*, PyObject* capsule) {
  return PyLong_FromVoidPtr(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
}
PyObject* set_tensor_class(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), base_type))
    return PyErr_Format(PyExc_TypeError, "set_tensor_class: got %R, want a subclass of TensorBase", type);
  Py_INCREF(type);
  Py_XSETREF(tensor_class, reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}
PyMethodDef class_def = {"set_tensor_class", &set_tensor_class, METH_O, "bc.Tensor, which Python defines."};
PyMethodDef address_def = {"memory_address", &capsule_address, METH_O,
                           "The address of memory from allocate() or device_allocate()."};

}  // namespace

const TensorView* own_tensor(PyObject* object) {
  if (!PyObject_TypeCheck(object, base_type)) return nullptr;
  return &reinterpret_cast<TensorObject*>(object)->view;
}

Imported own_capsule(PyObject* capsule, bool lasts, PyObject** tensor, Why& why) {
  TensorView view;
  Keep keep;
  keep.lasts = lasts;
  keep.device = Backend::Any;
  const Imported done = import_tensor(capsule, view, keep, why);
  if (done != Imported::Yes) return done;
  auto* made = reinterpret_cast<TensorObject*>(tensor_class->tp_alloc(tensor_class, 0));
  if (!made) return Imported::PythonError;
  made->view = view;
  made->nbytes = -1;
  made->owner = Py_NewRef(keep.refs[0]);
  *tensor = reinterpret_cast<PyObject*>(made);
  return Imported::Yes;
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

bool tensor_setup(PyObject* module) {
  base_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return base_type && PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(base_type)) == 0 &&
         PyModule_AddObject(module, "allocate", PyCFunction_New(&allocate_def, nullptr)) == 0 &&
         PyModule_AddObject(module, "set_tensor_class", PyCFunction_New(&class_def, nullptr)) == 0 &&
         PyModule_AddObject(module, "memory_address", PyCFunction_New(&address_def, nullptr)) == 0;
}

}  // namespace baracuda::bindings
