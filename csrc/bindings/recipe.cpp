#include "bindings/recipe.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "bindings/device_detail.h"
#include "bindings/error.h"
#include "bindings/program_detail.h"
#include "bindings/queue.h"
#include "bindings/scope.h"
#include "bindings/tensor.h"
#include "bindings/trace.h"
#include "core/inject.h"
#include "core/open_sizes.h"

namespace baracuda::bindings {
namespace {

// Workspace of functional calls: one growing block per thread.
struct ThreadScratch {
  void* memory = nullptr;
  int64_t size = 0;
  ~ThreadScratch() { std::free(memory); }
  // Null with an exception when the memory cannot be had.
  void* at_least(int64_t bytes) {
    if (bytes <= size) return memory;
    if (fails_now(Injected::Alloc)) return raise_no_memory("cpu", kInjectedText, bytes);
    std::free(memory);
    size = (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    memory = std::aligned_alloc(kWorkspaceAlignment, size);
    if (!memory) size = 0, raise_no_memory("cpu", "no memory", bytes);
    return memory;
  }
};
thread_local ThreadScratch scratch;

struct Results {
  PyObject** objects;
  int n = 0;
  explicit Results(size_t count) : objects(few_) {
    if (count > kMaxParams) many_.resize(count), objects = many_.data();
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() {
    for (int i = 0; i < n; ++i) Py_XDECREF(objects[i]);
  }

 private:
  PyObject* few_[kMaxParams];  // not initialised: a call without memory of its own, for all but lists of results
  std::vector<PyObject*> many_;
};

// A result as the caller's framework has it: what it gave itself stays as it is.
PyObject* handed_out(const Entry& e, const Results& r, size_t i, const Arguments& args) {
  const Allocation& a = e.allocations[e.returns[i]];
  PyObject* made = r.objects[e.returns[i]];
  const bool given = a.out_param >= 0 && !a.before && args.values[a.out_param] == made;
  return a.convert && !given && !args.keep.unbacked ? PyObject_CallOneArg(a.convert, made) : Py_NewRef(made);
}

// None from a function that only writes to its arguments.
PyObject* take_results(const Entry& e, const Results& r, const Arguments& args) {
  if (e.returns.empty()) return Py_NewRef(Py_None);
  if (e.returns.size() == 1 && !e.listed) return handed_out(e, r, 0, args);
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(e.returns.size()));
  for (size_t i = 0; tuple && i < e.returns.size(); ++i) {
    PyObject* result = handed_out(e, r, i, args);
    if (!result) Py_CLEAR(tuple);
    if (result) PyTuple_SET_ITEM(tuple, i, result);
  }
  return tuple;
}

// Takes a plan's list from the function's, whose members were read for its key; false where it has to be read again.
bool took_list(const Source& s, Arguments& a, const Param& param, Frame& frame, int arg) {
  if (s.from != Source::From::Argument || a.first_member[s.index] < 0 || a.keep.ran_python) return false;
  if (PyTuple_GET_SIZE(a.values[s.index]) != param.count) return false;
  frame.lists[arg] = a.values[s.index];
  std::copy_n(&a.members[a.first_member[s.index]], param.count, frame.views + param.first);
  return true;
}

// Fills the plan's frame from the entry's sources; false with refusals or an exception. `again`: only what the code of
// some argument's producer may have moved.
[[gnu::always_inline]] inline bool fill_frame(const Entry& e, PlanObject* plan, Arguments& a, Results& r, Frame& frame,
                                              Refusals& refusals, bool again = false) {
  for (int i = 0; i < plan->n_args; ++i) {
    const Source& s = e.sources[i];
    PyObject* object = s.from == Source::From::Argument   ? a.values[s.index]
                       : s.from == Source::From::Constant ? s.constant
                                                          : r.objects[s.index];
    frame.args[i] = object;
    Why why;
    Imported done = Imported::Yes;
    if (i >= plan->n_tensors) {
      const ScalarParam& scalar = plan->core->signature.scalars[plan->param_of[i]];
      done = import_scalar(object, scalar, frame.scalars[plan->param_of[i]], frame.keep, why);
    } else if (const Param& param = plan->core->signature.params[plan->param_of[i]]; param.variadic) {
      done = again                              ? import_moved(frame, i, param, why)
             : took_list(s, a, param, frame, i) ? Imported::Yes
                                                : import_list(frame, i, param, object, why);
    } else if (!again || may_move(object)) {
      TensorView& view = frame.views[plan->core->signature.params[plan->param_of[i]].first];
      const bool read = s.from == Source::From::Argument && a.is_tensor[s.index];
      if (read && again) done = import_same(object, a.views[s.index], frame.keep, why);
      if (read)
        view = a.views[s.index];
      else
        done = import_tensor(object, view, frame.keep, why);
      if (done == Imported::Yes) apply_dims(s, view, a.counted);
    }
    if (done == Imported::Yes) continue;
    if (done == Imported::Refused) {
      if (why->field.empty()) why->field = PyUnicode_AsUTF8(plan->names[i]);
      refusals.push_back(*why);
    }
    return false;
  }
  return true;
}

// Whether the plan writes to a tensor of the caller's: new ones have no version that anybody saw.
bool writes_given(const Entry& e, const PlanObject* plan, const Arguments& a) {
  for (int i = 0; i < plan->n_outputs; ++i) {
    const Source& s = e.sources[plan->outputs[i]];
    const int out = s.from == Source::From::Allocated ? e.allocations[s.index].out_param : s.index;
    if (s.from != Source::From::Allocated || (out >= 0 && a.values[out] != Py_None)) return true;
  }
  return false;
}

// The function's own names for the plan's arguments.
struct EntryNames : FieldNames {
  Params params;
  const Entry& e;
  const PlanObject* plan;
  EntryNames(Params params, const Entry& e, const PlanObject* plan) : params(params), e(e), plan(plan) {}
  std::string of(const std::string& field) const override {
    for (int i = 0; i < plan->n_args; ++i) {
      const Source& s = e.sources[i];
      if (PyUnicode_CompareWithASCIIString(plan->names[i], field.c_str()) != 0) continue;
      int param = s.from == Source::From::Argument    ? s.index
                  : s.from == Source::From::Allocated ? e.allocations[s.index].out_param
                                                      : -1;
      const bool known = param >= 0 && param < std::ssize(params);  // no result of an earlier part
      const char* name = known ? PyUnicode_AsUTF8(params[param].name) : nullptr;
      return name ? name : field;
    }
    return field;
  }
};

// The stream of a call: the current one of the framework whose tensors came.
bool prepare_device(const PlanCore& plan, const Arguments& a, Frame& frame) {
  if (plan.row.backend == Backend::Cpu || frame.keep.unbacked) return true;
  const void* exchange = a.keep.exchange ? a.keep.exchange : frame.keep.exchange;
  return framework_stream(exchange, plan.row.backend, plan.question.device, &frame.stream_handle) == Imported::Yes;
}

bool take_workspace(const PlanCore& plan, Frame& frame, Charge& charge) {
  const int64_t bytes = workspace_of(plan, frame.views);
  if (!bytes) return true;
  frame.call.workspace_bytes = bytes;
  if (frame.keep.unbacked) {  // any aligned address stands for it
    frame.call.workspace = reinterpret_cast<void*>(kWorkspaceAlignment);
    return true;
  }
  if (!charge.take(bytes, plan.row.backend, plan.question.device)) return false;
  const bool here = plan.row.backend == Backend::Cpu;
  frame.call.workspace = here ? scratch.at_least(bytes)
                              : device_scratch(plan.row.backend, plan.question.device, frame.stream_handle, bytes);
  return frame.call.workspace != nullptr;
}

// The scratch of one run of a program.
class ProgramScratch {
 public:
  ProgramScratch() = default;
  ProgramScratch(const ProgramScratch&) = delete;
  ProgramScratch& operator=(const ProgramScratch&) = delete;
  ~ProgramScratch() {
    std::free(own_);
    Py_XDECREF(block_);
  }
  // False with an exception.
  bool take(const PlanCore& plan, void* stream, int64_t bytes) {
    constexpr int64_t kKept = int64_t{32} << 20;  // more is not held by a thread for calls to come
    if (!bytes) return true;
    if (!charge_.take(bytes, plan.row.backend, plan.question.device)) return false;
    if (plan.row.backend != Backend::Cpu && bytes > kKept) {
      block_ = device_memory(plan.row.backend, plan.question.device, bytes, &memory_);
    } else if (plan.row.backend != Backend::Cpu) {
      memory_ = device_scratch(plan.row.backend, plan.question.device, stream, bytes);
    } else if (bytes <= kKept) {
      memory_ = scratch.at_least(bytes);
    } else if (fails_now(Injected::Alloc)) {
      raise_no_memory("cpu", kInjectedText, bytes);
    } else {
      memory_ = own_ = std::aligned_alloc(
          kWorkspaceAlignment,
          static_cast<size_t>(bytes) / kWorkspaceAlignment * kWorkspaceAlignment + kWorkspaceAlignment);
      if (!memory_) raise_no_memory("cpu", "no memory", bytes);
    }
    return memory_ != nullptr;
  }
  void* memory() const { return memory_; }

 private:
  Charge charge_;
  void *memory_ = nullptr, *own_ = nullptr;
  PyObject* block_ = nullptr;  // of a device, which is given back when its kernels have run
};

struct ProgramArguments {
  std::vector<TensorView> views;
  std::vector<PyObject*> objects;  // borrowed
  std::vector<Scalar> numbers;
  Keep keep;

  explicit ProgramArguments(const programs::ProgramObject* p)
      : views(programs::n_tensors(p)), objects(p->names->size()), numbers(p->core->scalars().size()) {
    const PlanCore& first = *p->core->steps()[0].plan;
    keep.device = first.row.backend;
    keep.device_id = first.question.device;
  }
};

// Fills the program's arguments from the entry's sources; false with an exception.
bool fill_arguments(PyObject* function, Params params, const Entry& e, Arguments& a, const Results& r,
                    ProgramArguments& v) {
  const Program& core = *reinterpret_cast<programs::ProgramObject*>(e.program)->core;
  for (size_t i = 0; i < e.sources.size(); ++i) {
    const Source& s = e.sources[i];
    if (i >= v.views.size()) {
      const size_t k = i - v.views.size();
      Why why;
      v.objects[i] = a.values[s.index];
      const Imported done = import_scalar(v.objects[i], core.scalars()[k], v.numbers[k], v.keep, why);
      if (done == Imported::Refused) why->field = PyUnicode_AsUTF8(params[s.index].name), raise_refusal(*why, function);
      if (done != Imported::Yes) return false;
    } else if (s.from == Source::From::Argument) {
      v.objects[i] = a.values[s.index];
      v.views[i] = a.views[s.index];
      apply_dims(s, v.views[i], a.counted);
    } else if (s.from == Source::From::Member) {
      if (s.member < 0 || s.member >= PyTuple_Size(a.values[s.index])) {
        PyErr_SetString(PyExc_ValueError, "a recipe names a member that its list does not have");
        return false;
      }
      v.objects[i] = PyTuple_GET_ITEM(a.values[s.index], s.member);
      v.views[i] = a.members[a.first_member[s.index] + s.member];
    } else {
      v.objects[i] = r.objects[s.index];
      Why why;
      const Imported done = import_tensor(v.objects[i], v.views[i], v.keep, why);
      if (done == Imported::Refused) why->field = "out", raise_refusal(*why, function);
      if (done != Imported::Yes) return false;
    }
  }
  // What the code of a producer, or of what made a result, may have moved meanwhile.
  for (size_t i = 0; (a.keep.ran_python || v.keep.ran_python) && i < v.views.size(); ++i) {
    Why why;
    const Imported done = may_move(v.objects[i]) ? import_same(v.objects[i], v.views[i], v.keep, why) : Imported::Yes;
    if (done == Imported::Refused) raise_refusal(*why, function);
    if (done != Imported::Yes) return false;
  }
  return true;
}

// Has the tracer take down a call of a function.
template <class F>
bool record_call(PyObject* function, Params params, const Arguments& a, F record) {
  PyObject* values = PyTuple_New(std::ssize(params));
  for (size_t i = 0; values && i < params.size(); ++i) PyTuple_SET_ITEM(values, i, Py_NewRef(a.values[i]));
  const bool done = values && record(Caller{function, values});
  Py_XDECREF(values);
  return done;
}

// `stream`: the one that it ran on.
bool run_program(PyObject* function, Params params, const Entry& e, Arguments& a, const Results& r, void*& stream) {
  auto* p = reinterpret_cast<programs::ProgramObject*>(e.program);
  if (p->core->steps().empty() || (a.keep.unbacked && !tracing())) return true;
  ProgramArguments v(p);
  if (!fill_arguments(function, params, e, a, r, v)) return false;
  if (tracing())
    return record_call(function, params, a,
                       [&](Caller c) { return record(p, v.views.data(), v.objects.data(), v.numbers.data(), c); });
  const PlanCore& first = *p->core->steps()[0].plan;
  const void* exchange = a.keep.exchange ? a.keep.exchange : v.keep.exchange;
  if (first.row.backend != Backend::Cpu &&
      framework_stream(exchange, first.row.backend, first.question.device, &stream) != Imported::Yes)
    return false;
  for (const ProgramStep& step : p->core->steps())
    if (!may_launch(*step.plan, stream, function)) return false;
  ProgramScratch memory;
  if (!memory.take(first, stream, p->core->scratch_bytes())) return false;
  ProgramFailure failure;
  const bool done = programs::without_gil(
      p->release_gil, [&] { return p->core->run(v.views.data(), v.numbers.data(), stream, failure, memory.memory()); });
  if (a.keep.torch || v.keep.torch) programs::bump(p, v.objects.data());
  // Steps' kernels have names of their own for what the function was given, or has named (Composer.called).
  if (failure.value >= 0)
    if (const std::string& name = p->core->values()[failure.value].name; !name.starts_with("scratch"))
      failure.refusals.front().field = name;
  if (!done) raise_refusals(failure.refusals, function);
  return done;
}

// `stream`: the one that it ran on.
bool run_plan(PyObject* function, Params params, const Entry& e, Arguments& a, Results& r, void*& stream) {
  auto* plan = reinterpret_cast<PlanObject*>(e.plan);
  Frame frame(plan);
  Refusals refusals;
  frame.keep.torch = a.keep.torch;
  frame.call.dry = frame.keep.unbacked = a.keep.unbacked;
  EntryNames names(params, e, plan);
  if (!fill_frame(e, plan, a, r, frame, refusals) ||
      (frame.keep.ran_python && !fill_frame(e, plan, a, r, frame, refusals, true))) {
    if (!PyErr_Occurred()) raise_refusals(refusals, function, &names);
    return false;
  }
  frame.keep.torch = frame.keep.torch && writes_given(e, plan, a);
  Charge charge;
  if (!prepare_device(*plan->core, a, frame) || !take_workspace(*plan->core, frame, charge)) return false;
  stream = frame.stream_handle;
  if (!check_frame(plan, frame, function, &names)) return false;
  return tracing() ? record_call(function, params, a, [&](Caller c) { return record(plan, frame, c); })
                   : launch_frame(plan, frame, function, &names);
}

// The error of a function whose results' sizes only data say, where there are none; always returns null.
PyObject* refuse_without_data(PyObject* function) {
  PyObject* name = PyObject_GetAttrString(function, "__name__");
  if (name) refuse_unbacked(PyUnicode_AsUTF8(name));
  Py_XDECREF(name);
  return nullptr;
}

// What a part counted; false with an exception.
bool read_number(PyObject* object, int64_t& out) {
  const TensorObject* t = as_tensor(object);
  if (!t || t->view.element != Element::I64 || t->view.numel() != 1)
    return PyErr_SetString(PyExc_ValueError, "a recipe counts in what is no i64 of ours"), false;
  if (t->view.device == Backend::Cpu) return out = *static_cast<const int64_t*>(address_of(t)), true;
  PyObject* number = number_of(object);
  if (number) out = PyLong_AsLongLong(number);
  Py_XDECREF(number);
  return number != nullptr;
}

// Reads what a part counted into the arguments, once its work in a stream of the place is done; false with an
// exception, which is that of the recipe where the data are wrong.
bool take_count(const Then& then, const Results& r, Place place, void* stream, Arguments& a) {
  if (then.numbers.empty()) return true;
  if (place.backend != Backend::Cpu && stream && !wait_for_device(place.backend, place.device, stream)) return false;
  bool good = true;
  int64_t numbers[kMaxParams] = {};
  for (size_t i = 0; i < then.numbers.size(); ++i) {
    if (!read_number(r.objects[then.numbers[i]], numbers[i])) return false;
    good &= numbers[i] >= 0;
  }
  a.counted = std::max(numbers[0], then.least);
  if (good && a.counted <= then.most) return true;
  PyObject* given = PyTuple_New(std::ssize(then.numbers));
  for (size_t i = 0; given && i < then.numbers.size(); ++i) PyTuple_SET_ITEM(given, i, PyLong_FromLongLong(numbers[i]));
  PyObject* returned = given ? PyObject_CallObject(then.refuse, given) : nullptr;
  if (returned) PyErr_SetString(PyExc_ValueError, "a recipe has no words for the numbers that it refuses");
  Py_XDECREF(returned), Py_XDECREF(given);
  return false;
}

// Carries out the next part of a recipe: the results of this one are arguments of it.
PyObject* run_then(PyObject* function, Params params, const Entry& e, Arguments& a, const Results& r, void* stream) {
  const PlanCore& first = e.program ? *reinterpret_cast<programs::ProgramObject*>(e.program)->core->steps()[0].plan
                                    : *reinterpret_cast<PlanObject*>(e.plan)->core;
  if (!take_count(e.then, r, {first.row.backend, first.question.device}, stream, a)) return nullptr;
  for (int i = 0; i < r.n; ++i) {
    const size_t at = params.size() + a.n_before++;
    Why why;
    if (import_tensor(r.objects[i], a.views[at], a.keep, why) != Imported::Yes)
      return PyErr_Occurred() ? nullptr : raise_refusal(*why, function);
    a.values[at] = r.objects[i], a.is_tensor[at] = true, a.first_member[at] = -1;
  }
  // Other threads may have run meanwhile.
  return read_again(function, params, a) ? run_entry(function, params, *e.then.entry, a) : nullptr;
}

}  // namespace

bool read_again(PyObject* function, Params params, Arguments& a) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (!a.is_tensor[i] || !may_move(a.values[i])) continue;
    Why why;
    const Imported done = import_same(a.values[i], a.views[i], a.keep, why);
    if (done == Imported::Refused) why->field = PyUnicode_AsUTF8(params[i].name), raise_refusal(*why, function);
    if (done != Imported::Yes) return false;
  }
  return true;
}

PyObject* run_entry(PyObject* function, Params params, const Entry& e, Arguments& a) {
  a.keep.unbacked |= tracing();
  if (e.then.entry && a.keep.unbacked) return refuse_without_data(function);
  Results r(e.allocations.size());
  for (const Allocation& alloc : e.allocations) {
    r.objects[r.n] = allocate_result(alloc, a);
    if (!r.objects[r.n++]) return nullptr;
  }
  void* stream = nullptr;
  if (!(e.program ? run_program(function, params, e, a, r, stream) : run_plan(function, params, e, a, r, stream)))
    return nullptr;
  if (e.then.entry) return run_then(function, params, e, a, r, stream);
  PyObject* taken = take_results(e, r, a);
  return tracing() ? returned(function, taken) : taken;
}

}  // namespace baracuda::bindings
