// Results that are torch tensors, made by torch's own C++ functions: torch.empty through Python costs more than all
// else that a small call does.
#include "bindings/torch_empty.h"

#include <atomic>
#include <cstdint>

#include "core/launch.h"

namespace baracuda::bindings {
namespace {

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

using EmptyCpu = TensorBase(Sizes, int8_t scalar_type, bool pin_memory, MaybeFormat);
using Wrap = PyObject*(TensorBase&&);
std::atomic<EmptyCpu*> empty_cpu{nullptr};
std::atomic<Wrap*> wrap{nullptr};

PyObject* set_functions(PyObject*, PyObject* args) {
  unsigned long long empty_address, wrap_address;
  if (!PyArg_ParseTuple(args, "KK", &empty_address, &wrap_address)) return nullptr;
  empty_cpu = reinterpret_cast<EmptyCpu*>(static_cast<uintptr_t>(empty_address));
  wrap = reinterpret_cast<Wrap*>(static_cast<uintptr_t>(wrap_address));
  Py_RETURN_NONE;
}

// torch.empty(shape, dtype=dtype), which also raises what torch raises.
PyObject* by_python(PyObject* shape, PyObject* dtype) {
  PyObject* module = PyImport_ImportModule("torch");
  PyObject* function = module ? PyObject_GetAttrString(module, "empty") : nullptr;
  PyObject* names = function ? Py_BuildValue("(ss)", "dtype", "device") : nullptr;
  PyObject* device = names ? PyUnicode_FromString("cpu") : nullptr;
  PyObject* values[] = {shape, dtype, device};
  PyObject* made = device ? PyObject_Vectorcall(function, values, 1, names) : nullptr;
  Py_XDECREF(device), Py_XDECREF(names), Py_XDECREF(function), Py_XDECREF(module);
  return made;
}

// torch_empty(shape, scalar type, dtype)
PyObject* torch_empty(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) > kMaxRank) {
    PyErr_SetString(PyExc_TypeError,
                    "torch_empty takes a tuple of at most 8 sizes, torch's number of a dtype, and the dtype");
    return nullptr;
  }
  int64_t sizes[kMaxRank];
  const Py_ssize_t rank = PyTuple_GET_SIZE(args[0]);
  for (Py_ssize_t i = 0; i < rank; ++i) sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(args[0], i));
  const long code = PyLong_AsLong(args[1]);
  if (PyErr_Occurred()) return nullptr;
  try {
    return wrap.load()(
        empty_cpu.load()({sizes, static_cast<size_t>(rank)}, static_cast<int8_t>(code), false, {0, false}));
  } catch (...) {  // no memory: torch has the words for it
    return by_python(args[0], args[2]);
  }
}

PyMethodDef methods[] = {
    {"set_torch_empty", &set_functions, METH_VARARGS, "Addresses of at::detail::empty_cpu and THPVariable_Wrap."},
    {"torch_empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&torch_empty)), METH_FASTCALL,
     "A torch tensor in the memory of the CPU."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool torch_empty_setup(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace baracuda::bindings
