// Results that are torch tensors, made by torch's own C++ functions: torch.empty through Python costs more than all
// else that a small call does.
#include "bindings/torch_empty.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "bindings/host_pool.h"

namespace baracuda::bindings {

// Not of this file alone: the compiler would take Pool for the only allocator that there is.
namespace mirror {
using Deleter = void (*)(void*);
// c10::DataPtr
struct DataPtr {
  void* data;
  std::unique_ptr<void, Deleter> context;
  int8_t device_type, device_index;
};
// c10::Allocator
struct Allocator {
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t bytes) = 0;
  virtual bool is_simple_data_ptr(const DataPtr& p) const { return p.data == p.context.get(); }
  virtual Deleter raw_deleter() const { return nullptr; }
  virtual void copy_data(void* to, const void* from, size_t bytes) const = 0;
};
}  // namespace mirror

namespace {

using mirror::Allocator, mirror::DataPtr, mirror::Deleter;

// c10::ArrayRef<int64_t>
struct Sizes {
  const int64_t* data;
  size_t n;
};
// std::optional<c10::MemoryFormat>
struct MaybeFormat {
  int8_t format;
  bool given;
};
// at::TensorBase, one pointer. Its destructor is not ours to call: `Wrap` takes the tensor over.
struct TensorBase {
  void* impl;
  TensorBase(const TensorBase&) = delete;
  ~TensorBase() {}  // NOLINT: not trivial, so that functions return it through memory, as they do torch's
};

constexpr uint64_t kDenseCpu = 0x10001;  // c10::DispatchKeySet(DispatchKey::CPU)

using Empty = TensorBase(Sizes, Allocator*, uint64_t keys, int8_t scalar_type, MaybeFormat);
using EmptyStrided = TensorBase(Sizes, Sizes, Allocator*, uint64_t keys, int8_t scalar_type);
using Wrap = PyObject*(TensorBase&&);
using CpuAllocator = Allocator*();
std::atomic<Empty*> empty{nullptr};
std::atomic<EmptyStrided*> empty_strided{nullptr};
std::atomic<Wrap*> wrap{nullptr};
std::atomic<CpuAllocator*> cpu_allocator{nullptr};

template <int list>
void give(void* data) {
  give_host_memory({data, list});
}
template <int... lists>
constexpr std::array<Deleter, sizeof...(lists)> deleters(std::integer_sequence<int, lists...>) {
  return {&give<lists>...};
}

// Memory of the pool that bc.Tensors have theirs from: torch asks the system, which takes as long as all else that a
// small call does. What the pool does not keep is torch's.
struct Pool final : Allocator {
  DataPtr allocate(size_t bytes) override {
    static constexpr auto kGive = deleters(std::make_integer_sequence<int, kPoolLists>());
    if (bytes == 0 || bytes > kPooledMost) return cpu_allocator.load()()->allocate(bytes);
    const HostMemory memory = take_host_memory(bytes);
    if (!memory.data) throw std::bad_alloc();
    return {memory.data, {memory.data, kGive[memory.list]}, 0, -1};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Allocator* pool() {
  static Pool* const only = new Pool;  // never destroyed: storages refer to it
  return only;
}

PyObject* set_functions(PyObject*, PyObject* args) {
  unsigned long long empty_address, strided_address, wrap_address, allocator_address;
  if (!PyArg_ParseTuple(args, "KKKK", &empty_address, &strided_address, &wrap_address, &allocator_address))
    return nullptr;
  cpu_allocator = reinterpret_cast<CpuAllocator*>(static_cast<uintptr_t>(allocator_address));
  empty = reinterpret_cast<Empty*>(static_cast<uintptr_t>(empty_address));
  empty_strided = reinterpret_cast<EmptyStrided*>(static_cast<uintptr_t>(strided_address));
  wrap = reinterpret_cast<Wrap*>(static_cast<uintptr_t>(wrap_address));
  Py_RETURN_NONE;
}

// torch.empty(shape, dtype=dtype), or empty_strided, which also raise what torch raises.
PyObject* by_python(const TorchEmpty& wanted, const int64_t* strides) {
  PyObject* steps = PyTuple_New(strides ? wanted.rank : 0);
  for (int i = 0; strides && steps && i < wanted.rank; ++i) PyTuple_SET_ITEM(steps, i, PyLong_FromLongLong(strides[i]));
  PyObject* module = steps ? PyImport_ImportModule("torch") : nullptr;
  PyObject* function = module ? PyObject_GetAttrString(module, strides ? "empty_strided" : "empty") : nullptr;
  PyObject* names = function ? Py_BuildValue("(ss)", "dtype", "device") : nullptr;
  PyObject* device = names ? PyUnicode_FromString("cpu") : nullptr;
  PyObject* plain[] = {wanted.shape, wanted.dtype, device};
  PyObject* strided[] = {wanted.shape, steps, wanted.dtype, device};
  PyObject* made = device ? PyObject_Vectorcall(function, strides ? strided : plain, strides ? 2 : 1, names) : nullptr;
  Py_XDECREF(device), Py_XDECREF(names), Py_XDECREF(function), Py_XDECREF(module), Py_XDECREF(steps);
  return made;
}

// False where they are not torch_empty's, or with an exception.
bool read_arguments(PyObject* const* args, TorchEmpty& out) {
  if (!PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) > kMaxRank) return false;
  out.rank = static_cast<int32_t>(PyTuple_GET_SIZE(args[0]));
  for (int i = 0; i < out.rank; ++i) out.sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(args[0], i));
  out.scalar_type = static_cast<int8_t>(PyLong_AsLong(args[1]));
  out.shape = args[0], out.dtype = args[2];
  return !PyErr_Occurred();
}

// torch_empty(shape, scalar type, dtype)
PyObject* call_torch_empty(PyObject*, PyObject* const* args, Py_ssize_t n) {
  TorchEmpty wanted;
  if (n == 3 && read_arguments(args, wanted)) return torch_empty(wanted);
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_TypeError,
                    "torch_empty takes a tuple of at most 8 sizes, torch's number of a dtype, and the dtype");
  return nullptr;
}

// torch_empty_strided(shape, strides, scalar type, dtype)
PyObject* call_torch_empty_strided(PyObject*, PyObject* const* args, Py_ssize_t n) {
  TorchEmpty wanted;
  PyObject* plain[] = {n > 0 ? args[0] : nullptr, n == 4 ? args[2] : nullptr, n == 4 ? args[3] : nullptr};
  int64_t strides[kMaxRank];
  bool read =
      n == 4 && read_arguments(plain, wanted) && PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) == wanted.rank;
  for (int i = 0; read && i < wanted.rank; ++i) strides[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(args[1], i));
  if (read && !PyErr_Occurred()) return torch_empty(wanted, strides);
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_TypeError,
                    "torch_empty_strided takes a tuple of at most 8 sizes, as many strides, torch's number of a dtype, "
                    "and the dtype");
  return nullptr;
}

template <class F>
constexpr PyCFunction as_c(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef methods[] = {
    {"set_torch_empty", &set_functions, METH_VARARGS,
     "Addresses of at::detail::empty_generic and empty_strided_generic, THPVariable_Wrap and c10::GetCPUAllocator."},
    {"torch_empty", as_c(&call_torch_empty), METH_FASTCALL, "A torch tensor in the memory of the CPU."},
    {"torch_empty_strided", as_c(&call_torch_empty_strided), METH_FASTCALL, "The same with strides of its own."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_torch_empty(PyObject* make, PyObject* args, TorchEmpty& out) {
  return PyCFunction_Check(make) && PyCFunction_GET_FUNCTION(make) == methods[1].ml_meth &&
         PyTuple_GET_SIZE(args) == 3 && read_arguments(&PyTuple_GET_ITEM(args, 0), out);
}

PyObject* torch_empty(const TorchEmpty& wanted, const int64_t* strides) {
  const Sizes sizes{wanted.sizes, static_cast<size_t>(wanted.rank)};
  try {
    if (strides)
      return wrap.load()(empty_strided.load()(sizes, {strides, sizes.n}, pool(), kDenseCpu, wanted.scalar_type));
    return wrap.load()(empty.load()(sizes, pool(), kDenseCpu, wanted.scalar_type, {0, false}));
  } catch (...) {  // no memory: torch has the words for it
    return by_python(wanted, strides);
  }
}

bool torch_empty_setup(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace baracuda::bindings
