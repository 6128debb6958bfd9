#include "bindings/import.h"

#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstring>

#include "bindings/device.h"
#include "bindings/import_detail.h"
#include "bindings/tensor.h"
#include "core/dltensor.h"

namespace baracuda::bindings {
namespace detail {

Names names;

namespace {

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

Imported import_numpy(PyObject* object, TensorView& view, Why& why) {
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
    why = Refusal{Code::Rank, "", "rank " + std::to_string(rank), "at most 8", "merge dimensions with reshape()"};
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

}  // namespace

namespace {

constexpr const char* kAdopted = "baracuda.adopted";

void give_up(PyObject* capsule) {
  const std::unique_ptr<Adopted> adopted(static_cast<Adopted*>(PyCapsule_GetPointer(capsule, kAdopted)));
  Py_BEGIN_ALLOW_THREADS adopted->give_up();
  Py_END_ALLOW_THREADS
}

// Memory that came as an object is in use for as long as it is kept.
Imported adopt(DLTensor t, TensorView& view, Keep& keep, Why& why) {
  if (keep.of_torch && t.data) {
    // What torch says here depends on its release: the buffer and an offset, or the two added up.
    const char* at = static_cast<const char*>(t.data) + t.byte_offset;
    t.data = const_cast<void*>(torch_storage(keep.of_torch).data);
    t.byte_offset = static_cast<uint64_t>(at - static_cast<const char*>(t.data));
  }
  Adopted adopted;
  if (!baracuda::adopt(t, view, adopted, why)) return Imported::Refused;
  if (!adopted.module) return Imported::Yes;
  PyObject* capsule = capsule_of(adopted);
  if (!capsule) return Imported::PythonError;
  keep.add(capsule);
  return Imported::Yes;
}

}  // namespace

PyObject* capsule_of(Adopted adopted) {
  auto held = std::make_unique<Adopted>(adopted);
  PyObject* capsule = PyCapsule_New(held.get(), kAdopted, &give_up);
  if (capsule)
    held.release();
  else
    adopted.give_up();
  return capsule;
}

Imported from_dl(const DLTensor& t, TensorView& view, Keep& keep, Why& why) {
  if (!read_dltensor(t, view, why)) return Imported::Refused;
  return view.device == Backend::Metal ? adopt(t, view, keep, why) : Imported::Yes;
}

namespace {

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

Imported not_a_tensor(PyObject* object, Why& why) {
  why = Refusal{Code::NotATensor, "", std::string("an object of type ") + Py_TYPE(object)->tp_name,
                "a NumPy array, a torch tensor, bc.Tensor or any object with __dlpack__",
                "wrap numbers and lists with np.asarray()"};
  return Imported::Refused;
}

}  // namespace
}  // namespace detail

void Keep::add(PyObject* owned) {
  if (n < kInline) {
    refs[n++] = owned;
    return;
  }
  if (!more) more = PyList_New(0);
  PyList_Append(more, owned);
  Py_DECREF(owned);
}

Imported import_tensor(PyObject* object, TensorView& view, Keep& keep, Why& why) {
  using namespace detail;
  PyTypeObject* type = Py_TYPE(object);
  if (PyArray_CheckExact(object)) return import_numpy(object, view, why);
  if (const TensorObject* own = as_tensor(object)) {
    if (own->view.unbacked && !keep.dry && !inferring())
      return refuse(why, Code::NullData, "a shape without memory", "a tensor",
                    "such shapes are for can_implement, and for infer of functions");
    keep.unbacked |= own->view.unbacked;
    read_view(own, view);
    return Imported::Yes;
  }
  if (const DLPackExchangeAPI* const* api = exchange_apis.find(type))
    return import_torch(object, *api, view, keep, why);
  if (PyArray_Check(object)) {
    if (is_masked(type))
      return refuse(why, Code::Masked, "a masked array", "a plain array",
                    "baracuda has no masks: pass x.filled(value) or x.data");
    return import_numpy(object, view, why);
  }
  if (PyCapsule_CheckExact(object)) return import_bare_capsule(object, view, keep, why);
  if (PyArray_IsScalar(object, Generic)) return not_a_tensor(object, why);
  if (const DLPackExchangeAPI* api = find_torch_api(type)) return import_torch(object, api, view, keep, why);
  PyObject* has = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), names.dlpack);
  if (!has) {
    PyErr_Clear();
    return not_a_tensor(object, why);
  }
  Py_DECREF(has);
  if (is_torch_type(type)) return import_torch_subclass(object, view, keep, why);
  return import_protocol(object, view, keep, why);
}

namespace {
constinit thread_local bool t_inferring = false;
}
bool inferring() { return t_inferring; }
bool exchange_inferring(bool now) { return std::exchange(t_inferring, now); }

bool may_move(PyObject* object) {
  if (const TensorObject* own = as_tensor(object)) return own->movable;
  return PyArray_Check(object) || is_torch_tensor(object);
}

Imported import_same(PyObject* object, TensorView& view, Keep& keep, Why& why) {
  TensorView now;
  const Imported done = import_tensor(object, now, keep, why);
  if (done != Imported::Yes) return done;
  if (now.rank != view.rank || !std::equal(now.shape, now.shape + now.rank, view.shape) || now.element != view.element)
    return detail::refuse(why, Code::Moved, "a tensor that was resized while the arguments were read",
                          "one that stays as it is during the call",
                          "do not resize it in another argument's __dlpack__");
  view = now;
  return Imported::Yes;
}

bool import_setup() {
  using detail::names;
  names.dlpack = PyUnicode_InternFromString("__dlpack__");
  names.exchange_api = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  names.max_version = PyUnicode_InternFromString("max_version");
  names.requires_grad = PyUnicode_InternFromString("requires_grad");
  names.is_neg = PyUnicode_InternFromString("is_neg");
  names.is_conj = PyUnicode_InternFromString("is_conj");
  names.layout = PyUnicode_InternFromString("layout");
  names.torch = PyUnicode_InternFromString("torch");
  names.dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  names.no_sync = PyLong_FromLong(-1);
  names.stream_kw = Py_BuildValue("(s)", "stream");
  names.max_version_stream_kw = Py_BuildValue("(Os)", names.max_version, "stream");
  names.max_version_kw = PyTuple_Pack(1, names.max_version);
  names.version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  return !PyErr_Occurred();
}

}  // namespace baracuda::bindings
