// A tensor's memory for others: DLPack capsules, NumPy arrays and Python numbers.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "bindings/device.h"
#include "bindings/tensor.h"
#include "core/devices.h"
#include "core/float_state.h"

namespace baracuda::bindings {
namespace {

void give_back(PyObject* tensor) {
  --self_of(tensor)->lent;
  Py_DECREF(tensor);
}

// --- DLPack
// -----------------------------------------------------------------------------------------------------------

// What an exported capsule owns: the DLPack struct, its sizes, and a reference to the tensor.
template <class Managed>
struct Export {
  Managed tensor;
  int64_t sizes[2 * kMaxRank];
};

template <class Managed>
void delete_export(Managed* m) {
  PyGILState_STATE gil = PyGILState_Ensure();
  give_back(static_cast<PyObject*>(m->manager_ctx));
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

// Memory as DLPack names it on its device: an address, or an object and how far behind its start.
struct Named {
  void* data;
  uint64_t offset = 0;
};

// False with BufferError.
bool name_memory(const TensorObject* tensor, Named& out) {
  const TensorView& view = tensor->view;
  out.data = address_of(tensor);
  std::string reason;
  const DeviceModule* module = view.device == Backend::Cpu ? nullptr : device_module(view.device, reason);
  if (!module || !module->objects) return true;
  if (view.numel() == 0) return out.data = nullptr, true;
  int64_t offset = 0;
  const Status status = module->objects->lend(view.device_id, address_of(tensor), &out.data, &offset);
  out.offset = static_cast<uint64_t>(offset);
  if (status != Status::Ok) PyErr_Format(PyExc_BufferError, "bc.Tensor: %s", module->last_error());
  return status == Status::Ok;
}

template <class Managed>
PyObject* export_capsule(PyObject* self, const Named& memory) {
  auto* tensor = self_of(self);
  const TensorView& view = tensor->view;
  auto* e = new Export<Managed>{};
  std::copy_n(view.shape, view.rank, e->sizes);
  std::copy_n(view.strides, view.rank, e->sizes + kMaxRank);
  Managed& m = e->tensor;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m.flags = view.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  }
  m.deleter = &delete_export<Managed>;
  lend(tensor);
  m.manager_ctx = Py_NewRef(self);
  DLTensor& t = m.dl_tensor;
  t.data = memory.data;
  t.device = dl_device(view);
  t.ndim = view.rank;
  t.dtype = {info(view.element).dl_code, info(view.element).dl_bits, 1};
  t.shape = e->sizes;
  t.strides = e->sizes + kMaxRank;
  t.byte_offset = memory.offset;
  PyObject* capsule = PyCapsule_New(&m, capsule_name<Managed>(), &drop_capsule<Managed>);
  if (!capsule) delete_export(&m);
  return capsule;
}

// Two ints, as DLPack has devices and versions; those beyond 64 bits count as the end that they are behind. False with
// an exception set.
bool read_pair(const char* name, PyObject* pair, int64_t* out) {
  bool good = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
  for (Py_ssize_t i = 0; good && i < 2; ++i) {
    PyObject* number = PyNumber_Index(PyTuple_GET_ITEM(pair, i));
    good = number;
    if (!number) break;
    int beyond = 0;
    out[i] = PyLong_AsLongLongAndOverflow(number, &beyond);
    if (beyond) out[i] = beyond > 0 ? INT64_MAX : INT64_MIN;
    Py_DECREF(number);
  }
  if (good || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError))) return good;
  PyErr_Clear();
  return refuse_tensor(name, std::string("a ") + Py_TYPE(pair)->tp_name, "a tuple of two ints"), false;
}

// Makes the memory safe to use on a consumer's stream. A bc.Tensor does not know which streams write to it, so that all
// are waited for, unless the consumer says -1.
bool ready_for(const TensorView& view, PyObject* stream) {
  if (view.device == Backend::Cpu) return true;
  if (stream != Py_None) {
    const long long handle = PyLong_AsLongLong(stream);
    if (handle == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return refuse_tensor("__dlpack__(stream=)", std::string("a ") + Py_TYPE(stream)->tp_name,
                           "a stream's handle, 1, 2 or -1"),
             false;
    }
    if (handle == -1) return true;
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
  const int copies = PyObject_IsTrue(copy);
  if (copies < 0) return nullptr;
  if (copies) return PyErr_Format(PyExc_BufferError, "bc.Tensor: exports its memory, never a copy");
  const DLDevice mine = dl_device(view_of(self));
  int64_t wanted[] = {mine.device_type, mine.device_id}, most[] = {0, 0};
  if (device != Py_None && !read_pair("__dlpack__(dl_device=)", device, wanted)) return nullptr;
  if (version != Py_None && !read_pair("__dlpack__(max_version=)", version, most)) return nullptr;
  if (wanted[0] != mine.device_type || wanted[1] != mine.device_id)
    return PyErr_Format(PyExc_BufferError,
                        "bc.Tensor: lies on DLPack device (%d, %d), not on (%lld, %lld): copy it with .to() first",
                        static_cast<int>(mine.device_type), mine.device_id, static_cast<long long>(wanted[0]),
                        static_cast<long long>(wanted[1]));
  if (!ready_for(view_of(self), stream)) return nullptr;
  Named memory;
  if (!name_memory(self_of(self), memory)) return nullptr;
  if (most[0] >= 1) return export_capsule<DLManagedTensorVersioned>(self, memory);
  if (view_of(self).read_only)
    return PyErr_Format(PyExc_BufferError, "bc.Tensor: is read-only, which only DLPack 1.0 and later can say");
  return export_capsule<DLManagedTensor>(self, memory);
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  const DLDevice mine = dl_device(view_of(self));
  return Py_BuildValue("(ii)", static_cast<int>(mine.device_type), mine.device_id);
}

// --- NumPy
// ------------------------------------------------------------------------------------------------------------

// The dtype of an element, which its member knows; asked for once. A new reference, or null with an exception set.
PyObject* dtype_of(Element element) {
  static std::atomic<PyObject*> known[kElementCount];
  const int at = static_cast<int>(element);
  if (PyObject* dtype = known[at].load(std::memory_order_acquire)) return Py_NewRef(dtype);
  PyObject* dtype = PyObject_GetAttrString(element_members[at], "numpy");
  if (dtype && !PyArray_DescrCheck(dtype)) {
    Py_DECREF(dtype);
    return PyErr_Format(PyExc_TypeError, "Element.numpy: want a dtype");
  }
  PyObject* nobody = nullptr;
  if (dtype && known[at].compare_exchange_strong(nobody, dtype)) Py_INCREF(dtype);
  return dtype;
}

constexpr const char* kLoan = "baracuda.loan";
void end_loan(PyObject* loan) { give_back(static_cast<PyObject*>(PyCapsule_GetPointer(loan, kLoan))); }

// What an array of a tensor's memory holds: the tensor, and where that could be moved the promise that it is not.
PyObject* base_for(PyObject* self) {
  auto* t = self_of(self);
  if (!t->movable) return Py_NewRef(self);
  PyObject* loan = PyCapsule_New(self, kLoan, nullptr);
  if (!loan) return nullptr;
  lend(t);
  Py_INCREF(self);
  PyCapsule_SetDestructor(loan, &end_loan);
  return loan;
}

// The memory as an array of a dtype (taken) of the element's size.
PyObject* array_of(PyObject* self, PyObject* dtype) {
  PyObject* base = dtype ? base_for(self) : nullptr;
  if (!base) return Py_XDECREF(dtype), nullptr;
  const TensorView& v = view_of(self);
  npy_intp sizes[kMaxRank], steps[kMaxRank];
  for (int i = 0; i < v.rank; ++i) {
    sizes[i] = v.shape[i];
    int64_t step;  // one that overflows is of a dimension that is not stepped through
    steps[i] = __builtin_mul_overflow(v.strides[i], size_of(v.element), &step) ? 0 : step;
  }
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype), v.rank, sizes, steps,
                                         address_of(self_of(self)), v.read_only ? 0 : NPY_ARRAY_WRITEABLE, nullptr);
  if (!array) return Py_DECREF(base), nullptr;
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), base) < 0) Py_CLEAR(array);
  return array;
}

PyObject* tensor_numpy(PyObject* self, PyObject*) {
  const TensorView& v = view_of(self);
  if (v.unbacked) return refuse_unbacked("numpy");
  if (v.device != Backend::Cpu)
    return raise_refusal({Code::Device, "numpy", "a tensor on " + device_name(v.device, v.device_id),
                          "one on the cpu, which NumPy can read", "copy it: t.to('cpu').numpy()"},
                         Py_None);
  return array_of(self, dtype_of(v.element));
}

// The memory as an array of plain bytes in elements, for copies of what NumPy may have no name for.
PyObject* tensor_opaque(PyObject* self, PyObject*) {
  const TensorView& v = view_of(self);
  if (v.unbacked) return refuse_unbacked("copy");
  PyArray_Descr* plain = PyArray_DescrNewFromType(NPY_VOID);
  if (plain) PyDataType_SET_ELSIZE(plain, size_of(v.element));
  return array_of(self, reinterpret_cast<PyObject*>(plain));
}

// --- numbers
// ----------------------------------------------------------------------------------------------------------

PyObject* number_at(const TensorView& v, const void* data) {
  Scalar s;
  s.data = data, s.element = v.element;
  if (v.element == Element::Bool) return PyBool_FromLong(s.as_i64() != 0);
  if (v.element == Element::U64) return PyLong_FromUnsignedLongLong(s.as_u64());
  if (kInts.has(v.element)) return PyLong_FromLongLong(s.as_i64());
  return PyFloat_FromDouble(s.as_f64());
}

}  // namespace

PyObject* get_dtype(PyObject* self, void*) { return dtype_of(view_of(self).element); }

// item() of a tensor of one element, wherever it is.
PyObject* number_of(PyObject* self) {
  const TensorView& v = view_of(self);
  if (v.unbacked) return refuse_unbacked("item");
  const FloatState own;  // subnormal numbers of f32, too
  if (v.device == Backend::Cpu && kReal.has(v.element)) return number_at(v, address_of(self_of(self)));
  PyObject* here =
      v.device == Backend::Cpu ? Py_NewRef(self) : PyObject_CallFunction(tensor_hooks.to, "Os", self, "cpu");
  PyObject* number = nullptr;
  if (here && kReal.has(v.element))
    number = number_of(here);
  else if (PyObject* array = here ? tensor_numpy(here, nullptr) : nullptr) {
    number = PyObject_CallMethod(array, "item", nullptr);
    Py_DECREF(array);
  }
  Py_XDECREF(here);
  return number;
}

namespace {
PyObject* tensor_item(PyObject* self, PyObject*) {
  if (view_of(self).numel() == 1) return number_of(self);
  return refuse_tensor("item", std::to_string(view_of(self).numel()) + " elements", "1");
}
}  // namespace

PyMethodDef export_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&tensor_dlpack)), METH_VARARGS | METH_KEYWORDS,
     "Exports the tensor as a DLPack capsule."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "DLPack's (device type, device id)."},
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy()\n--\n\nA NumPy array of the same memory; bf16 and fp8 need ml_dtypes."},
    {"item", tensor_item, METH_NOARGS,
     "item()\n--\n\nThe only element, as a Python number; fetched from the device after the work of its default "
     "stream."},
    {"_opaque", tensor_opaque, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace baracuda::bindings
