// The fake CUDA runtime's own behaviour: what it refuses, what it waits for and what it counts.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "emulator/fakecuda/runtime.h"
#include "harness.h"

namespace baracuda::probe {
namespace {

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::printf("%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                  cudaGetErrorString(cudaPeekAtLastError()));                             \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

bool says(const char* part) { return std::strstr(cudaGetErrorString(cudaGetLastError()), part) != nullptr; }

struct Fill {
  struct Params {
    float* y;
    float v;
    int32_t n;
  };
  enum : int { kThreads = 64, kShared = 0 };
  BCU_DEVICE void run(const simt::Context& ctx, float*, const Params& p) {
    int32_t at = int32_t(ctx.bid_x() * ctx.bdim() + ctx.tid());
    if (at < p.n) p.y[at] = p.v;
  }
};

Status fill(const Buffer& y, float v, int32_t n = 64, void* stream = nullptr, int32_t device = 0) {
  Call call({y.view()}, device, stream);
  return simt::submit<Fill>(call.launch(), {2}, 64, {y.data(), v, n});
}

void nothing_runs_before_a_wait() {
  Buffer y(64);
  CHECK(fill(y, 3.f) == Status::Ok);
  float host[64] = {};
  CHECK(cudaMemcpyAsync(host, y.data(), sizeof host, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  CHECK(host[0] == 0.f && host[63] == 0.f);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(host[0] == 3.f && host[63] == 3.f);
}

void streams_keep_only_their_own_order() {
  cudaStream_t blocking = nullptr, free_running = nullptr;
  CHECK(cudaStreamCreate(&blocking) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking) == cudaSuccess);
  Buffer a(64), b(64);
  CHECK(fill(a, 1.f, 64, free_running) == Status::Ok && fill(b, 2.f, 64, blocking) == Status::Ok);
  float host[128] = {};
  // The default stream waits for blocking streams, and for no others.
  CHECK(cudaMemcpyAsync(host, a.data(), 256, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  CHECK(cudaMemcpy(host + 64, b.data(), 256, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(std::isnan(host[0]) && host[64] == 2.f);
  CHECK(cudaStreamSynchronize(free_running) == cudaSuccess);
  CHECK(cudaMemcpy(host, a.data(), 256, cudaMemcpyDeviceToHost) == cudaSuccess && host[0] == 1.f);
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess && cudaStreamDestroy(free_running) == cudaSuccess);
  CHECK(cudaStreamSynchronize(blocking) == cudaErrorInvalidResourceHandle && says("no such stream"));
  CHECK(fill(a, 1.f, 64, free_running) == Status::Launch);
}

void configurations() {
  Buffer y(64);
  Call call({y.view()});
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  simt::Grid fine{2, 1, 1};
  Fill::Params params{y.data(), 1.f, 64};
  for (int threads : {0, -32, 33, 48, 96, 128}) {
    CHECK(simt::submit<Fill>(call.launch(), fine, threads, params) == Status::Launch);
    CHECK(last_error().find("blocks of") != std::string::npos);
  }
  for (simt::Grid grid : {simt::Grid{int64_t{1} << 31, 1, 1}, {1, 65536, 1}, {1, 1, 65536}, {-1, 1, 1}})
    CHECK(simt::submit<Fill>(call.launch(), grid, 64, params) == Status::Launch);
  CHECK(simt::submit<Fill>(call.launch(), {0}, 64, params) == Status::Ok);
  CHECK(simt::submit<Fill>(call.launch(), {1, 65535, 1}, 32, {y.data(), 1.f, 0}) == Status::Ok);
  CHECK(emulator::Runtime::get().queue.size() == 1);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

void parameters_are_copied() {
  Buffer y(64);
  Call call({y.view()});
  Fill::Params params{y.data(), 5.f, 64};
  CHECK(simt::submit<Fill>(call.launch(), {2}, 64, params) == Status::Ok);
  params.v = 6.f, params.y = nullptr;
  CHECK(y.read()[7] == 5.f);
}

void copy_ranges() {
  Buffer y(64);
  std::vector<float> host(1000);
  CHECK(cudaMemcpy(y.data(), host.data(), 257, cudaMemcpyHostToDevice) != cudaSuccess && says("not in one allocation"));
  CHECK(cudaMemcpy(y.data() + 63, host.data(), 8, cudaMemcpyHostToDevice) != cudaSuccess);
  CHECK(cudaMemcpy(host.data(), y.data() - 1, 8, cudaMemcpyDeviceToHost) != cudaSuccess);
  CHECK(cudaMemset(y.data() + 60, 0, 17) != cudaSuccess && says("memset"));
  CHECK(cudaMemcpy(y.data(), y.data(), 256, cudaMemcpyHostToDevice) != cudaSuccess && says("should be host memory"));
  CHECK(cudaMemcpy(host.data() + 4, host.data(), 16, cudaMemcpyDeviceToHost) != cudaSuccess);
  CHECK(cudaMemcpy(y.data(), host.data(), 256, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemset(y.data(), 0, 256) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
}

void freeing() {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 100) == cudaSuccess);
  CHECK(cudaFree(static_cast<char*>(memory) + 4) == cudaErrorInvalidValue);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue && says("has been freed"));
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaMemset(memory, 0, 4) != cudaSuccess && says("has been freed"));
}

void memory_starts_as_nan_and_runs_out() {
  Buffer y(1000);
  for (float v : y.read()) CHECK(std::isnan(v));
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, size_t{3} << 30) == cudaErrorMemoryAllocation && !memory);
  CHECK(baracuda_cuda_module()->allocate(0, int64_t{3} << 30, &memory) == Status::Workspace);
}

void devices_are_apart() {
  int n = 0;
  CHECK(cudaGetDeviceCount(&n) == cudaSuccess && n == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  Buffer here(64, 0), there(64, 1);
  CHECK(fill(there, 1.f, 64, nullptr, 0) == Status::Launch && last_error().find("on device 1") != std::string::npos);
  CHECK(cudaMemset(there.data(), 0, 4) != cudaSuccess && says("on device 1"));
  cudaStream_t stream = nullptr;
  CHECK(cudaSetDevice(1) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(fill(here, 1.f, 64, stream) == Status::Launch && last_error().find("belongs to device 1") != std::string::npos);
  CHECK(baracuda_cuda_module()->fill(1, there.data(), 0, 256, stream) == Status::Ok);
  CHECK(baracuda_cuda_module()->synchronize(1, stream) == Status::Ok && there.read()[5] == 0.f);
  int now = -1;
  CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0);
}

void asked_for_failures() {
  emulator::Runtime::get().fail_calls("cudaMalloc:2,cudaMemcpyAsync");
  void *a = nullptr, *b = nullptr;
  CHECK(cudaMalloc(&a, 4) == cudaSuccess);
  CHECK(cudaMalloc(&b, 4) == cudaErrorMemoryAllocation && says("asked for"));
  CHECK(cudaMalloc(&b, 4) == cudaSuccess);
  float host = 0;
  CHECK(cudaMemcpyAsync(a, &host, 4, cudaMemcpyHostToDevice, nullptr) != cudaSuccess);
  CHECK(cudaMemcpyAsync(a, &host, 4, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
  CHECK(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess);
  int64_t calls = emulator::Runtime::get().calls("cudaMalloc");
  CHECK(calls == 3);
}

void live_counts() {
  emulator::Heap& heap = emulator::Runtime::get().heap;
  CHECK(heap.live() == 0);
  void *a = nullptr, *b = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaMalloc(&a, 10) == cudaSuccess && cudaMalloc(&b, 20) == cudaSuccess &&
        cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(heap.live() == 2 && heap.live_bytes() == 30 && emulator::Runtime::get().queue.live_streams() == 1);
  CHECK(heap.list().find("20 bytes on device 0") != std::string::npos);
  CHECK(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(heap.live() == 0 && heap.live_bytes() == 0 && emulator::Runtime::get().queue.live_streams() == 0);
}

struct Stuck {
  struct Params {
    int32_t unused;
  };
  enum : int { kThreads = 64, kShared = 0 };
  BCU_DEVICE void run(const simt::Context& ctx, float*, const Params&) {
    if (ctx.tid() < 32u) simt::barrier(ctx);
  }
};

void a_failed_kernel_is_told_once() {
  Buffer y(64);
  Call call({});
  CHECK(simt::submit<Stuck>(call.launch(), {1}, 64, {0}) == Status::Ok && fill(y, 1.f) == Status::Ok);
  CHECK(baracuda_cuda_module()->synchronize(0, nullptr) == Status::Launch);
  CHECK(last_error().find("DIVERGENT SYNC") != std::string::npos && last_error().find("Stuck") != std::string::npos);
  CHECK(std::isnan(y.read()[0]));  // what was queued behind it did not run
  CHECK(fill(y, 2.f) == Status::Ok && y.read()[0] == 2.f);
}

void a_dead_device_stays_dead() {
  Buffer y(64), elsewhere(64, 1);
  emulator::Runtime::get().sticky = true;
  Call call({});
  const DeviceModule& module = *baracuda_cuda_module();
  CHECK(simt::submit<Stuck>(call.launch(), {1}, 64, {0}) == Status::Ok);
  CHECK(module.synchronize(0, nullptr) == Status::Launch);
  void* memory = nullptr;
  CHECK(fill(y, 2.f) == Status::Launch && module.synchronize(0, nullptr) == Status::Launch);
  CHECK(module.allocate(0, 4, &memory) == Status::Launch && module.release(0, y.data()) == Status::Launch);
  CHECK(last_error().find("DIVERGENT SYNC") != std::string::npos);
  CHECK(fill(elsewhere, 2.f, 64, nullptr, 1) == Status::Ok && module.synchronize(1, nullptr) == Status::Ok);
}

void an_error_stays_until_it_is_taken() {
  Buffer y(64);
  CHECK(cudaMemset(y.data(), 0, 257) == cudaErrorInvalidValue);
  CHECK(cudaMemset(y.data(), 0, 256) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(fill(y, 1.f) == Status::Launch && last_error().find("memset") != std::string::npos);
  CHECK(fill(y, 1.f) == Status::Ok && cudaGetLastError() == cudaSuccess);
  Call call({y.view()});
  CHECK(simt::submit<Fill>(call.launch(), {1}, 65, {y.data(), 1.f, 64}) == Status::Launch);
  CHECK(cudaGetLastError() == cudaSuccess && fill(y, 1.f) == Status::Ok);  // taken by the one who told
}

void tensors_must_be_device_memory() {
  Buffer y(64);
  float host[64];
  TensorView wrong = y.view();
  wrong.data = host;
  Call call({wrong});
  CHECK(simt::submit<Fill>(call.launch(), {2}, 64, {y.data(), 1.f, 64}) == Status::Launch);
  CHECK(last_error().find("tensor 0 is not device memory") != std::string::npos);
}

cudaStream_t stream_of(int device, unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  CHECK(cudaSetDevice(device) == cudaSuccess && cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  return stream;
}

void captures_forbid_what_cuda_forbids() {
  Buffer y(64);
  float host[64];
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  cudaStream_t stream = stream_of(0), other = stream_of(0);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  void* memory = nullptr;
  cudaGraph_t graph = nullptr;
  const std::pair<cudaError_t, std::function<cudaError_t()>> wrong[] = {
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&memory, 4); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(nullptr); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaMemcpy(host, y.data(), 4, cudaMemcpyDeviceToHost); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(stream); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(other); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaEventQuery(event); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaEventSynchronize(event); }},
      {cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(stream, event, 0); }}};
  CHECK(cudaEventRecord(event, other) == cudaSuccess);
  for (const auto& [error, call] : wrong) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
    CHECK(call() == error);
    CHECK(fill(y, 1.f, 64, stream) == Status::Launch);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
  }
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess && cudaFree(memory) == cudaSuccess);
  CHECK(cudaStreamSynchronize(other) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(other) == cudaSuccess);
  cudaGetLastError();
}

// A graph of one fill of y, as somebody captures it.
cudaGraph_t captured_fill(Buffer& y, float value, int times = 1) {
  cudaStream_t stream = stream_of(0);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  for (int i = 0; i < times; ++i) CHECK(fill(y, value, 64, stream) == Status::Ok);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
  return graph;
}

void graphs_have_parts_that_may_be_replaced() {
  Buffer y(64), z(64);
  cudaStream_t stream = stream_of(0), side = stream_of(0);
  cudaGraph_t joint = nullptr, other = nullptr, none = captured_fill(y, 0.f, 0);
  cudaGraph_t parts[] = {captured_fill(y, 1.f), captured_fill(z, 2.f), captured_fill(y, 3.f)};
  cudaGraphNode_t places[3] = {}, last = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphCreate(&joint, 0) == cudaSuccess && cudaGraphCreate(&other, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaGraphAddChildGraphNode(&places[i], joint, &last, last != nullptr, parts[i]) == cudaSuccess);
    last = places[i];
  }
  CHECK(cudaGraphAddChildGraphNode(&last, other, &places[0], 1, parts[0]) == cudaErrorInvalidValue);
  CHECK(cudaGraphAddChildGraphNode(&last, joint, nullptr, 0, none) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  for (cudaGraph_t part : parts) CHECK(cudaGraphDestroy(part) == cudaSuccess);  // they were copied
  CHECK(cudaGraphInstantiateWithFlags(&exec, joint, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
  // What waits keeps what it was given, and a launch in another stream comes behind it.
  cudaGraph_t next = captured_fill(y, 7.f), twice = captured_fill(y, 8.f, 2);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, places[2], next) == cudaSuccess);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, places[2], twice) == cudaErrorGraphExecUpdateFailure);
  CHECK(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
  CHECK(cudaGraphLaunch(exec, side) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && y.read()[0] == 3.f && z.read()[0] == 2.f);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(side) == cudaSuccess);
  CHECK(y.read()[0] == 7.f && cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaGraphDestroy(joint) == cudaSuccess);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, places[2], next) == cudaErrorInvalidValue);
  for (cudaGraph_t graph : {next, twice, other, none}) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  for (cudaStream_t s : {stream, side}) CHECK(cudaStreamDestroy(s) == cudaSuccess);
  cudaGetLastError();
}

void graphs_run_what_was_captured() {
  Buffer y(64), z(64);
  cudaStream_t stream = stream_of(0), side = stream_of(0), blocking = stream_of(0, cudaStreamDefault);
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  size_t nodes = 0;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(fill(y, 3.f, 64, stream) == Status::Ok && cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(side, event, 0) == cudaSuccess && fill(z, 4.f, 64, side) == Status::Ok);
  CHECK(cudaEventRecord(event, side) == cudaSuccess && cudaStreamWaitEvent(stream, event, 0) == cudaSuccess);
  CHECK(cudaStreamEndCapture(side, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaGetLastError() == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess && nodes == 2);
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && std::isnan(y.read()[0]));
  CHECK(cudaGraphLaunch(exec, side) == cudaSuccess && std::isnan(y.read()[0]));
  CHECK(cudaStreamSynchronize(side) == cudaSuccess && y.read()[0] == 3.f && z.read()[0] == 4.f);
  // A stream that joined has to come back, and a blocking one is in the way of the default stream.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaEventRecord(event, stream) == cudaSuccess && cudaStreamWaitEvent(side, event, 0) == cudaSuccess);
  CHECK(fill(z, 4.f, 64, side) == Status::Ok);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMemsetAsync(y.data(), 0, 4, nullptr) == cudaErrorStreamCaptureImplicit);
  CHECK(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphLaunch(exec, side) != cudaSuccess);
  for (cudaStream_t s : {stream, side, blocking}) CHECK(cudaStreamDestroy(s) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  cudaGetLastError();
}

// The parent sees how the child ends: by the signal that following a device pointer raises.
void the_host_cannot_follow_device_pointers() {
  Buffer y(64);
  y.write(std::vector<float>(64, 1.f));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    volatile float v = *y.data();
    _exit(v == 1.f ? 7 : 8);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

void a_forked_child_has_no_devices() {
  Buffer y(64);
  pid_t child = fork();
  if (child == 0) _exit(cudaMemset(y.data(), 0, 4) == cudaErrorInitializationError ? 0 : 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct Case {
  const char* name;
  void (*run)();
};
#define BCU_CASE(name) {#name, &name},
constexpr Case kCases[] = {
    BCU_CASE(nothing_runs_before_a_wait) BCU_CASE(streams_keep_only_their_own_order) BCU_CASE(configurations)
        BCU_CASE(parameters_are_copied) BCU_CASE(copy_ranges) BCU_CASE(freeing)
            BCU_CASE(memory_starts_as_nan_and_runs_out) BCU_CASE(devices_are_apart) BCU_CASE(asked_for_failures)
                BCU_CASE(live_counts) BCU_CASE(a_failed_kernel_is_told_once) BCU_CASE(a_dead_device_stays_dead)
                    BCU_CASE(an_error_stays_until_it_is_taken) BCU_CASE(captures_forbid_what_cuda_forbids)
                        BCU_CASE(graphs_run_what_was_captured) BCU_CASE(graphs_have_parts_that_may_be_replaced)
                            BCU_CASE(tensors_must_be_device_memory) BCU_CASE(the_host_cannot_follow_device_pointers)
                                BCU_CASE(a_forked_child_has_no_devices)};

}  // namespace

bool run_runtime_case(const std::string& name) {
  for (const Case& c : kCases) {
    if (name != c.name) continue;
    c.run();
    return true;
  }
  return false;
}

void list_runtime_cases() {
  for (const Case& c : kCases) std::puts(c.name);
}

}  // namespace baracuda::probe
