// Tensors of any framework as TensorViews: NumPy by its struct, torch by DLPack's C exchange API, all others by
// __dlpack__.
#pragma once
#include <Python.h>

#include <memory>
#include <utility>

#include "core/launch.h"
#include "core/refusal.h"
#include "core/signature.h"

namespace baracuda::bindings {

// References that must outlive the views of one call.
struct Keep {
  static constexpr int kInline = 8;
  PyObject* refs[kInline];
  int n = 0;
  PyObject* more = nullptr;       // a list, when there are more
  bool dry = false;               // a question: shapes without memory are fine
  bool looks = false;             // capsules are read, but left for another consumer
  bool lasts = false;             // it is held for longer than one call
  bool ran_python = false;        // code of a producer ran, which may have moved what was read before
  bool torch = false;             // set when a torch tensor was imported
  PyObject* of_torch = nullptr;   // the torch tensor that is being read
  bool unbacked = false;          // set when a shape without memory was: such a call is checked and not carried out
  Backend device = Backend::Cpu;  // the plan's device: where 0-d tensors given as numbers must be
  int32_t device_id = 0;
  const void* exchange = nullptr;  // DLPack's C functions of the framework that owns a tensor on a device

  Keep() = default;
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;
  ~Keep() {
    for (int i = 0; i < n; ++i) Py_DECREF(refs[i]);
    Py_XDECREF(more);
  }
  void add(PyObject* owned);
};

enum class Imported { Yes, Refused, PythonError };

// What was refused; empty until then. A pointer, because making a Refusal costs more than a check, and so does an empty
// std::optional of one, which GCC clears.
struct Why : std::unique_ptr<Refusal> {
  Why& operator=(Refusal refusal) {
    reset(new Refusal(std::move(refusal)));
    return *this;
  }
};

// Fills `view` from `object`. Refused: `why` says so, its field still empty. PythonError: an exception is set.
Imported import_tensor(PyObject* object, TensorView& view, Keep& keep, Why& why);
// Fills `scalar` from a Python or NumPy number, or from a 0-d tensor (whose address is kept and read at launch).
Imported import_scalar(PyObject* object, const ScalarParam& param, Scalar& scalar, Keep& keep, Why& why);

// The current stream of a framework, by its DLPack functions (null: nobody is asked, and it is the default stream).
Imported framework_stream(const void* exchange, Backend backend, int32_t device, void** out);

// Whether the calling thread asks for shapes of results only: calls then take shapes without memory. Sets it; the state
// before.
bool inferring();
bool exchange_inferring(bool now);

bool is_torch_tensor(PyObject* object);
// Whether Python code can give a tensor other memory while somebody holds it: NumPy's resize, torch's set_ and resize_,
// our rebase.
bool may_move(PyObject* object);
// Imports such a tensor once more; refused when it was resized meanwhile.
Imported import_same(PyObject* object, TensorView& view, Keep& keep, Why& why);
// A NumPy scalar such as np.float32(2) as a Python number: a new reference; null without an exception when `object` is
// something else.
PyObject* number_of_numpy_scalar(PyObject* object);
// An object whose identity says all about it: a dtype, a type, an enum's member.
bool is_constant(PyObject* object);
// The storage that a torch tensor has now, and its memory.
struct TorchStorage {
  const void* impl;
  const void* data;
  int64_t bytes;
  bool operator==(const TorchStorage&) const = default;
};
TorchStorage torch_storage(PyObject* object);
// Tells torch's autograd that a tensor was written to.
void bump_torch_version(PyObject* object);

// Called once by the module; false with an exception set.
bool import_setup();
bool torch_setup(PyObject* module);

}  // namespace baracuda::bindings
