// From a format's number to its code: what hosts of kernels ask of the formats.
#pragma once
#include "ops/quant/encode_k.h"

namespace baracuda::quant {

template <int kFormat>
struct Known {
  enum : int { kNumber = kFormat, kBytes = Blocks<kFormat>::kBytes, kValues = Blocks<kFormat>::kValues };
};

// f(Known<format>()); false for a number that is none.
template <class F>
bool with_format(int64_t format, F&& f) {
  switch (format) {
#define BCU_FORMAT(name) \
  case name:             \
    f(Known<name>());    \
    return true;
    BCU_FORMAT(kQ4_0)
    BCU_FORMAT(kQ4_1)
    BCU_FORMAT(kQ5_0)
    BCU_FORMAT(kQ5_1)
    BCU_FORMAT(kQ8_0)
    BCU_FORMAT(kQ2_K)
    BCU_FORMAT(kQ3_K)
    BCU_FORMAT(kQ4_K)
    BCU_FORMAT(kQ5_K)
    BCU_FORMAT(kQ6_K)
    BCU_FORMAT(kQ8_K)
    BCU_FORMAT(kIQ4_NL)
    BCU_FORMAT(kMXFP4)
#undef BCU_FORMAT
    default:
      return false;
  }
}

}  // namespace baracuda::quant
