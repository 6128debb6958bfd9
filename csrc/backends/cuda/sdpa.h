// Attention by cuDNN, as the rest of the cuda module sees it. cudnn_sdpa.cpp builds cuDNN's graphs; where cuDNN's
// headers are not at hand at build time cudnn_absent.cpp says so instead, and the tests have a fake.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/launch.h"
#include "core/refusal.h"

namespace baracuda::cuda {

namespace sdpa {
enum : int { kQ, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv, kTensors };
}

// Plain numbers only: compared as bytes.
struct SdpaTensor {
  int64_t shape[4], strides[4];  // [batch, heads, sequence, dim]; strides in elements
};
struct SdpaProblem {
  int64_t device, arch;  // 80, 90
  int64_t element;
  int64_t backward, causal, bottom_right, save_lse;
  int64_t deterministic;               // of the backward
  SdpaTensor tensors[sdpa::kTensors];  // those that the direction has
};

// The forward takes q, k, v and gives out and, with save_lse, lse; the backward takes these and dout, and gives dq, dk
// and dv. Every address is a multiple of 16.
struct SdpaCall {
  void* data[sdpa::kTensors];
  float scale;
  void* workspace;  // 64-byte aligned
  void* stream;
};

class SdpaGraph {
 public:
  virtual ~SdpaGraph() = default;
  virtual int64_t workspace() const = 0;  // bytes
  virtual Status run(const SdpaCall& call) const = 0;
};

struct SdpaMade {
  std::shared_ptr<const SdpaGraph> graph;  // null: `refusal` says why
  Refusal refusal;
};
SdpaMade make_sdpa(const SdpaProblem& problem);

}  // namespace baracuda::cuda
