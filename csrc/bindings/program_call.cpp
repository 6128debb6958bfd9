// One run's arguments of a program: names, imports, and results that were not given.
#include <iterator>

#include "bindings/device.h"
#include "bindings/program_detail.h"
#include "bindings/queue.h"

namespace baracuda::bindings::programs {
namespace {

PyObject *name_stream, *name_result;

}  // namespace

size_t n_tensors(const ProgramObject* p) { return p->core->arguments().size(); }

const ProgramValue& argument(const ProgramObject* p, size_t i) { return p->core->values()[p->core->arguments()[i]]; }

PyObject* raise_failure(const ProgramObject* p, const ProgramFailure& failure) {
  std::string where = "Program";
  if (failure.step >= 0)
    where += " step " + std::to_string(failure.step) + " (" +
             sku_name(p->core->steps()[failure.step].plan->row, p->core->steps()[failure.step].plan->question.element) +
             ")";
  return raise_at(where, failure.refusals);
}

PyObject* raise_one(const ProgramObject* p, Refusal why) { return raise_failure(p, {-1, {std::move(why)}}); }

namespace {

std::string all_names(const ProgramObject* p) {
  std::string out;
  for (PyObject* name : *p->names) out += (out.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8(name));
  return out;
}

}  // namespace

bool collect(ProgramObject* p, Call& call, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  const auto& names = *p->names;
  if (nargs > std::ssize(names)) {
    raise_one(p, {Code::UnknownArgument, "", std::to_string(nargs) + " positional arguments",
                  "at most " + std::to_string(names.size()), "the arguments are (" + all_names(p) + ")"});
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) call.args[i] = args[i];
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    size_t at = 0;
    while (at < names.size() && names[at] != name && PyUnicode_Compare(names[at], name) != 0) ++at;
    PyObject* value = args[nargs + k];
    if (at == names.size() && PyUnicode_Compare(name, name_stream) == 0) {
      call.stream = value == Py_None ? nullptr : value;
    } else if (at < names.size() && !call.args[at]) {
      call.args[at] = value;
    } else {
      const char* given = PyUnicode_AsUTF8(name);
      PyErr_Clear();
      raise_one(p, {Code::UnknownArgument, given ? given : "",
                    at == names.size() ? "an unknown argument" : "the argument twice",
                    "one of " + all_names(p) + ", stream", ""});
      return false;
    }
  }
  return true;
}

namespace {

// A result that was not given: memory of the kind that the arguments are of.
bool make_result(ProgramObject* p, Call& call, size_t i, const int64_t* symbols) {
  std::vector<int64_t> shape;
  if (!p->core->shape_of(p->core->arguments()[i], symbols, shape))
    return raise_one(p, {Code::Dim, argument(p, i).name, "no shape", "a shape at these sizes", ""}), false;
  PyObject* sizes = PyTuple_New(std::ssize(shape));
  for (size_t k = 0; sizes && k < shape.size(); ++k) PyTuple_SET_ITEM(sizes, k, PyLong_FromLongLong(shape[k]));
  PyObject* like = Py_None;
  for (size_t k = n_tensors(p); k-- > 0;)
    if (call.args[k]) like = call.args[k];
  PyObject* element = PyLong_FromLong(static_cast<int>(argument(p, i).element));
  PyObject* made = sizes && element ? PyObject_CallMethodObjArgs(reinterpret_cast<PyObject*>(p), name_result, sizes,
                                                                 element, like, nullptr)
                                    : nullptr;
  Py_XDECREF(sizes);
  Py_XDECREF(element);
  if (!made) return false;
  call.made.push_back(made);
  call.args[i] = made;
  return true;
}

bool import_tensor_argument(ProgramObject* p, Call& call, size_t i) {
  Why why;
  const Imported done = import_tensor(call.args[i], call.views[i], call.keep, why);
  if (done == Imported::Yes) return true;
  if (done == Imported::Refused) why->field = argument(p, i).name, raise_one(p, *why);
  return false;
}

bool import_number(ProgramObject* p, Call& call, size_t i) {
  const ScalarParam& param = p->core->scalars()[i];
  PyObject* value = call.args[n_tensors(p) + i];
  if (!value && param.has_default) return call.scalars[i] = param.value, true;
  Why why;
  if (!value) {
    raise_one(p,
              {Code::MissingArgument, param.name, "nothing", "a number", "the arguments are (" + all_names(p) + ")"});
    return false;
  }
  const Imported done = import_scalar(value, param, call.scalars[i], call.keep, why);
  if (done == Imported::Refused) why->field = param.name, raise_one(p, *why);
  return done == Imported::Yes;
}

}  // namespace

bool import_sizes(ProgramObject* p, Call& call, int64_t* symbols) {
  for (size_t i = 0; i < n_tensors(p); ++i)
    if (call.args[i] && call.args[i] != Py_None && !import_tensor_argument(p, call, i)) return false;
  ProgramFailure failure;
  return p->core->solve(call.views.data(), symbols, failure.refusals) || (raise_failure(p, failure), false);
}

bool import_call(ProgramObject* p, Call& call) {
  const Program& core = *p->core;
  if (!core.steps().empty()) {
    call.keep.device = core.steps()[0].plan->row.backend;
    call.keep.device_id = core.steps()[0].plan->question.device;
  }
  bool complete = true;
  for (size_t i = 0; i < n_tensors(p); ++i) {
    if (call.args[i] == Py_None) call.args[i] = nullptr;
    if (!call.args[i] && argument(p, i).role != Role::Out) {
      raise_one(p, {Code::MissingArgument, argument(p, i).name, "nothing", "a tensor",
                    "the arguments are (" + all_names(p) + ")"});
      return false;
    }
    complete &= call.args[i] != nullptr;
    if (call.args[i] && !import_tensor_argument(p, call, i)) return false;
  }
  int64_t symbols[kMaxProgramSymbols] = {};
  ProgramFailure failure;
  if (!complete && !core.solve(call.views.data(), symbols, failure.refusals)) return raise_failure(p, failure), false;
  for (size_t i = 0; i < n_tensors(p); ++i)
    if (!call.args[i] && (!make_result(p, call, i, symbols) || !import_tensor_argument(p, call, i))) return false;
  for (size_t i = 0; i < core.scalars().size(); ++i)
    if (!import_number(p, call, i)) return false;
  // What a producer's own code did meanwhile may have moved others' memory.
  for (size_t i = 0; call.keep.ran_python && i < n_tensors(p); ++i)
    if (may_move(call.args[i]) && !import_tensor_argument(p, call, i)) return false;
  Why why;
  if ((call.stream || call.keep.exchange) &&
      import_stream(call.stream, call.keep, &call.stream_handle, why) != Imported::Yes)
    return PyErr_Occurred() ? false : (raise_one(p, *why), false);
  if (PyObject* moved = p->anchors->moved()) {
    raise_one(p, {Code::Moved, "",
                  std::string("a constant of type ") + Py_TYPE(moved)->tp_name +
                      " that was given other memory (resize, set_, .data = ...)",
                  "the memory that it had when the program was made", "make the program anew"});
    return false;
  }
  for (const ProgramStep& step : core.steps())
    if (!may_launch(*step.plan, call.stream_handle, nullptr)) return false;
  return true;
}

namespace {

template <class F>
void each_output(const ProgramObject* p, F f) {
  for (size_t i = 0; i < n_tensors(p); ++i)
    if (argument(p, i).role != Role::In) f(i);
}

}  // namespace

PyObject* result_of(const ProgramObject* p, PyObject* const* args) {
  std::vector<PyObject*> outputs;
  each_output(p, [&](size_t i) { outputs.push_back(args[i]); });
  if (outputs.size() == 1) return Py_NewRef(outputs[0]);
  PyObject* tuple = PyTuple_New(std::ssize(outputs));
  for (size_t i = 0; tuple && i < outputs.size(); ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(outputs[i]));
  return tuple;
}

void bump(const ProgramObject* p, PyObject* const* args) {
  each_output(p, [&](size_t i) {
    if (is_torch_tensor(args[i])) bump_torch_version(args[i]);
  });
}

bool call_setup() {
  name_stream = PyUnicode_InternFromString("stream");
  name_result = PyUnicode_InternFromString("_result");
  return name_stream && name_result;
}

}  // namespace baracuda::bindings::programs
