// Traces: launches that are taken down instead of carried out, of tensors whose addresses stand for memory to come.
#pragma once
#include <Python.h>

#include "bindings/plan.h"
#include "bindings/program_detail.h"

namespace baracuda::bindings {

// Whether the calling thread is traced; it then asks for shapes only (inferring()), too.
bool tracing();

// Gives a tensor without memory the address that the tracer has for it, so that views of it are arithmetic as with any
// other; none outside of traces. False with an exception set.
bool stand_in_address(TensorView& view);

// What the traced function sees of a tensor without memory, which the tracer takes note of: sizes (taken over, given
// back as the function shall see them), a length, how a key looks at a shape, and which of its sizes are 1. Outside of
// traces they are as they are. Null or false with an exception set.
PyObject* shown_sizes(const TensorView& view, PyObject* sizes);
bool shown_length(const TensorView& view);
bool shown_key(const TensorView& view, PyObject* key);
bool shown_ones(const TensorView& view);

// What is called: a plan, a program or a function, with the values of the function's parameters or null.
struct Caller {
  PyObject* object;
  PyObject* values = nullptr;
};

// Gives the tracer a launch with all that it is given. False with an exception set.
bool record(PlanObject* plan, const Frame& frame, Caller caller);
bool record(programs::ProgramObject* program, const TensorView* views, PyObject* const* objects, const Scalar* numbers,
            Caller caller);

// Tells the tracer what the function of the last launch returns; null, and nothing is kept, with an exception set.
PyObject* returned(PyObject* function, PyObject* results);

bool trace_setup(PyObject* module);

}  // namespace baracuda::bindings
