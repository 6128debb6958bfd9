// cuDNN's attention graphs, built with NVIDIA's cudnn-frontend.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <mutex>

#include "backends/cuda/device.h"
#include "backends/cuda/sdpa.h"
#include "core/libraries.h"

namespace baracuda::cuda {
namespace {

namespace fe = cudnn_frontend;
using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr int64_t kScaleUid = sdpa::kTensors + 1;
// Before 9.16 the backward of some lengths copies its own padding mask from the host at every run.
constexpr size_t kLeastVersion = 91600;
constexpr int64_t kWorkspacePad = 256;  // cuDNN asks for more alignment than a caller's 64 bytes

constexpr int64_t uid_of(int slot) { return slot + 1; }

// A device's handle, made at the first plan and kept; cuDNN allows one thread at a time in it.
struct Handle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

Handle& handle_of(int64_t device) {
  static Handle* all = new Handle[kMostDevices];  // outlives every plan
  return all[device];
}

Refusal refused(Code code, std::string got, std::string want, std::string hint = "") {
  return {code, "cudnn", std::move(got), std::move(want), std::move(hint)};
}

class Graph final : public SdpaGraph {
 public:
  explicit Graph(const SdpaProblem& problem) : problem_(problem) {
    const auto io = problem.element == int64_t(Element::F16) ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
    graph_.set_io_data_type(io)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(int32_t(problem.arch));
    for (TensorPtr& t : tensors_) t = nullptr;
    problem.backward ? describe_backward(io) : describe_forward(io);
  }

  // Everything that cuDNN decides: whether it can, with which kernel, and what memory that takes. `instead` describes a
  // device that is not here.
  fe::error_t build(cudnnHandle_t handle, std::shared_ptr<const fe::DeviceProperties> instead = nullptr) {
    if (instead) graph_.set_device_properties(instead);
    if (auto e = graph_.validate(); e.is_bad()) return e;
    if (auto e = instead ? graph_.build_operation_graph() : graph_.build_operation_graph(handle); e.is_bad()) return e;
    if (auto e = graph_.create_execution_plans({fe::HeurMode_t::A}); e.is_bad()) return e;
    if (auto e = instead ? graph_.check_support() : graph_.check_support(handle); e.is_bad()) return e;
    if (auto e = instead ? graph_.build_plans() : graph_.build_plans(handle); e.is_bad()) return e;
    return graph_.get_workspace_size(bytes_);
  }

  int64_t workspace() const override { return bytes_ ? bytes_ + kWorkspacePad : 0; }

  Status run(const SdpaCall& call) const override;

 private:
  TensorPtr input(int slot, const char* name, fe::DataType_t type) {
    return tensors_[slot] = graph_.tensor(shaped(fe::graph::Tensor_attributes(), slot, name, type));
  }
  void output(TensorPtr tensor, int slot, const char* name, fe::DataType_t type) {
    shaped(*tensor, slot, name, type).set_output(true);
    tensors_[slot] = std::move(tensor);
  }
  template <class Attributes>
  Attributes&& shaped(Attributes&& t, int slot, const char* name, fe::DataType_t type) const {
    const SdpaTensor& s = problem_.tensors[slot];
    t.set_uid(uid_of(slot))
        .set_name(name)
        .set_dim({s.shape, s.shape + 4})
        .set_stride({s.strides, s.strides + 4})
        .set_data_type(type);
    return std::forward<Attributes>(t);
  }
  TensorPtr scale() {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(kScaleUid)
                             .set_name("scale")
                             .set_dim({1, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_is_pass_by_value(true)
                             .set_data_type(fe::DataType_t::FLOAT));
  }
  template <class Options>
  void set_causal(Options& options) const {
    if (!problem_.causal) return;
    options.set_diagonal_alignment(problem_.bottom_right ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                         : fe::DiagonalAlignment_t::TOP_LEFT);
    options.set_diagonal_band_right_bound(0);
  }

  void describe_forward(fe::DataType_t io) {
    using namespace sdpa;
    auto options = fe::graph::SDPA_attributes().set_name("attention").set_attn_scale(scale());
    options.set_generate_stats(problem_.save_lse != 0);
    set_causal(options);
    auto [out, lse] = graph_.sdpa(input(kQ, "q", io), input(kK, "k", io), input(kV, "v", io), options);
    output(out, kOut, "out", io);
    if (problem_.save_lse) output(lse, kLse, "lse", fe::DataType_t::FLOAT);
  }

  void describe_backward(fe::DataType_t io) {
    using namespace sdpa;
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward").set_attn_scale(scale());
    options.set_deterministic_algorithm(problem_.deterministic != 0);
    set_causal(options);
    const TensorPtr q = input(kQ, "q", io), k = input(kK, "k", io), v = input(kV, "v", io);
    const TensorPtr out = input(kOut, "out", io), dout = input(kDout, "dout", io);
    auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, out, dout, input(kLse, "lse", fe::DataType_t::FLOAT), options);
    output(dq, kDq, "dq", io);
    output(dk, kDk, "dk", io);
    output(dv, kDv, "dv", io);
  }

  const SdpaProblem problem_;
  fe::graph::Graph graph_;
  TensorPtr tensors_[sdpa::kTensors];
  int64_t bytes_ = 0;
};

Status Graph::run(const SdpaCall& call) const {
  DeviceGuard guard(int(problem_.device));
  if (guard.status() != Status::Ok) return guard.status();
  try {
    float scale = call.scale;
    std::unordered_map<int64_t, void*> pack = {{kScaleUid, &scale}};
    for (int slot = 0; slot < sdpa::kTensors; ++slot)
      if (tensors_[slot]) pack.emplace(uid_of(slot), call.data[slot]);
    const auto at = reinterpret_cast<uintptr_t>(call.workspace);
    void* workspace =
        bytes_ ? reinterpret_cast<void*>((at + kWorkspacePad - 1) / kWorkspacePad * kWorkspacePad) : nullptr;
    Handle& own = handle_of(problem_.device);
    std::lock_guard lock(own.mutex);
    if (cudnnSetStream(own.handle, static_cast<cudaStream_t>(call.stream)) != CUDNN_STATUS_SUCCESS)
      return failed("cuDNN: the stream was not taken");
    auto e = graph_.execute(own.handle, pack, workspace);
    return e.is_bad() ? failed("cuDNN: %s", e.get_message().c_str()) : Status::Ok;
  } catch (const std::exception& e) {
    return failed("cuDNN: %s", e.what());
  }
}

SdpaMade build(const SdpaProblem& problem) {
  DeviceGuard guard(int(problem.device));
  if (guard.status() != Status::Ok) return {nullptr, refused(Code::LaunchFailed, last_error(), "a device that works")};
  Handle& own = handle_of(problem.device);
  std::lock_guard lock(own.mutex);
  if (!own.handle) {
    if (const cudnnStatus_t status = cudnnCreate(&own.handle); status != CUDNN_STATUS_SUCCESS) {
      own.handle = nullptr;
      return {nullptr, refused(Code::LaunchFailed, std::string("cudnnCreate: ") + cudnnGetErrorString(status),
                               "a cuDNN that starts on this device")};
    }
  }
  auto graph = std::make_shared<Graph>(problem);
  if (auto e = graph->build(own.handle); e.is_bad())
    return {nullptr, refused(Code::Problem, e.get_message(), "a problem that this cuDNN has a kernel for")};
  return {std::move(graph), {}};
}

}  // namespace

SdpaMade make_sdpa(const SdpaProblem& problem) {
  constexpr const char* kInstall =
      "pip install --upgrade nvidia-cudnn-cu13; python -m baracuda info says what was found";
  const size_t version = cudnnGetVersion();
  if (version == 0) return {nullptr, refused(Code::NotBuilt, "no cuDNN", "libcudnn.so.9", kInstall)};
  if (version < kLeastVersion)
    return {nullptr, refused(Code::NotBuilt,
                             "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100),
                             "cuDNN 9.16 or newer", kInstall)};
  // cuDNN looks for it by name and ends the process where there is none.
  if (!find_symbol(Library::CublasLt, "cublasLtGetVersion"))
    return {nullptr, refused(Code::NotBuilt, "no cuBLASLt, which cuDNN needs", "libcublasLt.so.13", kInstall)};
  if (problem.device < 0 || problem.device >= kMostDevices)
    return {nullptr, refused(Code::NoDevice, std::to_string(problem.device), "one of the first 64 devices")};
  try {
    return build(problem);
  } catch (const std::exception& e) {
    return {nullptr, refused(Code::Problem, e.what(), "a problem that this cuDNN has a kernel for")};
  }
}

}  // namespace baracuda::cuda
