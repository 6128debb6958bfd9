// From a format's number to its code: what hosts of kernels ask of the formats.
#pragma once
#include "ops/quant/encode_grids.h"

namespace baracuda::quant {

template <int kFormat>
struct Known {
  enum : int { kNumber = kFormat, kBytes = Blocks<kFormat>::kBytes, kValues = Blocks<kFormat>::kValues };
};

#define BCU_FORMAT(name) \
  case name:             \
    f(Known<name>());    \
    return true;

// f(Known<format>()) of a format that is written as well as read; false for another number.
template <class F>
bool with_written_format(int64_t format, F&& f) {
  switch (format) {
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
    BCU_FORMAT(kIQ4_XS)
    BCU_FORMAT(kTQ1_0)
    BCU_FORMAT(kTQ2_0)
    BCU_FORMAT(kMXFP4)
    default:
      return false;
  }
}

// f(Known<format>()); false for a number that is none.
template <class F>
bool with_format(int64_t format, F&& f) {
  switch (format) {
    BCU_FORMAT(kIQ2_XXS)
    BCU_FORMAT(kIQ2_XS)
    BCU_FORMAT(kIQ2_S)
    BCU_FORMAT(kIQ3_XXS)
    BCU_FORMAT(kIQ3_S)
    BCU_FORMAT(kIQ1_S)
    BCU_FORMAT(kIQ1_M)
    default:
      return with_written_format(format, f);
  }
}
#undef BCU_FORMAT

}  // namespace baracuda::quant
