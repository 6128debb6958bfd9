#include "emulator/fakecuda/queue.h"

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/heap.h"

namespace baracuda::emulator {
namespace {

constexpr double kMillisecondsPerOperation = 1;

bool keeps_order(cudaStream_t stream) { return !stream || stream->blocking; }

std::string of_stream(int device, cudaStream_t stream) {
  return std::string(stream ? "a stream" : "the default stream") + " of device " + std::to_string(device);
}

}  // namespace

// --- operations -----------------------------------------------------------------------------------------------------

uint64_t Queue::last_of(int device, cudaStream_t stream) const {
  for (auto o = waiting_.rbegin(); o != waiting_.rend(); ++o)
    if (o->second.device == device && o->second.stream == stream) return o->first;
  return 0;
}

uint64_t Queue::add(int device, cudaStream_t stream, Work work, Problem& problem, std::vector<uint64_t> after) {
  if (capturing(stream)) return problem = capture_node(device, stream, std::move(work)), 0;
  if (auto capture = blocked_by(device, stream)) {
    problem = break_capture(*capture, cudaErrorStreamCaptureImplicit,
                            "work in " + of_stream(device, stream) + " would wait for a stream that is being captured");
    return 0;
  }
  after.push_back(last_of(device, stream));
  // The default stream and blocking ones wait for each other.
  for (cudaStream_t other : streams_)
    if (!stream && other->device == device && other->blocking) after.push_back(last_of(device, other));
  if (stream && stream->blocking) after.push_back(last_of(device, nullptr));
  std::erase(after, 0);
  waiting_.emplace(++last_, Operation{device, stream, std::move(work), std::move(after)});
  return last_;
}

std::vector<uint64_t> Queue::needed_for(std::vector<uint64_t> wanted) const {
  std::set<uint64_t> found;
  while (!wanted.empty()) {
    uint64_t id = wanted.back();
    wanted.pop_back();
    auto o = waiting_.find(id);
    if (o == waiting_.end() || !found.insert(id).second) continue;
    wanted.insert(wanted.end(), o->second.after.begin(), o->second.after.end());
  }
  return {found.begin(), found.end()};  // an operation waits only for earlier ones
}

Problem Queue::run(uint64_t operation) {
  auto o = waiting_.find(operation);
  if (o == waiting_.end()) return {};  // its device failed
  const int device = o->second.device;
  Work work = std::move(o->second.work);
  waiting_.erase(o);
  Problem problem = work();
  now_ += kMillisecondsPerOperation;
  if (problem.error) drop_device(device);  // a device that failed does nothing more of what it was given
  return problem;
}

Problem Queue::run_all(const std::vector<uint64_t>& operations) {
  Opened::Several together;
  for (uint64_t o : operations)
    if (Problem p = run(o); p.error) return p;
  return {};
}

Problem Queue::drain(int device, cudaStream_t stream) {
  std::vector<uint64_t> wanted;
  for (const auto& [id, o] : waiting_)
    if (o.device == device && (o.stream == stream || (!stream && keeps_order(o.stream)))) wanted.push_back(id);
  return run_all(needed_for(std::move(wanted)));
}

Problem Queue::drain_until(uint64_t operation) { return run_all(needed_for({operation})); }

Problem Queue::drain_device(int device) {
  std::vector<uint64_t> wanted;
  for (const auto& [id, o] : waiting_)
    if (o.device == device) wanted.push_back(id);
  return run_all(needed_for(std::move(wanted)));
}

Problem Queue::step_towards(uint64_t operation) {
  std::vector<uint64_t> todo = needed_for({operation});
  return todo.empty() ? Problem{} : run(todo.front());
}

void Queue::drop_device(int device) {
  std::erase_if(waiting_, [&](const auto& o) { return o.second.device == device; });
}

// --- streams and events ---------------------------------------------------------------------------------------------

cudaStream_t Queue::create_stream(int device, bool blocking) {
  streams_.push_back(new CUstream_st{device, blocking, nullptr});
  return streams_.back();
}

bool Queue::destroy_stream(cudaStream_t stream) {
  auto found = std::find(streams_.begin(), streams_.end(), stream);
  if (found == streams_.end()) return false;
  if (stream->capture) stream->capture->broken = "a stream of it was destroyed";
  streams_.erase(found);
  delete stream;
  return true;
}

bool Queue::is_stream(cudaStream_t stream) const {
  return std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
}

Problem Queue::record(cudaEvent_t event, cudaStream_t stream) {
  auto reached = std::make_shared<double>(-1);
  if (capturing(stream)) {
    if (!stream->capture->broken.empty())
      return {cudaErrorStreamCaptureInvalidated, "the capture is broken: " + stream->capture->broken};
    event->mark = {0, stream->capture, stream->capture->tips[stream], true};
    event->time = reached;
    return {};
  }
  Problem problem;
  // A record takes no time: what it reads is the clock after what came before.
  uint64_t id = add(
      event->device, stream,
      [this, reached] {
        *reached = now_;
        now_ -= kMillisecondsPerOperation;
        return Problem{};
      },
      problem);
  if (problem.error) return problem;
  event->mark = {id, {}, {}, false};
  event->time = reached;
  return {};
}

Problem Queue::wait(int device, cudaStream_t stream, cudaEvent_t event) {
  const Mark& mark = event->mark;
  if (mark.captured) {
    auto capture = mark.capture.lock();
    if (!capture) return {cudaErrorCapturedEvent, "the event was last recorded in a capture that is over"};
    if (!stream)
      return break_capture(*capture, cudaErrorStreamCaptureImplicit, "the default stream cannot join a capture");
    if (stream->capture && stream->capture != capture)
      return break_capture(*capture, cudaErrorStreamCaptureMerge, "an event of one capture, a stream of another");
    stream->capture = capture;
    auto& tips = capture->tips[stream];
    for (size_t node : mark.nodes)
      if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
    return {};
  }
  if (!mark.operation) return {};  // never recorded: nothing to wait for
  if (capturing(stream))
    return break_capture(*stream->capture, cudaErrorStreamCaptureIsolation,
                         "a stream that is being captured waits for an event from outside");
  Problem problem;
  add(device, stream, [this] { return now_ -= kMillisecondsPerOperation, Problem{}; }, problem, {mark.operation});
  return problem;
}

// --- captures -------------------------------------------------------------------------------------------------------

Problem Queue::break_capture(Capture& capture, cudaError_t error, std::string why) {
  if (capture.broken.empty()) capture.broken = why;
  return {error, std::move(why)};
}

// The capture that work in a stream would have to wait for, if any.
std::shared_ptr<Capture> Queue::blocked_by(int device, cudaStream_t stream) const {
  if (stream) return nullptr;
  for (cudaStream_t other : streams_)
    if (other->device == device && other->blocking && other->capture) return other->capture;
  return nullptr;
}

Problem Queue::capture_node(int device, cudaStream_t stream, Work work) {
  Capture& capture = *stream->capture;
  if (!capture.broken.empty()) return {cudaErrorStreamCaptureInvalidated, "the capture is broken: " + capture.broken};
  auto& tips = capture.tips[stream];
  capture.nodes.push_back({device, std::move(work), tips, nullptr});
  tips = {capture.nodes.size() - 1};
  return {};
}

Problem Queue::begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (!stream) return {cudaErrorStreamCaptureUnsupported, "the default stream cannot be captured"};
  if (stream->capture) return {cudaErrorIllegalState, "the stream is being captured already"};
  stream->capture = std::make_shared<Capture>(Capture{stream, mode, std::this_thread::get_id(), {}, {}, {}});
  stream->capture->tips[stream];
  return {};
}

std::shared_ptr<const Nodes> Queue::end_capture(cudaStream_t stream, Problem& problem) {
  auto capture = stream ? stream->capture : nullptr;
  if (!capture) return problem = {cudaErrorIllegalState, "the stream is not being captured"}, nullptr;
  if (capture->origin != stream)
    return problem = {cudaErrorStreamCaptureUnmatched, "the capture began in another stream"}, nullptr;
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return problem = {cudaErrorStreamCaptureWrongThread, "the capture began in another thread"}, nullptr;
  for (cudaStream_t s : streams_)
    if (s->capture == capture) s->capture = nullptr;
  if (!capture->broken.empty())
    return problem = {cudaErrorStreamCaptureInvalidated, "the capture is broken: " + capture->broken}, nullptr;
  std::set<size_t> joined;
  std::vector<size_t> todo = capture->tips[stream];
  while (!todo.empty()) {
    size_t n = todo.back();
    todo.pop_back();
    if (!joined.insert(n).second) continue;
    todo.insert(todo.end(), capture->nodes[n].after.begin(), capture->nodes[n].after.end());
  }
  for (const auto& [other, tips] : capture->tips)
    for (size_t n : tips)
      if (!joined.contains(n))
        return problem = {cudaErrorStreamCaptureUnjoined, "a stream that joined the capture was not joined back"},
               nullptr;
  return std::make_shared<const Nodes>(std::move(capture->nodes));
}

Problem Queue::refuse_unsafe(const std::string& api, cudaStreamCaptureMode mode_of_thread) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return {};
  Problem problem;
  for (cudaStream_t s : streams_) {
    if (!s->capture) continue;
    const bool mine =
        s->capture->thread == std::this_thread::get_id() && s->capture->mode != cudaStreamCaptureModeRelaxed;
    const bool others =
        s->capture->mode == cudaStreamCaptureModeGlobal && mode_of_thread == cudaStreamCaptureModeGlobal;
    if (mine || others)
      problem =
          break_capture(*s->capture, cudaErrorStreamCaptureUnsupported, api + " while a stream is being captured");
  }
  return problem;
}

Problem Queue::refuse_whole_device(const std::string& api, int device) {
  Problem problem;
  for (cudaStream_t s : streams_)
    if (s->capture && s->device == device)
      problem =
          break_capture(*s->capture, cudaErrorStreamCaptureUnsupported, api + " while a stream is being captured");
  return problem;
}

Problem Queue::refuse_stream(const std::string& api, int device, cudaStream_t stream) {
  auto capture = stream ? stream->capture : blocked_by(device, stream);
  if (!capture) return {};
  return break_capture(*capture, stream ? cudaErrorStreamCaptureUnsupported : cudaErrorStreamCaptureImplicit,
                       api + " of a stream that is being captured");
}

// Of the nodes that may run the one that was captured last: whoever forgot an order shall notice.
Problem Queue::run_graph(const Nodes& nodes) {
  std::vector<bool> done(nodes.size());
  for (size_t ran = 0; ran < nodes.size(); ++ran) {
    size_t next = nodes.size();
    while (next-- > 0) {
      const auto& after = nodes[next].after;
      if (!done[next] && std::all_of(after.begin(), after.end(), [&](size_t n) { return done[n]; })) break;
    }
    if (Problem p = nodes[next].child ? run_graph(*nodes[next].child) : nodes[next].work(); p.error) return p;
    done[next] = true;
  }
  return {};
}

}  // namespace baracuda::emulator
