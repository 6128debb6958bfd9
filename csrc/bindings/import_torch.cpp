// torch tensors: memory by DLPack's C exchange API, which says nothing about the flags that make it a lie; those are
// asked for one by one.
#include <algorithm>
#include <cstring>

#include "bindings/import_detail.h"
#include "bindings/opaque.h"
#include "bindings/tensor.h"

namespace baracuda::bindings {
namespace detail {

SeenTypes<const DLPackExchangeAPI*, 4> exchange_apis;

namespace {

constexpr uint8_t kUnknown = 255;

// How torch holds tensors of the CPU that nothing is special about, in bytes from a TensorImpl's start and a
// StorageImpl's. Their dispatch keys are all the same: those of sparse, quantized, conjugated, wrapped and fake
// tensors, of other devices and of inference are others.
struct TorchPlaces {
  static constexpr int kInline = 5;       // sizes, and strides behind them, are in the tensor up to this rank
  int storage = 0, data = 0, checks = 0;  // `checks` is 0 where memory may be read and written as it is
  int keys = 0, sizes = 0, offset = 0, type = 0, grad = 0;  // `grad` is null where nobody ever asked for a gradient
  unsigned long long plain_keys = 0;
  uint8_t elements[64];  // by torch's number of the dtype
};

struct Torch {
  std::atomic<PyTypeObject*> tensor{nullptr};  // torch.Tensor, once torch is seen; stored after all others
  PyObject* grad_enabled = nullptr;            // torch.is_grad_enabled
  PyObject* bump = nullptr;                    // torch._C._increment_version
  PyObject* forward_ad = nullptr;              // names of torch.autograd.forward_ad, null where there is no such module
  PyObject* level = nullptr;                   // the name _current_level
  // torch's C++ functions, where baracuda.memory._torch found them and saw them work; all or none. `tensor` is an
  // at::Tensor*, `impl` what it points to. The same questions through Python cost 30 to 100 ns each.
  bool (*is_neg)(const void* tensor) = nullptr;
  bool (*is_conj)(const void* tensor) = nullptr;
  bool (*is_inference)(const void* tensor) = nullptr;
  bool (*requires_grad)(const void* impl) = nullptr;
  void (*bump_version)(const void* tensor) = nullptr;
  // Where a TensorImpl holds its StorageImpl, and that its memory's address and bytes; found together with the
  // functions.
  int storage_at = 0, data_at = 0, bytes_at = 0;
  TorchPlaces plain;  // keys are 0 where they were not found
} torch;

// The at::Tensor behind a torch.Tensor: what follows the object's head, as baracuda.memory._torch has checked.
const void* native_tensor(PyObject* object) { return reinterpret_cast<char*>(object) + sizeof(PyObject); }

template <class T>
T read_at(const void* base, int offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(base) + offset);
}

template <class F>
void set_function(F*& to, PyObject* addresses, int at) {
  to = reinterpret_cast<F*>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, at)));
}

// What plain_places() of baracuda.memory._torch gives. False with an exception set.
bool read_places(PyObject* tuple, TorchPlaces& to) {
  TorchPlaces p;
  PyObject* elements;
  if (!PyTuple_Check(tuple) || !PyArg_ParseTuple(tuple, "iiiiiiiiKS", &p.storage, &p.data, &p.checks, &p.keys, &p.sizes,
                                                 &p.offset, &p.type, &p.grad, &p.plain_keys, &elements))
    return false;
  std::memset(p.elements, kUnknown, sizeof p.elements);
  std::memcpy(p.elements, PyBytes_AS_STRING(elements), std::min<size_t>(PyBytes_GET_SIZE(elements), sizeof p.elements));
  to = p;
  return true;
}

// Functions, places and what plain tensors look like; null without an exception.
PyObject* native_functions() {
  const Unwatched unwatched;
  PyObject* module = PyImport_ImportModule("baracuda.memory._torch");
  PyObject* found = module ? PyObject_CallMethod(module, "native_functions", nullptr) : nullptr;
  Py_XDECREF(module);
  PyErr_Clear();
  if (found && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 9) return found;
  Py_XDECREF(found);
  return nullptr;
}

// The names of torch.autograd.forward_ad, borrowed: modules stay.
PyObject* forward_ad_names() {
  PyObject* name = PyUnicode_FromString("torch.autograd.forward_ad");
  PyObject* module = name ? PyImport_GetModule(name) : nullptr;
  PyObject* found = module ? PyModule_GetDict(module) : nullptr;
  Py_XDECREF(module), Py_XDECREF(name);
  PyErr_Clear();
  return found;
}

// torch.Tensor once torch is imported, else null.
PyTypeObject* torch_tensor_type() {
  static std::mutex mutex;
  if (PyTypeObject* known = torch.tensor.load(std::memory_order_acquire)) return known;
  PyObject* module = PyImport_GetModule(names.torch);
  PyObject* type = module ? PyObject_GetAttrString(module, "Tensor") : nullptr;
  PyObject* enabled = type ? PyObject_GetAttrString(module, "is_grad_enabled") : nullptr;
  PyObject* c = enabled ? PyObject_GetAttrString(module, "_C") : nullptr;
  PyObject* bump = c ? PyObject_GetAttrString(c, "_increment_version") : nullptr;
  PyErr_Clear();  // torch may be only half imported
  const bool complete = type && PyType_Check(type) && enabled && bump;
  PyObject* addresses = complete ? native_functions() : nullptr;  // not under the lock: it runs Python
  Py_XDECREF(c), Py_XDECREF(module);
  {
    std::lock_guard lock(mutex);
    if (complete && !torch.tensor.load(std::memory_order_relaxed)) {
      if (addresses) {
        set_function(torch.is_neg, addresses, 0), set_function(torch.is_conj, addresses, 1);
        set_function(torch.is_inference, addresses, 2), set_function(torch.requires_grad, addresses, 3);
        set_function(torch.bump_version, addresses, 4);
        int* const places[] = {&torch.storage_at, &torch.data_at, &torch.bytes_at};
        for (int i = 0; i < 3; ++i) *places[i] = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(addresses, 5 + i)));
        if (!read_places(PyTuple_GET_ITEM(addresses, 8), torch.plain)) PyErr_Clear();
      }
      torch.grad_enabled = enabled, torch.bump = bump;
      torch.level = PyUnicode_InternFromString("_current_level");
      torch.forward_ad = torch.level ? Py_XNewRef(forward_ad_names()) : nullptr;
      torch.tensor.store(reinterpret_cast<PyTypeObject*>(type), std::memory_order_release);
      type = enabled = bump = nullptr;
    }
  }
  Py_XDECREF(addresses), Py_XDECREF(type), Py_XDECREF(enabled), Py_XDECREF(bump);
  return torch.tensor;
}

// -1: error, else truth of a zero-argument method or attribute.
int truth_of(PyObject* value) {
  if (!value) return -1;
  int yes = PyObject_IsTrue(value);
  Py_DECREF(value);
  return yes;
}

// What a torch tensor that cannot be exported is, in words.
Imported explain_torch(PyObject* object, Why& why) {
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
  const auto is = [object](const char* what) {
    const bool yes = truth_of(PyObject_GetAttrString(object, what)) == 1;
    PyErr_Clear();
    return yes;
  };
  if (is("is_quantized"))
    return refuse(why, Code::NullData, "a quantized torch tensor, whose codes mean other numbers", "plain numbers",
                  "call .dequantize(), or .int_repr() for the codes");
  if (is("is_nested"))
    return refuse(why, Code::NullData, "a nested torch tensor", "a dense tensor",
                  "call .to_padded_tensor(), or pass the parts of .unbind() one by one");
  if (is("is_mkldnn"))
    return refuse(why, Code::Sparse, "a torch tensor in a layout of oneDNN", "a dense (strided) tensor",
                  "call .to_dense()");
  const bool zero = truth_of(PyObject_CallMethod(object, "_is_zerotensor", nullptr)) == 1;
  PyErr_Clear();
  if (zero)
    return refuse(why, Code::NullData, "a torch tensor of zeros that has no memory", "a tensor with memory",
                  "call .clone()");
  if (sparse) return refuse(why, Code::Sparse, "a sparse torch tensor", "a dense (strided) tensor", "call .to_dense()");
  if (std::strcmp(Py_TYPE(object)->tp_name, "FakeTensor") == 0)
    return refuse(why, Code::NullData, "a fake torch tensor, which has no data", "a tensor with data",
                  "call it outside of what torch traces: torch.compiler.disable keeps a function out of it; "
                  "F.<name>.infer gives the shapes of its results");
  return refuse(why, Code::NullData, "a wrapped torch tensor without memory of its own, or one whose storage was freed",
                "a plain tensor", "call it outside of functorch and vmap, while its storage has its size");
}

struct Flags {
  bool requires_grad = false, conj = false, neg = false;
};

// False with an exception set.
bool read_flags(PyObject* object, bool complex, Flags& flags) {
  if (torch.is_neg) {
    const void* tensor = native_tensor(object);
    flags.requires_grad = torch.requires_grad(*static_cast<const void* const*>(tensor));
    flags.conj = complex && torch.is_conj(tensor);
    flags.neg = torch.is_neg(tensor);
    return true;
  }
  const int grad = truth_of(PyObject_GetAttr(object, names.requires_grad));
  if (grad < 0) return false;
  const int conj = complex ? truth_of(PyObject_CallMethodNoArgs(object, names.is_conj)) : 0;
  if (conj < 0) return false;
  const int neg = truth_of(PyObject_CallMethodNoArgs(object, names.is_neg));
  flags = {grad == 1, conj == 1, neg == 1};
  return neg >= 0;
}

// Whether derivatives are taken forwards: only then can a tensor have a tangent. Costs a look into a dictionary.
bool derives_forwards() {
  PyObject* level = torch.forward_ad ? PyDict_GetItem(torch.forward_ad, torch.level) : nullptr;
  return level && PyLong_AsLong(level) >= 0;
}

// Whether a tensor has a tangent; -1 with an exception set.
int has_tangent(PyObject* object) {
  PyObject* unpack = PyDict_GetItemString(torch.forward_ad, "unpack_dual");
  PyObject* parts = unpack ? PyObject_CallOneArg(unpack, object) : nullptr;
  PyObject* tangent = parts ? PyObject_GetAttrString(parts, "tangent") : nullptr;
  Py_XDECREF(parts), Py_XDECREF(tangent);
  return tangent ? tangent != Py_None : PyErr_Occurred() ? -1 : 0;
}

Imported guard_torch(PyObject* object, const TensorView& view, Why& why) {
  Flags flags;
  // The negative bit is looked for on contiguous tensors too: the imaginary part of one conjugated number, and
  // torch._neg_view, carry it.
  if (!read_flags(object, view.element == Element::C64 || view.element == Element::C128, flags))
    return Imported::PythonError;
  if (flags.requires_grad) {
    int enabled = truth_of(PyObject_CallNoArgs(torch.grad_enabled));
    if (enabled < 0) return Imported::PythonError;
    if (enabled)
      return refuse(why, Code::RequiresGrad, "a torch tensor that requires grad",
                    "one that does not, or torch.no_grad()",
                    "baracuda does not record on torch's tape: call x.detach(), use torch.no_grad(), or bc.vjp");
  }
  if (derives_forwards()) {
    const int tangent = has_tangent(object);
    if (tangent < 0) return Imported::PythonError;
    if (tangent)
      return refuse(why, Code::RequiresGrad, "a torch tensor with a tangent (forward-mode derivatives)", "one without",
                    "pass torch.autograd.forward_ad.unpack_dual(x).primal: baracuda takes no tangents");
  }
  if (flags.conj)
    return refuse(why, Code::Conjugate, "a torch tensor with the conjugate bit set", "resolved memory",
                  "call x.resolve_conj()");
  if (flags.neg)
    return refuse(why, Code::Negative, "a torch tensor with the negative bit set", "resolved memory",
                  "call x.resolve_neg()");
  return Imported::Yes;
}

// Where a storage was resized to nothing, a tensor's address is its offset.
bool has_memory(PyObject* object, const TensorView& view) {
  return view.numel() == 0 || (view.data && torch_storage(object).data);
}

// Whether this is a plain tensor with memory, which then needs no other question but whether it requires a gradient.
[[gnu::always_inline]] inline bool read_plain(const TorchPlaces& at, PyObject* object, TensorView& view) {
  const void* impl = read_at<const void*>(native_tensor(object), 0);
  if (!at.plain_keys || read_at<uint64_t>(impl, at.keys) != at.plain_keys) return false;
  const int64_t rank = read_at<int64_t>(impl, at.sizes);
  const uint16_t type = read_at<uint16_t>(impl, at.type);
  const void* storage = read_at<const void*>(impl, at.storage);
  if (rank > kMaxRank || type >= sizeof at.elements || at.elements[type] == kUnknown ||
      read_at<uint8_t>(storage, at.checks))
    return false;
  char* data = read_at<char*>(storage, at.data);
  const auto* held = reinterpret_cast<const int64_t*>(static_cast<const char*>(impl) + at.sizes + sizeof(int64_t));
  const int64_t* sizes = rank <= TorchPlaces::kInline ? held : read_at<const int64_t*>(held, 0);
  const int64_t* strides = sizes + (rank <= TorchPlaces::kInline ? TorchPlaces::kInline : rank);
  bool empty = false;
  for (int64_t i = 0; i < rank; ++i) {
    view.shape[i] = sizes[i], view.strides[i] = strides[i];
    empty |= sizes[i] == 0;
  }
  if (!countable(view.shape, static_cast<int>(rank))) return false;  // refused where there are words for it
  view.element = static_cast<Element>(at.elements[type]);
  view.rank = static_cast<int32_t>(rank);
  view.device = Backend::Cpu, view.device_id = 0;
  view.unbacked = view.read_only = false;
  view.data = empty ? nullptr : data + read_at<int64_t>(impl, at.offset) * size_of(view.element);
  return empty || data;
}

// plain_torch_tensor(places, tensor): what is read of one, as (address, element, sizes, strides), or None.
PyObject* plain_torch_tensor(PyObject*, PyObject* args) {
  PyObject *tuple, *tensor;
  TorchPlaces places;
  TensorView view;
  if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &tuple, &tensor) || !read_places(tuple, places)) return nullptr;
  if (!read_plain(places, tensor, view)) Py_RETURN_NONE;
  return Py_BuildValue("(NiNN)", PyLong_FromVoidPtr(view.data), static_cast<int>(view.element),
                       tuple_of(view.shape, view.rank), tuple_of(view.strides, view.rank));
}

PyMethodDef methods[] = {
    {"plain_torch_tensor", &plain_torch_tensor, METH_VARARGS, "What is read of a plain tensor; None of others."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_torch_type(PyTypeObject* type) {
  PyTypeObject* tensor = torch_tensor_type();
  return tensor && PyType_IsSubtype(type, tensor);
}

// Other subclasses may hide another tensor and are not trusted.
const DLPackExchangeAPI* find_torch_api(PyTypeObject* type) {
  bool tensor = std::strcmp(type->tp_name, "Tensor") == 0 || std::strcmp(type->tp_name, "Parameter") == 0;
  if (!tensor || !is_torch_type(type)) return nullptr;
  PyObject* module = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__");
  const char* where = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  bool exact = type == torch.tensor || (where && std::strcmp(where, "torch.nn.parameter") == 0);
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

namespace {

[[gnu::noinline]] Imported import_by_exchange(PyObject* object, const DLPackExchangeAPI* api, TensorView& view,
                                              Keep& keep, Why& why) {
  DLTensor t;
  if (api->dltensor_from_py_object_no_sync(object, &t)) return explain_torch(object, why);
  keep.of_torch = object;
  Imported done = from_dl(t, view, keep, why);
  keep.of_torch = nullptr;
  if (done != Imported::Yes) return done;
  view.read_only = false;
  if (view.device != Backend::Cpu) keep.exchange = api;
  if (!has_memory(object, view)) return explain_torch(object, why);
  return guard_torch(object, view, why);
}

}  // namespace

Imported import_torch(PyObject* object, const DLPackExchangeAPI* api, TensorView& view, Keep& keep, Why& why) {
  keep.torch = true;
  if (!read_plain(torch.plain, object, view)) [[unlikely]]
    return import_by_exchange(object, api, view, keep, why);
  const void* impl = read_at<const void*>(native_tensor(object), 0);
  const bool asks = read_at<const void*>(impl, torch.plain.grad) && (torch.requires_grad(impl) || derives_forwards());
  return asks ? guard_torch(object, view, why) : Imported::Yes;
}

Imported import_torch_subclass(PyObject* object, TensorView& view, Keep& keep, Why& why) {
  keep.torch = true;
  keep.of_torch = object;
  Imported done = import_protocol(object, view, keep, why);
  keep.of_torch = nullptr;
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

}  // namespace detail

bool torch_setup(PyObject* module) { return PyModule_AddFunctions(module, detail::methods) == 0; }

Imported framework_stream(const void* exchange, Backend backend, int32_t device, void** out) {
  *out = nullptr;
  const auto* api = static_cast<const DLPackExchangeAPI*>(exchange);
  // Other libraries' queues of metal take none of our work.
  if (!api || !api->current_work_stream || backend == Backend::Metal) return Imported::Yes;
  return api->current_work_stream(kDLCUDA, device, out) == 0 ? Imported::Yes : Imported::PythonError;
}

bool is_torch_tensor(PyObject* object) {
  using namespace detail;
  PyTypeObject *type = Py_TYPE(object), *tensor = torch.tensor.load(std::memory_order_acquire);
  return exchange_apis.find(type) || (tensor && PyType_IsSubtype(type, tensor));
}

namespace {

// A number that a method without arguments, or an attribute, gives; 0 without an exception where it does not.
uintptr_t number_of(PyObject* object, const char* name) {
  PyObject* found = object ? PyObject_GetAttrString(object, name) : nullptr;
  PyObject* number = found && PyCallable_Check(found) ? PyObject_CallNoArgs(found) : Py_XNewRef(found);
  const uintptr_t value = number ? PyLong_AsUnsignedLongLong(number) : 0;
  Py_XDECREF(number), Py_XDECREF(found);
  if (!PyErr_Occurred()) return value;
  PyErr_Clear();
  return 0;
}

}  // namespace

TorchStorage torch_storage(PyObject* object) {
  using detail::torch;
  if (torch.is_neg) {
    using detail::read_at;
    const void* impl = read_at<const void*>(detail::native_tensor(object), 0);
    const void* storage = read_at<const void*>(impl, torch.storage_at);
    return {storage, read_at<const void*>(storage, torch.data_at), read_at<int64_t>(storage, torch.bytes_at)};
  }
  PyObject* storage = PyObject_CallMethod(object, "untyped_storage", nullptr);
  PyErr_Clear();
  TorchStorage s{reinterpret_cast<void*>(number_of(storage, "_cdata")),
                 reinterpret_cast<void*>(number_of(storage, "data_ptr")),
                 static_cast<int64_t>(number_of(storage, "nbytes"))};
  Py_XDECREF(storage);
  return s;
}

void bump_torch_version(PyObject* object) {
  using detail::torch;
  if (torch.bump_version) {
    const void* tensor = detail::native_tensor(object);
    if (!torch.is_inference(tensor)) torch.bump_version(tensor);  // inference tensors have no version
    return;
  }
  if (!torch.bump) return;
  PyObject* tuple = PyTuple_Pack(1, object);
  PyObject* done = tuple ? PyObject_CallOneArg(torch.bump, tuple) : nullptr;
  Py_XDECREF(tuple);
  Py_XDECREF(done);
  if (!done) PyErr_Clear();
}

}  // namespace baracuda::bindings
