// The fake's command queues, command buffers and encoders, and how what they hold is done.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "emulator/fakemetal/fake.h"
#include "emulator/faults.h"

using namespace baracuda::emulator;

namespace baracuda::emulator {

struct Signal {
  FakeEvent* event;
  uint64_t value;
};

struct Command {
  std::function<std::string()> run;  // what went wrong, in words
  Signal waits{nil, 0}, signals{nil, 0};
};

struct Order {
  std::vector<Command> commands;
  std::vector<FakeObject*> kept;       // released when the command buffer is done
  std::vector<FakeBuffer*> resources;  // which of those are buffers
  bool running = false, started = false;
};

namespace {

constexpr double kSecondsPerCommand = 1e-3;
// Whoever asks again and again gets an answer in the end.
constexpr int kPatience = 60;

std::vector<FakeCommands*>& committed() {
  static auto* all = new std::vector<FakeCommands*>;
  return *all;
}

void keep(Order& order, FakeObject* object) { order.kept.push_back([object retain]); }

void keep_buffer(Order& order, FakeBuffer* buffer) {
  if (std::find(order.resources.begin(), order.resources.end(), buffer) != order.resources.end()) return;
  order.resources.push_back(buffer);
  keep(order, buffer);
}

// The host may not touch memory that work under way names: it would see it before or after, as chance will have it.
void set_under_way(Order& order, bool now) {
  for (FakeBuffer* b : order.resources) {
    b->under_way += now ? 1 : -1;
    if (b->under_way == int(now)) open_host_view(*b->memory, !now);
  }
}

FakeCommands* signalling(const Signal& wanted) {
  for (FakeCommands* c : committed())
    for (const Command& command : c->order->commands)
      if (command.signals.event == wanted.event && command.signals.value >= wanted.value) return c;
  return nil;
}

std::string satisfy(const Signal& wanted) {
  if (!wanted.event || wanted.event->value >= wanted.value) return {};
  FakeCommands* other = signalling(wanted);
  if (!other) return "DEADLOCK: a wait for an event that no committed command buffer signals";
  if (other->order->running) return "DEADLOCK: command buffers that wait for each other";
  [FakeCommands run:other];
  return wanted.event->value >= wanted.value ? "" : "a wait for an event whose command buffer failed";
}

std::string run_commands(FakeMetal& fake, Order& order) {
  for (const Command& command : order.commands) {
    if (std::string problem = satisfy(command.waits); !problem.empty()) return problem;
    if (command.run)
      if (std::string problem = command.run(); !problem.empty()) return problem;
    fake.now += kSecondsPerCommand;
    if (command.signals.event)
      command.signals.event->value = std::max(command.signals.event->value, command.signals.value);
  }
  return {};
}

void run_one(FakeMetal& fake, FakeCommands* c) {
  Order& order = *c->order;
  order.running = true;
  c->start = fake.now;
  Opened::Several together;
  std::string problem;
  NSInteger code = MTLCommandBufferErrorInternal;
  if (fake.gone)
    problem = "The device was removed", code = MTLCommandBufferErrorDeviceRemoved;
  else if (fake.begin("execution"))
    problem = "a failure that a test asked for";
  else if (fake.problems.size() > fake.told)
    problem = fake.problems[fake.told], fake.told = fake.problems.size();
  else
    problem = run_commands(fake, order);
  c->end = fake.now;
  c->state = problem.empty() ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError;
  if (!problem.empty()) c->failure = [error_of(problem, code) retain];
  order.running = false;
  set_under_way(order, false);
  for (FakeObject* object : order.kept) [object release];
  order.kept.clear(), order.resources.clear(), order.commands.clear();
}

}  // namespace
}  // namespace baracuda::emulator

@implementation FakeQueue
- (id<MTLCommandBuffer>)commandBuffer {
  BCU_FAKE_LOCK;
  if (fake.begin("commandBuffer")) return nil;
  FakeCommands* made = [[[FakeCommands alloc] init] autorelease];
  made->queue = [self retain];
  made->order = new Order;
  return made;
}
@end

// One encoder of either kind.
@interface FakeEncoder : FakeObject <MTLComputeCommandEncoder, MTLBlitCommandEncoder> {
 @public
  FakeCommands* commands;
  FakePipeline* pipeline;
  std::vector<char>* bytes;
  std::vector<FakeBuffer*>* used;  // since the last dispatch: each says what it uses
  NSUInteger index;
  BOOL ended;
}
@end

@implementation FakeCommands
- (FakeEncoder*)encoder:(const char*)selector {
  BCU_FAKE_LOCK;
  if (state != MTLCommandBufferStatusNotEnqueued)
    fake.complain("ENCODED LATE: an encoder of a committed command buffer");
  if (encoder) fake.complain("ENCODER NOT ENDED: a second encoder of a command buffer");
  if (fake.begin(selector)) return nil;
  FakeEncoder* made = [[[FakeEncoder alloc] init] autorelease];
  made->commands = self;
  made->bytes = new std::vector<char>;
  made->used = new std::vector<FakeBuffer*>;
  made->index = NSUIntegerMax;
  encoder = made;
  return made;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [self encoder:"computeCommandEncoder"];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [self encoder:"blitCommandEncoder"];
}
- (void)add:(Signal)waits signals:(Signal)signals {
  BCU_FAKE_LOCK;
  if (encoder) fake.complain("ENCODER NOT ENDED: an event while an encoder is open");
  if (state != MTLCommandBufferStatusNotEnqueued) fake.complain("ENCODED LATE: an event in a committed command buffer");
  for (FakeEvent* event : {waits.event, signals.event})
    if (event) keep(*order, event);
  order->commands.push_back({{}, waits, signals});
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [self add:Signal{nil, 0} signals:Signal{(FakeEvent*)event, value}];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [self add:Signal{(FakeEvent*)event, value} signals:Signal{nil, 0}];
}
- (void)commit {
  BCU_FAKE_LOCK;
  fake.begin("commit");
  if (encoder) fake.complain("ENCODER NOT ENDED: a commit with an open encoder");
  if (state != MTLCommandBufferStatusNotEnqueued) return fake.complain("COMMITTED TWICE: a command buffer");
  state = MTLCommandBufferStatusCommitted;
  set_under_way(*order, true);
  committed().push_back([self retain]);
}
- (void)waitUntilCompleted {
  BCU_FAKE_LOCK;
  fake.begin("waitUntilCompleted");
  if (state == MTLCommandBufferStatusNotEnqueued) {
    fake.complain("WAITED TOO EARLY: for a command buffer that is not committed, without end");
    std::abort();
  }
  [FakeCommands run:self];
}
- (MTLCommandBufferStatus)status {
  BCU_FAKE_LOCK;
  const MTLCommandBufferStatus now = state;
  if (now == MTLCommandBufferStatusCommitted && ++polls >= kPatience) [FakeCommands run:self];
  return now;
}
- (NSError*)error {
  return failure;
}
- (CFTimeInterval)GPUStartTime {
  return start;
}
- (CFTimeInterval)GPUEndTime {
  return end;
}
- (void)finish {
  for (FakeObject* object : order->kept) [object release];
  [queue release];
  [failure release];
  delete order;
}
// All that its queue was given before, and then itself.
+ (void)run:(FakeCommands*)wanted {
  BCU_FAKE_LOCK;
  while (wanted->state == MTLCommandBufferStatusCommitted && !wanted->order->running) {
    auto& all = committed();
    auto next = std::find_if(all.begin(), all.end(), [&](FakeCommands* c) { return c->queue == wanted->queue; });
    FakeCommands* c = *next;
    if (c->order->running) return;
    run_one(fake, c);
    all.erase(std::find(all.begin(), all.end(), c));
    [c release];
  }
}
@end

@implementation FakeEncoder
- (bool)open {
  if (!ended) return true;
  FakeMetal::get().complain("ENCODER ENDED: a command to an encoder that has ended");
  return false;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)given {
  BCU_FAKE_LOCK;
  [self open];
  pipeline = (FakePipeline*)given;
  keep(*commands->order, pipeline);
}
- (void)setBytes:(const void*)data length:(NSUInteger)length atIndex:(NSUInteger)at {
  BCU_FAKE_LOCK;
  [self open];
  if (length == 0 || length > 4096)
    fake.complain("PARAMETERS of " + std::to_string(length) + " bytes, Metal takes 1 to 4096");
  bytes->assign(static_cast<const char*>(data), static_cast<const char*>(data) + length);
  index = at;
}
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  BCU_FAKE_LOCK;
  [self open];
  if (!(usage & MTLResourceUsageWrite)) fake.complain("a buffer that is not declared to be written");
  used->push_back((FakeBuffer*)resource);
  keep_buffer(*commands->order, (FakeBuffer*)resource);
}
- (std::string)misuse:(MTLSize)grid threads:(MTLSize)group {
  if (!pipeline) return "NO PIPELINE: a dispatch before one is set";
  const Kernel& k = *pipeline->kernel;
  const std::string name = name_of(k) + ": ";
  if (index == NSUIntegerMax) return name + "UNBOUND: nothing is bound at index 0";
  if (index != 0) return name + "WRONG INDEX: bytes are bound at " + std::to_string(index) + ", the kernel has 0";
  if (bytes->size() != k.param_bytes)
    return name + "WRONG SIZE: " + std::to_string(bytes->size()) + " bytes are bound, the kernel has " +
           std::to_string(k.param_bytes);
  const NSUInteger threads = group.width * group.height * group.depth;
  if (threads == 0 || threads > k.most_threads || threads > kMaxThreads)
    return name + "TOO MANY THREADS: " + std::to_string(threads) + " in a group, at most " +
           std::to_string(k.most_threads);
  if (pipeline->whole && threads % kWarp != 0) return name + "a group that is no multiple of 32 threads";
  if (k.shared_bytes > 32 << 10)
    return name + "TOO MUCH THREADGROUP MEMORY: " + std::to_string(k.shared_bytes) + " bytes";
  if (grid.width == 0 || grid.height == 0 || grid.depth == 0) return name + "an empty grid";
  return {};
}
- (void)dispatchThreadgroups:(MTLSize)grid threadsPerThreadgroup:(MTLSize)group {
  BCU_FAKE_LOCK;
  fake.begin("dispatchThreadgroups");
  const std::string problem = [self misuse:grid threads:group];
  if (![self open]) return;
  if (!problem.empty()) return fake.complain(problem);
  commands->order->commands.push_back({[kernel = pipeline->kernel, params = *bytes, named = *used, grid, group] {
    std::vector<Allocation*> memory;
    std::vector<Bound> bound;
    for (FakeBuffer* b : named) {
      memory.push_back(b->memory);
      bound.push_back({&b->memory->region, "a buffer of " + std::to_string(b->length) + " bytes"});
    }
    Opened opened(memory);
    need_signal_stack();
    const Blocks blocks{uint32_t(grid.width), uint32_t(grid.height), uint32_t(grid.depth)};
    return run(*kernel, blocks, uint32_t(group.width), params.data(), bound);
  }});
  used->clear();
}
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)from
              toBuffer:(id<MTLBuffer>)target
     destinationOffset:(NSUInteger)to
                  size:(NSUInteger)size {
  BCU_FAKE_LOCK;
  if (![self open]) return;
  if (size == 0 || from + size > [source length] || to + size > [target length])
    return fake.complain("PAST THE END: a copy of " + std::to_string(size) + " bytes");
  for (id<MTLBuffer> b : {source, target}) keep_buffer(*commands->order, (FakeBuffer*)b);
  Allocation *a = ((FakeBuffer*)source)->memory, *b = ((FakeBuffer*)target)->memory;
  commands->order->commands.push_back({[=] {
    Allocation* both[] = {a, b};
    Opened opened(both);
    std::memmove(b->data + to, a->data + from, size);
    return std::string();
  }});
}
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  BCU_FAKE_LOCK;
  if (![self open]) return;
  if (range.length == 0 || range.location + range.length > [buffer length])
    return fake.complain("PAST THE END: a fill of " + std::to_string(range.length) + " bytes");
  keep_buffer(*commands->order, (FakeBuffer*)buffer);
  Allocation* a = ((FakeBuffer*)buffer)->memory;
  commands->order->commands.push_back({[=] {
    Opened opened({&a, 1});
    std::memset(a->data + range.location, value, range.length);
    return std::string();
  }});
}
- (void)endEncoding {
  BCU_FAKE_LOCK;
  if ([self open]) commands->encoder = nil;
  ended = YES;
}
- (void)finish {
  BCU_FAKE_LOCK;
  if (!ended) fake.complain("ENCODER NOT ENDED: it was released before");
  delete bytes;
  delete used;
}
@end
