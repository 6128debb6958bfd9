// Events, captures and graphs for Python, and what may not happen while a stream is captured.
#pragma once
#include <Python.h>

#include <atomic>

#include "bindings/device_detail.h"
#include "core/plan.h"

namespace baracuda::bindings {

// Captures by bc.Stream.capture that are open in this process. Other libraries' are only known stream by stream.
extern std::atomic<int> open_captures;

// Raise InvalidProblemError with code "capture" before anything is done that would break a capture: an allocation or
// wait of a thread that captures; work in the default stream of such a thread, or with `waits` in a captured stream.
void refuse_in_capture(Place place, const char* got, const char* want);
void refuse_in_capture(Place place, void* stream, bool waits, const char* got);
// A wait for a stream, or for the whole device (null).
void refuse_wait_in_capture(Place place, void* stream);

bool refused_launch(const PlanCore& plan, void* stream, PyObject* caller);
// Whether a plan may launch; false with the exception set.
inline bool may_launch(const PlanCore& plan, void* stream, PyObject* caller) {
  if (plan.row.backend == Backend::Cpu) return true;
  if ((plan.row.flags & kCaptureSafe) && (stream || !open_captures.load(std::memory_order_relaxed))) return true;
  return !refused_launch(plan, stream, caller);
}

bool queue_setup(PyObject* module);

}  // namespace baracuda::bindings
