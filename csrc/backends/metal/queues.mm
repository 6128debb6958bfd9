// Streams and events by command queues and shared events.
#include "backends/metal/runtime.h"

namespace baracuda::metal {
namespace {

// As many as make the cost of committing small; the GPU starts with the first when the batch is full.
constexpr int kBatch = 64;

bool ordered(const Gpu& g, const Stream& a, const Stream& b) {
  return &a != &b && a.blocking && b.blocking && (&a == &g.main || &b == &g.main);
}

template <class Function>
void each_stream(Gpu& g, Function&& f) {
  f(g.main);
  for (Stream* s : g.streams) f(*s);
}

void end_encoder(Stream& s) {
  if (!s.encoder) return;
  [s.encoder.get() endEncoding];
  s.encoder.drop();
}

// What the stream is given next comes after what streams that it is ordered with were given by now.
void split_batches(Gpu& g, Stream& s) {
  bool later = !s.open;
  each_stream(g, [&](Stream& o) {
    if (!ordered(g, s, o)) return;
    if (o.open) commit(g, o);
    later |= o.serial > s.serial;
  });
  if (later && s.open) commit(g, s);
}

void signal(Stream& s, id<MTLSharedEvent> event, uint64_t value) {
  [s.open.get() encodeSignalEvent:event value:value];
  s.signals.push_back({Own<id<MTLSharedEvent>>::kept(event), value});
}

// Who waits for what a failed command buffer would have signalled goes on: the failure is told, and no GPU hangs.
void note_end(Gpu& g, Submitted& done) {
  if ([done.buffer.get() status] != MTLCommandBufferStatusError) return;
  for (Signal& s : done.signals)
    if ([s.event.get() signaledValue] < s.value) [s.event.get() setSignaledValue:s.value];
  if (!g.told.empty()) return;
  NSError* error = [done.buffer.get() error];
  char code[96];
  std::snprintf(code, sizeof code, " (%.60s %ld)", error ? [[error domain] UTF8String] : "no error given",
                error ? long([error code]) : 0l);
  g.told = std::string(error ? [[error localizedDescription] UTF8String] : "a command buffer failed") + code;
}

bool ended(id<MTLCommandBuffer> buffer) {
  const MTLCommandBufferStatus status = [buffer status];
  return status == MTLCommandBufferStatusCompleted || status == MTLCommandBufferStatusError;
}

}  // namespace

Stream& stream_of(Gpu& g, void* stream) { return stream ? *static_cast<Stream*>(stream) : g.main; }

id<MTLCommandBuffer> open_buffer(Gpu& g, Stream& s) {
  split_batches(g, s);
  end_encoder(s);
  if (s.open) return s.open.get();
  s.open = Own<id<MTLCommandBuffer>>::kept([s.queue.get() commandBuffer]);
  if (!s.open) return failed("starting work: the queue has no command buffer"), nil;
  s.serial = ++g.serials, s.dispatches = 0;
  each_stream(g, [&](Stream& o) {
    if (ordered(g, s, o) && !o.under_way.empty())
      [s.open.get() encodeWaitForEvent:o.order.get() value:o.under_way.back().serial];
  });
  return s.open.get();
}

id<MTLComputeCommandEncoder> compute_encoder(Gpu& g, Stream& s) {
  split_batches(g, s);
  if (s.encoder) return s.encoder.get();
  id<MTLCommandBuffer> buffer = open_buffer(g, s);
  if (!buffer) return nil;
  s.encoder = Own<id<MTLComputeCommandEncoder>>::kept([buffer computeCommandEncoder]);
  if (!s.encoder) failed("starting work: the command buffer has no compute encoder");
  return s.encoder.get();
}

void commit(Gpu&, Stream& s) {
  end_encoder(s);
  if (!s.open) return;
  if (s.order) signal(s, s.order.get(), s.serial);
  [s.open.get() commit];
  ++s.pieces;
  s.under_way.push_back({std::move(s.open), s.serial, std::exchange(s.signals, {})});
}

void dispatched(Gpu& g, Stream& s) {
  if (++s.dispatches >= kBatch && !s.whole) commit(g, s);
}

uint64_t reap(Gpu& g) {
  uint64_t oldest = g.serials + 1;
  each_stream(g, [&](Stream& s) {
    while (!s.under_way.empty() && ended(s.under_way.front().buffer.get())) {
      note_end(g, s.under_way.front());
      s.under_way.pop_front();
    }
    if (!s.under_way.empty())
      oldest = std::min(oldest, s.under_way.front().serial);
    else if (s.open)
      oldest = std::min(oldest, s.serial);
  });
  std::erase_if(g.streams, [](Stream* s) {
    const bool gone = s->leaving && s->under_way.empty();
    if (gone) delete s;
    return gone;
  });
  return oldest;
}

void wait_for(Gpu& g, Lock& lock, id<MTLCommandBuffer> buffer) {
  const auto kept = Own<id<MTLCommandBuffer>>::kept(buffer);
  lock.unlock();
  [buffer waitUntilCompleted];
  lock.lock();
  reap(g);
}

void wait_until(Gpu& g, Lock& lock, uint64_t serial) {
  while (reap(g) <= serial) {
    id<MTLCommandBuffer> next = nil;
    each_stream(g, [&](Stream& s) {
      if (s.open && s.serial <= serial) commit(g, s);
      if (!s.under_way.empty() && s.under_way.front().serial <= serial) next = s.under_way.front().buffer.get();
    });
    if (next) wait_for(g, lock, next);
  }
}

void settle(Gpu& g, Lock& lock, Stream& s) {
  commit(g, s);
  if (!s.under_way.empty()) wait_for(g, lock, s.under_way.back().buffer.get());
}

void settle_all(Gpu& g, Lock& lock) { wait_until(g, lock, g.serials); }

Status told(Gpu& g) {
  if (g.told.empty()) return Status::Ok;
  const Status status = failed("the device's work failed: %s", g.told.c_str());
  g.told.clear();
  return status;
}

namespace {

#define BCU_METAL_EVENT(event) (*static_cast<Event*>(event))

Status create_stream(int32_t, bool blocking, void** out) {
  BCU_METAL_ENTER {
    Own<id<MTLCommandQueue>> queue([g.device.get() newCommandQueue]);
    if (!queue) return failed("creating a stream: the device has no further command queue");
    Own<id<MTLSharedEvent>> order, main_order;
    if (blocking) {
      order = Own<id<MTLSharedEvent>>([g.device.get() newSharedEvent]);
      if (!order) return failed("creating a stream: the device has no further event");
    }
    if (blocking && !g.main.order) {
      // What the default stream was given before does not signal that it is done.
      g.main.order = Own<id<MTLSharedEvent>>([g.device.get() newSharedEvent]);
      if (!g.main.order) return failed("creating a stream: the device has no further event");
      settle(g, lock, g.main);
    }
    auto* s = new Stream;
    s->queue = std::move(queue), s->order = std::move(order), s->blocking = blocking;
    g.streams.push_back(s);
    *out = s;
    return Status::Ok;
  }
}

Status destroy_stream(int32_t, void* stream) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    commit(g, s);
    s.leaving = true;
    reap(g);
    return Status::Ok;
  }
}

Status stream_done(int32_t, void* stream, bool* done) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    commit(g, s);
    reap(g);
    *done = s.under_way.empty();
    return Status::Ok;
  }
}

Status wait(int32_t, void* stream, void* event) {
  BCU_METAL_ENTER {
    Event& e = BCU_METAL_EVENT(event);
    if (e.value == 0 || ended(e.recorded.get())) return Status::Ok;
    id<MTLCommandBuffer> buffer = open_buffer(g, stream_of(g, stream));
    if (!buffer) return Status::Launch;
    [buffer encodeWaitForEvent:e.event.get() value:e.value];
    return Status::Ok;
  }
}

Status create_event(int32_t, bool timing, void** out) {
  BCU_METAL_ENTER {
    Own<id<MTLSharedEvent>> made([g.device.get() newSharedEvent]);
    if (!made) return failed("creating an event: the device has no further event");
    auto* e = new Event;
    e->event = std::move(made), e->timing = timing;
    *out = e;
    return Status::Ok;
  }
}

Status destroy_event(int32_t, void* event) {
  BCU_METAL_ENTER {
    delete &BCU_METAL_EVENT(event);  // command buffers that name it keep it
    return Status::Ok;
  }
}

Status record(int32_t, void* event, void* stream) {
  BCU_METAL_ENTER {
    Event& e = BCU_METAL_EVENT(event);
    Stream& s = stream_of(g, stream);
    id<MTLCommandBuffer> buffer = open_buffer(g, s);
    if (!buffer) return Status::Launch;
    signal(s, e.event.get(), ++e.value);
    e.recorded = Own<id<MTLCommandBuffer>>::kept(buffer);
    commit(g, s);
    return Status::Ok;
  }
}

Status event_done(int32_t, void* event, bool* done) {
  BCU_METAL_ENTER {
    Event& e = BCU_METAL_EVENT(event);
    *done = e.value == 0 || ended(e.recorded.get());
    reap(g);
    return Status::Ok;
  }
}

Status synchronize_event(int32_t, void* event) {
  BCU_METAL_ENTER {
    Event& e = BCU_METAL_EVENT(event);
    if (e.value) wait_for(g, lock, e.recorded.get());
    return told(g);
  }
}

Status elapsed(int32_t, void* start, void* end, float* milliseconds) {
  BCU_METAL_ENTER {
    const Event &from = BCU_METAL_EVENT(start), &to = BCU_METAL_EVENT(end);
    if (!from.timing || !to.timing || !from.value || !to.value)
      return failed("reading the time between events: want two events made with timing and recorded");
    if (!ended(from.recorded.get()) || !ended(to.recorded.get()))
      return failed("reading the time between events: wait for both first");
    *milliseconds = float(([to.recorded.get() GPUEndTime] - [from.recorded.get() GPUEndTime]) * 1e3);
    return Status::Ok;
  }
}

Status begin_run(int32_t, void* stream) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    if (s.whole) return failed("another run in this stream has not ended");
    commit(g, s);
    s.whole = true, s.pieces = 0;
    return Status::Ok;
  }
}

Status end_run(int32_t, void* stream, int32_t* pieces) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    s.whole = false;
    commit(g, s);
    *pieces = s.pieces;
    return Status::Ok;
  }
}

Status queue_of(int32_t, void* stream, void** queue) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    commit(g, s);
    *queue = s.queue.get();
    return Status::Ok;
  }
}

// Metal has no captures; what asks for one is refused before it comes here.
Status capturing(int32_t, void* stream, bool* out) {
  BCU_METAL_ENTER {
    *out = false;
    const auto ours = [&](Stream* s) { return s == stream && !s->leaving; };
    if (!stream || std::any_of(g.streams.begin(), g.streams.end(), ours)) return Status::Ok;
    return failed("%p is no stream of baracuda's: bcu_stream_create makes them", stream);
  }
}
Status no_graphs() { return failed("graphs: Metal has none"); }
Status begin_capture(int32_t, void*) { return no_graphs(); }
Status end_capture(int32_t, void*, void**, int64_t*) { return no_graphs(); }
Status launch_graph(int32_t, void*, void*) { return no_graphs(); }
Status destroy_graph(int32_t, void*) { return no_graphs(); }

}  // namespace

constinit const DeviceQueues kQueues = {.create_stream = &create_stream,
                                        .destroy_stream = &destroy_stream,
                                        .stream_done = &stream_done,
                                        .wait = &wait,
                                        .create_event = &create_event,
                                        .destroy_event = &destroy_event,
                                        .record = &record,
                                        .event_done = &event_done,
                                        .synchronize_event = &synchronize_event,
                                        .elapsed = &elapsed,
                                        .capturing = &capturing,
                                        .begin_capture = &begin_capture,
                                        .end_capture = &end_capture,
                                        .launch_graph = &launch_graph,
                                        .destroy_graph = &destroy_graph,
                                        .begin_run = &begin_run,
                                        .end_run = &end_run,
                                        .queue_of = &queue_of};

}  // namespace baracuda::metal
