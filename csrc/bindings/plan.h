// The raw plan type: run with METH_FASTCALL, no Python frame, no allocation.
#pragma once
#include <Python.h>

#include "bindings/import.h"
#include "core/plan.h"

namespace baracuda::bindings {

inline constexpr int kMaxArgs = 32;  // tensor and scalar parameters of one op
inline constexpr int kMaxScalars = 16;

struct PlanObject {
  PyObject_HEAD PlanCore* core;
  PyObject* descriptor;
  PyObject* origin;  // (device, preference, layout, alignment): what select was asked, for pickling and explain
  PyObject* names[kMaxArgs];   // interned, present tensor parameters first, then scalars
  int32_t param_of[kMaxArgs];  // signature parameter, or scalar index
  int32_t n_tensors, n_args;
  int32_t outputs[kMaxArgs];  // argument indices of what run returns
  int32_t n_outputs;
};

extern PyTypeObject* plan_type;

// The views and scalars of one call, imported from Python objects.
struct Frame {
  static constexpr int kInlineViews = 16;
  TensorView inline_views[kInlineViews];
  TensorView* views = inline_views;
  std::vector<TensorView> many;  // only for lists of tensors longer than kInlineViews
  Scalar scalars[kMaxScalars];
  PyObject* args[kMaxArgs] = {};
  PyObject* workspace = nullptr;
  PyObject* stream = nullptr;
  Keep keep;
  Call call;

  explicit Frame(const PlanObject* plan);
};

// Imports the frame's args; true when all could be read. With `all`, goes on after a refusal.
bool import_frame(PlanObject* plan, Frame& frame, bool all, Refusals& refusals);
// Checks the imported call and launches it; false with an exception set.
bool launch_checked(PlanObject* plan, Frame& frame);
PyObject* run_frame(PlanObject* plan, Frame& frame);

// Makes a plan object of `cls` around `core` (taken).
PyObject* make_plan(PyTypeObject* cls, PlanCore* core, PyObject* descriptor, PyObject* origin);

bool plan_setup(PyObject* module);

}  // namespace baracuda::bindings
