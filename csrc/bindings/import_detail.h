// What the importers of the different frameworks share.
#pragma once
#include <dlpack/dlpack.h>

#include <atomic>
#include <mutex>

#include "bindings/import.h"
#include "core/dltensor.h"

namespace baracuda::bindings::detail {

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

inline Imported refuse(Why& why, Code code, const char* got, const char* want, const char* hint) {
  why = Refusal{code, "", got, want, hint};
  return Imported::Refused;
}

// Interned names of attributes.
struct Names {
  PyObject *dlpack, *exchange_api, *max_version, *requires_grad, *is_neg, *is_conj, *layout, *torch;
  PyObject *version, *max_version_kw;                                     // max_version=(1, ...)
  PyObject *dlpack_device, *no_sync, *stream_kw, *max_version_stream_kw;  // stream=-1
};
extern Names names;

Imported from_dl(const DLTensor& t, TensorView& view, Keep& keep, Why& why);
// What gives the memory up when it goes; null with an exception set, and the memory given up.
PyObject* capsule_of(Adopted adopted);
// A DLPack capsule: taken over, unless `keep` only looks. A bare one is what the caller gave, and has no other owner.
Imported import_capsule(PyObject* capsule, TensorView& view, Keep& keep, Why& why);
Imported import_bare_capsule(PyObject* capsule, TensorView& view, Keep& keep, Why& why);
Imported import_protocol(PyObject* object, TensorView& view, Keep& keep, Why& why);

// torch's exchange tables by type, and the table of an exact torch.Tensor or Parameter that is not among them yet.
extern SeenTypes<const DLPackExchangeAPI*, 4> exchange_apis;
const DLPackExchangeAPI* find_torch_api(PyTypeObject* type);
bool is_torch_type(PyTypeObject* type);
Imported import_torch(PyObject* object, const DLPackExchangeAPI* api, TensorView& view, Keep& keep, Why& why);
// A subclass of torch.Tensor, by the protocol that it may have overridden.
Imported import_torch_subclass(PyObject* object, TensorView& view, Keep& keep, Why& why);

}  // namespace baracuda::bindings::detail
