// The extension module: tables and answers for Python, and the raw types. No code per op.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#include <numpy/arrayobject.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backends/cpu/parallel.h"
#include "backends/cpu/probe.h"
#include "backends/libraries.h"
#include "bindings/bound.h"
#include "bindings/device.h"
#include "bindings/error.h"
#include "bindings/functional.h"
#include "bindings/group.h"
#include "bindings/plan.h"
#include "bindings/queue.h"
#include "bindings/tensor.h"
#include "bindings/torch_empty.h"
#include "core/devices.h"
#include "core/overlap.h"
#include "core/select.h"

namespace py = pybind11;
using namespace baracuda;  // NOLINT: this file only names things of the engine

namespace {

py::list elements_of(Elements set) {
  py::list out;
  for (int i = 0; i < kElementCount; ++i)
    if (set.has(static_cast<Element>(i))) out.append(i);
  return out;
}

py::list element_table() {
  py::list out;
  for (const ElementInfo& e : kElementInfo) out.append(py::make_tuple(e.name, int(e.bits)));
  return out;
}

const char* bound_name(BoundKind k) { return k == BoundKind::Exact ? "exact" : k == BoundKind::Ulp ? "ulp" : "sum"; }

py::dict row_dict(int index) {
  const Row& r = row_at(index);
  py::dict d;
  d["index"] = index;
  d["family"] = family_of(index);
  d["op"] = r.op;
  d["variant"] = r.variant;
  d["direction"] = r.direction == Direction::Forward ? "forward" : "backward";
  d["backend"] = name(r.backend);
  d["proof"] = name(r.proof);
  d["elements"] = elements_of(r.elements);
  d["aux"] = elements_of(r.aux);
  d["convertible"] = elements_of(r.convertible);
  d["max_rank"] = r.max_rank;
  d["min_arch"] = r.min_arch;
  d["alignment"] = r.alignment;
  d["preference"] = r.preference;
  d["measured"] = r.measured;
  d["in_place_safe"] = bool(r.flags & kInPlaceSafe);
  d["in_place_params"] = r.in_place_params;
  d["capture_safe"] = r.backend == Backend::Cuda && (r.flags & kCaptureSafe);
  d["contiguous"] = bool(r.flags & kContiguous);
  d["converts"] = bool(r.flags & kConverts);
  d["emulated"] = bool(r.flags & kEmulated);
  d["workspace"] = r.workspace != nullptr;
  d["math"] = static_cast<int>(r.guarantee.math);
  d["accumulator"] = r.guarantee.accumulator == Element::Count ? -1 : static_cast<int>(r.guarantee.accumulator);
  d["bound"] = bound_name(r.guarantee.bound.kind);
  d["bound_c"] = r.guarantee.bound.c;
  d["deterministic"] = r.guarantee.deterministic;
  d["bit_stable"] = r.guarantee.bit_stable;
  d["thread_invariant"] = r.guarantee.thread_invariant;
  d["batch_invariant"] = r.guarantee.batch_invariant;
  d["tensors"] = std::string(r.args.tensors);
  d["scalars"] = std::string(r.args.scalars);
  py::list attrs;
  for (const AttrField& f : r.attrs) attrs.append(py::make_tuple(f.type, f.name));
  d["attributes"] = attrs;
  return d;
}

py::dict backend_dict(const std::string& which) {
  Backend b = which == "cuda" ? Backend::Cuda : which == "metal" ? Backend::Metal : Backend::Cpu;
  const BackendState& s = backend_state(b);
  py::dict d;
  d["built"] = s.built, d["present"] = s.present, d["arch"] = s.arch, d["level"] = s.level, d["reason"] = s.reason;
  return d;
}

Backend parse_backend(const std::string& s) {
  return s == "cpu" ? Backend::Cpu : s == "cuda" ? Backend::Cuda : s == "metal" ? Backend::Metal : Backend::Any;
}

Direction parse_direction(const std::string& s) {
  return s == "forward" ? Direction::Forward : s == "backward" ? Direction::Backward : Direction::Any;
}

Element parse_element(int i) { return i < 0 ? Element::Any : static_cast<Element>(i); }

std::vector<ParamMeta> parse_metas(const py::list& list) {
  std::vector<ParamMeta> out;
  for (py::handle h : list) {
    auto t = h.cast<std::tuple<int, std::vector<int64_t>, bool, bool, std::vector<int64_t>>>();
    ParamMeta m;
    m.element = parse_element(std::get<0>(t));
    const auto& shape = std::get<1>(t);
    m.fixed = std::get<3>(t);
    m.rank = std::get<2>(t) ? static_cast<int32_t>(shape.size()) : -1;
    for (size_t i = 0; i < shape.size() && i < size_t(kMaxRank); ++i) m.shape[i] = shape[i];
    const auto& strides = std::get<4>(t);
    m.strided = !strides.empty() && strides.size() == shape.size();
    for (size_t i = 0; m.strided && i < strides.size() && i < size_t(kMaxRank); ++i) m.strides[i] = strides[i];
    out.push_back(m);
  }
  return out;
}

Question parse_question(const py::dict& d) {
  Question q;
  q.op = d["op"].cast<std::string>();
  q.direction = parse_direction(d["direction"].cast<std::string>());
  q.backend = parse_backend(d["backend"].cast<std::string>());
  q.device = d["device"].cast<int>();
  q.element = parse_element(d["element"].cast<int>());
  q.aux = parse_element(d["aux"].cast<int>());
  for (int e : d["reads"].cast<std::vector<int>>()) q.reads.push_back(parse_element(e));
  q.rank = d["rank"].cast<int>();
  q.contiguous = d["contiguous"].cast<bool>();
  q.alignment = d["alignment"].cast<int>();
  q.has_problem = !d["params"].is_none();
  if (q.has_problem) {
    q.attrs = d["attrs"].cast<std::vector<int64_t>>();
    q.params = parse_metas(d["params"]);
  }
  py::dict p = d["preference"];
  q.preference.sku = p["sku"].cast<std::string>();
  q.preference.deterministic = p["deterministic"].cast<bool>();
  q.preference.batch_invariant = p["batch_invariant"].cast<bool>();
  q.preference.math = static_cast<MathPrecision>(p["math"].cast<int>());
  q.preference.max_error = p["max_error"].cast<double>();
  q.preference.max_workspace_bytes = p["max_workspace_bytes"].cast<int64_t>();
  return q;
}

py::list evaluate_question(const py::dict& d) {
  Question q = parse_question(d);
  py::list out;
  for (const Answer& a : evaluate_all(q)) {
    py::list refusals = py::reinterpret_steal<py::list>(baracuda::bindings::refusals_list(a.refusals));
    out.append(py::make_tuple(a.row, static_cast<int>(a.verdict), refusals, a.depends, a.workspace));
  }
  return out;
}

DimExpr parse_dim(py::handle h) {
  DimExpr d;
  if (py::isinstance<py::int_>(h)) {
    d.value = h.cast<int64_t>();
    return d;
  }
  auto t = h.cast<std::tuple<int, int, int, int64_t>>();
  d.symbol = std::get<0>(t), d.mul = std::get<1>(t), d.div = std::get<2>(t), d.add = std::get<3>(t);
  return d;
}

// {"params": [(name, role, element, present, variadic, [shape, ...])], "scalars": [(name, kind, default, least, fits,
// present)], "symbols": [(name, max)]}
Signature parse_signature(const py::dict& d) {
  Signature s;
  for (py::handle h : d["params"].cast<py::list>()) {
    auto t = h.cast<py::tuple>();
    Param p;
    p.name = t[0].cast<std::string>();
    p.role = static_cast<Role>(t[1].cast<int>());
    p.present = t[3].cast<bool>();
    p.variadic = t[4].cast<bool>();
    p.first = static_cast<int32_t>(s.slots.size());
    auto shapes = t[5].cast<py::list>();
    p.count = static_cast<int32_t>(shapes.size());
    for (py::handle shape : shapes) {
      Slot slot;
      slot.param = static_cast<int32_t>(s.params.size());
      slot.role = p.role;
      slot.element = parse_element(t[2].cast<int>());
      for (py::handle dim : shape) slot.dims[slot.rank++] = parse_dim(dim);
      s.slots.push_back(slot);
    }
    s.params.push_back(p);
  }
  for (py::handle h : d["scalars"].cast<py::list>()) {
    auto t = h.cast<py::tuple>();
    ScalarParam p;
    p.name = t[0].cast<std::string>();
    p.kind = static_cast<Scalar::Kind>(t[1].cast<int>());
    p.value.kind = p.kind;
    p.has_default = !t[2].is_none();
    if (p.has_default && p.kind == Scalar::Kind::Float) p.value.f = t[2].cast<double>();
    if (p.has_default && p.kind == Scalar::Kind::Int) p.value.i = t[2].cast<int64_t>();
    if (p.has_default && p.kind == Scalar::Kind::Unsigned) p.value.u = t[2].cast<uint64_t>();
    p.has_least = !t[3].is_none();
    if (p.has_least) p.least = t[3].cast<double>();
    if (!t[4].is_none()) p.fits = parse_element(t[4].cast<int>());
    p.present = t[5].cast<bool>();
    s.scalars.push_back(p);
  }
  for (py::handle h : d["symbols"].cast<py::list>()) {
    auto t = h.cast<std::tuple<std::string, int64_t>>();
    s.symbols.push_back({std::get<0>(t), std::get<1>(t)});
  }
  return s;
}

void check_limits(const Signature& s) {
  size_t args = s.params.size() + s.scalars.size();
  if (args > size_t(baracuda::bindings::kMaxArgs) || s.scalars.size() > size_t(baracuda::bindings::kMaxScalars) ||
      s.symbols.size() > size_t(kMaxSymbols))
    throw py::value_error("a signature has at most 32 arguments, 16 scalars and 8 dimension names");
}

// The plan; where no row takes the problem, a list of (row, reasons) of those that refused it when they were made
// ready.
py::object select_plan(py::type cls, const py::dict& question, const py::dict& packed, int threads,
                       py::object descriptor, py::object origin) {
  Signature signature = parse_signature(packed);
  check_limits(signature);
  Selection found = select(parse_question(question), std::move(signature), threads);
  if (found.failed) {
    baracuda::bindings::raise_refusal(std::move(found.failure), Py_None);
    throw py::error_already_set();
  }
  if (!found.plan) {
    py::list later;
    for (const auto& [row, why] : found.later)
      later.append(py::make_tuple(row, py::reinterpret_steal<py::object>(baracuda::bindings::refusals_list({why}))));
    return later;
  }
  PyObject* plan = baracuda::bindings::make_plan(reinterpret_cast<PyTypeObject*>(cls.ptr()), found.plan.release(),
                                                 descriptor.ptr(), origin.ptr());
  if (!plan) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(plan);
}

// What a device's fault is about: the op of its row with the direction, and the tensor's name; empty if there is none.
std::pair<std::string, std::string> fault_names(int row, int tensor) {
  if (row < 0 || row >= row_count()) return {"row " + std::to_string(row), ""};
  const Row& r = row_at(row);
  const std::string op = std::string(r.op) + (r.direction == Direction::Forward ? " forward" : " backward");
  return {op, tensor < 0 ? "" : std::string(ArgList::at(r.args.tensors, tensor))};
}

py::dict library_dict(Library which) {
  const FoundLibrary& found = library(which);
  py::dict d;
  d["name"] = library_name(which), d["usable"] = found.handle != nullptr, d["version"] = found.version;
  d["file"] = found.file, d["from"] = found.from, d["reason"] = found.reason;
  return d;
}

py::dict cpu_dict() {
  const CpuInfo& c = cpu_info();
  py::dict d;
  d["model"] = c.model, d["hardware_level"] = cpu_level_name(c.level), d["usable_cpus"] = c.usable_cpus,
  d["cores"] = c.physical_cores;
  d["l1d_bytes"] = c.l1d_bytes, d["l2_bytes"] = c.l2_bytes, d["l3_bytes"] = c.l3_bytes;
  return d;
}

// (shape, element, strides, backend, device) of any tensor; raises what run would raise.
py::tuple describe_tensor(py::handle object) {
  TensorView view;
  baracuda::bindings::Keep keep;
  baracuda::bindings::Why why;
  keep.looks = keep.lasts = true;
  baracuda::bindings::Imported done = baracuda::bindings::import_tensor(object.ptr(), view, keep, why);
  if (done == baracuda::bindings::Imported::Refused) baracuda::bindings::raise_refusal(*why, Py_None);
  if (done != baracuda::bindings::Imported::Yes) throw py::error_already_set();
  py::tuple shape(view.rank), strides(view.rank);
  for (int i = 0; i < view.rank; ++i) shape[i] = view.shape[i], strides[i] = view.strides[i];
  return py::make_tuple(shape, static_cast<int>(view.element), strides, static_cast<int>(view.device), view.device_id);
}

// (address, shape, element, strides, read_only, keep, backend, device) of any tensor, for bc.from_dlpack; `keep` holds
// the memory.
py::tuple borrow_tensor(py::handle object) {
  TensorView view;
  baracuda::bindings::Keep keep;
  baracuda::bindings::Why why;
  keep.lasts = true;
  baracuda::bindings::Imported done = baracuda::bindings::import_tensor(object.ptr(), view, keep, why);
  if (done == baracuda::bindings::Imported::Refused) baracuda::bindings::raise_refusal(*why, Py_None);
  if (done != baracuda::bindings::Imported::Yes) throw py::error_already_set();
  py::tuple shape(view.rank), strides(view.rank);
  for (int i = 0; i < view.rank; ++i) shape[i] = view.shape[i], strides[i] = view.strides[i];
  py::list held;
  held.append(object);
  for (int i = 0; i < keep.n; ++i) held.append(py::reinterpret_borrow<py::object>(keep.refs[i]));
  return py::make_tuple(reinterpret_cast<uintptr_t>(view.data), shape, static_cast<int>(view.element), strides,
                        view.read_only, held, static_cast<int>(view.device), view.device_id);
}

int overlap_of(py::handle a, py::handle b) {
  TensorView views[2];
  baracuda::bindings::Keep keep;
  baracuda::bindings::Why why;
  keep.looks = keep.lasts = true;
  py::handle objects[] = {a, b};
  for (int i = 0; i < 2; ++i) {
    if (baracuda::bindings::import_tensor(objects[i].ptr(), views[i], keep, why) == baracuda::bindings::Imported::Yes)
      continue;
    if (!PyErr_Occurred()) baracuda::bindings::raise_refusal(*why, Py_None);
    throw py::error_already_set();
  }
  return static_cast<int>(a.is(b) ? self_overlap(views[0]) : overlap(views[0], views[1]));
}

PyMethodDef error_factory_def = {"set_error_factory", &baracuda::bindings::set_error_factory, METH_O,
                                 "errors.py's factory."};

}  // namespace

// Sub-interpreters are refused before pybind11 looks for its state, which on Python 3.11 waits for ever.
extern "C" PyObject* PyInit__core_of_main();
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_of_main();
  PyErr_SetString(PyExc_ImportError, "baracuda: does not support sub-interpreters: import it in the main interpreter");
  return nullptr;
}

PYBIND11_MODULE(_core_of_main, m, py::mod_gil_not_used()) {
  if (PyArray_ImportNumPyAPI() < 0 || !baracuda::bindings::import_setup() ||
      !baracuda::bindings::tensor_setup(m.ptr()) || !baracuda::bindings::device_setup(m.ptr()) ||
      !baracuda::bindings::queue_setup(m.ptr()) || !baracuda::bindings::plan_setup(m.ptr()) ||
      !baracuda::bindings::bound_setup(m.ptr()) || !baracuda::bindings::group_setup(m.ptr()) ||
      !baracuda::bindings::functional_setup(m.ptr()) || !baracuda::bindings::torch_empty_setup(m.ptr()))
    throw py::error_already_set();
  m.attr("__version__") = BCU_VERSION;
  m.attr("set_error_factory") = py::reinterpret_steal<py::object>(PyCFunction_New(&error_factory_def, nullptr));
  py::list codes;
  for (const char* c : kCodeNames) codes.append(c);
  m.attr("refusal_codes") = codes;
  py::list ranges;
  for (int k = 0; k < static_cast<int>(ValueRange::Count); ++k) ranges.append(name(static_cast<ValueRange>(k)));
  m.attr("value_ranges") = ranges;
  m.def("element_table", &element_table);
  m.def("rows", [] {
    py::list out;
    for (int i = 0; i < row_count(); ++i) out.append(row_dict(i));
    return out;
  });
  m.def("sku_name", [](int row, int element) { return sku_name(row_at(row), parse_element(element)); });
  m.def("thresholds", [] {
    py::list found;
    for (const Threshold& t : cpu_thresholds()) found.append(py::make_tuple(t.family, t.name, t.value));
    return found;
  });
  m.def("backend_state", &backend_dict);
  m.def("has_kernel", [](int row) {
    std::string reason;
    return find_kernel(row, reason) != nullptr;
  });
  m.def("cpu_info", &cpu_dict);
  m.def("set_wheel_folders", &set_wheel_folders);
  m.def("libraries", [] {
    py::list out;
    for (int i = 0; i < int(Library::Count); ++i) out.append(library_dict(static_cast<Library>(i)));
    return out;
  });
  m.def("evaluate", &evaluate_question);
  m.def("select", &select_plan);
  m.def("fault_names", &fault_names);
  m.def("describe", &describe_tensor);
  m.def("borrow", &borrow_tensor);
  m.def("overlap", &overlap_of);
  m.def("check_thread_settings", [] {
    std::string error;
    return check_thread_settings(error) ? std::string() : error;
  });
  init_parallel();
  m.def("num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads);
  m.def("thread_runtime", &thread_runtime);
  m.def("set_bundled_thread_runtime", &set_bundled_thread_runtime);
}
