// The order of values as unsigned numbers, on every backend: -0 and 0 are the same, every NaN is the largest.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::sort {

// `sign`: the sign bit of signed integers and floats, 0 for unsigned integers. `infinity`: the bits of infinity; 0 for
// integers.
template <class U>
BCU_FN U key_of(U bits, U sign, U infinity) {
  if (infinity == U(0)) return U(bits ^ sign);
  U size = U(bits & U(~sign));
  U key = (bits & sign) != U(0) ? U(~bits) : U(bits | sign);
  key = size == U(0) ? sign : key;
  return size > infinity ? U(~U(0)) : key;
}
// Whether several values have this key, so that it does not tell which one it was.
template <class U>
BCU_FN bool is_shared(U key, U sign, U infinity) {
  return infinity != U(0) && (key == sign || key == U(~U(0)));
}
template <class U>
BCU_FN U bits_of_key(U key, U sign, U infinity) {
  if (infinity == U(0)) return U(key ^ sign);
  return (key & sign) != U(0) ? U(key ^ sign) : U(~key);
}

}  // namespace baracuda::sort
