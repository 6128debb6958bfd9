// Operators of bc.Tensor: baracuda.functional by its names, and Python numbers of one element.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <atomic>
#include <cmath>

#include "bindings/import_detail.h"
#include "bindings/tensor.h"

namespace baracuda::bindings {
namespace {

// A function of baracuda.functional, or of another module, which is imported when an operator is used first.
struct Named {
  const char* name;
  const char* room = "baracuda.functional";
  std::atomic<PyObject*> found{nullptr};

  PyObject* get() {
    if (PyObject* known = found.load(std::memory_order_acquire)) return known;
    PyObject* module = PyImport_ImportModule(room);
    PyObject* function = module ? PyObject_GetAttrString(module, name) : nullptr;
    Py_XDECREF(module);
    PyObject* nobody = nullptr;
    if (function && !found.compare_exchange_strong(nobody, function)) Py_DECREF(function);
    return function ? found.load() : nullptr;
  }
};

Named sum{"sum"}, mean{"mean"}, product{"prod"}, largest{"max"}, smallest{"min"}, where_largest{"argmax"},
    where_smallest{"argmin"}, all{"all"}, any{"any"}, deviation{"std"}, variance{"var"}, exponential{"exp"},
    logarithm{"log"}, root{"sqrt"}, clip{"clip"}, cast{"cast"};

Named add{"add"}, sub{"sub"}, mul{"mul"}, divide{"div"}, floor_divide{"floor_divide"}, remainder{"remainder"},
    power{"pow"}, matmul{"matmul"}, both{"bitwise_and"}, either{"bitwise_or"}, differ{"bitwise_xor"},
    left{"bitwise_left_shift"}, right{"bitwise_right_shift"}, negative{"neg"}, absolute{"abs"}, inverse{"bitwise_not"},
    lt{"lt"}, le{"le"}, eq{"eq"}, ne{"ne"}, gt{"gt"}, ge{"ge"};

// Numbers and tensors of any framework; everything else may know itself what to do with a tensor.
bool is_operand(PyObject* o) {
  if (as_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || PyArray_IsScalar(o, Generic)) return true;
  PyObject* has = PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(o)), detail::names.dlpack);
  PyErr_Clear();
  Py_XDECREF(has);
  return has != nullptr;
}

PyObject* call(Named& named, PyObject* a, PyObject* b) {
  PyObject* function = named.get();
  PyObject* args[] = {nullptr, a, b};
  return function ? PyObject_Vectorcall(function, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr) : nullptr;
}

PyObject* operate(Named& named, PyObject* a, PyObject* b) {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  return call(named, a, b);
}

template <Named& named>
PyObject* binary(PyObject* a, PyObject* b) {
  return operate(named, a, b);
}

template <Named& named>
PyObject* unary(PyObject* a) {
  PyObject* function = named.get();
  return function ? PyObject_CallOneArg(function, a) : nullptr;
}

template <Named& named>
PyObject* inplace(PyObject* a, PyObject* b) {
  static PyObject* const out = Py_BuildValue("(s)", "out");
  if (!is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* function = out ? named.get() : nullptr;
  PyObject* args[] = {nullptr, a, b, a};
  return function ? PyObject_Vectorcall(function, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, out) : nullptr;
}

PyObject* raise(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return operate(power, a, b);
}

PyObject* inplace_raise(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return inplace<power>(a, b);
}

// x.sum(dim=1): a function of baracuda.functional with the tensor first.
template <Named& named>
PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  PyObject* function = named.get();
  return function ? call_with(function, self, args, n, kwnames) : nullptr;
}

template <Named& named>
constexpr PyMethodDef named_method(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&method<named>)), METH_FASTCALL | METH_KEYWORDS,
          doc};
}

// In one element, as torch's x.float(): itself where it is of that.
template <Element element>
PyObject* converted(PyObject* self, PyObject*) {
  if (view_of(self).element == element) return Py_NewRef(self);
  return call(cast, self, element_members[static_cast<int>(element)]);
}

PyObject* positive(PyObject* a) { return Py_NewRef(a); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  Named* const functions[] = {&lt, &le, &eq, &ne, &gt, &ge};
  static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
  return operate(*functions[op], a, b);
}

// --- x[key], where no view has what the key names, and x[key] = value
// --------------------------------------------------------------------------------------------------------------------

constexpr const char* kKeys = "baracuda.ops.indexing.keys";
Named read_key{"read", kKeys}, write_key{"write", kKeys};

int assign(PyObject* self, PyObject* key, PyObject* value) {
  if (!value) return PyErr_SetString(PyExc_TypeError, "bc.Tensor: elements cannot be deleted"), -1;
  PyObject* function = write_key.get();
  PyObject* done = function ? PyObject_CallFunctionObjArgs(function, self, key, value, nullptr) : nullptr;
  Py_XDECREF(done);
  return done ? 0 : -1;
}

// Identity: tensors that are equal element by element are not the same memory.
Py_hash_t hash(PyObject* self) { return PyBaseObject_Type.tp_hash(self); }

// --- one element
// ------------------------------------------------------------------------------------------------------

// The only element as a number, or null with an exception set.
PyObject* only(PyObject* self, const char* what, const char* hint) {
  const int64_t n = view_of(self).numel();
  if (n == 1) return number_of(self);
  return refuse_tensor(what, "a tensor of " + std::to_string(n) + " elements", "one element", hint);
}

int truth(PyObject* self) {
  PyObject* number =
      only(self, "bool", "its truth is ambiguous: use F.any(x) or F.all(x), or len(x) for whether it is empty");
  const int yes = number ? PyObject_IsTrue(number) : -1;
  Py_XDECREF(number);
  return yes;
}

template <PyObject* (*convert)(PyObject*)>
PyObject* as_number(PyObject* self, const char* what) {
  PyObject* number = only(self, what, "use x.tolist() for all of them");
  PyObject* converted = number ? convert(number) : nullptr;
  Py_XDECREF(number);
  return converted;
}
PyObject* as_int(PyObject* self) { return as_number<&PyNumber_Long>(self, "int"); }
PyObject* as_float(PyObject* self) { return as_number<&PyNumber_Float>(self, "float"); }

PyObject* as_index(PyObject* self) {
  if ((kInts | kBool).has(view_of(self).element)) return as_number<&PyNumber_Long>(self, "index");
  return PyErr_Format(PyExc_TypeError, "index: got a tensor of %s, want integers: use int(x.item())",
                      name(view_of(self).element));
}

template <class F>
constexpr PyType_Slot slot(int number, F* f) {
  return {number, reinterpret_cast<void*>(f)};
}

}  // namespace

PyObject* read_copied(PyObject* self, PyObject* key) {
  PyObject* function = read_key.get();
  return function ? PyObject_CallFunctionObjArgs(function, self, key, nullptr) : nullptr;
}

// What torch.Tensor and numpy.ndarray both have and both mean, and the functions that are written most; all others are
// called as F.name(x), so that there is one list of functions.
PyMethodDef function_methods[] = {
    named_method<sum>("sum", "F.sum(self, ...)."),
    named_method<mean>("mean", "F.mean(self, ...)."),
    named_method<product>("prod", "F.prod(self, ...)."),
    named_method<largest>("max", "F.max(self, ...)."),
    named_method<smallest>("min", "F.min(self, ...)."),
    named_method<where_largest>("argmax", "F.argmax(self, ...)."),
    named_method<where_smallest>("argmin", "F.argmin(self, ...)."),
    named_method<all>("all", "F.all(self, ...)."),
    named_method<any>("any", "F.any(self, ...)."),
    named_method<deviation>("std", "F.std(self, ...)."),
    named_method<variance>("var", "F.var(self, ...)."),
    named_method<absolute>("abs", "F.abs(self, ...)."),
    named_method<exponential>("exp", "F.exp(self, ...)."),
    named_method<logarithm>("log", "F.log(self, ...)."),
    named_method<root>("sqrt", "F.sqrt(self, ...)."),
    named_method<clip>("clip", "F.clip(self, ...)."),
    named_method<cast>("astype", "F.cast(self, dtype): a copy in another element."),
    {"float", &converted<Element::F32>, METH_NOARGS, "In f32; itself where it is of that."},
    {"int", &converted<Element::I32>, METH_NOARGS, "In i32; itself where it is of that."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot operator_slots[] = {slot(Py_nb_add, &binary<add>),
                                slot(Py_nb_inplace_add, &inplace<add>),
                                slot(Py_nb_subtract, &binary<sub>),
                                slot(Py_nb_inplace_subtract, &inplace<sub>),
                                slot(Py_nb_multiply, &binary<mul>),
                                slot(Py_nb_inplace_multiply, &inplace<mul>),
                                slot(Py_nb_true_divide, &binary<divide>),
                                slot(Py_nb_inplace_true_divide, &inplace<divide>),
                                slot(Py_nb_floor_divide, &binary<floor_divide>),
                                slot(Py_nb_inplace_floor_divide, &inplace<floor_divide>),
                                slot(Py_nb_remainder, &binary<remainder>),
                                slot(Py_nb_inplace_remainder, &inplace<remainder>),
                                slot(Py_nb_power, &raise),
                                slot(Py_nb_inplace_power, &inplace_raise),
                                slot(Py_nb_and, &binary<both>),
                                slot(Py_nb_inplace_and, &inplace<both>),
                                slot(Py_nb_or, &binary<either>),
                                slot(Py_nb_inplace_or, &inplace<either>),
                                slot(Py_nb_xor, &binary<differ>),
                                slot(Py_nb_inplace_xor, &inplace<differ>),
                                slot(Py_nb_lshift, &binary<left>),
                                slot(Py_nb_inplace_lshift, &inplace<left>),
                                slot(Py_nb_rshift, &binary<right>),
                                slot(Py_nb_inplace_rshift, &inplace<right>),
                                slot(Py_nb_matrix_multiply, &binary<matmul>),
                                slot(Py_nb_negative, &unary<negative>),
                                slot(Py_nb_positive, &positive),
                                slot(Py_nb_absolute, &unary<absolute>),
                                slot(Py_nb_invert, &unary<inverse>),
                                slot(Py_nb_bool, &truth),
                                slot(Py_nb_int, &as_int),
                                slot(Py_nb_float, &as_float),
                                slot(Py_nb_index, &as_index),
                                slot(Py_mp_ass_subscript, &assign),
                                slot(Py_tp_richcompare, &compare),
                                slot(Py_tp_hash, &hash),
                                {0, nullptr}};

}  // namespace baracuda::bindings
