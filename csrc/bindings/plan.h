// The raw plan type: run with METH_FASTCALL, no Python frame, no allocation.
#pragma once
#include <Python.h>

#include "bindings/error.h"
#include "bindings/import.h"
#include "core/plan.h"

namespace baracuda::bindings {

struct PlanObject {
  PyObject_HEAD PlanCore* core;
  PyObject* descriptor;
  PyObject* origin;  // (device, preference, layout, alignment): what select was asked, for pickling and explain
  PyObject* names[kMaxArgs];   // interned, present tensor parameters first, then scalars
  int32_t param_of[kMaxArgs];  // signature parameter, or scalar index
  int32_t slot_of[kMaxArgs];   // of a single tensor; -1 for lists and scalars
  int32_t n_tensors, n_args;
  int32_t outputs[kMaxArgs];  // argument indices of what run returns
  int32_t n_outputs;
  int32_t absent[kMaxArgs];  // slots of optional tensors that this plan does not have
  int32_t n_absent;
  int32_t absent_scalars[kMaxScalars];
  int32_t n_absent_scalars;
};

extern PyTypeObject* plan_type;

// The views and scalars of one call, imported from Python objects. Memory that is not used is not initialised: a frame
// is made for every call.
struct Frame {
  static constexpr int kInlineViews = 16;
  TensorView* views;
  Scalar* scalars;
  PyObject* args[kMaxArgs];
  PyObject* lists[kMaxArgs];  // not initialised: what lists held when they were imported
  PyObject* workspace = nullptr;
  PyObject* stream = nullptr;
  void* stream_handle = nullptr;
  Keep keep;
  Call call;

  explicit Frame(const PlanObject* plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();

 private:
  alignas(TensorView) char view_memory_[kInlineViews * sizeof(TensorView)];
  alignas(Scalar) char scalar_memory_[kMaxScalars * sizeof(Scalar)];
};

// Puts a keyword argument in its place; false with `why` for an unknown name, or one given twice.
bool place_keyword(PlanObject* plan, Frame& frame, PyObject* name, PyObject* value, bool replace, Why& why);
// Tells torch's autograd which tensors among the outputs were written to.
void bump_versions(const PlanObject* plan, PyObject* const* args);
bool writes_torch(const PlanObject* plan, PyObject* const* args);
// Imports the frame's args; true when all could be read. With `all`, goes on after a refusal.
bool import_frame(PlanObject* plan, Frame& frame, bool all, Refusals& refusals);
// Whether a call is worth giving the interpreter to other threads.
bool releases_gil(const PlanCore& plan, const Call& call);
// Whether the imported call may be launched; launches what may be. False with an exception set.
bool check_frame(PlanObject* plan, Frame& frame, PyObject* caller, const FieldNames* names);
bool launch_frame(PlanObject* plan, Frame& frame, PyObject* caller, const FieldNames* names);
// Both, one after the other.
bool launch_checked(PlanObject* plan, Frame& frame, PyObject* caller, const FieldNames* names = nullptr);
// Fills the views of a variadic parameter, the plan's argument `arg`.
Imported import_list(Frame& frame, int arg, const Param& param, PyObject* value, Why& why);
// Reads anew what other arguments' Python code may have moved; of a list, its members.
Imported import_moved(Frame& frame, int arg, const Param& param, Why& why);
PyObject* run_frame(PlanObject* plan, Frame& frame);

// Makes a plan object of `cls` around `core` (taken).
PyObject* make_plan(PyTypeObject* cls, PlanCore* core, PyObject* descriptor, PyObject* origin);

bool plan_setup(PyObject* module);

}  // namespace baracuda::bindings
