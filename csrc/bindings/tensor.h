// bc.Tensor: a view of memory, and what keeps that memory alive.
#pragma once
#include <Python.h>

#include <atomic>
#include <string>

#include "bindings/error.h"
#include "bindings/host_pool.h"
#include "bindings/import.h"

namespace baracuda::bindings {

// Never changed after it is made, but for the address of one that `rebase` may move.
struct TensorObject {
  PyObject_HEAD TensorView view;
  PyObject* owner;            // keeps the memory alive, or null; of a view it is the tensor that was first there
  HostMemory memory;          // its own, of a tensor that `empty` made on the host
  PyObject* tracker;          // counts its bytes, or null
  std::atomic<int64_t> lent;  // views, exports and arrays of it that are alive; kMoving while its address changes
  bool is_view;
  bool movable;  // made by from_pointer without an owner
};

inline constexpr int64_t kMoving = -1;
inline constexpr int64_t kMostStride = int64_t(1) << 62;  // in elements, either way

extern PyTypeObject* tensor_type;

inline TensorObject* self_of(PyObject* tensor) { return reinterpret_cast<TensorObject*>(tensor); }
// Null for any other object.
inline TensorObject* as_tensor(PyObject* object) { return Py_TYPE(object) == tensor_type ? self_of(object) : nullptr; }
inline TensorView& view_of(PyObject* self) { return self_of(self)->view; }
// The address now: another thread may rebase the tensor.
inline void* address_of(const TensorObject* t) { return __atomic_load_n(&t->view.data, __ATOMIC_RELAXED); }
// Sizes and strides, and where and how another view's memory is.
inline void describe(TensorView& to, const TensorView& like, int32_t rank, const int64_t* shape,
                     const int64_t* strides) {
  to.device = like.device, to.device_id = like.device_id;
  to.read_only = like.read_only, to.unbacked = like.unbacked;
  to.rank = rank;
  for (int32_t i = 0; i < rank; ++i) to.shape[i] = shape[i], to.strides[i] = strides[i];
}
// Fills `view`, whose sizes past the rank stay as they are.
inline void read_view(const TensorObject* t, TensorView& view) {
  const TensorView& v = t->view;
  view.data = address_of(t), view.element = v.element;
  describe(view, v, v.rank, v.shape, v.strides);
}

// From here on the tensor keeps its address.
inline void lend(TensorObject* t) {
  for (int64_t n = t->lent.load();;) {
    if (n == kMoving)
      n = t->lent.load();
    else if (t->lent.compare_exchange_weak(n, n + 1))
      return;
  }
}
// The tensor whose memory a tensor shows.
inline TensorObject* root_of(TensorObject* t) { return t->is_view && t->owner ? self_of(t->owner) : t; }
// A tensor of `view`; `owner` may be null. One of another tensor's memory is a view of it. Null with an exception set.
TensorObject* new_tensor(const TensorView& view, PyObject* owner);
// The same before its view is filled in, which a TensorView of its own would have to be cleared for.
TensorObject* blank_tensor(PyObject* owner);

// Where the elements of a view are in another's memory: sizes, strides and the first one's position, in elements.
struct Layout {
  int64_t offset = 0;
  int32_t rank = 0;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
};
PyObject* new_view(PyObject* tensor, const Layout& layout);
PyObject* new_view(PyObject* tensor, const Layout& layout, Element element);
extern PyMethodDef view_methods[];    // of the type
extern PyMethodDef view_functions[];  // of the module: the same arithmetic on sizes and strides alone
PyObject* subscript(PyObject* self, PyObject* key);
PyObject* read_copied(PyObject* self, PyObject* key);  // what a key names of which there is no view
PyObject* item_at(PyObject* self, Py_ssize_t i);       // row i
PyObject* get_transposed(PyObject* self, void*);       // all dimensions, and the last two
PyObject* get_matrix_transposed(PyObject* self, void*);

extern PyMethodDef export_methods[];
PyObject* number_of(PyObject* self);    // of a tensor of one element, wherever it is
extern PyMethodDef function_methods[];  // of baracuda.functional
extern PyMethodDef make_functions[];
bool make_setup();
extern PyType_Slot operator_slots[];
PyObject* rebase(PyObject* self, PyObject* address);
PyObject* get_dtype(PyObject* self, void*);

// Functions and classes of baracuda.memory.tensor that are called for what is rare; set once, when it is imported.
struct TensorHooks {
  PyObject *element, *coerce, *sizes, *steps, *place, *to, *copy_from, *as_array, *tolist, *copy, *reduce, *repr;
};
extern TensorHooks tensor_hooks;
// The members of Element by number.
extern PyObject* element_members[kElementCount];

// Calls a function as a method of METH_FASTCALL | METH_KEYWORDS is: with the tensor first.
PyObject* call_with(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);

PyObject* tuple_of(const int64_t* values, int n);
std::string text_of(const int64_t* values, int n);
std::string text_of(PyObject* object);  // its repr, cut where it is long; of a tensor without its values
// Raises InvalidProblemError, and returns null.
PyObject* refuse_tensor(const char* field, std::string got, std::string want, std::string hint = "");
PyObject* refuse_unbacked(const char* field);

// A bc.Tensor that has taken a bare capsule over: a new reference in `tensor`. Refused: `why` says so.
Imported own_capsule(PyObject* capsule, bool lasts, PyObject** tensor, Why& why);
// A tuple of what a sequence holds now, its capsules owned. Refused: `at` says which one.
Imported own_members(PyObject* sequence, bool lasts, PyObject** tuple, Py_ssize_t* at, Why& why);

// Adds the type Tensor, empty, from_pointer and what baracuda.memory.tensor needs to the module.
bool tensor_setup(PyObject* module);

}  // namespace baracuda::bindings
