#include "bindings/import.h"

#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <dlpack/dlpack.h>
#include <numpy/arrayobject.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "bindings/tensor.h"

namespace baracuda::bindings {
namespace {

struct Names {
  PyObject *dlpack, *exchange_api, *max_version, *version, *requires_grad, *is_neg, *is_conj, *layout, *torch;
  PyObject* max_version_kw;
  PyTypeObject* ndarray;
  PyObject* grad_enabled;  // torch.is_grad_enabled, once torch is seen
  PyObject* bump;          // torch._C._increment_version
  PyTypeObject* torch_tensor;
  // The C functions behind torch.Tensor.requires_grad and is_neg: a look-up by name would cost more than they do.
  getter torch_requires_grad;
  void* torch_requires_grad_closure;
  PyCFunction torch_is_neg;
} names;

// Types that were recognised once. Readers take no lock; entries are never changed or removed.
template <class T, int kMost>
struct SeenTypes {
  struct Entry {
    PyTypeObject* type;
    T value;
  };
  Entry entries[kMost];
  std::atomic<int> n{0};
  std::mutex mutex;

  const T* find(PyTypeObject* type) const {
    int count = n.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i)
      if (entries[i].type == type) return &entries[i].value;
    return nullptr;
  }
  void add(PyTypeObject* type, T value) {
    std::lock_guard lock(mutex);
    int count = n.load(std::memory_order_relaxed);
    if (find(type) || count == kMost) return;
    Py_INCREF(type);  // its address must not become another type's
    entries[count] = {type, value};
    n.store(count + 1, std::memory_order_release);
  }
};

Imported refuse(Refusal& why, Code code, const char* got, const char* want, const char* hint) {
  why = {code, "", got, want, hint};
  return Imported::Refused;
}

constexpr uint8_t kNoElement = 255;

uint8_t element_of_type_num(int type_num) {
  switch (type_num) {
    case NPY_BOOL:
      return uint8_t(Element::Bool);
    case NPY_UINT8:
      return uint8_t(Element::U8);
    case NPY_UINT16:
      return uint8_t(Element::U16);
    case NPY_UINT32:
      return uint8_t(Element::U32);
    case NPY_ULONG:
    case NPY_ULONGLONG:
      return uint8_t(Element::U64);
    case NPY_INT8:
      return uint8_t(Element::I8);
    case NPY_INT16:
      return uint8_t(Element::I16);
    case NPY_INT32:
      return uint8_t(Element::I32);
    case NPY_LONG:
    case NPY_LONGLONG:
      return uint8_t(Element::I64);
    case NPY_HALF:
      return uint8_t(Element::F16);
    case NPY_FLOAT:
      return uint8_t(Element::F32);
    case NPY_DOUBLE:
      return uint8_t(Element::F64);
    case NPY_CFLOAT:
      return uint8_t(Element::C64);
    case NPY_CDOUBLE:
      return uint8_t(Element::C128);
    default:
      return kNoElement;
  }
}

// ml_dtypes registers its types with NumPy at run time; each is recognised by the scalar type's name, once.
uint8_t element_of_user_type(PyTypeObject* type) {
  static SeenTypes<uint8_t, 8> seen;
  if (const uint8_t* element = seen.find(type)) return *element;
  const char* dot = std::strrchr(type->tp_name, '.');
  const char* name = dot ? dot + 1 : type->tp_name;
  constexpr struct {
    const char* name;
    Element element;
  } known[] = {{"bfloat16", Element::BF16}, {"float8_e4m3fn", Element::F8E4M3}, {"float8_e5m2", Element::F8E5M2}};
  for (const auto& k : known) {
    if (std::strcmp(k.name, name) != 0) continue;
    seen.add(type, uint8_t(k.element));
    return uint8_t(k.element);
  }
  return kNoElement;
}

Imported import_numpy(PyObject* object, TensorView& view, Refusal& why) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  PyArray_Descr* descr = PyArray_DESCR(array);
  uint8_t element = element_of_type_num(descr->type_num);
  if (element == kNoElement) element = element_of_user_type(descr->typeobj);
  if (element == kNoElement)
    return refuse(why, Code::ElementKind, descr->typeobj->tp_name, "a numeric dtype that baracuda knows",
                  "cast it with astype()");
  if (descr->byteorder == NPY_OPPBYTE)
    return refuse(why, Code::ByteOrder, "an array in non-native byte order", "native byte order",
                  "convert it: x.astype(x.dtype.newbyteorder('='))");
  int rank = PyArray_NDIM(array);
  if (rank > kMaxRank) {
    why = {Code::Rank, "", "rank " + std::to_string(rank), "at most 8", "merge dimensions with reshape()"};
    return Imported::Refused;
  }
  view.data = PyArray_DATA(array);
  view.rank = rank;
  view.element = static_cast<Element>(element);
  view.device = Backend::Cpu;
  view.device_id = 0;
  view.unbacked = false;
  view.read_only = !(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE);
  const npy_intp* shape = PyArray_DIMS(array);
  const npy_intp* strides = PyArray_STRIDES(array);
  int64_t size = size_of(view.element);
  int shift = __builtin_ctzll(size);
  for (int i = 0; i < rank; ++i) {
    view.shape[i] = shape[i];
    view.strides[i] = strides[i] >> shift;
    if ((strides[i] & (size - 1)) && shape[i] > 1)
      return refuse(why, Code::Strides, "a stride that is not a multiple of the item size", "strides in whole elements",
                    "make it contiguous: np.ascontiguousarray(x)");
  }
  return Imported::Yes;
}

uint8_t element_of_dl(DLDataType t) {
  if (t.lanes != 1) return kNoElement;
  if (t.code == kDLBool && t.bits == 8) return uint8_t(Element::Bool);
  for (int i = 0; i < kElementCount; ++i) {
    const ElementInfo& e = kElementInfo[i];
    if (e.dl_code == t.code && e.dl_bits == t.bits && e.bits >= 8) return uint8_t(i);
  }
  return kNoElement;
}

Imported from_dl(const DLTensor& t, TensorView& view, Refusal& why) {
  uint8_t element = element_of_dl(t.dtype);
  if (element == kNoElement) {
    why = {Code::ElementKind, "",
           "DLPack type code " + std::to_string(t.dtype.code) + ", " + std::to_string(t.dtype.bits) + " bits, " +
               std::to_string(t.dtype.lanes) + " lanes",
           "an element that baracuda knows", "cast it first"};
    return Imported::Refused;
  }
  if (t.ndim < 0 || t.ndim > kMaxRank) {
    why = {Code::Rank, "", "rank " + std::to_string(t.ndim), "at most 8", "merge dimensions with reshape()"};
    return Imported::Refused;
  }
  switch (t.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      view.device = Backend::Cpu;
      break;
    case kDLCUDA:
    case kDLCUDAManaged:
      view.device = Backend::Cuda;
      break;
    case kDLMetal:
      view.device = Backend::Metal;
      break;
    default:
      return refuse(why, Code::Device, "a device that baracuda has no backend for", "cpu, cuda or metal",
                    "copy it to one of these");
  }
  view.device_id = t.device.device_id;
  view.unbacked = false;
  view.data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
  view.rank = t.ndim;
  view.element = static_cast<Element>(element);
  int64_t dense = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    view.shape[i] = t.shape[i];
    view.strides[i] = t.strides ? t.strides[i] : dense;
    if (t.shape[i] < 0 || (!t.strides && __builtin_mul_overflow(dense, t.shape[i], &dense)))
      return refuse(why, Code::Shape, "a negative size, or more than 2^63 elements", "sizes of at least 0",
                    "the tensor's producer is at fault");
  }
  return Imported::Yes;
}

// --- torch ----------------------------------------------------------------------------------------------------------

SeenTypes<const DLPackExchangeAPI*, 4> exchange_apis;

// Finds the C functions of two members of torch.Tensor, where they are what they are today.
void find_torch_members(PyObject* type) {
  PyObject* grad = PyObject_GetAttr(type, names.requires_grad);
  if (grad && Py_IS_TYPE(grad, &PyGetSetDescr_Type)) {
    PyGetSetDef* def = reinterpret_cast<PyGetSetDescrObject*>(grad)->d_getset;
    names.torch_requires_grad = def->get, names.torch_requires_grad_closure = def->closure;
  }
  PyObject* neg = PyObject_GetAttr(type, names.is_neg);
  if (neg && Py_IS_TYPE(neg, &PyMethodDescr_Type)) {
    PyMethodDef* def = reinterpret_cast<PyMethodDescrObject*>(neg)->d_method;
    if (def->ml_flags == METH_NOARGS) names.torch_is_neg = def->ml_meth;
  }
  Py_XDECREF(grad), Py_XDECREF(neg);
  PyErr_Clear();
}

// torch.Tensor once torch is imported, else null.
PyTypeObject* torch_tensor_type() {
  static std::mutex mutex;
  if (names.torch_tensor) return names.torch_tensor;
  PyObject* torch = PyImport_GetModule(names.torch);
  PyObject* type = torch ? PyObject_GetAttrString(torch, "Tensor") : nullptr;
  PyObject* enabled = type ? PyObject_GetAttrString(torch, "is_grad_enabled") : nullptr;
  PyObject* c = enabled ? PyObject_GetAttrString(torch, "_C") : nullptr;
  PyObject* bump = c ? PyObject_GetAttrString(c, "_increment_version") : nullptr;
  PyErr_Clear();  // torch may be only half imported
  Py_XDECREF(c), Py_XDECREF(torch);
  std::lock_guard lock(mutex);
  if (type && PyType_Check(type) && enabled && bump && !names.torch_tensor) {
    names.grad_enabled = enabled, names.bump = bump;
    find_torch_members(type);
    return names.torch_tensor = reinterpret_cast<PyTypeObject*>(type);
  }
  Py_XDECREF(type), Py_XDECREF(enabled), Py_XDECREF(bump);
  return names.torch_tensor;
}

bool is_torch_type(PyTypeObject* type) {
  PyTypeObject* tensor = torch_tensor_type();
  return tensor && PyType_IsSubtype(type, tensor);
}

// The exchange table of an exact torch.Tensor or torch.nn.Parameter; other subclasses may hide another tensor and are
// not trusted. Only for types that are not in exchange_apis.
const DLPackExchangeAPI* find_torch_api(PyTypeObject* type) {
  bool tensor = std::strcmp(type->tp_name, "Tensor") == 0 || std::strcmp(type->tp_name, "Parameter") == 0;
  if (!tensor || !is_torch_type(type)) return nullptr;
  PyObject* module = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__");
  const char* where = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  bool exact = type == names.torch_tensor || (where && std::strcmp(where, "torch.nn.parameter") == 0);
  Py_XDECREF(module);
  const DLPackExchangeAPI* api = nullptr;
  PyObject* capsule = exact ? PyObject_GetAttr(reinterpret_cast<PyObject*>(type), names.exchange_api) : nullptr;
  if (capsule) api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  Py_XDECREF(capsule);
  PyErr_Clear();  // a torch without the exchange API goes through __dlpack__
  if (!api || api->header.version.major != DLPACK_MAJOR_VERSION) return nullptr;
  exchange_apis.add(type, api);
  return api;
}

// -1: error, else truth of a zero-argument method or attribute.
int truth_of(PyObject* value) {
  if (!value) return -1;
  int yes = PyObject_IsTrue(value);
  Py_DECREF(value);
  return yes;
}

// What a torch tensor that cannot be exported is, in words.
Imported explain_torch(PyObject* object, Refusal& why) {
  PyErr_Clear();
  PyObject* is_meta = PyObject_GetAttrString(object, "is_meta");
  if (truth_of(is_meta) == 1)
    return refuse(why, Code::Meta, "a meta tensor, which has no memory", "a tensor with memory",
                  "pass it to can_implement, or materialise it");
  PyErr_Clear();
  PyObject* layout = PyObject_GetAttr(object, names.layout);
  PyObject* text = layout ? PyObject_Str(layout) : nullptr;
  const char* c = text ? PyUnicode_AsUTF8(text) : nullptr;
  bool sparse = c && std::strcmp(c, "torch.strided") != 0;
  Py_XDECREF(layout), Py_XDECREF(text);
  PyErr_Clear();
  if (sparse) return refuse(why, Code::Sparse, "a sparse torch tensor", "a dense (strided) tensor", "call .to_dense()");
  return refuse(why, Code::NullData, "a wrapped torch tensor without memory of its own", "a plain tensor",
                "call the plan outside functorch, vmap or fake-tensor modes");
}

Imported guard_torch(PyObject* object, const TensorView& view, Refusal& why) {
  PyObject* grad = names.torch_requires_grad ? names.torch_requires_grad(object, names.torch_requires_grad_closure)
                                             : PyObject_GetAttr(object, names.requires_grad);
  if (!grad) return Imported::PythonError;
  bool wants_grad = grad == Py_True;
  Py_DECREF(grad);
  if (wants_grad && names.grad_enabled) {
    int enabled = truth_of(PyObject_CallNoArgs(names.grad_enabled));
    if (enabled < 0) return Imported::PythonError;
    if (enabled)
      return refuse(why, Code::RequiresGrad, "a torch tensor that requires grad",
                    "one that does not, or torch.no_grad()",
                    "baracuda does not record on torch's tape: call x.detach(), use torch.no_grad(), or bc.vjp");
  }
  bool complex = view.element == Element::C64 || view.element == Element::C128;
  if (complex && truth_of(PyObject_CallMethodNoArgs(object, names.is_conj)) == 1)
    return refuse(why, Code::Conjugate, "a torch tensor with the conjugate bit set", "resolved memory",
                  "call x.resolve_conj()");
  // Contiguous ones too: the imaginary part of one conjugated number, and torch._neg_view, carry the bit.
  PyObject* negative =
      names.torch_is_neg ? names.torch_is_neg(object, nullptr) : PyObject_CallMethodNoArgs(object, names.is_neg);
  if (truth_of(negative) == 1)
    return refuse(why, Code::Negative, "a torch tensor with the negative bit set", "resolved memory",
                  "call x.resolve_neg()");
  if (PyErr_Occurred()) return Imported::PythonError;
  return Imported::Yes;
}

Imported import_torch(PyObject* object, const DLPackExchangeAPI* api, TensorView& view, Refusal& why) {
  DLTensor t;
  if (api->dltensor_from_py_object_no_sync(object, &t)) return explain_torch(object, why);
  Imported done = from_dl(t, view, why);
  if (done != Imported::Yes) return done;
  view.read_only = false;
  if (!view.data && view.numel() != 0) return explain_torch(object, why);
  return guard_torch(object, view, why);
}

// --- everything else ------------------------------------------------------------------------------------------------

Imported import_capsule(PyObject* capsule, TensorView& view, Refusal& why) {
  const char* name = PyCapsule_GetName(capsule);
  if (name && std::strcmp(name, "dltensor_versioned") == 0) {
    auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, name));
    if (m->version.major != DLPACK_MAJOR_VERSION)
      return refuse(why, Code::Capsule, "a DLPack capsule of another major version", "DLPack 1.x",
                    "update the library it came from");
    view.read_only = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    return from_dl(m->dl_tensor, view, why);
  }
  if (name && std::strcmp(name, "dltensor") == 0) {
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, name));
    view.read_only = true;  // a legacy capsule cannot say whether writing is allowed
    return from_dl(m->dl_tensor, view, why);
  }
  bool used = name && std::strncmp(name, "used_dltensor", 13) == 0;
  why = {Code::Capsule, "",
         used ? std::string("a consumed capsule") : std::string("a capsule named ") + (name ? name : "nothing"),
         "dltensor_versioned or dltensor", "a capsule can be used once: ask the tensor for a fresh one"};
  return Imported::Refused;
}

// What __dlpack__ raised, as a refusal; interrupts and the like stay exceptions.
Imported explain_raised(PyObject* object, Refusal& why) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return Imported::PythonError;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* c = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string message = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (c && *c) message += std::string(": ") + c;
  Py_XDECREF(text), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  PyErr_Clear();
  why = {Code::Capsule, "", std::string(Py_TYPE(object)->tp_name) + ".__dlpack__() raised " + message,
         "a tensor that can be exported", "copy it to a plain array first"};
  return Imported::Refused;
}

Imported import_protocol(PyObject* object, TensorView& view, Keep& keep, Refusal& why) {
  PyObject* args[2] = {object, names.version};
  PyObject* capsule =
      PyObject_VectorcallMethod(names.dlpack, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names.max_version_kw);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer from before max_version
    PyErr_Clear();
    capsule = PyObject_CallMethodNoArgs(object, names.dlpack);
  }
  if (!capsule) return explain_raised(object, why);
  keep.add(capsule);
  if (!PyCapsule_CheckExact(capsule))
    return refuse(why, Code::Capsule, "something else than a capsule from __dlpack__", "a DLPack capsule",
                  "the tensor's producer is at fault");
  return import_capsule(capsule, view, why);
}

// A subclass of torch.Tensor, by the protocol that it may have overridden.
Imported import_torch_subclass(PyObject* object, TensorView& view, Keep& keep, Refusal& why) {
  Imported done = import_protocol(object, view, keep, why);
  if (done == Imported::Yes && (view.data || view.numel() == 0)) return guard_torch(object, view, why);
  if (done == Imported::Yes) return explain_torch(object, why);
  if (done == Imported::PythonError) return done;
  PyObject* grad = PyObject_GetAttr(object, names.requires_grad);
  bool wants_grad = grad == Py_True;
  Py_XDECREF(grad);
  PyErr_Clear();
  if (wants_grad)
    return refuse(why, Code::RequiresGrad, "a subclass of torch.Tensor that requires grad", "one that does not",
                  "call x.detach()");
  if (truth_of(PyObject_CallMethodNoArgs(object, names.is_conj)) == 1)
    return refuse(why, Code::Conjugate, "a torch tensor with the conjugate bit set", "resolved memory",
                  "call x.resolve_conj()");
  return explain_torch(object, why);
}

// By base class, because subclasses have other names.
bool is_masked(PyTypeObject* type) {
  PyObject* bases = type->tp_mro;
  for (Py_ssize_t i = 0; bases && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
    const char* dot = std::strrchr(base->tp_name, '.');
    if (std::strcmp(dot ? dot + 1 : base->tp_name, "MaskedArray") == 0) return true;
  }
  return false;
}

Imported not_a_tensor(PyObject* object, Refusal& why) {
  why = {Code::NotATensor, "", std::string("an object of type ") + Py_TYPE(object)->tp_name,
         "a NumPy array, a torch tensor, bc.Tensor or any object with __dlpack__",
         "wrap numbers and lists with np.asarray()"};
  return Imported::Refused;
}

}  // namespace

Keep::~Keep() {
  for (int i = 0; i < n; ++i) Py_DECREF(refs[i]);
  Py_XDECREF(more);
}

void Keep::add(PyObject* owned) {
  if (n < kInline) {
    refs[n++] = owned;
    return;
  }
  if (!more) more = PyList_New(0);
  PyList_Append(more, owned);
  Py_DECREF(owned);
}

Imported import_tensor(PyObject* object, TensorView& view, Keep& keep, Refusal& why) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == names.ndarray) return import_numpy(object, view, why);
  if (const DLPackExchangeAPI* const* api = exchange_apis.find(type)) return import_torch(object, *api, view, why);
  if (const TensorView* own = own_tensor(object)) {
    if (own->unbacked && !keep.dry)
      return refuse(why, Code::NullData, "a shape without memory", "a tensor", "such shapes are for can_implement");
    view = *own;
    return Imported::Yes;
  }
  if (PyArray_Check(object)) {
    if (is_masked(type))
      return refuse(why, Code::Masked, "a masked array", "a plain array",
                    "baracuda has no masks: pass x.filled(value) or x.data");
    return import_numpy(object, view, why);
  }
  if (PyCapsule_CheckExact(object)) return import_capsule(object, view, why);
  if (PyArray_IsScalar(object, Generic)) return not_a_tensor(object, why);
  if (const DLPackExchangeAPI* api = find_torch_api(type)) return import_torch(object, api, view, why);
  PyObject* has = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), names.dlpack);
  if (!has) {
    PyErr_Clear();
    return not_a_tensor(object, why);
  }
  Py_DECREF(has);
  if (is_torch_type(type)) return import_torch_subclass(object, view, keep, why);
  return import_protocol(object, view, keep, why);
}

Imported import_scalar(PyObject* object, Scalar::Kind kind, Scalar& scalar, Keep& keep, Refusal& why) {
  scalar.kind = kind;
  scalar.data = nullptr;
  if (PyFloat_CheckExact(object) && kind == Scalar::Kind::Float) {
    scalar.f = PyFloat_AS_DOUBLE(object);
    return Imported::Yes;
  }
  if (PyLong_Check(object) || PyFloat_Check(object) || PyArray_IsScalar(object, Generic)) {
    // Conversions that would drop an imaginary part or read a text are no numbers.
    bool number = !PyArray_IsScalar(object, ComplexFloating) && !PyArray_IsScalar(object, Flexible) &&
                  !PyArray_IsScalar(object, Datetime) && !PyArray_IsScalar(object, Timedelta);
    if (!number) return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "a real number", "pass a float or int");
    if (kind == Scalar::Kind::Float) {
      scalar.f = PyFloat_AsDouble(object);
    } else {
      PyObject* integer = PyNumber_Index(object);
      if (!integer) {
        PyErr_Clear();
        return refuse(why, Code::ScalarKind, Py_TYPE(object)->tp_name, "an integer", "pass an int");
      }
      if (kind == Scalar::Kind::Int) scalar.i = PyLong_AsLongLong(integer);
      if (kind == Scalar::Kind::Unsigned) scalar.u = PyLong_AsUnsignedLongLong(integer);
      Py_DECREF(integer);
    }
    if (!PyErr_Occurred()) return Imported::Yes;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError) && !PyErr_ExceptionMatches(PyExc_TypeError))
      return Imported::PythonError;
    PyErr_Clear();
    return refuse(why, Code::ScalarKind, "a number out of range",
                  kind == Scalar::Kind::Unsigned ? "0 <= n < 2^64"
                  : kind == Scalar::Kind::Int    ? "-2^63 <= n < 2^63"
                                                 : "a number that fits a double",
                  "pass a number in this range");
  }
  TensorView view;
  Imported done = import_tensor(object, view, keep, why);
  if (done != Imported::Yes) {
    if (done == Imported::Refused && why.code == Code::NotATensor) why.want = "a number or a 0-d tensor";
    return done;
  }
  bool fits = kind == Scalar::Kind::Float ? kReal.has(view.element) : (kInts | kBool).has(view.element);
  if (view.numel() != 1 || view.device != Backend::Cpu || !fits)
    return refuse(why, Code::ScalarKind, "a tensor of several elements, of another element, or on another device",
                  kind == Scalar::Kind::Float ? "a number or a real 0-d tensor on the plan's device"
                                              : "an int or an integer 0-d tensor on the plan's device",
                  "pass x.item()");
  if (!view.data && !view.unbacked)
    return refuse(why, Code::NullData, "no data", "a number or a 0-d tensor", "pass a number");
  scalar.data = view.data;
  scalar.element = view.element;
  return Imported::Yes;
}

bool is_torch_tensor(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (exchange_apis.find(type)) return true;
  if (type == names.ndarray || own_tensor(object) || !names.torch_tensor) return false;
  return PyType_IsSubtype(type, names.torch_tensor);
}

PyObject* number_of_numpy_scalar(PyObject* object) {
  if (Py_TYPE(object) == names.ndarray || !PyArray_IsScalar(object, Generic)) return nullptr;
  if (PyArray_IsScalar(object, LongDouble)) return PyNumber_Float(object);
  return PyObject_CallMethod(object, "item", nullptr);
}

bool is_constant(PyObject* object) {
  if (PyType_Check(object) || PyArray_DescrCheck(object)) return true;
  PyTypeObject* type = Py_TYPE(object);
  const char* meta = Py_TYPE(type)->tp_name;
  return std::strcmp(meta, "EnumType") == 0 || std::strcmp(meta, "EnumMeta") == 0 ||
         std::strcmp(type->tp_name, "torch.dtype") == 0;
}

void bump_torch_version(PyObject* object) {
  if (!names.bump) return;
  PyObject* tuple = PyTuple_Pack(1, object);
  PyObject* done = tuple ? PyObject_CallOneArg(names.bump, tuple) : nullptr;
  Py_XDECREF(tuple);
  Py_XDECREF(done);
  if (!done) PyErr_Clear();  // inference tensors have no version
}

bool import_setup() {
  names.dlpack = PyUnicode_InternFromString("__dlpack__");
  names.exchange_api = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  names.max_version = PyUnicode_InternFromString("max_version");
  names.requires_grad = PyUnicode_InternFromString("requires_grad");
  names.is_neg = PyUnicode_InternFromString("is_neg");
  names.is_conj = PyUnicode_InternFromString("is_conj");
  names.layout = PyUnicode_InternFromString("layout");
  names.torch = PyUnicode_InternFromString("torch");
  names.max_version_kw = PyTuple_Pack(1, names.max_version);
  names.version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  PyObject* numpy = PyImport_ImportModule("numpy");
  if (!numpy) return false;
  names.ndarray = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(numpy, "ndarray"));
  Py_DECREF(numpy);
  return names.ndarray != nullptr;
}

}  // namespace baracuda::bindings
