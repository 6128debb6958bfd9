// What the parts of the binding of programs share: the object, and one run's arguments.
#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "bindings/anchor.h"
#include "bindings/error.h"
#include "bindings/import.h"
#include "core/program.h"

namespace baracuda::bindings::programs {

struct ProgramObject {
  PyObject_HEAD Program* core;
  PyObject* plans;                // a tuple
  PyObject* constants;            // a tuple
  PyObject* kept;                 // what else their memory needs
  Anchors* anchors;               // of the constants
  std::vector<PyObject*>* names;  // interned: arguments, then scalars
  bool release_gil;
};

bool is_program(PyObject* object);
size_t n_tensors(const ProgramObject* p);
const ProgramValue& argument(const ProgramObject* p, size_t i);

// One run's arguments, imported.
struct Call {
  std::vector<PyObject*> args;  // borrowed
  std::vector<PyObject*> made;  // results that the caller did not give: owned
  std::vector<TensorView> views;
  std::vector<Scalar> scalars;
  PyObject* stream = nullptr;
  void* stream_handle = nullptr;
  Keep keep;

  explicit Call(const ProgramObject* p)
      : args(p->names->size(), nullptr), views(n_tensors(p)), scalars(p->core->scalars().size()) {
    for (TensorView& v : views) v.rank = -1;
  }
  ~Call() {
    for (PyObject* o : made) Py_DECREF(o);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

// Set an exception; always return null.
PyObject* raise_failure(const ProgramObject* p, const ProgramFailure& failure);
PyObject* raise_one(const ProgramObject* p, Refusal why);

// Distributes positional and keyword arguments over the call, and imports them; results that were not given are made.
// False with an exception set.
bool collect(ProgramObject* p, Call& call, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
bool import_call(ProgramObject* p, Call& call);
// Of collected arguments, those that are given, for their sizes alone: the program's symbols.
bool import_sizes(ProgramObject* p, Call& call, int64_t* symbols);
PyObject* result_of(const ProgramObject* p, PyObject* const* args);
// Tells torch's autograd which of the arguments were written to.
void bump(const ProgramObject* p, PyObject* const* args);

template <class F>
bool without_gil(bool release, F f) {
  if (!release) return f();
  bool done;
  Py_BEGIN_ALLOW_THREADS done = f();
  Py_END_ALLOW_THREADS return done;
}

// program.bind(...), as a method.
PyObject* program_bind(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
bool call_setup();
bool bound_setup();

}  // namespace baracuda::bindings::programs
