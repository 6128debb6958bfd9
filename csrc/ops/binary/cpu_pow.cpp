// pow of floats: pieces of positive bases and finite exponents take half the time without the other cases.
#include <algorithm>

#include "ops/binary/cpu.h"

namespace baracuda::binary {

void pow_loop(const float* const* in, float* const* out, int64_t n, const void*) {
  constexpr int64_t kPiece = 256;
  const float *a = in[0], *b = in[1];
  float* y = out[0];
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t end = std::min(n, at + kPiece);
    int32_t special = 0;
    for (int64_t i = at; i < end; ++i) special |= math::is_plain_pow(a[i], b[i]) ? 0 : 1;
    if (special) {
#pragma GCC ivdep
      for (int64_t i = at; i < end; ++i) y[i] = Pow::f(a[i], b[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = at; i < end; ++i) y[i] = b[i] == 2.0f ? a[i] * a[i] : math::pow_plain(a[i], b[i]);
    }
  }
}

}  // namespace baracuda::binary
