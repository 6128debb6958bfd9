#include "bindings/tensor.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bindings/error.h"
#include "bindings/scope.h"
#include "bindings/trace.h"
#include "core/devices.h"

namespace baracuda::bindings {

PyTypeObject* tensor_type = nullptr;
TensorHooks tensor_hooks = {};
PyObject* element_members[kElementCount] = {};

TensorObject* blank_tensor(PyObject* owner) {
  auto* t = PyObject_GC_New(TensorObject, tensor_type);
  if (!t) return nullptr;
  TensorObject* root = owner && as_tensor(owner) ? root_of(as_tensor(owner)) : nullptr;
  new (&t->lent) std::atomic<int64_t>(0);
  new (&t->memory) HostMemory();
  t->tracker = nullptr;
  t->is_view = root != nullptr;
  t->movable = false;
  if (root) {
    lend(root);
    owner = reinterpret_cast<PyObject*>(root);
  }
  t->owner = Py_XNewRef(owner);
  // Most tensors cannot be part of a cycle, and are no work for the garbage collector.
  if (owner && PyObject_IS_GC(owner) && (!root || PyObject_GC_IsTracked(owner))) PyObject_GC_Track(t);
  return t;
}

TensorObject* new_tensor(const TensorView& view, PyObject* owner) {
  TensorObject* t = blank_tensor(owner);
  if (!t) return nullptr;
  t->view.data = view.data, t->view.element = view.element;
  describe(t->view, view, view.rank, view.shape, view.strides);
  return t;
}

PyObject* tuple_of(const int64_t* values, int n) {
  PyObject* out = PyTuple_New(n);
  for (int i = 0; out && i < n; ++i) {
    PyObject* number = PyLong_FromLongLong(values[i]);
    if (!number) Py_CLEAR(out);
    if (out) PyTuple_SET_ITEM(out, i, number);
  }
  return out;
}

std::string text_of(const int64_t* values, int n) {
  std::string out = "(";
  for (int i = 0; i < n; ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + (n == 1 ? ",)" : ")");
}

// What a tensor is, without its values, which messages must not read: the memory may be a device's that is at work.
std::string described(const TensorView& v) {
  const std::string where = v.device == Backend::Cpu ? "" : ", device='" + device_name(v.device, v.device_id) + "'";
  return "bc.Tensor(shape=" + text_of(v.shape, v.rank) + ", element='" + name(v.element) +
         "', strides=" + text_of(v.strides, v.rank) + where + (v.unbacked ? ", without memory)" : ")");
}

std::string text_of(PyObject* object) {
  constexpr size_t kMost = 200;
  if (const TensorObject* t = as_tensor(object)) return described(t->view);
  PyObject* repr = PyObject_Repr(object);
  const char* text = repr ? PyUnicode_AsUTF8(repr) : nullptr;
  std::string out = text ? text : std::string("an object of type ") + Py_TYPE(object)->tp_name;
  PyErr_Clear();
  Py_XDECREF(repr);
  return out.size() <= kMost ? out : out.substr(0, kMost) + " ...";
}

PyObject* refuse_tensor(const char* field, std::string got, std::string want, std::string hint) {
  return raise_refusal({Code::Problem, field, std::move(got), std::move(want), std::move(hint)}, Py_None);
}

PyObject* refuse_unbacked(const char* field) {
  return raise_refusal({Code::NullData, field, "a shape without memory", "a tensor with data", ""}, Py_None);
}

PyObject* call_with(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  constexpr Py_ssize_t kMost = 8;
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (all >= kMost) return PyErr_Format(PyExc_TypeError, "bc.Tensor: got %zd arguments", all);
  PyObject* given[kMost] = {self};
  for (Py_ssize_t i = 0; i < all; ++i) given[i + 1] = args[i];
  return PyObject_Vectorcall(function, given, n + 1, kwnames);
}

namespace {

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(self_of(self)->owner);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

void drop_owner(TensorObject* t) {
  PyObject* owner = std::exchange(t->owner, nullptr);
  if (!owner) return;
  if (t->is_view) --self_of(owner)->lent;
  Py_DECREF(owner);
}

// Of a cycle that nobody reaches any more: what other objects of it still do must not read the memory.
int tensor_clear(PyObject* self) {
  auto* t = self_of(self);
  t->view.unbacked = true;
  drop_owner(t);
  return 0;
}

void tensor_dealloc(PyObject* self) {
  auto* t = self_of(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, tensor_dealloc) drop_owner(t);
  if (t->memory.data) give_host_memory(t->memory);
  if (t->tracker) untrack(t);
  PyObject_GC_Del(self);
  Py_DECREF(type);
  Py_TRASHCAN_END
}

PyObject* get_shape(PyObject* self, void*) {
  return shown_sizes(view_of(self), tuple_of(view_of(self).shape, view_of(self).rank));
}
PyObject* get_strides(PyObject* self, void*) {
  return shown_sizes(view_of(self), tuple_of(view_of(self).strides, view_of(self).rank));
}
PyObject* get_code(PyObject* self, void*) { return PyLong_FromLong(static_cast<int>(view_of(self).element)); }
PyObject* get_element(PyObject* self, void*) {
  return Py_NewRef(element_members[static_cast<int>(view_of(self).element)]);
}
PyObject* get_address(PyObject* self, void*) { return PyLong_FromVoidPtr(address_of(self_of(self))); }
PyObject* get_place(PyObject* self, void*) {
  return Py_BuildValue("(ii)", static_cast<int>(view_of(self).device), view_of(self).device_id);
}
PyObject* get_device(PyObject* self, void*) {
  return PyUnicode_FromString(device_name(view_of(self).device, view_of(self).device_id).c_str());
}
PyObject* get_read_only(PyObject* self, void*) { return PyBool_FromLong(view_of(self).read_only); }
PyObject* get_unbacked(PyObject* self, void*) { return PyBool_FromLong(view_of(self).unbacked); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(view_of(self).rank); }
PyObject* get_numel(PyObject* self, void*) {
  return shown_sizes(view_of(self), PyLong_FromLongLong(view_of(self).numel()));
}
PyObject* get_nbytes(PyObject* self, void*) {
  return shown_sizes(view_of(self), PyLong_FromLongLong(view_of(self).numel() * size_of(view_of(self).element)));
}

// NumPy's operators leave those with a tensor to it.
PyObject* get_priority(PyObject*, void*) { return PyFloat_FromDouble(1000); }

Py_ssize_t tensor_length(PyObject* self) {
  if (view_of(self).rank) return shown_length(view_of(self)) ? view_of(self).shape[0] : -1;
  PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
  return -1;
}

// All rows at once, as torch's unbind: an iterator that asks for one after the other ends with an error that costs
// more.
PyObject* tensor_iter(PyObject* self) {
  if (!view_of(self).rank) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
  const Py_ssize_t n = view_of(self).shape[0];
  PyObject* rows = PyTuple_New(n);
  for (Py_ssize_t i = 0; rows && i < n; ++i) {
    PyObject* row = item_at(self, i);
    if (!row) Py_CLEAR(rows);
    if (rows) PyTuple_SET_ITEM(rows, i, row);
  }
  PyObject* iterator = rows ? PyObject_GetIter(rows) : nullptr;
  Py_XDECREF(rows);
  return iterator;
}

PyObject* tensor_repr(PyObject* self) {
  if (!view_of(self).unbacked && tensor_hooks.repr) return PyObject_CallOneArg(tensor_hooks.repr, self);
  return PyUnicode_FromString(described(view_of(self)).c_str());
}

PyObject* tensor_described(PyObject* self, PyObject*) { return PyUnicode_FromString(described(view_of(self)).c_str()); }

// A method whose work is done by a function of baracuda.memory.tensor.
template <PyObject* TensorHooks::* hook>
PyObject* forward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return call_with(tensor_hooks.*hook, self, args, n, kwnames);
}

template <PyObject* TensorHooks::* hook>
constexpr PyMethodDef forwarded(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&forward<hook>)), METH_FASTCALL | METH_KEYWORDS,
          doc};
}

constexpr const char* kToDoc =
    "to(device, *, stream=None)\n--\n\n"
    "The tensor on a device: itself where it is there already, else a contiguous copy.\n\n"
    "The copy is done when this returns, and comes after the work given to `stream`: None is the device's default\n"
    "stream, which follows all streams that were not made with non_blocking=True. Between two cuda devices the values\n"
    "go directly where the devices reach each other; the source's device is waited for, and `stream` is the target's.";
constexpr const char* kCopyFromDoc =
    "copy_from(source, *, stream=None)\n--\n\n"
    "Overwrites the values with those of a tensor of the same shape and element; returns the tensor itself.\n\n"
    "`source` is on any device, of any framework and any strides. A copy from the host is done when this returns; one\n"
    "on the device is done when `stream` is.";
constexpr const char* kRebaseDoc =
    "rebase(address)\n--\n\n"
    "Gives a tensor that `from_pointer` made without an owner another address; returns the tensor itself.\n\n"
    "Nothing else may show its memory: views, arrays and exports of it have to be gone. Plans that are bound to it\n"
    "refuse their next call (code `moved`) until they are bound again; captured graphs keep the old address.\n\n"
    "Raises:\n"
    "    InvalidProblemError: The memory is the tensor's own, has an owner, or something else shows it.";

PyMethodDef own_methods[] = {
    {"rebase", &rebase, METH_O, kRebaseDoc},
    forwarded<&TensorHooks::to>("to", kToDoc),
    forwarded<&TensorHooks::copy_from>("copy_from", kCopyFromDoc),
    forwarded<&TensorHooks::tolist>(
        "tolist", "tolist()\n--\n\nThe values as nested lists of Python numbers; fetched from the device."),
    forwarded<&TensorHooks::as_array>("__array__", "NumPy's protocol: the values as an array."),
    forwarded<&TensorHooks::copy>("__copy__", "The values in contiguous memory of their own, on the same device."),
    forwarded<&TensorHooks::copy>("__deepcopy__", "The same as __copy__."),
    forwarded<&TensorHooks::reduce>("__reduce_ex__", "How pickle makes the tensor again: from its bytes."),
    {"_described", &tensor_described, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "Sizes of the dimensions.", nullptr},
    {"strides", get_strides, nullptr, "Strides in elements.", nullptr},
    {"element", get_element, nullptr, "The element kind.", nullptr},
    {"dtype", get_dtype, nullptr, "The element as a NumPy dtype.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"numel", get_numel, nullptr, "Number of elements.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes that the elements take.", nullptr},
    {"device", get_device, nullptr, "Where the memory is: \"cpu\", \"cuda:1\", \"metal\".", nullptr},
    {"address", get_address, nullptr, "Address of the first element.", nullptr},
    {"read_only", get_read_only, nullptr, "Whether writing is refused.", nullptr},
    {"T", get_transposed, nullptr, "The dimensions in reverse order.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "The last two dimensions swapped.", nullptr},
    {"__array_priority__", get_priority, nullptr, nullptr, nullptr},
    {"_element", get_code, nullptr, nullptr, nullptr},
    {"_place", get_place, nullptr, nullptr, nullptr},
    {"_unbacked", get_unbacked, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

constexpr const char* kDoc =
    "Memory with a shape, strides and an element, exchanged with every framework through DLPack.\n\n"
    "Make one with `empty`, `zeros`, `asarray`, `from_dlpack` or `from_pointer`. Slicing gives views. Operators are "
    "those\n"
    "of baracuda.functional; comparisons go element by element, and only one element has a truth value.";

// tensor_hooks(Element, members, coerce, sizes, steps, place, to, copy_from, as_array, tolist, copy, reduce, repr)
PyObject* set_hooks(PyObject*, PyObject* args) {
  TensorHooks h;
  PyObject* members;
  if (!PyArg_ParseTuple(args, "OO!OOOOOOOOOOO", &h.element, &PyTuple_Type, &members, &h.coerce, &h.sizes, &h.steps,
                        &h.place, &h.to, &h.copy_from, &h.as_array, &h.tolist, &h.copy, &h.reduce, &h.repr))
    return nullptr;
  if (PyTuple_GET_SIZE(members) != kElementCount) return PyErr_Format(PyExc_ValueError, "tensor_hooks: members");
  for (int i = 0; i < kElementCount; ++i) element_members[i] = Py_NewRef(PyTuple_GET_ITEM(members, i));
  Py_INCREF(args);  // for ever: and so all that is in it
  tensor_hooks = h;
  Py_RETURN_NONE;
}

PyMethodDef hooks_def[] = {
    {"tensor_hooks", &set_hooks, METH_VARARGS, "What baracuda.memory.tensor does for bc.Tensor."},
    {nullptr, nullptr, 0, nullptr}};

template <class F>
PyType_Slot slot(int number, F* f) {
  return {number, reinterpret_cast<void*>(f)};
}

PyTypeObject* make_type() {
  std::vector<PyMethodDef>* methods = new std::vector<PyMethodDef>;  // the type holds it
  for (PyMethodDef* table : {own_methods, view_methods, export_methods, function_methods})
    for (; table->ml_name; ++table) methods->push_back(*table);
  methods->push_back({nullptr, nullptr, 0, nullptr});
  std::vector<PyType_Slot> slots = {slot(Py_tp_dealloc, &tensor_dealloc), slot(Py_tp_traverse, &tensor_traverse),
                                    slot(Py_tp_clear, &tensor_clear),     slot(Py_tp_repr, &tensor_repr),
                                    slot(Py_tp_iter, &tensor_iter),       slot(Py_mp_length, &tensor_length),
                                    slot(Py_mp_subscript, &subscript),    slot(Py_sq_length, &tensor_length),
                                    slot(Py_sq_item, &item_at),           slot(Py_tp_getset, getset),
                                    slot(Py_tp_methods, methods->data()), {Py_tp_doc, const_cast<char*>(kDoc)}};
  for (const PyType_Slot* s = operator_slots; s->slot; ++s) slots.push_back(*s);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {
      "baracuda.Tensor", sizeof(TensorObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
      slots.data()};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

bool tensor_setup(PyObject* module) {
  tensor_type = make_type();
  return tensor_type && make_setup() &&
         PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) == 0 &&
         PyModule_AddFunctions(module, view_functions) == 0 && PyModule_AddFunctions(module, make_functions) == 0 &&
         PyModule_AddFunctions(module, hooks_def) == 0;
}

}  // namespace baracuda::bindings
