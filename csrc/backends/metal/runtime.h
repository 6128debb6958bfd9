// What the metal module's own files share. Objective-C++ with manual retain and release, without blocks; every function
// but those that take no Lock is called with the runtime's lock held.
#pragma once
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/metal/entry.h"
#include "core/device.h"

namespace baracuda::metal {

// A strong reference to an object, which it takes over from functions called new..., alloc... or copy....
template <class T>
class Own {
 public:
  Own() = default;
  explicit Own(T taken) : object_(taken) {}
  Own(Own&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Own& operator=(Own&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Own() { [object_ release]; }
  static Own kept(T object) { return Own([object retain]); }
  T get() const { return object_; }
  void drop() { [std::exchange(object_, nil) release]; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

// Launch with the text kept for last_error(), on this thread.
Status failed(const char* format, ...) __attribute__((format(printf, 1, 2)));
// The same in Metal's own words.
Status failed(const char* doing, NSError* error);
const char* last_error();

using Lock = std::unique_lock<std::mutex>;

// Memory on the device, known by the addresses that kernels use.
struct Block {
  Own<id<MTLBuffer>> buffer;
  uint64_t address = 0;
  int64_t bytes = 0;    // of the buffer
  uint64_t used = 0;    // the last command buffer that names it
  uint64_t marked = 0;  // the last launch that was looking for its memory
  int adopted = 0;      // uses of what another library made
  bool foreign = false, lent = false;
  bool pages = false;  // of the host, which goes when they are given up
  char* contents(uint64_t at) const { return static_cast<char*>([buffer.get() contents]) + (at - address); }
};

// What a command buffer says when it is done.
struct Signal {
  Own<id<MTLSharedEvent>> event;
  uint64_t value;
};

struct Submitted {
  Own<id<MTLCommandBuffer>> buffer;
  uint64_t serial;
  std::vector<Signal> signals;
};

// A queue of the device's work. What it is given is batched: the command buffer is committed when it is full, and when
// somebody waits.
struct Stream {
  Own<id<MTLCommandQueue>> queue;
  Own<id<MTLCommandBuffer>> open;
  Own<id<MTLComputeCommandEncoder>> encoder;
  Own<id<MTLSharedEvent>> order;  // has the serial of what is done, for the streams that wait for this one
  std::vector<Signal> signals;    // of `open`
  uint64_t serial = 0;            // of `open`, or of what was last committed
  int dispatches = 0;             // in `open`
  bool whole = false;             // a run, whose launches share a command buffer however many they are
  int pieces = 0;                 // command buffers that were committed for it
  bool blocking = true;           // ordered with the default stream
  bool leaving = false;           // destroyed, with work under way
  std::deque<Submitted> under_way;
};

struct Event {
  Own<id<MTLSharedEvent>> event;
  Own<id<MTLCommandBuffer>> recorded;  // the last one that signals it
  uint64_t value = 0;                  // which that command buffer signals; 0: never recorded
  bool timing = false;
};

struct Gpu {
  std::mutex mutex;
  Own<id<MTLDevice>> device;
  bool unified = false;
  Stream main;
  std::vector<Stream*> streams;
  uint64_t serials = 0;                 // of command buffers, over all streams, in the order that they are begun
  std::string told;                     // why a command buffer failed, until somebody who waits is told
  std::map<uint64_t, Block> blocks;     // by address
  std::vector<Block> pool;              // given back; may be used by command buffers up to `used`
  int64_t pooled = 0, most_pooled = 0;  // bytes
  Block status;                         // the status word
};

// The system's GPU, looked for once; null with last_error().
Gpu* gpu();

// --- queues.mm
extern const DeviceQueues kQueues;
Stream& stream_of(Gpu& g, void* stream);
// The encoder of the stream's next dispatch, or nil with last_error().
id<MTLComputeCommandEncoder> compute_encoder(Gpu& g, Stream& s);
// The command buffer for what is no dispatch, without an encoder; or nil with last_error().
id<MTLCommandBuffer> open_buffer(Gpu& g, Stream& s);
void commit(Gpu& g, Stream& s);
// A dispatch was encoded.
void dispatched(Gpu& g, Stream& s);
// Waits without the lock, and takes note of what has ended since.
void wait_for(Gpu& g, Lock& lock, id<MTLCommandBuffer> buffer);
// Waits for all command buffers up to this one, for one stream, or for all.
void wait_until(Gpu& g, Lock& lock, uint64_t serial);
void settle(Gpu& g, Lock& lock, Stream& s);
void settle_all(Gpu& g, Lock& lock);
// Takes note of command buffers that have ended; those before the result all have.
uint64_t reap(Gpu& g);
// Launch where a command buffer failed since the last call.
Status told(Gpu& g);

// --- memory.mm
Status allocate(Gpu& g, Lock& lock, int64_t bytes, uint64_t* address);
Status release(Gpu& g, uint64_t address);
// What holds an address; null where nothing does. A pointer just past the end is held by nothing.
Block* find(Gpu& g, uint64_t address);
// Gives memory of the pool back to the system that no work uses, beyond what the pool may hold.
void trim(Gpu& g, int64_t most);
// Buffers of other libraries, and ours for them.
extern const DeviceObjects kObjects;
Status copy(Gpu& g, Lock& lock, Stream& s, void* to, const void* from, int64_t bytes, CopyKind kind);
Status fill(Gpu& g, Stream& s, uint64_t to, int32_t byte, int64_t bytes);

// --- library.mm
const Pipeline* pipeline(Gpu& g, Entry& entry);
// The kernel of a text that is no family's, for the life of the process; null with last_error().
const Pipeline* pipeline_of_text(Gpu& g, const std::string& text, const Entry& entry);
id<MTLComputePipelineState> state_of(const Pipeline& p);
// The folder that this module lies in.
std::string own_folder();

// What every function of the module's table does first.
#define BCU_METAL_ENTER              \
  Gpu* found = gpu();                \
  if (!found) return Status::Launch; \
  Gpu& g [[maybe_unused]] = *found;  \
  Lock lock(g.mutex);                \
  @autoreleasepool

inline uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

}  // namespace baracuda::metal
