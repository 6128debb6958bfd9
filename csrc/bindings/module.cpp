// The extension module: tables and answers for Python, and the raw types. No code per op.
#define PY_ARRAY_UNIQUE_SYMBOL baracuda_numpy_api
#include <numpy/arrayobject.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backends/cpu/loader.h"
#include "backends/cpu/probe.h"
#include "bindings/bound.h"
#include "bindings/device.h"
#include "bindings/document.h"
#include "bindings/error.h"
#include "bindings/functional.h"
#include "bindings/group.h"
#include "bindings/opaque.h"
#include "bindings/order.h"
#include "bindings/plan.h"
#include "bindings/program.h"
#include "bindings/question.h"
#include "bindings/queue.h"
#include "bindings/recipe.h"
#include "bindings/scope.h"
#include "bindings/tensor.h"
#include "bindings/torch_empty.h"
#include "bindings/trace.h"
#include "core/devices.h"
#include "core/libraries.h"
#include "core/overlap.h"
#include "core/parallel.h"
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

// What the values of an enum are called, in their order: Python has no such list of its own.
template <size_t N>
py::tuple names_of(const char* const (&names)[N]) {
  py::tuple out(N);
  for (size_t i = 0; i < N; ++i) out[i] = names[i];
  return out;
}

py::list element_table() {
  py::list out;
  for (const ElementInfo& e : kElementInfo) out.append(py::make_tuple(e.name, int(e.bits)));
  return out;
}

py::dict row_dict(int index) {
  const Row& r = row_at(index);
  py::dict d;
  d["index"] = index;
  d["family"] = family_of(index);
  d["op"] = r.op;
  d["variant"] = r.variant;
  d["direction"] = name(r.direction);
  d["backend"] = name(r.backend);
  d["proof"] = name(r.proof);
  d["elements"] = elements_of(r.elements);
  d["aux"] = elements_of(r.aux);
  d["convertible"] = elements_of(r.convertible);
  d["max_rank"] = r.max_rank;
  d["min_arch"] = r.min_arch;
  d["preference"] = r.preference;
  d["measured"] = r.measured;
  d["in_place_safe"] = bool(r.flags & kInPlaceSafe);
  d["in_place_params"] = r.in_place_params;
  d["capture_safe"] = r.backend == Backend::Cuda && (r.flags & kCaptureSafe);
  d["workspace"] = r.workspace != nullptr;
  d["math"] = kMathNames[static_cast<int>(r.guarantee.math)];
  d["accumulator"] = r.guarantee.accumulator == Element::Count ? -1 : static_cast<int>(r.guarantee.accumulator);
  d["bound"] = kBoundNames[static_cast<int>(r.guarantee.bound.kind)];
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
  py::dict ranges;
  for (const AttrRange& range : r.ranges) ranges[range.name] = py::make_tuple(range.least, range.most);
  d["ranges"] = ranges;
  return d;
}

py::dict backend_dict(const std::string& which) {
  int b = 0;
  while (which != name(static_cast<Backend>(b)))
    if (++b == static_cast<int>(Backend::Count)) throw py::value_error("no backend is called " + which);
  const BackendState& s = backend_state(static_cast<Backend>(b));
  py::dict d;
  d["built"] = s.built, d["present"] = s.present, d["arch"] = s.arch, d["level"] = s.level, d["reason"] = s.reason;
  return d;
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
      !baracuda::bindings::functional_setup(m.ptr()) || !baracuda::bindings::opaque_setup(m.ptr()) ||
      !baracuda::bindings::document_setup(m.ptr()) || !baracuda::bindings::program_setup(m.ptr()) ||
      !baracuda::bindings::trace_setup(m.ptr()) || !baracuda::bindings::scope_setup(m.ptr()) ||
      !baracuda::bindings::torch_empty_setup(m.ptr()) || !baracuda::bindings::order_setup(m.ptr()) ||
      !baracuda::bindings::torch_setup(m.ptr()))
    throw py::error_already_set();
  m.attr("__version__") = BCU_VERSION;
  m.attr("set_error_factory") = py::reinterpret_steal<py::object>(PyCFunction_New(&error_factory_def, nullptr));
  m.attr("refusal_codes") = names_of(kCodeNames);
  m.attr("backends") = names_of(kBackendNames);
  m.attr("directions") = names_of(kDirectionNames);
  m.attr("roles") = names_of(kRoleNames);
  m.attr("param_kinds") = names_of(baracuda::bindings::kParamKindNames);
  m.attr("recipe_sources") = names_of(baracuda::bindings::kSourceNames);
  m.attr("order_rules") = names_of(baracuda::bindings::kOrderRuleNames);
  m.attr("counted_size") = baracuda::bindings::kCounted;
  m.attr("scalar_kinds") = names_of(kScalarKindNames);
  m.attr("math_precisions") = names_of(kMathNames);
  m.attr("bound_kinds") = names_of(kBoundNames);
  m.attr("verdicts") = names_of(kVerdictNames);
  py::dict levels;
  for (const ModuleLevel& level : kModuleLevels) levels[level.name] = level.arch;
  m.attr("cpu_levels") = levels;
  m.def("element_table", &element_table);
  m.def("rows", [] {
    py::list out;
    for (int i = 0; i < row_count(); ++i) out.append(row_dict(i));
    return out;
  });
  m.def("sku_name", [](int row, int element) {
    return sku_name(row_at(row), element < 0 ? Element::Any : static_cast<Element>(element));
  });
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
  baracuda::bindings::question_setup(m);
  m.def("describe", &describe_tensor);
  m.def("overlap", &overlap_of);
  m.def("inferring", &baracuda::bindings::inferring);
  m.def("exchange_inferring", &baracuda::bindings::exchange_inferring);
  m.def("check_thread_settings", [] {
    std::string error;
    return check_thread_settings(error) ? std::string() : error;
  });
  init_parallel();
  m.def("num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads);
  m.def("thread_runtime", &thread_runtime);
  m.def("set_thread_pacing", &set_thread_pacing);
  m.def("thread_pace", [] {
    const ThreadPace pace = thread_pace();
    return py::make_tuple(pace.on, pace.stalls, pace.serial);
  });
}
