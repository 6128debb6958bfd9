// The C interface's devices with memory of their own: waiting for them, and their streams.
#include <initializer_list>

#include "core/capi.h"
#include "core/device.h"
#include "core/devices.h"
#include "core/message.h"

using namespace baracuda;  // NOLINT: the interface's names are C's

namespace baracuda::capi {
namespace {

struct FoundDevice {
  Backend backend = Backend::Cpu;
  int32_t number = 0;
  const DeviceModule* module = nullptr;  // null: the cpu
};

// False with the error written where there is no such device.
bool find_device(const char* given, FoundDevice& out, bcu_status& status, bcu_error* error) {
  if (!given) return status = refuse_null(error, "device"), false;
  const std::string wanted = given;
  if (wanted == device_name(Backend::Cpu, 0)) return true;
  std::string reason = "bcu_devices() names those of this machine", unused;
  for (const Backend backend : {Backend::Cuda, Backend::Metal}) {
    for (int32_t i = 0; i < device_count(backend); ++i)
      if (wanted == device_name(backend, i)) return out = {backend, i, device_module(backend, unused)}, true;
    if (wanted == device_name(backend, 0)) reason = backend_state(backend).reason;
  }
  status = fail(error, {{Code::NoDevice, "device", wanted, "a device that can be used", reason}}, "");
  return false;
}

Refusal broken(const DeviceModule& module, Backend backend, int32_t number) {
  return {Code::LaunchFailed, device_name(backend, number), module.last_error(), "a device that works", ""};
}
bcu_status failed_on(const FoundDevice& device, bcu_error* error) {
  return fail(error, {broken(*device.module, device.backend, device.number)}, "");
}

// False with the error written for what is no stream of the device.
bool is_stream(const FoundDevice& device, void* stream, bcu_status& status, bcu_error* error) {
  bool capturing = false;
  Refusals why;
  if (ask_stream(device.backend, device.number, stream, capturing, why)) return true;
  return status = fail(error, why, ""), false;
}

// Until what the device was given is done; fails with what kernels found in the data.
bcu_status wait_for(const FoundDevice& device, void* stream, bcu_error* error) {
  DeviceFault found;
  if (device.module->take_fault(device.number, stream, &found) != Status::Ok) return failed_on(device, error);
  if (found.row < 0) return BCU_OK;
  const FaultReport report = report_of(found, device.backend, device.number);
  return fail(error, {report.refusal}, report.where);
}

// A device's queues, for a call f that says whether it worked. Where the caller gave no place for what `wanted` calls,
// that is the error.
template <class F>
bcu_status with_streams(const char* name, std::initializer_list<void*> streams, const void* place, const char* wanted,
                        bcu_error* error, F f) {
  return guarded(error, [&]() -> bcu_status {
    if (!place) return refuse_null(error, wanted);
    FoundDevice device;
    bcu_status status = BCU_OK;
    if (!find_device(name, device, status, error)) return status;
    if (!device.module)
      return fail(error, {{Code::NoDevice, "device", name, "a device with streams", "a cpu plan runs at once"}}, "");
    for (void* stream : streams)
      if (!is_stream(device, stream, status, error)) return status;
    return f(device.number, *device.module->queues) == Status::Ok ? BCU_OK : failed_on(device, error);
  });
}

// Later work of a stream comes after what another one was given by now.
Status wait_behind(int32_t number, const DeviceQueues& queues, void* stream, void* other) {
  void* event = nullptr;
  Status status = queues.create_event(number, false, &event);
  if (status != Status::Ok) return status;
  status = queues.record(number, event, other);
  if (status == Status::Ok) status = queues.wait(number, stream, event);
  const Status gone = queues.destroy_event(number, event);
  return status == Status::Ok ? gone : status;
}

}  // namespace

bool ask_stream(Backend backend, int32_t number, void* stream, bool& capturing, Refusals& out) {
  std::string unused;
  capturing = false;
  const DeviceModule* module = stream && backend != Backend::Cpu ? device_module(backend, unused) : nullptr;
  if (!module || !module->queues || module->queues->capturing(number, stream, &capturing) == Status::Ok) return true;
  out.push_back(broken(*module, backend, number));
  return false;
}

bool may_launch(const PlanCore& plan, void* stream, Refusals& out) {
  bool capturing = false;
  if (!ask_stream(plan.row.backend, plan.question.device, stream, capturing, out)) return false;
  Refusal why;
  if (!refuse_in_capture(plan.row, capturing, false, why)) return true;
  out.push_back(std::move(why));
  return false;
}

}  // namespace baracuda::capi

using namespace baracuda::capi;  // NOLINT

bcu_status bcu_device_check(const char* device, void* stream, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    FoundDevice found;
    bcu_status status = BCU_OK;
    if (!find_device(device, found, status, error) || !found.module) return status;
    if (!is_stream(found, stream, status, error)) return status;
    return wait_for(found, stream, error);
  });
}

bcu_status bcu_stream_create(const char* device, int32_t non_blocking, void** stream, bcu_error* error) {
  if (stream) *stream = nullptr;
  return with_streams(device, {}, stream, "stream", error, [&](int32_t number, const DeviceQueues& queues) {
    return queues.create_stream(number, non_blocking == 0, stream);
  });
}

bcu_status bcu_stream_release(const char* device, void* stream, bcu_error* error) {
  if (!stream) return BCU_OK;
  return with_streams(device, {stream}, device, "device", error, [&](int32_t number, const DeviceQueues& queues) {
    return queues.destroy_stream(number, stream);
  });
}

bcu_status bcu_stream_wait(const char* device, void* stream, void* other, bcu_error* error) {
  return with_streams(
      device, {stream, other}, device, "device", error,
      [&](int32_t number, const DeviceQueues& queues) { return wait_behind(number, queues, stream, other); });
}

bcu_status bcu_stream_done(const char* device, void* stream, int32_t* done, bcu_error* error) {
  return with_streams(device, {stream}, done, "done", error, [&](int32_t number, const DeviceQueues& queues) {
    bool all = false;
    const Status status = queues.stream_done(number, stream, &all);
    *done = all;
    return status;
  });
}

bcu_status bcu_stream_queue(const char* device, void* stream, void** queue, bcu_error* error) {
  if (queue) *queue = nullptr;
  return with_streams(device, {stream}, queue, "queue", error, [&](int32_t number, const DeviceQueues& queues) {
    if (queues.queue_of) return queues.queue_of(number, stream, queue);
    return *queue = stream, Status::Ok;
  });
}
