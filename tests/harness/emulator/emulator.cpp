#include "emulator/emulator.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/fiber.h"

namespace baracuda::emulator {
namespace {

enum class Schedule : uint8_t { Forward, Reverse, Random };
enum class State : uint8_t { Ready, AtBarrier, AtWarp, Done };

struct Thread {
  Position at;
  Fiber* fiber = nullptr;  // null until the thread runs
  State state = State::Ready;
  Site here;
};

struct Warp {
  uint32_t arrived = 0, parity = 0;
  int operation = 0;
  Site here;
  uint64_t values[2][kWarp];  // by parity: a lane may start the next shuffle before all have read this one
};

constexpr int kWarpSync = 100;

// No containers on the paths that bodies call: an instrumented copy of their functions must never run in here.
struct Machine {
  Thread threads[kMaxThreads];
  Warp warps[kMaxThreads / kWarp];
  uint32_t ring[kMaxThreads];  // who can run, first to last
  uint32_t head = 0, tail = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* idle[kMaxThreads + 1];
  uint32_t n_idle = 0;
  Fiber main;
  Thread* current = nullptr;

  const Kernel* kernel = nullptr;
  const void* params = nullptr;
  void* shared = nullptr;
  Blocks grid{};
  uint32_t n = 0, arrived = 0, done = 0;
  bool global_barrier = false;
  Site barrier_here;
  bool inside = false, failed = false;
  char report[2048];

  Schedule schedule = Schedule::Forward;
  uint64_t random = 0;
  uint64_t n_blocks = 0, step = 1, first = 0;  // the order of blocks
  Counts counts{};
};

bool choose(Machine& m, std::string_view name) {
  if (name == "forward") return m.schedule = Schedule::Forward, true;
  if (name == "reverse") return m.schedule = Schedule::Reverse, true;
  if (!name.starts_with("random:")) return false;
  m.schedule = Schedule::Random, m.random = std::strtoull(name.data() + 7, nullptr, 10);
  return true;
}

// Made when first used, never destroyed: launches may run while the process ends.
Machine& machine() {
  static Machine* m = [] {
    auto* fresh = new Machine;
    const char* name = std::getenv("BARACUDA_EMULATOR_SCHEDULE");
    if (name && !choose(*fresh, name)) {
      std::fprintf(stderr, "BARACUDA_EMULATOR_SCHEDULE: no schedule is named %s\n", name);
      std::abort();
    }
    return fresh;
  }();
  return *m;
}
// The same without the check whether it is there.
Machine* the;

uint64_t next_random() {
  uint64_t z = (the->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void push(uint32_t tid) { the->ring[the->tail++ % kMaxThreads] = tid; }

Thread* pop() {
  if (the->head == the->tail) return nullptr;
  uint32_t& front = the->ring[the->head % kMaxThreads];
  if (the->schedule == Schedule::Random)
    std::swap(front, the->ring[(the->head + next_random() % (the->tail - the->head)) % kMaxThreads]);
  ++the->head;
  return &the->threads[front];
}

// All threads of [first, first + n) but the running one can go on.
void release(uint32_t first, uint32_t n) {
  uint32_t self = the->current->at.tid;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t tid = the->schedule == Schedule::Reverse ? first + n - 1 - i : first + i;
    if (tid == self) continue;
    the->threads[tid].state = State::Ready;
    push(tid);
  }
}

void make_current(Thread* t) {
  the->current = t;
  watch.thread = t->at.tid;
}

bool same(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

[[noreturn]] void report_stuck() {
  char waiting[900] = "";
  size_t used = 0;
  const Site* last = nullptr;
  for (uint32_t i = 0; i < the->n && used + 300 < sizeof waiting; ++i) {
    const Thread& t = the->threads[i];
    if ((t.state != State::AtBarrier && t.state != State::AtWarp) || (last && same(*last, t.here))) continue;
    used += size_t(std::snprintf(waiting + used, sizeof waiting - used, "; thread %u waits at a %s at %.200s:%u", i,
                                 t.state == State::AtBarrier ? "barrier" : "warp operation", t.here.file_name(),
                                 t.here.line()));
    last = &t.here;
  }
  const uint32_t* bid = the->current->at.bid;
  fail("DIVERGENT SYNC in block (%u, %u, %u): %u of %u threads have returned, %u are at a block barrier%s", bid[0],
       bid[1], bid[2], the->done, the->n, the->arrived, waiting);
}

void fiber_main(Fiber& self);

Fiber* take_fiber() {
  if (the->n_idle) return the->idle[--the->n_idle];
  the->fibers.push_back(std::make_unique<Fiber>());
  create(*the->fibers.back(), &fiber_main);
  return the->fibers.back().get();
}

void go_to(Fiber& from, Thread* t) {
  if (!t->fiber) t->fiber = take_fiber();
  make_current(t);
  ++the->counts.switches;
  switch_fiber(from, *t->fiber);
}

// The running thread waits; returns when it may go on.
void run_others() {
  Thread* self = the->current;
  Thread* next = pop();
  if (!next) report_stuck();
  if (next != self) go_to(*self->fiber, next);
}

// A fiber runs threads one after another for as long as they do not wait, so that bodies without barriers never switch.
void fiber_main(Fiber& self) {
  for (;;) {
    Thread* t = the->current;
    the->kernel->run(t->at, the->shared, the->params);
    t->state = State::Done;
    ++the->done;
    Thread* next = pop();
    if (!next && the->done != the->n) report_stuck();
    t->fiber = nullptr;
    if (next && !next->fiber) {
      next->fiber = &self;
      make_current(next);
      continue;
    }
    the->idle[the->n_idle++] = &self;
    if (next)
      go_to(self, next);
    else
      switch_fiber(self, the->main);
  }
}

void arrive_at_warp(Warp& warp, Thread* self, int operation, const Site& here) {
  ++the->counts.warp_operations;
  self->here = here;
  if (warp.arrived == 0) {
    warp.operation = operation, warp.here = here;
  } else if (warp.operation != operation || !same(warp.here, here)) {
    fail("WARP MISMATCH: thread %u is at %s:%u while other lanes of its warp are at %s:%u", self->at.tid,
         here.file_name(), here.line(), warp.here.file_name(), warp.here.line());
  }
}

// Waits until all lanes have come.
void meet_at_warp(Warp& warp, Thread* self) {
  if (++warp.arrived < kWarp) {
    self->state = State::AtWarp;
    return run_others();
  }
  warp.arrived = 0, warp.parity ^= 1;
  release(self->at.tid / kWarp * kWarp, kWarp);
}

// Blocks in the schedule's order. A step without a common divisor visits every block once.
void order_blocks() {
  the->n_blocks = uint64_t{the->grid.x} * the->grid.y * the->grid.z;
  the->first = 0, the->step = 1;
  if (the->schedule == Schedule::Reverse) the->first = the->n_blocks - 1, the->step = the->n_blocks - 1;
  if (the->schedule == Schedule::Random && the->n_blocks > 1) {
    the->first = next_random() % the->n_blocks;
    do the->step = next_random() % (the->n_blocks < 0x7fffffff ? the->n_blocks : 0x7fffffff);
    while (std::gcd(the->step, the->n_blocks) != 1);
  }
}

Blocks block_at(uint64_t nth) {
  auto linear = uint64_t((static_cast<unsigned __int128>(nth) * the->step + the->first) % the->n_blocks);
  return {uint32_t(linear % the->grid.x), uint32_t(linear / the->grid.x % the->grid.y),
          uint32_t(linear / the->grid.x / the->grid.y)};
}

void run_block(Blocks bid) {
  the->arrived = the->done = the->head = the->tail = 0;
  std::memset(the->shared, 0xff, the->kernel->shared_bytes);  // NaN
  for (uint32_t w = 0; w < the->n / kWarp; ++w) the->warps[w].arrived = 0;
  for (uint32_t tid = 0; tid < the->n; ++tid) {
    Thread& t = the->threads[tid];
    t.at = {tid, the->n, {bid.x, bid.y, bid.z}, {the->grid.x, the->grid.y, the->grid.z}};
    t.fiber = nullptr, t.state = State::Ready;
  }
  for (uint32_t i = 0; i < the->n; ++i) push(the->schedule == Schedule::Reverse ? the->n - 1 - i : i);
  begin_block();
  the->inside = true;
  go_to(the->main, pop());
  the->inside = false, watch.on = false;
  the->counts.threads += the->n;
}

// Every fiber stopped somewhere inside a body.
void abandon_fibers() {
  the->n_idle = 0;
  for (auto& fiber : the->fibers) {
    restart(*fiber);
    the->idle[the->n_idle++] = fiber.get();
  }
}

}  // namespace

// Adds the names of kernels that run to the file that BARACUDA_EMULATOR_LOG names, once per process.
static void log_name(const Kernel& kernel) {
  static const char* path = std::getenv("BARACUDA_EMULATOR_LOG");
  static std::vector<const Kernel*>* seen = new std::vector<const Kernel*>;
  if (!path || std::find(seen->begin(), seen->end(), &kernel) != seen->end()) return;
  seen->push_back(&kernel);
  if (FILE* file = std::fopen(path, "a")) std::fprintf(file, "%s\n", name_of(kernel).c_str()), std::fclose(file);
}

std::string run(const Kernel& kernel, Blocks grid, uint32_t threads, const void* params, std::span<Bound> bound) {
  log_name(kernel);
  the = &machine();
  the->kernel = &kernel, the->grid = grid, the->n = threads, the->failed = false;
  order_blocks();
  // Copies of exactly the size that the kernel was told, so that AddressSanitizer sees what goes beyond.
  std::unique_ptr<void, decltype(&std::free)> copy(std::malloc(kernel.param_bytes), &std::free),
      shared(std::aligned_alloc(16, (kernel.shared_bytes + 15) / 16 * 16), &std::free);
  std::memcpy(copy.get(), params, kernel.param_bytes);
  the->params = copy.get(), the->shared = shared.get();
  auto* begin = static_cast<char*>(the->shared);
  Region region{begin, begin + kernel.shared_bytes, nullptr, 0, true};
  begin_launch(&region, the->params, kernel.param_bytes, bound, reinterpret_cast<const void*>(kernel.run));
  for (uint64_t nth = 0; nth < the->n_blocks && !the->failed; ++nth) run_block(block_at(nth));
  end_launch();
  forget(region);
  if (!the->failed) return {};
  abandon_fibers();
  return name_of(kernel) + ": " + the->report;
}

std::string name_of(const Kernel& kernel) {
  std::string_view name = kernel.name;
  constexpr std::string_view kMark = "Body = ";
  size_t at = name.find(kMark);
  if (at == name.npos) return std::string(name);
  name.remove_prefix(at + kMark.size());
  // GCC lists further aliases after the template's own parameter.
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += (name[i] == '<') - (name[i] == '>');
    if (depth == 0 && (name[i] == ';' || name[i] == ']')) return std::string(name.substr(0, i));
  }
  return std::string(name);
}

bool running() { return the && the->inside; }

bool in_body(const void* frame) {
  if (!running()) return false;
  // Another OS thread may be switching fibers right now.
  const Thread* current = __atomic_load_n(&the->current, __ATOMIC_RELAXED);
  const Fiber* fiber = current ? __atomic_load_n(&current->fiber, __ATOMIC_RELAXED) : nullptr;
  auto* at = static_cast<const char*>(frame);
  return fiber && at >= fiber->stack && at < fiber->stack + fiber->stack_bytes;
}

Position position() { return the->current->at; }

bool set_schedule(const char* name) { return choose(machine(), name); }

Counts take_counts() { return std::exchange(machine().counts, {}); }

void barrier(bool global, const Site& here) {
  Thread* self = the->current;
  ++the->counts.barriers;
  if (the->arrived == 0)
    the->barrier_here = here, the->global_barrier = global;
  else if (!same(the->barrier_here, here))
    fail("BARRIER MISMATCH: thread %u is at %s:%u while others are at %s:%u", self->at.tid, here.file_name(),
         here.line(), the->barrier_here.file_name(), the->barrier_here.line());
  self->here = here;
  if (++the->arrived < the->n) {
    self->state = State::AtBarrier;
    return run_others();
  }
  the->arrived = 0;
  pass_barrier(global);
  release(0, the->n);
}

void warp_sync(const Site& here) {
  Thread* self = the->current;
  uint32_t index = self->at.tid / kWarp;
  Warp& warp = the->warps[index];
  arrive_at_warp(warp, self, kWarpSync, here);
  if (warp.arrived + 1 == kWarp) pass_warp_sync(index);
  meet_at_warp(warp, self);
}

uint64_t shuffle(uint64_t value, uint32_t argument, Shuffle kind, const Site& here) {
  Thread* self = the->current;
  Warp& warp = the->warps[self->at.tid / kWarp];
  uint32_t lane = self->at.tid % kWarp, parity = warp.parity;
  arrive_at_warp(warp, self, int(kind), here);
  warp.values[parity][lane] = value;
  meet_at_warp(warp, self);
  uint32_t source = lane;
  if (kind == Shuffle::From) source = argument;
  if (kind == Shuffle::Xor) source = lane ^ argument;
  if (kind == Shuffle::Down) source = lane + argument;
  if (kind == Shuffle::Up) source = lane - argument;
  // Past the ends: CUDA gives the lane's own value, Metal anything. Bits that no result can hide behind.
  return source < kWarp ? warp.values[parity][source] : ~uint64_t{0};
}

void* shared_memory() { return the->shared; }

uint32_t atomic_add(uint32_t* counter, uint32_t v) {
  if (watch.on) access(counter, 4, AccessKind::Atomic, __builtin_return_address(0));
  return std::exchange(*counter, *counter + v);
}

uint32_t atomic_exchange(uint32_t* word, uint32_t v) {
  if (watch.on) access(word, 4, AccessKind::Atomic, __builtin_return_address(0));
  return std::exchange(*word, v);
}

void atomic_add(float* sum, float v) {
  if (watch.on) access(sum, 4, AccessKind::Atomic, __builtin_return_address(0));
  *sum += v;
}

void fail(const char* format, ...) {
  watch.on = false;
  if (!the->failed) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(the->report, sizeof the->report, format, arguments);
    va_end(arguments);
  }
  the->failed = true;
  switch_fiber(*the->current->fiber, the->main);
  std::abort();
}

Blocks block_of(uint32_t nth) { return block_at(nth); }

bool on_own_stack(const void* p) {
  const Fiber& f = *the->current->fiber;
  auto* c = static_cast<const char*>(p);
  return c >= f.stack && c < f.stack + f.stack_bytes;
}

bool below_own_stack(const void* p) {
  const Fiber& f = *the->current->fiber;
  auto* c = static_cast<const char*>(p);
  return c < f.stack && c >= f.stack - kGuardBytes;
}

}  // namespace baracuda::emulator
