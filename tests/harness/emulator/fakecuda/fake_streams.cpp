// The fake runtime's streams, events, captures and graphs.
#include <algorithm>
#include <vector>

#include "emulator/fakecuda/runtime.h"

using namespace baracuda::emulator;

namespace {

template <class T>
bool erase(std::vector<T>& all, T one) {
  auto found = std::find(all.begin(), all.end(), one);
  if (found == all.end()) return false;
  all.erase(found);
  delete one;
  return true;
}

template <class T>
bool known(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// An event that somebody asks about: one of a capture cannot be asked, and that breaks the capture.
cudaError_t check_asked(cudaEvent_t event) {
  Runtime& r = Runtime::get();
  if (cudaError_t e = r.check_event(event)) return e;
  if (!event->mark.captured) return cudaSuccess;
  if (auto capture = event->mark.capture.lock(); capture && capture->broken.empty())
    capture->broken = "an event of it was asked about";
  return r.raise(cudaErrorCapturedEvent, "the event was last recorded in a stream that is being captured");
}

}  // namespace

extern "C" {

// --- streams --------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  BCU_FAKE_BEGIN;
  *stream = r.queue.create_stream(current_device(), flags != cudaStreamNonBlocking);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (cudaError_t e = r.raise(r.queue.refuse_stream(__func__, current_device(), stream), false)) return e;
  return r.told(r.queue.drain(current_device(), stream));
}

// Streams get on by one operation for each question, so that who asks again and again comes to an end.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (cudaError_t e = r.raise(r.queue.refuse_stream(__func__, current_device(), stream), false)) return e;
  uint64_t last = r.queue.last_of(current_device(), stream);
  if (!last) return cudaSuccess;
  if (cudaError_t e = r.told(r.queue.step_towards(last))) return e;
  return r.raise(cudaErrorNotReady, "the stream has work", false);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  BCU_FAKE_END;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (!stream) return r.raise(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
  // Its work is finished first, as CUDA does.
  cudaError_t error = r.told_by_release(stream->device, r.queue.drain(stream->device, stream));
  r.queue.destroy_stream(stream);
  return told ? told : error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (cudaError_t e = r.check_event(event)) return e;
  if (flags) return r.raise(cudaErrorInvalidValue, "flags");
  return r.raise(r.queue.wait(current_device(), stream, event));
}

// --- events ---------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  BCU_FAKE_BEGIN;
  *event = new CUevent_st{current_device(), !(flags & cudaEventDisableTiming), {}, nullptr};
  r.events.push_back(*event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (cudaError_t e = r.check_event(event)) return e;
  if (event->device != current_device())
    return r.raise(cudaErrorInvalidResourceHandle, "the event belongs to device " + std::to_string(event->device));
  return r.raise(r.queue.record(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = check_asked(event)) return e;
  if (!r.queue.holds(event->mark.operation)) return cudaSuccess;
  if (cudaError_t e = r.told(r.queue.step_towards(event->mark.operation))) return e;
  return r.raise(cudaErrorNotReady, "the event has not happened", false);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = check_asked(event)) return e;
  return r.told(r.queue.drain_until(event->mark.operation));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  BCU_FAKE_BEGIN;
  for (cudaEvent_t event : {start, end}) {
    if (cudaError_t e = check_asked(event)) return e;
    if (!event->timing || !event->time)
      return r.raise(cudaErrorInvalidResourceHandle, "an event without timing, or never recorded", false);
    if (r.queue.holds(event->mark.operation)) return r.raise(cudaErrorNotReady, "an event has not happened", false);
    if (*event->time < 0) return r.raise(cudaErrorLaunchFailure, "the event's stream failed before it", false);
  }
  if (start->device != end->device) return r.raise(cudaErrorInvalidResourceHandle, "events of two devices");
  *ms = float(*end->time - *start->time);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  BCU_FAKE_END;
  if (cudaError_t e = r.check_event(event)) return e;
  erase(r.events, event);
  return told;
}

// --- captures and graphs --------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  return r.raise(r.queue.begin_capture(stream, mode), false);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  BCU_FAKE_END;
  *graph = nullptr;
  if (cudaError_t e = r.check_stream(stream)) return e;
  Problem problem;
  auto nodes = r.queue.end_capture(stream, problem);
  if (told) return told;
  if (!nodes) return r.raise(std::move(problem), false);
  *graph = new CUgraph_st{std::move(nodes), {}};
  r.graphs.push_back(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  BCU_FAKE_BEGIN;
  if (flags) return r.raise(cudaErrorInvalidValue, "flags");
  *graph = new CUgraph_st{std::make_shared<const Nodes>(), {}};
  r.graphs.push_back(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n,
                                       cudaGraph_t child) {
  BCU_FAKE_BEGIN;
  if (!known(r.graphs, graph) || !known(r.graphs, child) || graph == child)
    return r.raise(cudaErrorInvalidValue, "there is no such graph");
  if (child->nodes->empty()) return r.raise(cudaErrorInvalidValue, "a graph without nodes as a part of another");
  Nodes nodes = *graph->nodes;
  std::vector<size_t> first;
  for (size_t i = 0; i < n; ++i) {
    if (!after[i] || after[i]->graph != graph) return r.raise(cudaErrorInvalidValue, "a node of another graph");
    first.push_back(after[i]->index);
  }
  nodes.push_back({current_device(), {}, std::move(first), child->nodes});  // the child is copied
  graph->handles.push_back(std::make_unique<CUgraphNode_st>(graph, nodes.size() - 1));
  *node = graph->handles.back().get();
  graph->nodes = std::make_shared<const Nodes>(std::move(nodes));
  return cudaSuccess;
}

// Of launches to come; those that wait are not touched. What the new graph has other nodes than the old one is refused.
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  BCU_FAKE_BEGIN;
  if (!known(r.executables, exec) || !known(r.graphs, exec->from) || !known(r.graphs, child))
    return r.raise(cudaErrorInvalidValue, "there is no such graph");
  if (!node || node->graph != exec->from) return r.raise(cudaErrorInvalidValue, "a node of another graph");
  Nodes nodes = *exec->nodes;
  Node& place = nodes[node->index];
  const bool same = std::equal(place.child->begin(), place.child->end(), child->nodes->begin(), child->nodes->end(),
                               [](const Node& a, const Node& b) { return a.after == b.after && a.device == b.device; });
  if (!same) return r.raise(cudaErrorGraphExecUpdateFailure, "the nodes of the two graphs differ", false);
  place.child = child->nodes;
  exec->nodes = std::make_shared<const Nodes>(std::move(nodes));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  *status = cudaStreamCaptureStatusNone;
  if (stream && stream->capture)
    *status = stream->capture->broken.empty() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  BCU_FAKE_BEGIN;
  std::swap(*mode, capture_mode());
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  BCU_FAKE_BEGIN;
  if (!known(r.graphs, graph) || nodes) return r.raise(cudaErrorInvalidValue, "a graph's nodes are only counted here");
  *count = graph->nodes->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  BCU_FAKE_BEGIN;
  if (!known(r.graphs, graph) || flags) return r.raise(cudaErrorInvalidValue, "there is no such graph");
  *exec = new CUgraphExec_st{current_device(), graph->nodes, graph, 0};
  r.executables.push_back(*exec);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (!known(r.executables, exec)) return r.raise(cudaErrorInvalidValue, "there is no such graph");
  return r.enqueue_behind(exec->last, stream, [nodes = exec->nodes] { return Queue::run_graph(*nodes); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  BCU_FAKE_END;
  return erase(r.graphs, graph) ? told : r.raise(cudaErrorInvalidValue, "there is no such graph");
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  BCU_FAKE_END;
  return erase(r.executables, exec) ? told : r.raise(cudaErrorInvalidValue, "there is no such graph");
}

}  // extern "C"
