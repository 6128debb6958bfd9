// Host memory of bc.Tensor and of results that are torch's: what small tensors give back is kept for the next ones of
// about their size.
#pragma once
#include <cstddef>
#include <cstdint>

namespace baracuda::bindings {

// 64-byte aligned. Which list of the pool it goes back to, or -1 where it goes back to the system.
struct HostMemory {
  void* data = nullptr;
  int32_t list = -1;
};

// Blocks of up to kPooledMost bytes come in multiples of 64 up to 256 and in four sizes per power of two above; of each
// size at most kPooledBytes are kept, so that the pool never holds more than 44 MiB that nobody uses. Larger ones are
// the system's, from 8 MiB on with huge pages. Null `data`: there is no memory.
inline constexpr int kPoolLists = 44;
inline constexpr size_t kPooledMost = size_t(256) << 10;
inline constexpr size_t kPooledBytes = size_t(1) << 20;
HostMemory take_host_memory(size_t bytes);
void give_host_memory(HostMemory memory);
// Bytes that are kept now.
size_t pooled_bytes();

}  // namespace baracuda::bindings
