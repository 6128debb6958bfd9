// What the bindings of devices, streams and graphs share: finding a device's module, and its errors as exceptions.
#pragma once
#include <pybind11/pybind11.h>

#include "bindings/device.h"
#include "core/devices.h"

namespace baracuda::bindings {

struct Place {
  Backend backend;
  int32_t device;
  bool operator==(const Place&) const = default;
};

// Both raise ValueError or BackendUnavailableError.
Place place_of(int backend, int device);
const DeviceModule& module_of(Place place);

// Raises what a module's function returned; `place` is where.
[[noreturn]] void throw_status(const DeviceModule& module, Status status, Place place, int64_t bytes = -1);

// Calls a module's function without the interpreter: it may wait for kernels, and they for callbacks in Python.
template <class Function>
void call(const DeviceModule& module, Place place, Function&& function, int64_t bytes = -1) {
  Status status;
  {
    pybind11::gil_scoped_release release;
    status = function();
  }
  // last_error() belongs to this thread, so that other threads' errors between the two do not matter.
  if (status != Status::Ok) throw_status(module, status, place, bytes);
}

inline void* handle_of(uintptr_t stream) { return reinterpret_cast<void*>(stream); }

// The handle of a stream, of ours or another library's, which has to be one of the device; None is the default stream.
void* stream_on(Place place, pybind11::handle stream);
// Whether an object is a bc.Stream, and which.
bool own_stream(PyObject* object, Place* place, void** handle);

}  // namespace baracuda::bindings
