// In place of cudnn_sdpa.cpp where cuDNN's headers were not at hand.
#include "backends/cuda/sdpa.h"

namespace baracuda::cuda {

SdpaMade make_sdpa(const SdpaProblem&) {
  return {nullptr,
          {Code::NotBuilt, "cudnn", "a build without cuDNN's headers", "a build with them",
           "build with the nvidia-cudnn-frontend, nvidia-cudnn-cu13 and nvidia-cuda-nvrtc packages at hand: "
           "docs/building.md"}};
}

}  // namespace baracuda::cuda
