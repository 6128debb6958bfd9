// Attention by cuDNN: a graph is built at select, for contiguous tensors or the strides that the caller names there;
// calls that it does not fit (other strides, addresses that are no multiple of 16, kv_len, a scale in device memory)
// are carried out by the portable bodies.
#pragma once
#include <cmath>
#include <cstring>
#include <list>
#include <mutex>
#include <string_view>

#include "backends/cuda/device.h"
#include "backends/cuda/sdpa.h"
#include "backends/simt/family.h"
#include "core/device.h"
#include "core/prepare.h"
#include "core/refusal.h"
#include "ops/attention/skus.h"

extern "C" BCU_API const baracuda::DeviceModule* baracuda_cuda_module();  // this very module's

namespace baracuda::attention {

namespace dnn = cuda::sdpa;

// Where cuDNN's tensors stand in the signature, -1: the direction has no such tensor; and where the numbers do.
struct CudnnArgs {
  int at[dnn::kTensors];
  int scale, kv_len;
};
constexpr CudnnArgs cudnn_args(bool backward) {
  using F = ForwardArgs;
  using B = BackwardArgs;
  if (!backward) return {{F::q, F::k, F::v, F::out, F::lse, -1, -1, -1, -1}, F::scale, F::kv_len};
  return {{B::q, B::k, B::v, B::out, B::lse, B::dout, B::dq, B::dk, B::dv}, B::scale, B::kv_len};
}

// A graph, and what runs the calls that it does not fit; shared by the plans of one problem.
struct CudnnPlan {
  cuda::SdpaProblem problem;
  std::shared_ptr<const cuda::SdpaGraph> graph;
  Kernel portable;
};

constexpr int portable_row(Direction direction) {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].backend == Backend::Cuda && kRows[i].direction == direction && kRows[i].proof == Proof::Emulated &&
        std::string_view(kRows[i].op) == "scaled_dot_product_attention")
      return int(i);
  return -1;
}

// The launcher of the portable row, whose kernels another slice of the family may have.
template <Direction kDirection>
Kernel portable_kernel() {
  constexpr int kRow = portable_row(kDirection);
  static_assert(kRow >= 0);
  const DeviceModule& module = *baracuda_cuda_module();
  for (int32_t f = 0; f < module.n_families; ++f)
    if (std::strcmp(module.families[f]->family, "attention") == 0 && module.families[f]->kernels[kRow])
      return module.families[f]->kernels[kRow];
  return nullptr;
}

// The plans of late: asking about a row, selecting and selecting once more build a graph once.
class CudnnPlans {
 public:
  static CudnnPlans& get() {
    static CudnnPlans* all = new CudnnPlans;  // outlives every plan
    return *all;
  }
  std::shared_ptr<const CudnnPlan> find(const cuda::SdpaProblem& problem) {
    std::lock_guard lock(mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it) {
      if (std::memcmp(&(*it)->problem, &problem, sizeof problem) != 0) continue;
      recent_.splice(recent_.begin(), recent_, it);
      return *it;
    }
    return nullptr;
  }
  void add(std::shared_ptr<const CudnnPlan> plan) {
    std::lock_guard lock(mutex_);
    recent_.push_front(std::move(plan));
    if (recent_.size() > kMost) recent_.pop_back();
  }

 private:
  static constexpr size_t kMost = 16;
  std::mutex mutex_;
  std::list<std::shared_ptr<const CudnnPlan>> recent_;
};

// As the caller said it will be, else contiguous. Strides along dimensions of size 1 are those of a contiguous tensor.
inline void describe(const ParamMeta& meta, cuda::SdpaTensor& out) {
  int64_t step = 1;
  for (int i = 3; i >= 0; --i) {
    out.shape[i] = i < meta.rank ? meta.shape[i] : 1;  // lse has no last dimension
    out.strides[i] = meta.strided && i < meta.rank && out.shape[i] > 1 ? meta.strides[i] : step;
    step *= out.shape[i];
  }
}

// cuDNN reads the rows of a tensor, which begin at multiples of 16 bytes, as a whole.
inline bool takes_strides(const cuda::SdpaTensor& t, bool lse) {
  int64_t step = 1, last = 0;
  bool fits = true;
  for (int i = 3; i >= 0; step *= t.shape[i--]) {
    if (t.shape[i] == 1) continue;
    fits = fits && t.strides[i] < kMostCudnnElements;
    last += fits ? (t.shape[i] - 1) * t.strides[i] : 0;
    fits = fits && (lse      ? t.strides[i] == step
                    : i == 3 ? t.strides[i] == 1
                             : t.strides[i] > 0 && t.strides[i] % 8 == 0);
  }
  return fits && last < kMostCudnnElements;
}

inline cuda::SdpaProblem cudnn_problem(const Problem& p, int32_t device, bool backward, bool ordered) {
  cuda::SdpaProblem out;
  std::memset(&out, 0, sizeof out);
  out.device = device, out.arch = cuda::architecture(device);
  out.element = int64_t(p.element);
  out.backward = backward, out.deterministic = backward && ordered;
  const auto attrs = attributes<AttentionAttrs>(p);
  out.causal = attrs.causal != 0, out.bottom_right = out.causal && attrs.causal_alignment == 0;
  const CudnnArgs args = cudnn_args(backward);
  for (int slot = 0; slot < dnn::kTensors; ++slot)
    if (args.at[slot] >= 0 && p.params[args.at[slot]].rank >= 0) describe(p.params[args.at[slot]], out.tensors[slot]);
  out.save_lse = p.params[args.at[dnn::kLse]].rank >= 0;
  return out;
}

struct CudnnPrepared final : Prepared {
  std::shared_ptr<const CudnnPlan> plan;
};

// A library's refusal as a row's reason; its texts live until the next one on this thread.
inline Status refuse_cudnn(const Refusal& refusal, Reason* why) {
  static thread_local std::string want, hint;
  want = refusal.want, hint = refusal.got + (refusal.hint.empty() ? "" : "; " + refusal.hint);
  *why = {"cudnn", want.c_str(), hint.c_str()};
  return Status::Unsupported;
}

inline Status prepare_cudnn(const Preparation& p, bool backward, bool ordered, Prepared** out, Reason* why) {
  const cuda::SdpaProblem problem = cudnn_problem(p.problem, p.device, backward, ordered);
  for (int slot = 0; slot < dnn::kTensors; ++slot) {
    if (problem.tensors[slot].shape[0] == 0 || takes_strides(problem.tensors[slot], slot == dnn::kLse)) continue;
    *why = {"layout", "a last dimension without gaps, other strides that are multiples of 8, a contiguous lse",
            "name other strides, or none"};
    return Status::Unsupported;
  }
  std::shared_ptr<const CudnnPlan> plan = CudnnPlans::get().find(problem);
  if (!plan) {
    cuda::SdpaMade made = cuda::make_sdpa(problem);
    if (!made.graph) return refuse_cudnn(made.refusal, why);
    const Kernel portable = backward ? portable_kernel<Direction::Backward>() : portable_kernel<Direction::Forward>();
    plan = std::make_shared<const CudnnPlan>(CudnnPlan{problem, std::move(made.graph), portable});
    CudnnPlans::get().add(plan);
  }
  const int64_t bytes = plan->graph->workspace();
  const int64_t most = backward && ordered ? std::min(kMostOrderedBytes, p.most_workspace) : p.most_workspace;
  if (bytes > most)
    return refuse_cudnn({Code::WorkspaceLimit, "", std::to_string(bytes) + " bytes",
                         "at most " + std::to_string(most) + " bytes of workspace",
                         "ask for the row cudnn_unordered, or use the portable row"},
                        why);
  auto* made = new CudnnPrepared;
  made->workspace = std::max(bytes, p.row->workspace(p.problem)), made->plan = std::move(plan);
  *out = made;
  return Status::Ok;
}

// Whether the graph is for these tensors; fills the call.
inline bool fits_cudnn(const Launch& launch, const CudnnPlan& plan, bool backward, cuda::SdpaCall& call) {
  const CudnnArgs args = cudnn_args(backward);
  const Scalar &scale = launch.scalars[args.scale], &kv_len = launch.scalars[args.kv_len];
  if (scale.data || kv_len.data) return false;
  if (const int64_t n = kv_len.as_i64(); n != -1 && n != launch[args.at[dnn::kK]].shape[2]) return false;
  double factor = scale.as_f64();
  if (std::isnan(factor)) factor = 1.0 / std::sqrt(double(launch[args.at[dnn::kQ]].shape[3]));
  call.scale = float(factor);
  if (!(call.scale > 0) || std::isinf(call.scale)) return false;  // the highest score may be taken before scaling
  for (int slot = 0; slot < dnn::kTensors; ++slot) {
    call.data[slot] = nullptr;
    if (args.at[slot] < 0 || !launch[args.at[slot]].present()) continue;
    const TensorView& t = launch[args.at[slot]];
    const cuda::SdpaTensor& want = plan.problem.tensors[slot];
    for (int i = 0; i < t.rank; ++i) {
      if (t.shape[i] != want.shape[i]) return false;
      if (t.shape[i] > 1 && t.strides[i] != want.strides[i]) return false;
    }
    if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0) return false;
    call.data[slot] = t.data;
  }
  call.workspace = launch.workspace, call.stream = launch.stream;
  return true;
}

inline Status run_cudnn(const Launch& launch, bool backward) {
  const CudnnPlan& plan = *static_cast<const CudnnPrepared*>(static_cast<const Prepared*>(launch.prepared))->plan;
  cuda::SdpaCall call;
  return fits_cudnn(launch, plan, backward, call) ? plan.graph->run(call) : plan.portable(launch);
}

}  // namespace baracuda::attention

namespace baracuda {

template <>
struct SimtKernel<attention::CudnnForward> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) {
    return attention::prepare_cudnn(p, false, true, out, why);
  }
  static Status run(const Launch& launch) { return attention::run_cudnn(launch, false); }
};
template <bool kOrdered>
struct SimtKernel<attention::CudnnBackward<kOrdered>> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) {
    return attention::prepare_cudnn(p, true, kOrdered, out, why);
  }
  static Status run(const Launch& launch) { return attention::run_cudnn(launch, true); }
};

}  // namespace baracuda
