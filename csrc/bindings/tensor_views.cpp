// Views by arithmetic alone: sizes, strides and an offset. No memory is touched.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/tensor.h"
#include "bindings/trace.h"
#include "core/checked.h"

namespace baracuda::bindings {
namespace {

// --- ints
// -------------------------------------------------------------------------------------------------------------

// What a method was given as f(1, 2), f((1, 2)) or f([1, 2]).
struct Ints {
  int n = 0;
  int64_t at[kMaxRank];
};

// An exception of a conversion, as nothing: the caller has the words. False for interrupts and the like.
bool forgiven() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  PyErr_Clear();
  return true;
}

bool to_int(PyObject* object, int64_t* out) {
  if (!PyIndex_Check(object)) return false;
  PyObject* number = PyNumber_Index(object);
  if (!number) return false;
  *out = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return !(*out == -1 && PyErr_Occurred());
}

PyObject* refuse_ints(const char* field, PyObject* const* args, Py_ssize_t n, const std::string& want) {
  if (PyErr_Occurred() && !forgiven()) return nullptr;
  PyObject* given = n == 1 ? Py_NewRef(args[0]) : PyTuple_New(n);
  for (Py_ssize_t i = 0; n != 1 && given && i < n; ++i) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
  const std::string got = given ? text_of(given) : "something";
  Py_XDECREF(given);
  return refuse_tensor(field, got, want);
}

bool read_ints(const char* field, PyObject* const* args, Py_ssize_t n, const std::string& want, Ints& out) {
  PyObject* held = nullptr;
  PyObject* const* items = args;
  Py_ssize_t count = n;
  bool read = true;
  if (n == 1 && !PyLong_CheckExact(args[0]) && (PyTuple_Check(args[0]) || !PyIndex_Check(args[0]))) {
    held = PySequence_Tuple(args[0]);
    read = held != nullptr;
    items = held ? &PyTuple_GET_ITEM(held, 0) : nullptr;
    count = held ? PyTuple_GET_SIZE(held) : 0;
  }
  read = read && count <= kMaxRank;
  for (Py_ssize_t i = 0; read && i < count; ++i) read = to_int(items[i], &out.at[out.n++]);
  Py_XDECREF(held);
  if (!read) refuse_ints(field, args, n, want);
  return read;
}

std::string count_text(int64_t n) {
  return n == 1 ? "the 1 dimension" : "each of the " + std::to_string(n) + " dimensions";
}

// --- x[key]
// -----------------------------------------------------------------------------------------------------------

// Appends a dimension; those past the most a tensor has are counted only.
void append(Layout& out, int64_t size, int64_t stride) {
  if (out.rank < kMaxRank) out.shape[out.rank] = size, out.strides[out.rank] = stride;
  ++out.rank;
}

bool take_slice(PyObject* key, int64_t size, int64_t stride, Layout& out) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) return false;
  const Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
  if (length) out.offset += start * stride;
  int64_t wide;
  const bool lost = __builtin_mul_overflow(stride, static_cast<int64_t>(step), &wide);
  if (lost || wide >= kMostStride || wide <= -kMostStride) wide = stride;  // of at most one element
  append(out, length, wide);
  return true;
}

// Whether an array or a number of any library is of truth values, as its dtype's name says.
bool is_truth(PyObject* key) {
  if (PyArray_IsScalar(key, Generic)) return PyArray_IsScalar(key, Bool);
  if (PyArray_Check(key)) return PyArray_ISBOOL(reinterpret_cast<PyArrayObject*>(key));
  PyObject* dtype = PyObject_GetAttrString(key, "dtype");
  PyObject* name = dtype ? PyObject_Str(dtype) : nullptr;
  const char* text = name ? PyUnicode_AsUTF8(name) : nullptr;
  const bool truth = text && std::string_view(text).ends_with("bool");
  Py_XDECREF(dtype);
  Py_XDECREF(name);
  PyErr_Clear();
  return truth;
}

// Lists, masks and arrays of positions: all that is no int, slice, None or `...`.
bool copies(PyObject* key) {
  if (PyLong_CheckExact(key) || PySlice_Check(key) || key == Py_None || key == Py_Ellipsis) return false;
  if (PyBool_Check(key) || !PyIndex_Check(key)) return true;
  if (const TensorObject* t = as_tensor(key)) return t->view.rank > 0 || t->view.element == Element::Bool;
  PyObject* rank = PyObject_GetAttrString(key, "ndim");
  const long n = rank && PyLong_Check(rank) ? PyLong_AsLong(rank) : -1;
  Py_XDECREF(rank);
  PyErr_Clear();
  return n > 0 || (n == 0 && is_truth(key));
}

bool any_copies(PyObject* key) {
  if (!PyTuple_Check(key)) return copies(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (copies(PyTuple_GET_ITEM(key, i))) return true;
  return false;
}

bool take_int(PyObject* key, int axis, int64_t size, int64_t stride, Layout& out) {
  if (copies(key)) {
    refuse_tensor("index", "a key that copies", "slices and ints", "use F.index for arrays, lists and masks");
    return false;
  }
  PyObject* number = PyNumber_Index(key);
  if (!number) return false;
  int overflow;
  const int64_t i = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (!overflow && i >= -size && i < size) {
    out.offset += (i < 0 ? i + size : i) * stride;
    Py_DECREF(number);
    return true;
  }
  raise_refusal({Code::IndexRange, "index", text_of(number) + " for dimension " + std::to_string(axis),
                 size ? std::to_string(-size) + " <= index < " + std::to_string(size) : "none: its size is 0", ""},
                Py_None);
  Py_DECREF(number);
  return false;
}

bool index_layout(const TensorView& x, PyObject* key, Layout& out) {
  PyObject* const* keys = &key;
  Py_ssize_t n = 1, used = 0, ellipses = 0;
  if (PyTuple_Check(key)) keys = &PyTuple_GET_ITEM(key, 0), n = PyTuple_GET_SIZE(key);
  for (Py_ssize_t i = 0; i < n; ++i)
    ellipses += keys[i] == Py_Ellipsis, used += keys[i] != Py_Ellipsis && keys[i] != Py_None;
  if (ellipses > 1 || used > x.rank) {
    raise_refusal({Code::IndexRange, "index", std::to_string(used) + " indices",
                   "at most one per dimension and one '...': " + std::to_string(x.rank), ""},
                  Py_None);
    return false;
  }
  int axis = 0;
  const auto skip = [&] {
    for (Py_ssize_t k = used; k < x.rank; ++k, ++axis) append(out, x.shape[axis], x.strides[axis]);
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (keys[i] == Py_None) {
      append(out, 1, 0);
    } else if (keys[i] == Py_Ellipsis) {
      skip();
    } else {
      const int64_t size = x.shape[axis], stride = x.strides[axis];
      const bool fine =
          PySlice_Check(keys[i]) ? take_slice(keys[i], size, stride, out) : take_int(keys[i], axis, size, stride, out);
      if (!fine) return false;
      ++axis;
    }
  }
  if (!ellipses) skip();
  if (out.rank <= kMaxRank) return true;
  refuse_tensor("index", "a key that gives " + std::to_string(out.rank) + " dimensions", "at most 8");
  return false;
}

// --- other orders, sizes and dimensions
// ---------------------------------------------------------------------------------

void keep_axis(const TensorView& x, int axis, Layout& out) { append(out, x.shape[axis], x.strides[axis]); }

bool order_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  const std::string want = count_text(x.rank) + " once";
  Ints axes;
  if (!read_ints(field, args, n, want, axes)) return false;
  uint32_t seen = 0;
  for (int i = 0; i < axes.n; ++i) {
    const int64_t axis = axes.at[i] < 0 ? axes.at[i] + x.rank : axes.at[i];
    if (axis < 0 || axis >= x.rank || (seen >> axis & 1)) return refuse_ints(field, args, n, want), false;
    seen |= 1u << axis;
    keep_axis(x, static_cast<int>(axis), out);
  }
  return axes.n == x.rank || (refuse_ints(field, args, n, want), false);
}

void reversed_layout(const TensorView& x, Layout& out) {
  for (int i = x.rank - 1; i >= 0; --i) keep_axis(x, i, out);
}

int64_t dense_strides(const int64_t* shape, int n, int64_t* strides) {
  int64_t step = 1;
  for (int i = n - 1; i >= 0; --i) {
    strides[i] = step;
    if (__builtin_mul_overflow(step, shape[i], &step)) return -1;
  }
  return step;
}

// The wanted sizes with a -1 resolved.
bool complete(const TensorView& x, PyObject* const* args, Py_ssize_t n, Ints& sizes) {
  if (!read_ints("reshape", args, n, "at most 8 ints", sizes)) return false;
  const int64_t count = x.numel();
  int64_t known = 1;
  int open = -1;
  bool fits = true, none = false;
  for (int i = 0; i < sizes.n; ++i) {
    if (sizes.at[i] == -1 && open < 0) {
      open = i;
      continue;
    }
    none |= sizes.at[i] == 0;
    fits &= sizes.at[i] >= 0;
    if (fits && !none && __builtin_mul_overflow(known, sizes.at[i], &known)) known = INT64_MAX;
  }
  if (none) known = 0;
  if (fits && open >= 0) {
    fits = known > 0 && count % known == 0;
    if (fits) sizes.at[open] = count / known;
  } else {
    fits = fits && known == count;
  }
  if (fits) return true;
  refuse_ints("reshape", args, n,
              "sizes with " + std::to_string(count) + " elements together, for " + text_of(x.shape, x.rank));
  return false;
}

// Splits and merges dimensions; false where that would need a copy.
bool regroup(const TensorView& x, const Ints& sizes, Layout& out) {
  int64_t old_sizes[kMaxRank], old_steps[kMaxRank];
  int left = 0;
  for (int i = 0; i < x.rank; ++i)
    if (x.shape[i] != 1) old_sizes[left] = x.shape[i], old_steps[left++] = x.strides[i];
  std::fill_n(out.strides, sizes.n, 1);
  for (int from = 0, at = 0; from < left;) {
    // The fewest leading dimensions of both that have as many elements.
    int64_t n = old_sizes[from], count = 1;
    int to = from + 1, end = at;
    while (n != count) {
      if (n < count)
        n *= old_sizes[to++];
      else
        count *= sizes.at[end++];
    }
    for (int i = from; i + 1 < to; ++i)
      if (old_steps[i] != old_sizes[i + 1] * old_steps[i + 1]) return false;
    int64_t step = old_steps[to - 1];
    for (int i = end - 1; i >= at; --i) {
      out.strides[i] = step;
      step *= sizes.at[i];
    }
    from = to, at = end;
  }
  return true;
}

bool reshape_layout(const char*, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  Ints sizes;
  if (!complete(x, args, n, sizes)) return false;
  out.rank = sizes.n;
  std::copy_n(sizes.at, sizes.n, out.shape);
  if (std::find(sizes.at, sizes.at + sizes.n, 0) != sizes.at + sizes.n) {
    dense_strides(out.shape, out.rank, out.strides);
    return true;
  }
  if (regroup(x, sizes, out)) return true;
  refuse_tensor("reshape", text_of(x.shape, x.rank) + " with strides " + text_of(x.strides, x.rank),
                "a tensor that can be seen as " + text_of(sizes.at, sizes.n) + " without a copy",
                "copy it first: bc.asarray(x).reshape(...)");
  return false;
}

// Sizes that `x` broadcasts to; -1 keeps one where `keeps`.
bool broadcast_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, bool keeps,
                      Layout& out) {
  const std::string want = "at most 8 sizes that " + text_of(x.shape, x.rank) + " broadcasts to";
  Ints sizes;
  if (!read_ints(field, args, n, want, sizes)) return false;
  const int lead = sizes.n - x.rank;
  bool fits = lead >= 0;
  for (int i = 0; fits && i < sizes.n; ++i) {
    const int64_t mine = i < lead ? 1 : x.shape[i - lead];
    int64_t size = sizes.at[i];
    if (keeps && size == -1 && i >= lead) size = mine;
    fits = size >= 0 && (mine == 1 || mine == size);
    append(out, size, i < lead || (mine == 1 && size != 1) ? 0 : x.strides[i - lead]);
  }
  if (!fits) return refuse_ints(field, args, n, want), false;
  return countable(out.shape, out.rank) || (refuse_ints(field, args, n, "sizes of fewer than 2^59 elements"), false);
}

bool expand_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  return broadcast_layout(field, x, args, n, true, out);
}

bool broadcast_to_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  return broadcast_layout(field, x, args, n, false, out);
}

bool transpose_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  if (n > 1 || (n == 1 && args[0] != Py_None)) return order_layout(field, x, args, n, out);
  return reversed_layout(x, out), true;
}

// The dimensions that squeeze or unsqueeze was given, as bits; each one is counted in a tensor of `rank`.
bool read_axes(const char* field, PyObject* const* args, Py_ssize_t n, int rank, uint32_t* bits) {
  const int span = std::max(rank, 1);
  const std::string want = "dimensions from " + std::to_string(-span) + " to " + std::to_string(span - 1);
  Ints axes;
  if (!read_ints(field, args, n, want, axes)) return false;
  for (int i = 0; i < axes.n; ++i) {
    const int64_t axis = axes.at[i] < 0 ? axes.at[i] + span : axes.at[i];
    if (axis < 0 || axis >= span || (*bits >> axis & 1))
      return refuse_ints(field, args, n, want + ", each once"), false;
    *bits |= 1u << axis;
  }
  return true;
}

bool squeeze_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  uint32_t bits = 0;
  const bool all = n == 0 || (n == 1 && args[0] == Py_None);
  if (!all && !read_axes(field, args, n, x.rank, &bits)) return false;
  for (int i = 0; i < x.rank; ++i)
    if (x.shape[i] != 1 || !(all || (bits >> i & 1))) keep_axis(x, i, out);
  return true;
}

bool unsqueeze_layout(const char* field, const TensorView& x, PyObject* const* args, Py_ssize_t n, Layout& out) {
  uint32_t bits = 0;
  if (n != 1) return refuse_ints(field, args, n, "one dimension"), false;
  if (x.rank == kMaxRank) return refuse_tensor(field, "rank 8", "at most 7"), false;
  if (!read_axes(field, args, n, x.rank + 1, &bits)) return false;
  for (int i = 0; i <= x.rank; ++i) {
    if (bits >> i & 1) append(out, 1, 0);
    if (i < x.rank) keep_axis(x, i, out);
  }
  return true;
}

// --- Python
// -----------------------------------------------------------------------------------------------------------

using Arithmetic = bool(const char* name, const TensorView&, PyObject* const*, Py_ssize_t, Layout&);

struct Named {
  const char* name;
  Arithmetic* layout;
};
constexpr Named kTranspose{"transpose", &transpose_layout}, kPermute{"permute", &order_layout},
    kReshape{"reshape", &reshape_layout}, kExpand{"expand", &expand_layout},
    kBroadcastTo{"broadcast_to", &broadcast_to_layout}, kSqueeze{"squeeze", &squeeze_layout},
    kUnsqueeze{"unsqueeze", &unsqueeze_layout};

template <const Named& named>
PyObject* view_method(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  Layout layout;
  if (!named.layout(named.name, view_of(self), args, n, layout)) return nullptr;
  if (named.layout == &squeeze_layout && !shown_ones(view_of(self))) return nullptr;
  return new_view(self, layout);
}

template <const Named& named>
constexpr PyMethodDef method(const char* doc) {
  return {named.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&view_method<named>)), METH_FASTCALL, doc};
}

bool read_sizes(PyObject* sizes, int64_t* out, int32_t* rank) {
  if (!PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) > kMaxRank) {
    PyErr_SetString(PyExc_TypeError, "want a tuple of at most 8 ints");
    return false;
  }
  *rank = static_cast<int32_t>(PyTuple_GET_SIZE(sizes));
  for (int i = 0; i < *rank; ++i) out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
  return !PyErr_Occurred();
}

bool read_layout(PyObject* const* args, TensorView& x) {
  int32_t rank;
  if (!read_sizes(args[0], x.shape, &x.rank) || !read_sizes(args[1], x.strides, &rank)) return false;
  if (rank == x.rank) return true;
  PyErr_SetString(PyExc_ValueError, "want as many strides as sizes");
  return false;
}

// index_layout(shape, strides, key) -> (offset, shape, strides)
PyObject* layout_of_index(PyObject*, PyObject* const* args, Py_ssize_t n) {
  TensorView x;
  Layout out;
  if (n != 3) return PyErr_Format(PyExc_TypeError, "index_layout takes (shape, strides, key)");
  if (!read_layout(args, x) || !index_layout(x, args[2], out)) return nullptr;
  return Py_BuildValue("(LNN)", static_cast<long long>(out.offset), tuple_of(out.shape, out.rank),
                       tuple_of(out.strides, out.rank));
}

// key_copies(key): whether x[key] has to be a copy.
PyObject* does_key_copy(PyObject*, PyObject* key) { return PyBool_FromLong(any_copies(key)); }

// reshape_layout(shape, strides, wanted) -> (shape, strides)
PyObject* layout_of_reshape(PyObject*, PyObject* const* args, Py_ssize_t n) {
  TensorView x;
  Layout out;
  if (n != 3) return PyErr_Format(PyExc_TypeError, "reshape_layout takes (shape, strides, wanted)");
  if (!read_layout(args, x) || !reshape_layout("reshape", x, args + 2, 1, out)) return nullptr;
  return Py_BuildValue("(NN)", tuple_of(out.shape, out.rank), tuple_of(out.strides, out.rank));
}

// view_of(tensor, offset, shape, strides, element): any view of a tensor's memory, which the caller knows to be inside;
// without it where only shapes are asked for.
PyObject* any_view(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Layout layout;
  int32_t rank;
  if (n != 5 || !as_tensor(args[0])) return PyErr_Format(PyExc_TypeError, "view_of takes a Tensor and four more");
  if (!read_sizes(args[2], layout.shape, &layout.rank) || !read_sizes(args[3], layout.strides, &rank)) return nullptr;
  layout.offset = PyLong_AsLongLong(args[1]);
  const long element = PyLong_AsLong(args[4]);
  if (PyErr_Occurred()) return nullptr;
  if (rank != layout.rank || element < 0 || element >= kElementCount)
    return PyErr_Format(PyExc_ValueError, "view_of: got element %ld, %d sizes, %d strides", element, layout.rank, rank);
  PyObject* made = new_view(args[0], layout, static_cast<Element>(element));
  if (made && inferring()) view_of(made).unbacked = true;
  return made;
}

}  // namespace

PyObject* new_view(PyObject* tensor, const Layout& layout, Element element) {
  TensorObject* made = blank_tensor(tensor);
  if (!made) return nullptr;
  made->view.element = element;
  describe(made->view, view_of(tensor), layout.rank, layout.shape, layout.strides);
  // Only now the address is sure to stay.
  made->view.data = static_cast<char*>(address_of(self_of(tensor))) + layout.offset * size_of(element);
  return reinterpret_cast<PyObject*>(made);
}

PyObject* new_view(PyObject* tensor, const Layout& layout) { return new_view(tensor, layout, view_of(tensor).element); }

PyObject* subscript(PyObject* self, PyObject* key) {
  if (any_copies(key)) return read_copied(self, key);
  Layout layout;
  // The tracer may say that a slice is cut short, where the sizes are open.
  if (!shown_key(view_of(self), key) || !index_layout(view_of(self), key, layout)) return nullptr;
  return new_view(self, layout);
}

PyObject* item_at(PyObject* self, Py_ssize_t i) {
  PyObject* key = PyLong_FromSsize_t(i);
  PyObject* row = key ? subscript(self, key) : nullptr;
  Py_XDECREF(key);
  return row;
}

PyObject* get_transposed(PyObject* self, void*) {
  Layout layout;
  reversed_layout(view_of(self), layout);
  return new_view(self, layout);
}

PyObject* get_matrix_transposed(PyObject* self, void*) {
  const TensorView& x = view_of(self);
  if (x.rank < 2) return refuse_tensor("mT", "rank " + std::to_string(x.rank), "at least 2 dimensions");
  Layout layout;
  for (int i = 0; i < x.rank; ++i) keep_axis(x, i < x.rank - 2 ? i : 2 * x.rank - 3 - i, layout);
  return new_view(self, layout);
}

PyMethodDef view_methods[] = {
    method<kTranspose>("The dimensions in another order; all reversed by default."),
    method<kPermute>("The dimensions in another order."),
    method<kReshape>("Another shape of the same memory; refused where that would need a copy."),
    method<kExpand>("Dimensions of size 1, and new ones in front, as large as asked for; -1 keeps a size."),
    method<kBroadcastTo>("A view of the shape, which this one broadcasts to."),
    method<kSqueeze>("Without the dimensions of size 1, or those of the given ones."),
    method<kUnsqueeze>("With a new dimension of size 1 at the given position."),
    {nullptr, nullptr, 0, nullptr}};

namespace {
template <class F>
constexpr PyCFunction as_c(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
}  // namespace

PyMethodDef view_functions[] = {
    {"index_layout", as_c(&layout_of_index), METH_FASTCALL, "(offset, shape, strides) of x[key]."},
    {"key_copies", &does_key_copy, METH_O, "Whether a key has a list, an array or a mask, which no view has."},
    {"reshape_layout", as_c(&layout_of_reshape), METH_FASTCALL, "(shape, strides) of x.reshape(wanted)."},
    {"view_of", as_c(&any_view), METH_FASTCALL, "A view by offset, sizes, strides and element, unchecked."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace baracuda::bindings
