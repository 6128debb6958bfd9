// Appending new keys or values to a cache: a copy whose position is checked before anything is written.
#include <cstring>

#include "ops/attention/cpu.h"

namespace baracuda::attention {
namespace {

enum : int { kNew, kPositions, kCache };

void copy_row(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n, int64_t size) {
  if ((to_stride == size && from_stride == size) || n == 1) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(size));
}

}  // namespace

Status cache_append(const Launch& launch) {
  const TensorView &cache = launch[kCache], &x = launch[kNew], &positions = launch[kPositions];
  const int64_t batch = x.shape[0], heads = x.shape[1], n = x.shape[2], d = x.shape[3], size = size_of(x.element);
  const int64_t start = positions.present() ? 0 : launch.scalars[0].as_i64();
  const auto position = [&](int64_t b) {
    if (!positions.present()) return start;
    const int64_t offset = positions.shape[0] == 1 ? 0 : b * positions.strides[0];
    return positions.element == Element::I32 ? int64_t{positions.as<const int32_t>()[offset]}
                                             : positions.as<const int64_t>()[offset];
  };
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t at = position(b), limit = cache.shape[2] - n + 1;
    if (at >= 0 && at < limit) continue;
    *launch.failure = {positions.present() ? kPositions : kCache, b, at, limit};
    return Status::IndexOutOfRange;
  }
  const auto address = [size](const TensorView& t, int64_t b, int64_t h, int64_t s) {
    return t.as<char>() + (b * t.strides[0] + h * t.strides[1] + s * t.strides[2]) * size;
  };
  parallel_for(batch * heads, grain_for(n * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / heads, h = i % heads, at = position(b);
      for (int64_t s = 0; s < n; ++s)
        copy_row(address(cache, b, h, at + s), cache.strides[3] * size, address(x, b, h, s), x.strides[3] * size, d,
                 size);
    }
  });
  return Status::Ok;
}

}  // namespace baracuda::attention
