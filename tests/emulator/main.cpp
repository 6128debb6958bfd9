// emulator_probes run NAME: runs one probe under several schedules and prints the emulator's report, or CLEAN, NAN
// (poison in the result) or SCHEDULE-DEPENDENT. emulator_probes case NAME: one case of the fake runtime.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness.h"
#include "probes.h"

namespace baracuda::probe {

// The module's list of families needs one.
extern const FamilyKernels kSimtSlice0;
const FamilyKernels kSimtSlice0 = {"probe", nullptr, 0};

void must(Status status) {
  if (status == Status::Ok) return;
  std::printf("FAILED: %s\n", last_error().c_str());
  std::exit(3);
}

std::string last_error() { return baracuda_cuda_module()->last_error(); }

Buffer::Buffer(int64_t floats, int32_t device) : floats_(floats), device_(device) {
  void* memory = nullptr;
  must(baracuda_cuda_module()->allocate(device, floats * 4, &memory));
  data_ = static_cast<float*>(memory);
}
Buffer::~Buffer() { baracuda_cuda_module()->release(device_, data_); }

TensorView Buffer::view() const {
  TensorView t;
  t.data = data_, t.rank = 1, t.shape[0] = floats_, t.strides[0] = 1;
  t.device = Backend::Cuda, t.device_id = device_;
  return t;
}

void Buffer::write(std::span<const float> values) {
  must(baracuda_cuda_module()->copy(device_, data_, values.data(), int64_t(values.size_bytes()), CopyKind::ToDevice,
                                    nullptr));
}

std::vector<float> Buffer::read() const {
  std::vector<float> out(static_cast<size_t>(floats_));
  must(baracuda_cuda_module()->copy(device_, out.data(), data_, floats_ * 4, CopyKind::ToHost, nullptr));
  return out;
}

Call::Call(std::vector<TensorView> tensors, int32_t device, void* stream) : tensors_(std::move(tensors)) {
  for (size_t i = 0; i <= tensors_.size(); ++i) first_.push_back(int32_t(i));
  launch_.tensors = tensors_.data(), launch_.first = first_.data(), launch_.n_params = int32_t(tensors_.size());
  launch_.device = device, launch_.stream = stream;
}

namespace {

constexpr int32_t kN = 128;

struct Outcome {
  std::string report;
  std::vector<float> y;
};

template <class Body>
Outcome run_probe() {
  Buffer x(kN), y(2 * kN), counter(16), stray(kN);
  std::vector<float> values(kN);
  for (int i = 0; i < kN; ++i) values[size_t(i)] = 1.f + std::sin(float(i));
  x.write(values), stray.write(values);
  y.write(std::vector<float>(2 * kN, 0.f)), counter.write(std::vector<float>(16, 0.f));
  simt::probe::ProbeParams params{x.data(), y.data(), reinterpret_cast<simt::AtomicU32*>(counter.data()),
                                  stray.data() - y.data(), kN};
  Call call({x.view(), y.view(), counter.view()});
  const DeviceModule& module = *baracuda_cuda_module();
  if (simt::submit<Body>(call.launch(), {2}, 128, params) != Status::Ok || module.synchronize(0, nullptr) != Status::Ok)
    return {last_error(), {}};
  return {"", y.read()};
}

template <class Body>
int judge() {
  std::vector<float> before;
  for (const char* schedule : {"forward", "reverse", "random:1", "random:2"}) {
    emulator::set_schedule(schedule);
    Outcome outcome = run_probe<Body>();
    if (!outcome.report.empty()) return std::printf("%s: %s\n", schedule, outcome.report.c_str()), 1;
    for (float v : outcome.y)
      if (std::isnan(v)) return std::puts("NAN"), 1;
    if (!before.empty() && std::memcmp(before.data(), outcome.y.data(), before.size() * 4) != 0)
      return std::puts("SCHEDULE-DEPENDENT"), 1;
    before = outcome.y;
  }
  return std::puts("CLEAN"), 0;
}

int run_named(const std::string& name) {
#define BCU_RUN(probe_name) \
  if (name == #probe_name) return judge<simt::probe::probe_name>();
  BCU_PROBES(BCU_RUN)
#undef BCU_RUN
  return 2;
}

}  // namespace
}  // namespace baracuda::probe

int main(int argc, char** argv) {
  using namespace baracuda::probe;
  std::string what = argc > 1 ? argv[1] : "", name = argc > 2 ? argv[2] : "";
  if (what == "run") return run_named(name);
  if (what == "case") return run_runtime_case(name) ? 0 : 2;
  if (what == "cases") return list_runtime_cases(), 0;
#define BCU_NAME(probe_name) std::puts(#probe_name);
  if (what == "probes") {
    BCU_PROBES(BCU_NAME)
  }
  return 0;
}
