// Devices with memory of their own: memory, copies, streams and faults for Python.
#pragma once
#include <Python.h>

#include "bindings/import.h"
#include "core/plan.h"

namespace baracuda::bindings {

// Set once a device was used in this process: until then every tensor of another framework can be asked for its memory
// without a word about streams.
bool devices_in_use();

// The handle that `object` (run's stream=, or null) means on the device of `keep`. Without one it is the current stream
// of the framework that owns a tensor, where it can be asked, else the device's default stream.
Imported import_stream(PyObject* object, const Keep& keep, void** out, Why& why);

// Waits for all work of a device, or of one of its streams; false with DeviceError set.
bool wait_for_device(Backend backend, int32_t device, void* stream = nullptr);

// New memory of a device: what owns it, or null with an exception set.
PyObject* device_memory(Backend backend, int32_t device, int64_t bytes, void** address);

// Device memory that functional calls use for a moment: one growing block per thread, device and stream, so that the
// launches that use it follow one another. Null with an exception set.
void* device_scratch(Backend backend, int32_t device, void* stream, int64_t bytes);

bool device_setup(PyObject* module);

}  // namespace baracuda::bindings
