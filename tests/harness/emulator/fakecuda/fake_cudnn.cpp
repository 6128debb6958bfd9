// cuDNN's attention on the host: checks the problem and the calls it is given as the library would, and computes with
// its roundings. Builds, runs and graphs alive are counted by the fake runtime, which also fails them on demand
// ("cudnnBuild:1", "cudnnExecute:1").
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/sdpa.h"
#include "core/api.h"
#include "core/half.h"
#include "emulator/fakecuda/runtime.h"

namespace baracuda::emulator {
namespace {

using namespace cuda::sdpa;
using cuda::SdpaCall;
using cuda::SdpaProblem;
using cuda::SdpaTensor;

std::atomic<int64_t> g_graphs{0};

constexpr const char* kNames[] = {"q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv"};
constexpr int kForward[] = {kQ, kK, kV, kOut}, kBackward[] = {kQ, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv};

std::vector<int> tensors_of(const SdpaProblem& p) {
  if (p.backward) return {std::begin(kBackward), std::end(kBackward)};
  std::vector<int> out(std::begin(kForward), std::end(kForward));
  if (p.save_lse) out.push_back(kLse);
  return out;
}

int64_t bytes_of(const SdpaProblem&, int slot) { return slot == kLse ? 4 : 2; }

// The last element that a tensor reaches, plus one.
int64_t reach(const SdpaTensor& t) {
  int64_t last = 0;
  for (int i = 0; i < 4; ++i) last += (t.shape[i] - 1) * t.strides[i];
  return last + 1;
}

std::string wrong_shape(const SdpaProblem& p, int slot) {
  const SdpaTensor& t = p.tensors[slot];
  const int64_t *q = p.tensors[kQ].shape, *v = p.tensors[kV].shape;
  const bool of_keys = slot == kK || slot == kV || slot == kDk || slot == kDv;
  const bool of_values = slot == kV || slot == kOut || slot == kDout || slot == kDv;
  const int64_t want[] = {q[0], of_keys ? v[1] : q[1], of_keys ? v[2] : q[2],
                          slot == kLse ? 1
                          : of_values  ? v[3]
                                       : q[3]};
  for (int i = 0; i < 4; ++i) {
    if (t.shape[i] != want[i] || t.shape[i] <= 0) return "its size " + std::to_string(i);
    const bool aligned = slot == kLse || i == 3 || t.shape[i] == 1 || t.strides[i] * 2 % 16 == 0;
    if (t.strides[i] <= 0 || !aligned) return "its stride " + std::to_string(i);
  }
  return t.strides[3] == 1 || t.shape[3] == 1 ? "" : "its last stride";
}

// What cuDNN would not take, or what baracuda's rows rule out before it is asked; empty when all is well.
std::string wrong(const SdpaProblem& p) {
  const auto element = static_cast<Element>(p.element);
  if (element != Element::F16 && element != Element::BF16) return "the element";
  if (p.arch < 80) return "the architecture";
  if (p.bottom_right && !p.causal) return "an alignment without a causal mask";
  if (p.deterministic && !p.backward) return "a deterministic forward";
  const int64_t *q = p.tensors[kQ].shape, *k = p.tensors[kK].shape, *v = p.tensors[kV].shape;
  if (q[3] % 8 || v[3] % 8 || q[3] > 128 || v[3] > 128) return "the head size";
  if (k[1] <= 0 || q[1] % k[1]) return "the heads";
  if (p.bottom_right && q[2] > k[2]) return "queries without a key";
  const std::vector<int> given = tensors_of(p);
  for (int slot = 0; slot < kTensors; ++slot) {
    const bool has = std::find(given.begin(), given.end(), slot) != given.end();
    if (!has && p.tensors[slot].shape[0] != 0) return std::string(kNames[slot]) + ", which the direction has not";
    if (!has) continue;
    if (std::string what = wrong_shape(p, slot); !what.empty()) return std::string(kNames[slot]) + ": " + what;
  }
  return "";
}

// A half tensor, or lse, as floats.
struct View {
  const SdpaTensor* t;
  char* data;
  Element element;
  char* at(int64_t b, int64_t h, int64_t s, int64_t d) const {
    const int64_t* n = t->strides;
    return data + (b * n[0] + h * n[1] + s * n[2] + d * n[3]) * (element == Element::F32 ? 4 : 2);
  }
  float get(int64_t b, int64_t h, int64_t s, int64_t d) const {
    const char* p = at(b, h, s, d);
    if (element == Element::F32) return *reinterpret_cast<const float*>(p);
    const auto bits = *reinterpret_cast<const uint16_t*>(p);
    return element == Element::F16 ? f16_to_float(bits) : bf16_to_float(bits);
  }
  void set(int64_t b, int64_t h, int64_t s, int64_t d, float x) const {
    char* p = at(b, h, s, d);
    if (element == Element::F32) return void(*reinterpret_cast<float*>(p) = x);
    *reinterpret_cast<uint16_t*>(p) = element == Element::F16 ? float_to_f16(x) : float_to_bf16(x);
  }
};

float rounded(Element e, float x) {
  return e == Element::F16 ? f16_to_float(float_to_f16(x)) : bf16_to_float(float_to_bf16(x));
}

// One head's arithmetic.
struct Heads {
  const SdpaProblem& p;
  View views[kTensors];
  float scale;
  Element element;
  int64_t batch, heads, group, q_len, k_len, d, dv;

  Heads(const SdpaProblem& problem, const SdpaCall& call)
      : p(problem), scale(call.scale), element(static_cast<Element>(problem.element)) {
    for (int slot = 0; slot < kTensors; ++slot)
      views[slot] = {&p.tensors[slot], static_cast<char*>(call.data[slot]), slot == kLse ? Element::F32 : element};
    const int64_t *q = p.tensors[kQ].shape, *k = p.tensors[kK].shape;
    batch = q[0], heads = q[1], group = q[1] / k[1], q_len = q[2], k_len = k[2], d = q[3];
    dv = p.tensors[kV].shape[3];
  }
  int64_t limit(int64_t s) const {
    if (!p.causal) return k_len;
    return std::clamp<int64_t>(s + 1 + (p.bottom_right ? k_len - q_len : 0), 0, k_len);
  }
  float dot(int x, int y, int64_t b, int64_t h, int64_t s, int64_t key, int64_t n) const {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += views[x].get(b, h, s, i) * views[y].get(b, h / group, key, i);
    return sum;
  }

  void forward(int64_t b, int64_t h, int64_t s) const {
    const int64_t n = limit(s);
    std::vector<float> weight(n), out(dv);
    float top = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; ++j) top = std::max(top, weight[j] = scale * dot(kQ, kK, b, h, s, j, d));
    for (int64_t j = 0; j < n; ++j) {
      total += weight[j] = std::exp(weight[j] - top);
      const float stored = rounded(element, weight[j]);
      for (int64_t i = 0; i < dv; ++i) out[i] += stored * views[kV].get(b, h / group, j, i);
    }
    for (int64_t i = 0; i < dv; ++i) views[kOut].set(b, h, s, i, out[i] / total);
    if (p.save_lse) views[kLse].set(b, h, s, 0, top + std::log(total));
  }

  // Adds what one head gives to dk and dv of its kv head, each rounded first; dq is complete.
  void backward(int64_t b, int64_t h, std::vector<float>& dk, std::vector<float>& dvs) const {
    std::vector<float> own_dk(k_len * d), own_dv(k_len * dv);
    for (int64_t s = 0; s < q_len; ++s) {
      float delta = 0;
      for (int64_t i = 0; i < dv; ++i) delta += views[kDout].get(b, h, s, i) * views[kOut].get(b, h, s, i);
      std::vector<float> dq(d);
      for (int64_t j = 0, n = limit(s); j < n; ++j) {
        const float weight = std::exp(scale * dot(kQ, kK, b, h, s, j, d) - views[kLse].get(b, h, s, 0));
        const float slope = rounded(element, weight * (dot(kDout, kV, b, h, s, j, dv) - delta));
        const float stored = rounded(element, weight);
        for (int64_t i = 0; i < d; ++i) {
          dq[i] += slope * views[kK].get(b, h / group, j, i);
          own_dk[j * d + i] += slope * views[kQ].get(b, h, s, i);
        }
        for (int64_t i = 0; i < dv; ++i) own_dv[j * dv + i] += stored * views[kDout].get(b, h, s, i);
      }
      for (int64_t i = 0; i < d; ++i) views[kDq].set(b, h, s, i, scale * dq[i]);
    }
    for (size_t i = 0; i < dk.size(); ++i) dk[i] += rounded(element, scale * own_dk[i]);
    for (size_t i = 0; i < dvs.size(); ++i) dvs[i] += rounded(element, own_dv[i]);
  }

  void run() const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads && !p.backward; ++h)
        for (int64_t s = 0; s < q_len; ++s) forward(b, h, s);
      for (int64_t kv = 0; kv < heads / group && p.backward; ++kv) {
        std::vector<float> dk(k_len * d), dvs(k_len * dv);
        for (int64_t h = kv * group; h < (kv + 1) * group; ++h) backward(b, h, dk, dvs);
        for (int64_t j = 0; j < k_len; ++j) {
          for (int64_t i = 0; i < d; ++i) views[kDk].set(b, kv, j, i, dk[j * d + i]);
          for (int64_t i = 0; i < dv; ++i) views[kDv].set(b, kv, j, i, dvs[j * dv + i]);
        }
      }
    }
  }
};

class FakeGraph final : public cuda::SdpaGraph {
 public:
  explicit FakeGraph(const SdpaProblem& problem) : problem_(problem) { ++g_graphs; }
  ~FakeGraph() override { --g_graphs; }

  // As cuDNN 9.28 on sm_90: a little for the forward, the scores for sums in a fixed order.
  int64_t workspace() const override {
    const int64_t *q = problem_.tensors[kQ].shape, *k = problem_.tensors[kK].shape;
    const int64_t sums = q[0] * q[1] * q[2] * q[3] * 4, scores = q[0] * q[1] * q[2] * k[2] * 2;
    return 512 + (problem_.backward ? (problem_.deterministic ? scores : sums) : 0);
  }

  Status run(const SdpaCall& call) const override {
    cuda::DeviceGuard guard(int(problem_.device));
    if (guard.status() != Status::Ok) return guard.status();
    Runtime& r = Runtime::get();
    std::lock_guard lock(r.mutex);
    if (cudaError_t e = r.begin("cudnnExecute")) return cuda::check(e, "cuDNN");
    auto stream = static_cast<cudaStream_t>(call.stream);
    if (cudaError_t e = r.check_stream(stream)) return cuda::check(e, "cuDNN");
    std::vector<Allocation*> touched;
    for (int slot : tensors_of(problem_))
      if (!bind(call.data[slot], reach(problem_.tensors[slot]) * bytes_of(problem_, slot), 16, kNames[slot], touched))
        return Status::Launch;
    if (!bind(call.workspace, workspace(), 64, "the workspace", touched)) return Status::Launch;
    cudaError_t error = r.enqueue(stream, [problem = problem_, call, touched, bytes = workspace()] {
      if (Opened::gone(touched)) return Problem{cudaErrorIllegalAddress, "fake cuDNN: a graph's memory has been freed"};
      Opened opened(touched);
      std::memset(call.workspace, 0x5a, size_t(bytes));
      Heads(problem, call).run();
      return Problem{};
    });
    return cuda::check(error, "cuDNN");
  }

 private:
  bool bind(const void* data, int64_t bytes, uintptr_t alignment, const char* what,
            std::vector<Allocation*>& touched) const {
    Runtime& r = Runtime::get();
    Allocation* a = data ? r.heap.find(data) : nullptr;
    const auto* first = static_cast<const char*>(data);
    std::string trouble;
    if (!a || first + bytes > a->data + a->bytes)
      trouble = " is not in one allocation of a device";
    else if (a->device != current_device())
      trouble = " is on another device";
    else if (reinterpret_cast<uintptr_t>(data) % alignment)
      trouble = " is not aligned";
    if (trouble.empty()) {
      if (std::find(touched.begin(), touched.end(), a) == touched.end()) touched.push_back(a);
      return true;
    }
    cuda::check(r.raise(cudaErrorInvalidValue, std::string("fake cuDNN: ") + what + trouble), "cuDNN");
    return false;
  }

  const SdpaProblem problem_;
};

}  // namespace
}  // namespace baracuda::emulator

namespace baracuda::cuda {

SdpaMade make_sdpa(const SdpaProblem& problem) {
  emulator::Runtime& r = emulator::Runtime::get();
  std::lock_guard lock(r.mutex);
  if (r.begin("cudnnBuild")) {
    cudaGetLastError();
    return {nullptr, {Code::LaunchFailed, "cudnn", "a failure that a test asked for", "a cuDNN that starts", ""}};
  }
  if (std::string what = emulator::wrong(problem); !what.empty())
    return {nullptr, {Code::Problem, "cudnn", what, "a graph that cuDNN takes", ""}};
  return {std::make_shared<emulator::FakeGraph>(problem), {}};
}

}  // namespace baracuda::cuda

// Graphs that exist.
extern "C" BCU_API int64_t bcu_fake_cudnn_graphs() { return baracuda::emulator::g_graphs; }
