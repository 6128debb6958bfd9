#define PY_SSIZE_T_CLEAN  // lengths of texts are Py_ssize_t
#include "bindings/program.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "bindings/plan.h"
#include "bindings/program_detail.h"
#include "bindings/trace.h"
#include "core/document.h"

namespace baracuda::bindings {
namespace programs {
namespace {

PyTypeObject* program_type;

}  // namespace

bool is_program(PyObject* object) { return PyObject_TypeCheck(object, program_type); }

namespace {

PyObject* program_run(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  Call call(p);
  if (!collect(p, call, args, nargs, kwnames) || !import_call(p, call)) return nullptr;
  if (tracing()) {
    const bool taken = record(p, call.views.data(), call.args.data(), call.scalars.data(), {self});
    return taken ? result_of(p, call.args.data()) : nullptr;
  }
  ProgramFailure failure;
  const bool done = without_gil(p->release_gil, [&] {
    return p->core->run(call.views.data(), call.scalars.data(), call.stream_handle, failure);
  });
  if (call.keep.torch) bump(p, call.args.data());
  return done ? result_of(p, call.args.data()) : raise_failure(p, failure);
}

PyObject* program_blocks(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  Call call(p);
  int64_t symbols[kMaxProgramSymbols] = {};
  if (!collect(p, call, args, nargs, kwnames) || !import_sizes(p, call, symbols)) return nullptr;
  uint64_t blocks = 0;
  if (!p->core->blocks(symbols, blocks))
    return raise_one(p, {Code::Dim, "", "no number of blocks", "one at these sizes", ""});
  return PyLong_FromUnsignedLongLong(blocks);
}

PyObject* program_reserve(PyObject* self, PyObject* number) {
  const long frames = PyLong_AsLong(number);
  if (frames == -1 && PyErr_Occurred()) return nullptr;
  auto* p = reinterpret_cast<ProgramObject*>(self);
  ProgramFailure failure;
  return p->core->reserve(static_cast<int>(std::min(frames, 1000L)), failure) ? Py_NewRef(Py_None)
                                                                              : raise_failure(p, failure);
}

PyObject* program_trim(PyObject* self, PyObject*) {
  reinterpret_cast<ProgramObject*>(self)->core->trim();
  Py_RETURN_NONE;
}

PyObject* program_capture(PyObject* self, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  reinterpret_cast<ProgramObject*>(self)->core->capture(truth != 0);
  Py_RETURN_NONE;
}

// --------------------------------------------------------------------------------------------------------------

// Views of the constants, whose memory the program refers to from now on.
bool import_constants(ProgramObject* p, std::vector<TensorView>& views) {
  p->kept = PyList_New(0);
  for (Py_ssize_t i = 0; p->kept && i < PyTuple_GET_SIZE(p->constants); ++i) {
    Keep keep;
    Why why;
    TensorView view;
    PyObject* object = PyTuple_GET_ITEM(p->constants, i);
    keep.lasts = true;
    if (!p->anchors->add(object)) return false;
    const Imported done = import_tensor(object, view, keep, why);
    if (done == Imported::Refused) raise_at("Program", {*why});
    if (done != Imported::Yes) return false;
    for (int k = 0; k < keep.n; ++k) PyList_Append(p->kept, keep.refs[k]);
    if (keep.more) PyList_Append(p->kept, keep.more);
    views.push_back(view);
  }
  return p->kept != nullptr;
}

int64_t most_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const ProgramStep& step : program.steps())
    for (const ProgramView& view : step.views) bytes += program.values()[view.value].most_bytes;
  return bytes;
}

// program_document(program, descriptors): the program's bytes, with its plans' and their descriptors as JSON.
PyObject* program_document(PyObject*, PyObject* args) {
  PyObject *program, *descriptors;
  if (!PyArg_ParseTuple(args, "O!O!", program_type, &program, &PyList_Type, &descriptors)) return nullptr;
  auto* p = reinterpret_cast<ProgramObject*>(program);
  Json plans = Json::list();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(p->plans); ++i) {
    const char* text = PyUnicode_AsUTF8(PyList_GET_ITEM(descriptors, i));
    if (!text) return nullptr;
    plans.add(write_plan(*reinterpret_cast<PlanObject*>(PyTuple_GET_ITEM(p->plans, i))->core, read_json(text)));
  }
  const std::string bytes = p->core->document(std::move(plans)).write();
  return PyBytes_FromStringAndSize(bytes.data(), std::ssize(bytes));
}

// make_program(cls, document, plans, constants)
PyObject* make_program(PyObject*, PyObject* args) {
  PyTypeObject* cls;
  PyObject *plans, *constants;
  const char* text;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "O!s#O!O!", &PyType_Type, &cls, &text, &size, &PyTuple_Type, &plans, &PyTuple_Type,
                        &constants))
    return nullptr;
  auto* p = reinterpret_cast<ProgramObject*>(cls->tp_alloc(cls, 0));
  if (!p) return nullptr;
  p->plans = Py_NewRef(plans);
  p->constants = Py_NewRef(constants);
  p->anchors = new Anchors;
  p->names = new std::vector<PyObject*>;
  std::vector<const PlanCore*> cores;
  std::vector<TensorView> views;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(plans); ++i) {
    PyObject* plan = PyTuple_GET_ITEM(plans, i);
    good = PyObject_TypeCheck(plan, plan_type);
    if (!good) PyErr_Format(PyExc_TypeError, "a program is made of plans");
    if (good) cores.push_back(reinterpret_cast<PlanObject*>(plan)->core);
  }
  good = good && import_constants(p, views);
  try {
    if (good) p->core = new Program(Reader(read_json({text, static_cast<size_t>(size)}), ""), cores, views);
  } catch (const DocumentError& e) {
    raise_at("Program", {{Code::Document, e.where, e.got, e.want, ""}});
  }
  if (!p->core) {
    Py_DECREF(p);
    return nullptr;
  }
  for (const int32_t a : p->core->arguments())
    p->names->push_back(PyUnicode_InternFromString(p->core->values()[a].name.c_str()));
  for (const ScalarParam& s : p->core->scalars()) p->names->push_back(PyUnicode_InternFromString(s.name.c_str()));
  constexpr int64_t kBytes = 64 * 1024;  // below it a run is shorter than giving the interpreter back
  p->release_gil = cores.empty() || cores[0]->row.backend != Backend::Cpu || most_bytes(*p->core) > kBytes;
  return reinterpret_cast<PyObject*>(p);
}

void program_dealloc(PyObject* self) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete p->core;
  if (p->names)
    for (PyObject* name : *p->names) Py_XDECREF(name);
  delete p->names;
  delete p->anchors;
  Py_XDECREF(p->plans);
  Py_XDECREF(p->constants);
  Py_XDECREF(p->kept);
  type->tp_free(self);
  Py_DECREF(type);
}

int program_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(p->plans);
  Py_VISIT(p->constants);
  Py_VISIT(p->kept);
  return 0;
}

PyObject* get_plans(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<ProgramObject*>(self)->plans); }
PyObject* get_constants(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<ProgramObject*>(self)->constants); }
PyObject* get_arguments(PyObject* self, void*) {
  const auto& names = *reinterpret_cast<ProgramObject*>(self)->names;
  PyObject* tuple = PyTuple_New(std::ssize(names));
  for (size_t i = 0; tuple && i < names.size(); ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(names[i]));
  return tuple;
}
PyObject* get_scratch(PyObject* self, void*) {
  return PyLong_FromLongLong(reinterpret_cast<ProgramObject*>(self)->core->scratch_bytes());
}
PyObject* get_launches(PyObject* self, void*) {
  return PyLong_FromSize_t(reinterpret_cast<ProgramObject*>(self)->core->steps().size());
}
PyObject* get_graphs(PyObject* self, void*) {
  std::string reason;
  const GraphCounts counts = reinterpret_cast<ProgramObject*>(self)->core->graphs(reason);
  return Py_BuildValue("LLLs", static_cast<long long>(counts.made), static_cast<long long>(counts.replaced),
                       static_cast<long long>(counts.launched), reason.c_str());
}
PyObject* get_unplanned(PyObject* self, void*) {
  return PyLong_FromLongLong(reinterpret_cast<ProgramObject*>(self)->core->unplanned_bytes());
}

template <class F>
PyCFunction as_c(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef program_methods[] = {
    {"run", as_c(&program_run), METH_FASTCALL | METH_KEYWORDS,
     "run(*tensors, *scalars, stream=None)\n--\n\nChecks the arguments, runs all steps and returns the output(s); "
     "those "
     "that are not given are made."},
    {"bind", as_c(&program_bind), METH_FASTCALL | METH_KEYWORDS,
     "bind(*tensors, *scalars, stream=None)\n--\n\nFreezes the arguments and gives a callable with the lowest cost, "
     "for "
     "one thread."},
    {"blocks", as_c(&program_blocks), METH_FASTCALL | METH_KEYWORDS,
     "blocks(*tensors)\n--\n\nHow far a run with these arguments moves the random offset."},
    {"reserve", &program_reserve, METH_O,
     "reserve(frames)\n--\n\nMakes memory for so many runs at once, so that run needs no scratch."},
    {"capture", &program_capture, METH_O,
     "capture(on)\n--\n\nHas later runs launch their steps as one graph, on devices that have such."},
    {"trim", &program_trim, METH_NOARGS, "trim()\n--\n\nLets go of scratch that no run uses."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef program_getset[] = {
    {"plans", get_plans, nullptr, "The different plans of the steps.", nullptr},
    {"constants", get_constants, nullptr, "Captured tensors, by reference.", nullptr},
    {"arguments", get_arguments, nullptr, "Names of run's arguments, in order.", nullptr},
    {"launches", get_launches, nullptr, "Steps of one run.", nullptr},
    {"graphs", get_graphs, nullptr,
     "Of captured runs: graphs made, steps of them that were given something else, launches, and why a run was none.",
     nullptr},
    {"scratch_bytes", get_scratch, nullptr, "Bytes of scratch that one run needs.", nullptr},
    {"unplanned_bytes", get_unplanned, nullptr, "Bytes that it would be with memory for each value.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot program_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&program_dealloc)},
                               {Py_tp_traverse, reinterpret_cast<void*>(&program_traverse)},
                               {Py_tp_methods, program_methods},
                               {Py_tp_getset, program_getset},
                               {0, nullptr}};
PyType_Spec program_spec = {"baracuda._core.RawProgram", sizeof(ProgramObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            program_slots};

PyMethodDef functions[] = {
    {"program_document", &program_document, METH_VARARGS, "program_document(program, descriptors)"},
    {"make_program", &make_program, METH_VARARGS, "make_program(cls, document, plans, constants)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace
}  // namespace programs

bool program_setup(PyObject* module) {
  using namespace programs;  // NOLINT
  program_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&program_spec));
  return program_type && call_setup() && bound_setup() && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "RawProgram", reinterpret_cast<PyObject*>(program_type)) == 0;
}

}  // namespace baracuda::bindings
