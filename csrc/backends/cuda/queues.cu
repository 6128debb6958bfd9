// Streams, events and graphs by the CUDA runtime.
#include <memory>
#include <vector>

#include "backends/cuda/runtime.h"

namespace baracuda::cuda {
namespace {

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

// "Not yet" is an answer, and no error that stays.
Status answer(cudaError_t error, const char* doing, bool* done) {
  *done = error == cudaSuccess;
  if (error != cudaErrorNotReady) return check(error, doing);
  cudaGetLastError();
  return Status::Ok;
}

Status create_stream(int32_t device, bool blocking, void** out) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaStream_t stream = nullptr;
  Status status = BCU_CUDA("creating a stream", cudaStreamCreateWithFlags, &stream,
                           blocking ? cudaStreamDefault : cudaStreamNonBlocking);
  *out = stream;
  return status;
}

Status destroy_stream(int32_t device, void* stream) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("destroying a stream", cudaStreamDestroy, as_stream(stream));
}

Status stream_done(int32_t device, void* stream, bool* done) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return answer(cudaStreamQuery(as_stream(stream)), "asking a stream: cudaStreamQuery", done);
}

Status wait(int32_t device, void* stream, void* event) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("waiting for an event", cudaStreamWaitEvent, as_stream(stream), as_event(event), 0);
}

Status create_event(int32_t device, bool timing, void** out) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaEvent_t event = nullptr;
  Status status = BCU_CUDA("creating an event", cudaEventCreateWithFlags, &event,
                           timing ? cudaEventDefault : cudaEventDisableTiming);
  *out = event;
  return status;
}

Status destroy_event(int32_t device, void* event) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("destroying an event", cudaEventDestroy, as_event(event));
}

Status record(int32_t device, void* event, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("recording an event", cudaEventRecord, as_event(event), as_stream(stream));
}

Status event_done(int32_t device, void* event, bool* done) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return answer(cudaEventQuery(as_event(event)), "asking an event: cudaEventQuery", done);
}

Status synchronize_event(int32_t device, void* event) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("waiting for an event", cudaEventSynchronize, as_event(event));
}

Status elapsed(int32_t device, void* start, void* end, float* milliseconds) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("reading the time between events", cudaEventElapsedTime, milliseconds, as_event(start),
                  as_event(end));
}

Status capturing(int32_t device, void* stream, bool* out) {
  *out = false;
  if (!stream) return Status::Ok;
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaStreamCaptureStatus now = cudaStreamCaptureStatusNone;
  Status status = BCU_CUDA("asking a stream", cudaStreamIsCapturing, as_stream(stream), &now);
  *out = now != cudaStreamCaptureStatusNone;
  return status;
}

// Other threads may go on as if nothing was captured.
Status begin_capture(int32_t device, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  // Not later, in the capture, which allocations and waits may break.
  if (Status status = prepare(device); status != Status::Ok) return status;
  return BCU_CUDA("beginning a capture", cudaStreamBeginCapture, as_stream(stream), cudaStreamCaptureModeThreadLocal);
}

Status end_capture(int32_t device, void* stream, void** graph, int64_t* nodes) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t ready = nullptr;
  size_t count = 0;
  Status status = BCU_CUDA("ending a capture", cudaStreamEndCapture, as_stream(stream), &captured);
  if (status == Status::Ok && graph) {
    status = BCU_CUDA("counting a graph's nodes", cudaGraphGetNodes, captured, nullptr, &count);
    if (status == Status::Ok)
      status = BCU_CUDA("making a graph ready", cudaGraphInstantiateWithFlags, &ready, captured, 0);
  }
  if (captured && status == Status::Ok)
    status = BCU_CUDA("destroying a graph", cudaGraphDestroy, captured);
  else if (captured)
    cudaGraphDestroy(captured);  // what failed before it is told
  if (status != Status::Ok && ready) cudaGraphExecDestroy(ready);
  if (status == Status::Ok && graph) *graph = ready, *nodes = static_cast<int64_t>(count);
  return status;
}

Status launch_graph(int32_t device, void* graph, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("launching a graph", cudaGraphLaunch, static_cast<cudaGraphExec_t>(graph), as_stream(stream));
}

Status destroy_graph(int32_t device, void* graph) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("destroying a graph", cudaGraphExecDestroy, static_cast<cudaGraphExec_t>(graph));
}

// --- chains ---------------------------------------------------------------------------------------------------------

struct Chain {
  cudaGraph_t graph = nullptr;  // what it was made of: its nodes are the places
  cudaGraphExec_t ready = nullptr;
  std::vector<cudaGraphNode_t> places;  // null where a part was left out

  Status destroy() {
    Status status = Status::Ok;
    if (ready) status = BCU_CUDA("destroying a graph", cudaGraphExecDestroy, ready);
    if (graph && status == Status::Ok) return BCU_CUDA("destroying a graph", cudaGraphDestroy, graph);
    if (graph) cudaGraphDestroy(graph);  // what failed before it is told
    return status;
  }
};

Status end_part(int32_t device, void* stream, void** part) {
  *part = nullptr;
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaGraph_t captured = nullptr;
  size_t count = 0;
  Status status = BCU_CUDA("ending a capture", cudaStreamEndCapture, as_stream(stream), &captured);
  if (status == Status::Ok) status = BCU_CUDA("counting a graph's nodes", cudaGraphGetNodes, captured, nullptr, &count);
  if (status == Status::Ok && count)
    *part = captured;
  else if (captured)
    cudaGraphDestroy(captured);
  return status;
}

Status destroy_part(int32_t device, void* part) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("destroying a graph", cudaGraphDestroy, static_cast<cudaGraph_t>(part));
}

Status join(Chain& chain, void* const* parts, int32_t n) {
  Status status = BCU_CUDA("making a graph", cudaGraphCreate, &chain.graph, 0);
  cudaGraphNode_t last = nullptr;
  for (int32_t i = 0; status == Status::Ok && i < n; ++i) {
    cudaGraphNode_t place = nullptr;
    if (parts[i])
      status = BCU_CUDA("joining graphs", cudaGraphAddChildGraphNode, &place, chain.graph, &last,
                        size_t{last != nullptr}, static_cast<cudaGraph_t>(parts[i]));
    chain.places.push_back(place);
    if (place) last = place;
  }
  if (status != Status::Ok) return status;
  return BCU_CUDA("making a graph ready", cudaGraphInstantiateWithFlags, &chain.ready, chain.graph, 0);
}

Status make_chain(int32_t device, void* const* parts, int32_t n, void** out) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  auto chain = std::make_unique<Chain>();
  const Status status = join(*chain, parts, n);
  if (status != Status::Ok) return chain->destroy(), status;
  *out = chain.release();
  return Status::Ok;
}

Status replace_part(int32_t device, void* chain, int32_t place, void* part, bool* fits) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  if (guard.status() != Status::Ok) return guard.status();
  const auto& c = *static_cast<Chain*>(chain);
  cudaGraphNode_t node = c.places[static_cast<size_t>(place)];
  *fits = !node && !part;
  if (!node || !part) return Status::Ok;
  const cudaError_t error = cudaGraphExecChildGraphNodeSetParams(c.ready, node, static_cast<cudaGraph_t>(part));
  *fits = error == cudaSuccess;
  if (error != cudaErrorGraphExecUpdateFailure)
    return check(error, "changing a graph: cudaGraphExecChildGraphNodeSetParams");
  cudaGetLastError();
  return Status::Ok;
}

Status launch_chain(int32_t device, void* chain, void* stream) {
  return launch_graph(device, static_cast<Chain*>(chain)->ready, stream);
}

Status destroy_chain(int32_t device, void* chain) {
  std::unique_ptr<Chain> gone(static_cast<Chain*>(chain));
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  return guard.status() != Status::Ok ? guard.status() : gone->destroy();
}

}  // namespace

constinit const DeviceQueues kQueues = {
    &create_stream, &destroy_stream,    &stream_done,  &wait,       &create_event,  &destroy_event, &record,
    &event_done,    &synchronize_event, &elapsed,      &capturing,  &begin_capture, &end_capture,   &launch_graph,
    &destroy_graph, &end_part,          &destroy_part, &make_chain, &replace_part,  &launch_chain,  &destroy_chain};

}  // namespace baracuda::cuda
