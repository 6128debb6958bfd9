// Recipes as Python gives them.
#include <string>

#include "bindings/program_detail.h"
#include "bindings/recipe.h"

namespace baracuda::bindings {
namespace {

// Every index inside its table; a rule that got one wrong must not read past them. `n_params`: with earlier results.
bool sound(const Entry& e, int n_params) {
  const size_t wanted = e.plan ? static_cast<size_t>(reinterpret_cast<PlanObject*>(e.plan)->n_args)
                               : reinterpret_cast<programs::ProgramObject*>(e.program)->names->size();
  int made = static_cast<int>(e.allocations.size());
  bool ok = e.sources.size() == wanted;
  // Numbers of a program come behind its tensors, from parameters.
  if (e.program)
    for (size_t i = programs::n_tensors(reinterpret_cast<programs::ProgramObject*>(e.program)); ok && i < wanted; ++i)
      ok = e.sources[i].from == Source::From::Argument;
  for (const Source& s : e.sources) {
    const bool parameter = s.from == Source::From::Argument || s.from == Source::From::Member;
    int limit = parameter ? n_params : s.from == Source::From::Allocated ? made : s.index + 1;
    ok = ok && s.index >= 0 && s.index < limit && (!e.program || s.from != Source::From::Constant);
    ok = ok && (e.program || s.from != Source::From::Member);
    for (int d = 0; d < s.n_dims; ++d) ok = ok && s.dims[d] >= -1 && s.dims[d] < kMaxRank;
  }
  for (const Allocation& a : e.allocations) {
    ok = ok && a.out_param < n_params;
    for (const Source& by : a.ordered.by)
      ok = ok && by.from == Source::From::Argument && by.index >= 0 && by.index < n_params;
  }
  for (int32_t r : e.returns) ok = ok && r >= 0 && r < made;
  for (int32_t n : e.then.numbers) ok = ok && n >= 0 && n < made;
  if (e.then.entry && e.program)
    ok = ok && !reinterpret_cast<programs::ProgramObject*>(e.program)->core->steps().empty();
  return ok && (!e.then.entry || n_params + made <= kMaxParams);
}

bool parse_source(PyObject* given, std::vector<Source>& sources, int n_params) {
  int from, index;
  PyObject *constant, *dims, *sizes;
  if (!PyArg_ParseTuple(given, "iiOOO", &from, &index, &constant, &dims, &sizes)) return false;
  Source s{static_cast<Source::From>(from), index, constant, 0, -1, {}, sizes != Py_None, {}};
  Py_INCREF(constant);
  if (s.from == Source::From::Before) s.from = Source::From::Argument, s.index += n_params;
  if (s.from == Source::From::Member) s.member = static_cast<int32_t>(PyLong_AsLong(constant));
  sources.push_back(s);
  if (dims == Py_None) return true;
  Source& last = sources.back();
  const bool sized = !last.fitted || (PyTuple_Check(sizes) && PyTuple_Size(sizes) == PyTuple_Size(dims));
  if (!PyTuple_Check(dims) || PyTuple_GET_SIZE(dims) > kMaxRank || !sized) {
    PyErr_SetString(PyExc_ValueError, "a view has at most 8 dimensions, and a size for each where it has some");
    return false;
  }
  last.n_dims = static_cast<int32_t>(PyTuple_GET_SIZE(dims));
  for (int d = 0; d < last.n_dims && d < kMaxRank; ++d)
    last.dims[d] = static_cast<int8_t>(PyLong_AsLong(PyTuple_GET_ITEM(dims, d)));
  for (int d = 0; last.fitted && d < last.n_dims; ++d) last.sizes[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, d));
  return true;
}

// Whether one of the sizes that a result is made of, its first argument, is counted.
bool is_sized(const Allocation& a) {
  PyObject* shape = PyTuple_GET_SIZE(a.args) ? PyTuple_GET_ITEM(a.args, 0) : Py_None;
  bool found = false;
  for (Py_ssize_t i = 0; PyTuple_Check(shape) && i < PyTuple_GET_SIZE(shape); ++i)
    found |= PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)) == kCounted;
  return found;
}

// (make, strides) or (make, rule, whether NumPy's, sources)
bool parse_order(PyObject* given, PyObject* shape, Ordered& out, int n_params) {
  if (given == Py_None) return true;
  int rule = 0, numpy;
  PyObject *make, *strides, *by;
  if (!PyTuple_Check(given)) return PyErr_SetString(PyExc_TypeError, "a result's order is a tuple"), false;
  if (PyTuple_GET_SIZE(given) == 2) {
    if (!PyArg_ParseTuple(given, "OO!", &make, &PyTuple_Type, &strides)) return false;
    out.strides = Py_NewRef(strides);
  } else {
    if (!PyArg_ParseTuple(given, "OipO!", &make, &rule, &numpy, &PyTuple_Type, &by)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(by); ++i)
      if (!parse_source(PyTuple_GET_ITEM(by, i), out.by, n_params)) return false;
    out.rule = static_cast<OrderRule>(rule);
    out.of = numpy ? OrderOf::NumPy : OrderOf::Torch;
  }
  out.make = Py_NewRef(make);
  const bool sized = PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) <= kMaxRank;
  out.rank = sized ? static_cast<int32_t>(PyTuple_GET_SIZE(shape)) : 0;
  for (int i = 0; i < out.rank; ++i) out.sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
  if (PyErr_Occurred()) return false;
  const bool strided = !out.strides || PyTuple_GET_SIZE(out.strides) == out.rank;
  const bool known = rule >= 0 && rule < static_cast<int>(std::size(kOrderRuleNames));
  if (sized && strided && known && out.by.size() <= kMaxOrdering) return true;
  PyErr_SetString(PyExc_ValueError, "a result's order has a stride for each size, or at most 8 tensors that decide");
  return false;
}

bool parse_allocation(PyObject* given, Entry& e, int n_params) {
  Allocation a{};
  PyObject *args, *kwnames, *convert, *order;
  int out_param;
  if (!PyArg_ParseTuple(given, "OO!OiOO", &a.make, &PyTuple_Type, &args, &kwnames, &out_param, &convert, &order))
    return false;
  a.convert = convert == Py_None ? nullptr : Py_NewRef(convert);
  Py_INCREF(a.make), Py_INCREF(args);
  a.args = args;
  a.kwnames = kwnames == Py_None ? nullptr : kwnames;
  Py_XINCREF(a.kwnames);
  a.before = out_param < -1;  // -2, -3 and so on: the first, the second and so on that an earlier part made
  a.out_param = a.before ? n_params - 2 - out_param : out_param;
  a.torch = is_torch_empty(a.make, a.args, a.kind);
  a.sized = is_sized(a);
  e.allocations.push_back(a);
  PyObject* shape = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : Py_None;
  Ordered& ordered = e.allocations.back().ordered;
  if (!parse_order(order, shape, ordered, n_params)) return false;
  if (ordered.make && is_numpy_empty(ordered.make) && PyTuple_GET_SIZE(args) > 1)
    ordered.numpy = PyTuple_GET_ITEM(args, 1);
  return true;
}

bool parse_numbers(PyObject* given, std::vector<int32_t>& out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
    out.push_back(static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(given, i))));
  return !PyErr_Occurred();
}

// (numbers, least, most, refuse, recipe)
bool parse_then(PyObject* given, Entry& e, int n_params, int n_before) {
  PyObject *numbers, *recipe;
  long long least, most;
  if (!PyArg_ParseTuple(given, "O!LLOO!", &PyTuple_Type, &numbers, &least, &most, &e.then.refuse, &PyTuple_Type,
                        &recipe))
    return e.then.refuse = nullptr, false;
  Py_INCREF(e.then.refuse);
  e.then.least = least, e.then.most = most;
  if (!parse_numbers(numbers, e.then.numbers)) return false;
  e.then.entry = parse_entry(recipe, n_params, n_before + static_cast<int>(e.allocations.size()));
  return e.then.entry != nullptr;
}

}  // namespace

std::shared_ptr<Entry> parse_entry(PyObject* t, int n_params, int n_before) {
  auto e = std::make_shared<Entry>();
  PyObject *what, *sources, *allocations, *returns, *then;
  int listed;
  if (!PyArg_ParseTuple(t, "OO!O!O!pO", &what, &PyTuple_Type, &sources, &PyTuple_Type, &allocations, &PyTuple_Type,
                        &returns, &listed, &then))
    return nullptr;
  e->listed = listed != 0;
  const bool program = programs::is_program(what);
  if (!program && !PyObject_TypeCheck(what, plan_type)) {
    PyErr_SetString(PyExc_TypeError, "a recipe is made of a plan or a program");
    return nullptr;
  }
  (program ? e->program : e->plan) = Py_NewRef(what);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i)
    if (!parse_source(PyTuple_GET_ITEM(sources, i), e->sources, n_params)) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(allocations); ++i)
    if (!parse_allocation(PyTuple_GET_ITEM(allocations, i), *e, n_params)) return nullptr;
  if (!parse_numbers(returns, e->returns) || (then != Py_None && !parse_then(then, *e, n_params, n_before)))
    return nullptr;
  if (PyErr_Occurred()) return nullptr;
  if (sound(*e, n_params + n_before)) return e;
  PyErr_SetString(PyExc_ValueError, "a recipe names arguments or results that do not exist");
  return nullptr;
}

}  // namespace baracuda::bindings
