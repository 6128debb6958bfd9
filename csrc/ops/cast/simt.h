// Element conversion on GPUs: the elementwise driver's own loads and stores, with nothing between them but the codes of
// 8-bit floats.
#pragma once
#include "ops/cast/math.h"
#include "simt/map.h"

namespace baracuda::simt {

// Their results are stored as any element, too.
template <int kMantissa>
struct Stores<cast::Decode<kMantissa>> {
  enum : int { kAny = 1 };
};
template <int kMantissa>
struct Stores<cast::Encode<kMantissa>> {
  enum : int { kAny = 1 };
};
template <int kFrom, int kTo>
struct Stores<cast::Recode<kFrom, kTo>> {
  enum : int { kAny = 1 };
};
template <bool kSigned>
struct Stores<cast::PackInt4<kSigned>> {
  enum : int { kAny = 1 };
};
template <bool kSigned>
struct Stores<cast::UnpackInt4<kSigned>> {
  enum : int { kAny = 1 };
};

}  // namespace baracuda::simt
