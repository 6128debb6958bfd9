#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include "bindings/order.h"

#include <numpy/arrayobject.h>

#include <algorithm>
#include <utility>

namespace baracuda::bindings {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

bool is_contiguous(const Lying& x) {
  int64_t want = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    if (x.shape[i] != 1 && x.strides[i] != want) return false;
    want *= x.shape[i];
  }
  return true;
}

// Whether the elements fill their memory once, in whatever order of dimensions.
bool is_dense(const Lying& x) {
  int64_t want = 1;
  uint32_t seen = 0;
  for (int d = 0; d < x.rank; ++d) {  // dimensions that are stepped through, from the fastest to the slowest
    int next = 0;
    while (next < x.rank && (x.shape[next] == 1 || x.strides[next] != want || seen >> next & 1)) ++next;
    if (next == x.rank) break;
    seen |= 1u << next;
    want *= x.shape[next];
  }
  for (int d = 0; d < x.rank; ++d)
    if (x.shape[d] != 1 && !(seen >> d & 1)) return false;
  return true;
}

bool equal(const Lying& a, const Lying& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

// --- channels last --------------------------------------------------------------------------------------------------

// Dimensions from the fastest to the slowest.
constexpr int kOfPlanes[] = {1, 3, 2, 0};
constexpr int kOfVolumes[] = {1, 4, 3, 2, 0};
std::span<const int> channels_order(int rank) {
  if (rank == 4) return kOfPlanes;
  return rank == 5 ? std::span<const int>(kOfVolumes) : std::span<const int>();
}

// Strides of a dense tensor whose channels lie together.
void channels_strides(int rank, const int64_t* shape, int64_t* strides) {
  int64_t next = 1;
  for (int d : channels_order(rank)) strides[d] = next, next *= std::max<int64_t>(shape[d], 1);
}

bool is_channels_dense(const Lying& x) {
  if (x.rank != 4) return false;  // torch's shortcut for volumes is the one for equal strides
  int64_t want[kMaxRank];
  channels_strides(x.rank, x.shape, want);
  for (int d = 0; d < x.rank; ++d)
    if (x.shape[d] != 1 && x.strides[d] != want[d]) return false;
  return true;
}

// Whether torch takes strides for those of channels last (c10's is_channels_last_strides_2d and _3d): what may be
// either is C order.
bool suggests_channels(const Lying& x) {
  const std::span<const int> order = channels_order(x.rank);
  if (order.empty() || x.strides[1] == 0) return false;
  int64_t least = 0;
  for (int d : order) {
    if (x.shape[d] == 0 || x.strides[d] < least) return false;
    if (d == 0 && least == x.strides[1]) return false;
    least = x.strides[d] * std::max<int64_t>(x.shape[d], 1);
  }
  return true;
}

// --- the order of what several operands broadcast to ----------------------------------------------------------------

// Steps of an operand through the result; 0 where it is broadcast.
void align(const Lying& x, int rank, const int64_t* shape, int64_t* steps) {
  const int lead = rank - x.rank;
  for (int d = 0; d < rank; ++d) {
    const bool broadcast = d < lead || (x.shape[d - lead] == 1 && shape[d] != 1);
    steps[d] = broadcast ? 0 : magnitude(x.strides[d - lead]);
  }
}

struct Steps {
  int n, rank;
  const int64_t* shape;
  int64_t of[kMaxOrdering][kMaxRank];
};

// Above 0: dimension `inner` takes larger steps than `outer`; 0: nothing tells. The first operand that tells decides
// (at::TensorIteratorBase::reorder_dimensions).
int compare_as_torch(const Steps& s, int inner, int outer) {
  for (int k = 0; k < s.n; ++k) {
    const int64_t a = s.of[k][inner], b = s.of[k][outer];
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (s.shape[inner] > s.shape[outer]) return 1;
  }
  return 0;
}

void sort_as_torch(const Steps& s, int* perm) {
  for (int i = 1; i < s.rank; ++i) {
    for (int at = i, before = i - 1; before >= 0; --before) {
      const int told = compare_as_torch(s, perm[before], perm[at]);
      if (told < 0) break;
      if (told > 0) std::swap(perm[before], perm[at]), at = before;
    }
  }
}

// The same as NumPy's nditer: where operands disagree C order wins (npyiter_find_best_axis_ordering).
int compare_as_numpy(const Steps& s, int inner, int outer) {
  bool told = false, swaps = false;
  for (int k = 0; k < s.n; ++k) {
    const int64_t a = s.shape[inner] == 1 ? 0 : s.of[k][inner], b = s.shape[outer] == 1 ? 0 : s.of[k][outer];
    if (a == 0 || b == 0) continue;
    swaps = a > b && (swaps || !told);
    told = true;
  }
  return told ? (swaps ? 1 : -1) : 0;
}

void sort_as_numpy(const Steps& s, int* perm) {
  for (int i = 1; i < s.rank; ++i) {
    int to = i;
    const int moved = perm[i];
    for (int before = i - 1; before >= 0; --before) {
      const int told = compare_as_numpy(s, perm[before], moved);
      if (told < 0) break;
      if (told > 0) to = before;
    }
    std::rotate(perm + to, perm + i, perm + i + 1);
  }
}

bool iterated(OrderOf of, std::span<const Lying> operands, int rank, const int64_t* shape, int64_t* strides) {
  Steps s;
  s.n = static_cast<int>(operands.size()), s.rank = rank, s.shape = shape;
  for (int k = 0; k < s.n; ++k) align(operands[k], rank, shape, s.of[k]);
  int perm[kMaxRank];  // dimensions from the fastest to the slowest
  for (int i = 0; i < rank; ++i) perm[i] = rank - 1 - i;
  of == OrderOf::NumPy ? sort_as_numpy(s, perm) : sort_as_torch(s, perm);
  int64_t next = 1;
  bool moved = false;
  for (int i = 0; i < rank; ++i) {
    moved |= perm[i] != rank - 1 - i;
    strides[perm[i]] = next;
    next *= shape[perm[i]];
  }
  return moved;
}

bool elementwise(OrderRule rule, OrderOf of, std::span<const Lying> operands, int rank, const int64_t* shape,
                 int64_t* strides) {
  bool alike = rule == OrderRule::Elementwise && of == OrderOf::Torch, contiguous = true, channels = true;
  for (const Lying& x : operands) {
    if (x.rank > rank) return false;
    for (int d = 0; d < x.rank; ++d)
      if (x.shape[d] != 1 && x.shape[d] != shape[d + rank - x.rank]) return false;
    alike &= x.rank == rank && std::equal(shape, shape + rank, x.shape);
    contiguous &= is_contiguous(x);
    channels &= is_channels_dense(x);
  }
  // torch's shortcuts (at::TensorIteratorBase::compute_fast_setup_type), which say what dimensions of size 1 carry.
  if (alike && contiguous) return false;
  if (alike && channels) return channels_strides(rank, shape, strides), true;
  const Lying& first = operands.front();
  alike &= std::all_of(operands.begin(), operands.end(), [&](const Lying& x) { return equal(x, first); });
  if (alike && is_dense(first)) return std::copy_n(first.strides, rank, strides), true;
  return iterated(of, operands, rank, shape, strides);
}

bool same(OrderOf of, const Lying& x, int rank, const int64_t* shape, int64_t* strides) {
  if (x.rank != rank || !std::equal(shape, shape + rank, x.shape)) return false;
  if (of == OrderOf::NumPy || !is_dense(x)) return iterated(of, {&x, 1}, rank, shape, strides);
  return std::copy_n(x.strides, rank, strides), true;
}

bool in_channels(std::span<const Lying> operands, int rank, const int64_t* shape, int64_t* strides) {
  if (channels_order(rank).empty() || std::none_of(operands.begin(), operands.end(), suggests_channels)) return false;
  return channels_strides(rank, shape, strides), true;
}

// --- for Python -----------------------------------------------------------------------------------------------------

// A tuple of at most kMaxRank numbers; -1 with an exception.
int read_numbers(PyObject* given, int64_t* out) {
  if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) > kMaxRank) {
    PyErr_SetString(PyExc_TypeError, "want a tuple of at most 8 sizes or strides");
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(given, i));
  return PyErr_Occurred() ? -1 : static_cast<int>(PyTuple_GET_SIZE(given));
}

// result_strides(rule, numpy, shape, ((shape, strides), ...)): None for C order
PyObject* call_result_strides(PyObject*, PyObject* args) {
  int rule, numpy;
  PyObject *shape, *given;
  int64_t sizes[kMaxRank], steps[kMaxRank], of[kMaxOrdering][2][kMaxRank];
  if (!PyArg_ParseTuple(args, "ipO!O!", &rule, &numpy, &PyTuple_Type, &shape, &PyTuple_Type, &given)) return nullptr;
  const int rank = read_numbers(shape, sizes);
  const Py_ssize_t n = PyTuple_GET_SIZE(given);
  if (rank < 0) return nullptr;
  if (n < 1 || n > kMaxOrdering || rule < 0 || rule >= static_cast<int>(std::size(kOrderRuleNames)))
    return PyErr_Format(PyExc_ValueError, "want a rule, and 1 to %d tensors that decide", kMaxOrdering);
  Lying operands[kMaxOrdering];
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject *x_shape, *x_strides;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, k), "OO", &x_shape, &x_strides)) return nullptr;
    operands[k] = {read_numbers(x_shape, of[k][0]), of[k][0], of[k][1]};
    if (operands[k].rank < 0 || read_numbers(x_strides, of[k][1]) < 0) return nullptr;
  }
  if (!order_strides(static_cast<OrderRule>(rule), numpy ? OrderOf::NumPy : OrderOf::Torch,
                     {operands, static_cast<size_t>(n)}, rank, sizes, steps))
    Py_RETURN_NONE;
  PyObject* made = PyTuple_New(rank);
  for (int i = 0; made && i < rank; ++i) PyTuple_SET_ITEM(made, i, PyLong_FromLongLong(steps[i]));
  return made;
}

// numpy_empty(shape, strides, dtype)
PyObject* call_numpy_empty(PyObject*, PyObject* args) {
  PyObject *shape, *strides, *dtype;
  int64_t sizes[kMaxRank], steps[kMaxRank];
  if (!PyArg_ParseTuple(args, "OOO!", &shape, &strides, &PyArrayDescr_Type, &dtype)) return nullptr;
  const int rank = read_numbers(shape, sizes);
  if (rank < 0 || read_numbers(strides, steps) != rank) return nullptr;
  return numpy_empty(dtype, rank, sizes, steps);
}

PyMethodDef methods[] = {{"result_strides", &call_result_strides, METH_VARARGS,
                          "Strides of a result that lies as its operands do; None where it lies in C order."},
                         {"numpy_empty", &call_numpy_empty, METH_VARARGS, "A NumPy array with strides of its own."},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool order_strides(OrderRule rule, OrderOf of, std::span<const Lying> operands, int rank, const int64_t* shape,
                   int64_t* strides) {
  if (rank < 2 || operands.empty() || std::all_of(operands.begin(), operands.end(), is_fresh)) return false;
  if (std::find(shape, shape + rank, 0) != shape + rank) return false;
  if (rule == OrderRule::Channels) return in_channels(operands, rank, shape, strides);
  if (rule == OrderRule::Same) return same(of, operands.front(), rank, shape, strides);
  return elementwise(rule, of, operands, rank, shape, strides);
}

bool is_numpy_empty(PyObject* make) {
  return PyCFunction_Check(make) && PyCFunction_GET_FUNCTION(make) == methods[1].ml_meth;
}

PyObject* numpy_empty(PyObject* dtype, int rank, const int64_t* shape, const int64_t* strides) {
  auto* descr = reinterpret_cast<PyArray_Descr*>(Py_NewRef(dtype));  // which the call takes over
  npy_intp sizes[kMaxRank], steps[kMaxRank];
  for (int i = 0; i < rank; ++i) sizes[i] = shape[i], steps[i] = strides[i] * PyDataType_ELSIZE(descr);
  return PyArray_NewFromDescr(&PyArray_Type, descr, rank, sizes, steps, nullptr, 0, nullptr);
}

bool order_setup(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace baracuda::bindings
