#include "bindings/question.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "bindings/error.h"
#include "bindings/plan.h"
#include "core/select.h"
#include "core/source.h"

namespace py = pybind11;

namespace baracuda::bindings {
namespace {

// A field of an object of this package; every place keeps its name as an object.
#define BCU_FIELD(object, name)                                    \
  [](py::handle of) {                                              \
    static PyObject* const key = PyUnicode_InternFromString(name); \
    return checked(PyObject_GetAttr(of.ptr(), key));               \
  }(object)

py::object checked(PyObject* made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

int64_t integer(py::handle h) {
  const long long n = PyLong_AsLongLong(h.ptr());
  if (n == -1 && PyErr_Occurred()) throw py::error_already_set();
  return n;
}

bool truth(py::handle h) { return h.ptr() == Py_True; }

Element element_of(py::handle code) {
  const int64_t n = code.is_none() ? -1 : integer(code);
  return n < 0 ? Element::Any : static_cast<Element>(n);
}

std::string text(py::handle h) {
  Py_ssize_t size = 0;
  const char* found = PyUnicode_AsUTF8AndSize(h.ptr(), &size);
  if (!found) throw py::error_already_set();
  return {found, static_cast<size_t>(size)};
}

// Calls `f` with each entry of a tuple or list.
template <class F>
void each(py::handle list, F f) {
  const py::object held = checked(PySequence_Fast(list.ptr(), "a list is wanted"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(held.ptr()); ++i) f(PySequence_Fast_GET_ITEM(held.ptr(), i));
}

Scalar::Kind scalar_kind(py::handle h) {
  const std::string given = text(h);
  for (size_t k = 0; k < std::size(kScalarKindNames); ++k)
    if (given == kScalarKindNames[k]) return static_cast<Scalar::Kind>(k);
  throw py::value_error("no kind of number is called " + given);
}

// A size: an int, or a bc.Dim, whose name counts as a symbol.
DimExpr parse_dim(py::handle h, std::vector<Symbol>& symbols) {
  DimExpr d;
  if (PyLong_Check(h.ptr())) {
    d.value = integer(h);
    return d;
  }
  const std::string called = text(BCU_FIELD(h, "name"));
  const auto found = std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == called; });
  d.symbol = static_cast<int32_t>(found - symbols.begin());
  if (found == symbols.end()) symbols.push_back({called, integer(BCU_FIELD(h, "max"))});
  d.mul = static_cast<int32_t>(integer(BCU_FIELD(h, "mul")));
  d.div = static_cast<int32_t>(integer(BCU_FIELD(h, "div")));
  d.add = integer(BCU_FIELD(h, "add"));
  return d;
}

// A spec.Param; an absent one keeps a place without dimensions.
void parse_param(py::handle h, Signature& s) {
  Param p;
  p.name = text(BCU_FIELD(h, "name"));
  p.role = static_cast<Role>(integer(BCU_FIELD(h, "role")));
  p.present = truth(BCU_FIELD(h, "present"));
  p.reads = truth(BCU_FIELD(h, "reads"));
  p.variadic = truth(BCU_FIELD(h, "variadic"));
  p.first = static_cast<int32_t>(s.slots.size());
  Slot slot;
  slot.param = static_cast<int32_t>(s.params.size());
  slot.role = p.role;
  slot.element = element_of(BCU_FIELD(h, "element"));
  const auto add = [&](py::handle shape) {
    slot.rank = 0;
    each(shape, [&](py::handle size) {
      if (slot.rank == kMaxRank) throw py::value_error("a tensor has at most 8 dimensions");
      slot.dims[slot.rank++] = parse_dim(size, s.symbols);
    });
    s.slots.push_back(slot);
  };
  if (!p.present)
    s.slots.push_back(slot);
  else if (p.variadic)
    each(BCU_FIELD(h, "shape"), add);
  else
    add(BCU_FIELD(h, "shape"));
  p.count = static_cast<int32_t>(s.slots.size()) - p.first;
  s.params.push_back(std::move(p));
}

// A spec.ScalarParam.
void parse_scalar(py::handle h, Signature& s) {
  ScalarParam p;
  p.name = text(BCU_FIELD(h, "name"));
  p.kind = p.value.kind = scalar_kind(BCU_FIELD(h, "kind"));
  const py::object value = BCU_FIELD(h, "default"), least = BCU_FIELD(h, "least");
  p.has_default = !value.is_none();
  if (p.has_default && p.kind == Scalar::Kind::Float) p.value.f = value.cast<double>();
  if (p.has_default && p.kind == Scalar::Kind::Int) p.value.i = value.cast<int64_t>();
  if (p.has_default && p.kind == Scalar::Kind::Unsigned) p.value.u = value.cast<uint64_t>();
  p.has_least = !least.is_none();
  if (p.has_least) p.least = least.cast<double>();
  p.fits = element_of(BCU_FIELD(h, "fits"));
  p.present = truth(BCU_FIELD(h, "present"));
  s.scalars.push_back(std::move(p));
}

Signature parse_signature(py::handle h) {
  Signature s;
  each(BCU_FIELD(h, "params"), [&](py::handle p) { parse_param(p, s); });
  each(BCU_FIELD(h, "scalars"), [&](py::handle p) { parse_scalar(p, s); });
  if (s.params.size() + s.scalars.size() > size_t{kMaxArgs} || s.scalars.size() > size_t{kMaxScalars} ||
      s.symbols.size() > size_t{kMaxSymbols})
    throw py::value_error("a signature has at most 32 arguments, 16 scalars and 8 dimension names");
  return s;
}

void parse_preference(py::handle h, Preference& p) {
  PyObject* sku;
  int deterministic, batch_invariant, math;
  long long most;
  if (!PyArg_ParseTuple(h.ptr(), "OppidL", &sku, &deterministic, &batch_invariant, &math, &p.max_error, &most))
    throw py::error_already_set();
  p.sku = text(sku);
  p.deterministic = deterministic, p.batch_invariant = batch_invariant;
  p.math = static_cast<MathPrecision>(math), p.max_workspace_bytes = most;
}

// (op, direction, backend, device, arch, element, aux, rank, alignment, attributes, preference); -1 is a
// wildcard. Attributes are pairs of names and numbers.
Question parse_question(py::handle h) {
  Question q;
  const char* op;
  int direction, backend, element, aux;
  PyObject *attributes, *preference;
  if (!PyArg_ParseTuple(h.ptr(), "siiiiiiiiOO", &op, &direction, &backend, &q.device, &q.arch, &element, &aux, &q.rank,
                        &q.alignment, &attributes, &preference))
    throw py::error_already_set();
  each(attributes, [&](py::handle entry) { q.given.push_back(entry.cast<std::pair<std::string, double>>()); });
  q.op = op;
  q.direction = direction < 0 ? Direction::Any : static_cast<Direction>(direction);
  q.backend = backend < 0 ? Backend::Any : static_cast<Backend>(backend);
  q.element = element < 0 ? Element::Any : static_cast<Element>(element);
  q.aux = aux < 0 ? Element::Any : static_cast<Element>(aux);
  parse_preference(preference, q.preference);
  return q;
}

// Adds what a signature, attributes in 8-byte slots (or texts) and promised strides (name to list) say.
void parse_problem(Question& q, const Signature& signature, py::handle attributes, py::handle strides) {
  each(attributes, [&](py::handle slot) {
    if (PyUnicode_Check(slot.ptr()))
      append_text(q.attrs, text(slot));
    else
      q.attrs.push_back(integer(slot));
  });
  std::vector<NamedStrides> promised;
  each(strides, [&](py::handle entry) {
    auto [called, steps] = entry.cast<std::pair<std::string, std::vector<int64_t>>>();
    promised.push_back({std::move(called), std::move(steps)});
  });
  take_signature(q, signature, promised);
}

// (row, verdict, refusals, what it depends on, workspace) of each row of the op; without a signature no sizes are asked
// about.
py::list evaluate_question(const py::tuple& question, py::handle signature, py::handle attributes, py::handle strides) {
  Question q = parse_question(question);
  if (!signature.is_none()) parse_problem(q, parse_signature(signature), attributes, strides);
  py::list out;
  for (const Answer& a : evaluate_all(q)) {
    const py::tuple refusals(checked(refusals_list(a.refusals)));
    const py::tuple depends(py::cast(a.depends));
    out.append(py::make_tuple(a.row, kVerdictNames[static_cast<int>(a.verdict)], refusals, depends, a.workspace));
  }
  return out;
}

py::object select_plan(const py::type& cls, const py::tuple& question, py::handle given, py::handle attributes,
                       py::handle strides, int threads, py::handle descriptor, py::handle origin) {
  Signature signature = parse_signature(given);
  Question q = parse_question(question);
  parse_problem(q, signature, attributes, strides);
  Selection found = select(q, std::move(signature), threads);
  if (found.failed) {
    raise_refusal(std::move(found.failure), Py_None);
    throw py::error_already_set();
  }
  if (!found.plan) {
    raise_no_plan(no_plan(q, found, text(py::str(descriptor))));
    throw py::error_already_set();
  }
  return checked(
      make_plan(reinterpret_cast<PyTypeObject*>(cls.ptr()), found.plan.release(), descriptor.ptr(), origin.ptr()));
}

// The text that a row compiles for a problem; None where its kernels are compiled beforehand.
py::object source_text(int32_t row, int backend, bool whole, const py::tuple& question, py::handle signature,
                       py::handle attributes, py::handle strides) {
  const SourceRule rule = source_rule(row);
  if (!rule) return py::none();
  Question q = parse_question(question);
  parse_problem(q, parse_signature(signature), attributes, strides);
  return py::str(rule(q.problem(), static_cast<Backend>(backend), whole));
}

}  // namespace

void question_setup(py::module_& m) {
  m.def("evaluate", &evaluate_question, py::arg("question"), py::arg("signature") = py::none(),
        py::arg("attributes") = py::none(), py::arg("strides") = py::none());
  m.def("select", &select_plan);
  m.def("source", &source_text);
}

}  // namespace baracuda::bindings
