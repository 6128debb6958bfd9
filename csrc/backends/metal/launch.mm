// Launches: a pipeline, its parameters, and all the memory that they lead to.
#include <algorithm>
#include <cstring>

#include "backends/metal/runtime.h"
#include "simt/launch.h"

namespace baracuda::metal {
namespace {

// The memory of one launch. Kernels are given addresses, not buffers, so that Metal has to be told what they lead to.
class Residents {
 public:
  explicit Residents(Gpu& g) : g_(g) { ++launches_; }

  bool add(uint64_t address) {
    Block* b = address ? find(g_, address) : nullptr;
    if (b && b->marked != launches_) {
      b->marked = launches_;
      blocks_.push_back(b);
    }
    return b;
  }

  // Every tensor of the call is memory of this device. False with last_error() and which one is not.
  bool add(const Launch& launch, const char* kernel) {
    for (int p = 0; p < launch.n_params; ++p) {
      for (int i = launch.first[p]; i < launch.first[p + 1]; ++i) {
        const TensorView& t = launch.tensors[i];
        if (!t.present() || t.device == Backend::Cpu || t.numel() == 0) continue;
        if (add(address_of(t.data))) continue;
        if (launch.failure) launch.failure->tensor = i;
        return failed("%s: %p is no memory of this device", kernel, t.data), false;
      }
    }
    return true;
  }

  // Addresses among the parameters: workspaces, numbers on the device, the status word. What only looks like an address
  // keeps a buffer resident that is not used.
  void add(const void* params, size_t bytes) {
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(params) + at, 8);
      add(word);
      if (g_.status.address == word) status_ = true;
    }
  }

  void use(id<MTLComputeCommandEncoder> encoder, uint64_t serial) {
    constexpr MTLResourceUsage kUsage = MTLResourceUsageRead | MTLResourceUsageWrite;
    for (Block* b : blocks_) {
      [encoder useResource:b->buffer.get() usage:kUsage];
      b->used = serial;
    }
    if (!status_) return;
    [encoder useResource:g_.status.buffer.get() usage:kUsage];
    g_.status.used = serial;
  }

 private:
  static inline uint64_t launches_ = 0;
  Gpu& g_;
  std::vector<Block*> blocks_;
  bool status_ = false;
};

constinit thread_local bool rehearsing = false;

bool is_grid(const Entry& entry, const Blocks& grid, int threads) {
  const bool fits = grid.x > 0 && grid.x <= simt::kMaxGridX && grid.y > 0 && grid.y <= simt::kMaxGridYZ && grid.z > 0 &&
                    grid.z <= simt::kMaxGridYZ;
  if (fits && threads > 0 && threads % 32 == 0 && uint32_t(threads) <= entry.most_threads) return true;
  failed("%s: %lld x %lld x %lld groups of %d threads (at most %u, in groups of 32)", entry.name, (long long)grid.x,
         (long long)grid.y, (long long)grid.z, threads, entry.most_threads);
  return false;
}

}  // namespace

void rehearse(bool on) { rehearsing = on; }

Status submit(const Launch& launch, Entry& entry, Blocks grid, int threads, const void* params) {
  Gpu* found = gpu();
  if (!found) return Status::Launch;
  Gpu& g = *found;
  Lock lock(g.mutex);
  @autoreleasepool {
    const Pipeline* p = rehearsing || is_grid(entry, grid, threads) ? pipeline(g, entry) : nullptr;
    if (!p) return Status::Launch;
    if (rehearsing) return Status::Ok;
    Residents residents(g);
    if (!residents.add(launch, entry.name)) return Status::Launch;
    residents.add(address_of(launch.workspace));
    residents.add(params, entry.param_bytes);
    Stream& s = stream_of(g, launch.stream);
    id<MTLComputeCommandEncoder> encoder = compute_encoder(g, s);
    if (!encoder) return Status::Launch;
    [encoder setComputePipelineState:state_of(*p)];
    [encoder setBytes:params length:entry.param_bytes atIndex:0];
    residents.use(encoder, s.serial);
    [encoder dispatchThreadgroups:MTLSizeMake(NSUInteger(grid.x), NSUInteger(grid.y), NSUInteger(grid.z))
            threadsPerThreadgroup:MTLSizeMake(NSUInteger(threads), 1, 1)];
    dispatched(g, s);
    return Status::Ok;
  }
}

}  // namespace baracuda::metal

namespace baracuda::simt {

Fault* fault_of(const Launch&) {
  metal::Gpu* g = metal::gpu();
  return g ? reinterpret_cast<Fault*>(g->status.address) : nullptr;
}

}  // namespace baracuda::simt
