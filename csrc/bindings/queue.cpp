#include "bindings/queue.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "bindings/error.h"

namespace py = pybind11;

namespace baracuda::bindings {

std::atomic<int> open_captures{0};

namespace {

struct OpenCapture {
  Place place;
  void* stream;
  std::thread::id thread;
};
struct OpenCaptures {
  std::mutex mutex;
  std::vector<OpenCapture> all;
};
OpenCaptures& captures() {
  static OpenCaptures* all = new OpenCaptures;  // asked while the process ends, too
  return *all;
}

template <class Which>
bool any_capture(Which&& which) {
  if (!open_captures.load(std::memory_order_relaxed)) return false;
  OpenCaptures& open = captures();
  std::lock_guard lock(open.mutex);
  return std::any_of(open.all.begin(), open.all.end(), which);
}

bool is_mine(const OpenCapture& c) { return c.thread == std::this_thread::get_id(); }
// What CUDA calls unsafe is forbidden to a thread that captures on any device.
bool thread_captures() { return any_capture(&is_mine); }
bool thread_captures_on(Place place) {
  return any_capture([&](const OpenCapture& c) { return is_mine(c) && c.place == place; });
}
bool is_captured_on(Place place) {
  return any_capture([&](const OpenCapture& c) { return c.place == place; });
}

// Whether a stream is being captured, by whomever.
bool is_captured(const DeviceModule& module, Place place, void* stream) {
  bool now = false;
  if (stream && place.backend == Backend::Cuda)
    call(module, place, [&] { return module.queues->capturing(place.device, stream, &now); });
  return now;
}

[[noreturn]] void refuse(Refusal refusal) {
  raise_refusal(std::move(refusal), Py_None);
  throw py::error_already_set();
}

constexpr const char* kBefore =
    "do it before the capture begins or after it ended: a graph holds launches and copies on devices";

}  // namespace

void refuse_in_capture(Place place, const char* got, const char* want) {
  if (thread_captures())
    refuse({Code::Capture, device_name(place.backend, place.device),
            got + std::string(" while this thread captures a stream"), want, kBefore});
}

void refuse_in_capture(Place place, void* stream, bool waits, const char* got) {
  const std::string where = device_name(place.backend, place.device), what = got;
  if (!stream && thread_captures_on(place))
    refuse({Code::Capture, where, what + " in the default stream while this thread captures another one",
            "the stream that is being captured", waits ? kBefore : "pass stream="});
  if (!waits) return;
  refuse_in_capture(place, got, "another time");
  if (is_captured(module_of(place), place, stream))
    refuse({Code::Capture, where, what + " in a stream that is being captured", "a stream that runs its work now",
            kBefore});
}

void refuse_wait_in_capture(Place place, void* stream) {
  if (stream ? is_captured(module_of(place), place, stream) : is_captured_on(place))
    refuse({Code::Capture, device_name(place.backend, place.device),
            stream ? "a wait for a stream that is being captured"
                   : "a wait for a device with a stream that is being captured",
            "a stream that runs its work now", "end the capture first"});
  refuse_in_capture(place, "a wait", "another time");
}

bool refused_launch(const PlanCore& plan, void* stream, PyObject* caller) {
  const Place place = {plan.row.backend, plan.question.device};
  try {
    const bool capturing = !(plan.row.flags & kCaptureSafe) && is_captured(module_of(place), place, stream);
    Refusal why;
    if (!refuse_in_capture(plan.row, capturing, !stream && thread_captures_on(place), why)) return false;
    raise_refusal(std::move(why), caller);
  } catch (py::error_already_set& e) {
    e.restore();
  }
  return true;
}

namespace {

// --- events ---------------------------------------------------------------------------------------------------------

class Event {
 public:
  Event(int backend, int device, bool timing) : place_(place_of(backend, device)), timing_(timing) {
    const DeviceModule& module = module_of(place_);
    call(module, place_, [&] { return module.queues->create_event(device, timing, &handle_); });
  }
  ~Event() {
    std::string reason;
    const DeviceModule* module = handle_ ? device_module(place_.backend, reason) : nullptr;
    if (!module) return;
    py::gil_scoped_release release;
    module->queues->destroy_event(place_.device, handle_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(py::handle stream) {
    const DeviceModule& module = module_of(place_);
    void* queue = stream_on(place_, stream);
    refuse_in_capture(place_, queue, false, "a record");
    call(module, place_, [&] { return module.queues->record(place_.device, handle_, queue); });
    captured_ = is_captured(module, place_, queue);
    recorded_ = true;
  }

  // The stream may be one of another device.
  void wait(py::handle stream) const {
    Place place = place_;
    void* queue = nullptr;
    if (!own_stream(stream.ptr(), &place, &queue)) queue = stream_on(place_, stream);
    refuse_in_capture(place, queue, false, "a wait");
    if (place.backend != place_.backend)
      refuse({Code::Event, "stream", "a stream of " + device_name(place.backend, place.device),
              std::string("one of ") + name(place_.backend), "wait for the event's device with synchronize"});
    const DeviceModule& module = module_of(place);
    if (!captured_ && recorded_ && is_captured(module, place, queue))
      refuse({Code::Capture, "event", "an event from outside of the capture", "one that is recorded inside",
              "wait for it before the capture begins, or in the stream that launches the graph"});
    call(module, place, [&] { return module.queues->wait(place.device, queue, handle_); });
  }

  bool query() const {
    const DeviceModule& module = ask();
    bool done = false;
    call(module, place_, [&] { return module.queues->event_done(place_.device, handle_, &done); });
    return done;
  }

  void synchronize() const {
    const DeviceModule& module = ask();
    call(module, place_, [&] { return module.queues->synchronize_event(place_.device, handle_); });
  }

  double elapsed(const Event& end) const {
    const std::pair<const char*, const Event*> both[] = {{"start", this}, {"end", &end}};
    for (auto [which, event] : both) {
      if (!event->timing_)
        refuse({Code::Event, which, "an event without timing", "one that notes the time", "make it with timing=True"});
      if (!event->recorded_)
        refuse({Code::Event, which, "an event that was never recorded", "one that was", "call record first"});
      if (!event->query())
        refuse({Code::Event, which, "an event that has not happened yet", "one that has", "call synchronize first"});
    }
    if (end.place_ != place_)
      refuse({Code::Event, "end", "an event of " + device_name(end.place_.backend, end.place_.device),
              "one of " + device_name(place_.backend, place_.device), "devices have clocks of their own"});
    const DeviceModule& module = module_of(place_);
    float milliseconds = 0;
    call(module, place_, [&] { return module.queues->elapsed(place_.device, handle_, end.handle_, &milliseconds); });
    return milliseconds;
  }

  py::tuple place() const { return py::make_tuple(static_cast<int>(place_.backend), place_.device); }
  uintptr_t handle() const { return reinterpret_cast<uintptr_t>(handle_); }

 private:
  // For a question: asking an event of a capture would break the capture.
  const DeviceModule& ask() const {
    if (captured_)
      refuse({Code::Capture, "event", "an event that was recorded in a capture", "one that was recorded outside",
              "it orders the graph's work, and nobody can ask it: record another one behind the graph's launch"});
    refuse_in_capture(place_, "a question to an event", "another time");
    return module_of(place_);
  }

  Place place_;
  bool timing_;
  std::atomic<bool> recorded_{false}, captured_{false};
  void* handle_ = nullptr;
};

// --- graphs ---------------------------------------------------------------------------------------------------------

class Graph {
 public:
  // Begins the capture of a stream.
  Graph(int backend, int device, uintptr_t stream)
      : place_(place_of(backend, device)), stream_(handle_of(stream)), thread_(std::this_thread::get_id()) {
    const DeviceModule& module = module_of(place_);
    if (is_captured(module, place_, stream_))
      refuse({Code::Capture, "stream", "a stream that is being captured", "one that is not", "end that capture first"});
    call(module, place_, [&] { return module.queues->begin_capture(place_.device, stream_); });
    open_ = true;
    std::lock_guard lock(captures().mutex);
    captures().all.push_back({place_, stream_, thread_});
    ++open_captures;
  }
  ~Graph() {
    std::string reason;
    const DeviceModule* module = device_module(place_.backend, reason);
    py::gil_scoped_release release;
    if (open_) end(*module, nullptr);
    if (graph_) module->queues->destroy_graph(place_.device, graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Ends the capture; the work is kept, or forgotten.
  void finish(bool keep) {
    if (thread_ != std::this_thread::get_id())
      refuse({Code::Capture, "stream", "the end of a capture in another thread", "the thread that began it",
              "begin and end a capture in one thread"});
    if (!open_) return;
    const DeviceModule& module = module_of(place_);
    Status status;
    {
      py::gil_scoped_release release;
      status = end(module, keep ? &graph_ : nullptr);
    }
    if (keep && status != Status::Ok) throw_status(module, status, place_);
  }

  void launch(py::handle stream) const {
    void* queue = stream_on(place_, stream);
    if (!graph_)
      refuse({Code::Capture, "graph", open_ ? "a capture that has not ended" : "a capture that failed",
              "a captured graph", "launch it after the with statement"});
    refuse_in_capture(place_, queue, false, "a launch of a graph");
    const DeviceModule& module = module_of(place_);
    call(module, place_, [&] { return module.queues->launch_graph(place_.device, graph_, queue); });
  }

  int64_t nodes() const { return nodes_; }
  py::tuple place() const { return py::make_tuple(static_cast<int>(place_.backend), place_.device); }

 private:
  Status end(const DeviceModule& module, void** graph) {
    open_ = false;
    {
      std::lock_guard lock(captures().mutex);
      auto& all = captures().all;
      all.erase(std::find_if(all.begin(), all.end(),
                             [&](const OpenCapture& c) { return c.place == place_ && c.stream == stream_; }));
      --open_captures;
    }
    return module.queues->end_capture(place_.device, stream_, graph, &nodes_);
  }

  Place place_;
  void* stream_;
  std::thread::id thread_;
  bool open_ = false;
  void* graph_ = nullptr;
  int64_t nodes_ = 0;
};

bool stream_done(int backend, int device, uintptr_t stream) {
  Place place = place_of(backend, device);
  const DeviceModule& module = module_of(place);
  refuse_wait_in_capture(place, handle_of(stream));
  bool done = false;
  call(module, place, [&] { return module.queues->stream_done(device, handle_of(stream), &done); });
  return done;
}

}  // namespace

bool queue_setup(PyObject* module) {
  py::module_ m = py::reinterpret_borrow<py::module_>(module);
  m.def("stream_done", &stream_done);
  py::class_<Event>(m, "EventBase")
      .def(py::init<int, int, bool>())
      .def("_record", &Event::record)
      .def("_wait", &Event::wait)
      .def("_query", &Event::query)
      .def("_synchronize", &Event::synchronize)
      .def("_elapsed", &Event::elapsed)
      .def_property_readonly("handle", &Event::handle)
      .def_property_readonly("_place", &Event::place);
  py::class_<Graph>(m, "GraphBase")
      .def(py::init<int, int, uintptr_t>())
      .def("_finish", &Graph::finish)
      .def("_launch", &Graph::launch)
      .def_property_readonly("nodes", &Graph::nodes)
      .def_property_readonly("_place", &Graph::place);
  return true;
}

}  // namespace baracuda::bindings
