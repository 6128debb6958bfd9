// Memory by buffers: found by the addresses that the GPU knows them by, given back to a pool, copied.
#include "backends/metal/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace baracuda::metal {
namespace {

constexpr int64_t kSmall = 64 << 10;

// A buffer of the pool serves sizes that waste at most an eighth; small ones exactly their own.
bool serves(const Block& b, int64_t bytes) {
  return b.bytes == bytes || (bytes >= kSmall && b.bytes > bytes && b.bytes - bytes <= b.bytes / 8);
}

bool take_from_pool(Gpu& g, int64_t bytes, Block& out) {
  const uint64_t oldest = reap(g);
  auto best = g.pool.end();
  for (auto b = g.pool.begin(); b != g.pool.end(); ++b)
    if (b->used < oldest && serves(*b, bytes) && (best == g.pool.end() || b->bytes < best->bytes)) best = b;
  if (best == g.pool.end()) return false;
  out = std::move(*best);
  g.pool.erase(best);
  g.pooled -= out.bytes;
  return true;
}

bool make_block(Gpu& g, int64_t bytes, bool shared, Block& out) {
  const MTLResourceOptions options = shared ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate;
  out.buffer = Own<id<MTLBuffer>>([g.device.get() newBufferWithLength:NSUInteger(bytes) options:options]);
  if (!out.buffer) return false;
  out.address = [out.buffer.get() gpuAddress], out.bytes = bytes, out.used = 0;
  return true;
}

// Of memory that the host cannot reach, the way to it and from it: a buffer that both reach.
Status staged(Gpu& g, Lock& lock, Stream& s, Block& block, uint64_t at, void* host, int64_t bytes, bool to_device) {
  Block stage;
  if (!make_block(g, bytes, true, stage))
    return failed("copying memory: no %lld bytes that host and device share", (long long)bytes);
  char* shared = stage.contents(stage.address);
  if (to_device) std::memcpy(shared, host, size_t(bytes));
  id<MTLCommandBuffer> buffer = open_buffer(g, s);
  id<MTLBlitCommandEncoder> blit = buffer ? [buffer blitCommandEncoder] : nil;
  if (!blit) return failed("copying memory: the command buffer has no encoder for copies");
  id<MTLBuffer> ours = block.buffer.get(), theirs = stage.buffer.get();
  const NSUInteger offset = at - block.address;
  if (to_device)
    [blit copyFromBuffer:theirs sourceOffset:0 toBuffer:ours destinationOffset:offset size:NSUInteger(bytes)];
  else
    [blit copyFromBuffer:ours sourceOffset:offset toBuffer:theirs destinationOffset:0 size:NSUInteger(bytes)];
  [blit endEncoding];
  block.used = s.serial;
  settle(g, lock, s);
  const Status status = told(g);
  if (status == Status::Ok && !to_device) std::memcpy(host, shared, size_t(bytes));
  return status;
}

// The block that holds `bytes` from an address on, or null with last_error().
Block* holding(Gpu& g, const void* p, int64_t bytes, const char* doing) {
  Block* b = find(g, address_of(p));
  if (!b || int64_t(address_of(p) - b->address) + bytes > b->bytes)
    return failed("%s: %lld bytes at %p are not all memory of this device", doing, (long long)bytes, p), nullptr;
  return b;
}

Status copy_on_device(Gpu& g, Stream& s, void* to, const void* from, int64_t bytes) {
  Block *source = holding(g, from, bytes, "copying memory"), *target = holding(g, to, bytes, "copying memory");
  id<MTLCommandBuffer> buffer = source && target ? open_buffer(g, s) : nil;
  if (!buffer) return Status::Launch;
  id<MTLBlitCommandEncoder> blit = [buffer blitCommandEncoder];
  if (!blit) return failed("copying memory: the command buffer has no encoder for copies");
  [blit copyFromBuffer:source->buffer.get()
           sourceOffset:address_of(from) - source->address
               toBuffer:target->buffer.get()
      destinationOffset:address_of(to) - target->address
                   size:NSUInteger(bytes)];
  [blit endEncoding];
  source->used = target->used = s.serial;
  dispatched(g, s);
  return Status::Ok;
}

// A foreign block outlives its uses for as long as work names it: copies to and from it wait for that.
bool is_done_with(const Block& b, uint64_t oldest) { return b.foreign && !b.adopted && b.used < oldest; }

// An object as a buffer of our device; nil with last_error(). Whoever adds an offset to the object's address has an
// address that is no object's, which is seen where it cannot be one.
id<MTLBuffer> buffer_of(Gpu& g, void* object) {
  if (address_of(object) % alignof(void*) != 0)
    return failed("%p, which is the address of no MTLBuffer: offsets belong into byte_offset", object), nil;
  auto buffer = static_cast<id<MTLBuffer>>(object);
  if (![buffer respondsToSelector:@selector(gpuAddress)])
    return failed("an object of class %.80s, want an MTLBuffer", [NSStringFromClass([buffer class]) UTF8String]), nil;
  if ([[buffer device] registryID] != [g.device.get() registryID])
    return failed("a buffer of another Metal device, %.80s", [[[buffer device] name] UTF8String]), nil;
  return buffer;
}

Status adopt(int32_t, void* object, void** address, int64_t* bytes) {
  BCU_METAL_ENTER {
    id<MTLBuffer> buffer = buffer_of(g, object);
    if (!buffer) return Status::Launch;
    const uint64_t at = [buffer gpuAddress];
    Block& block = g.blocks[at];
    if (!block.buffer) {
      block.buffer = Own<id<MTLBuffer>>::kept(buffer);
      block.address = at, block.bytes = int64_t([buffer length]), block.foreign = true;
    }
    if (block.buffer.get() != buffer)
      return failed("a buffer at the address of another one that is in use, as heaps place them that are aliasable");
    ++block.adopted;
    *address = reinterpret_cast<void*>(at), *bytes = block.bytes;
    return Status::Ok;
  }
}

Status give_up(int32_t, void* address) {
  BCU_METAL_ENTER {
    auto found = g.blocks.find(address_of(address));
    if (found == g.blocks.end() || found->second.adopted == 0)
      return failed("giving up memory: %p was not adopted", address);
    if (found->second.pages) wait_until(g, lock, found->second.used);
    --found->second.adopted;
    if (is_done_with(found->second, reap(g))) g.blocks.erase(found);
    return Status::Ok;
  }
}

Status lend(int32_t, const void* address, void** object, int64_t* offset) {
  BCU_METAL_ENTER {
    Block* block = find(g, address_of(address));
    if (!block) return failed("%p is no memory of this device", address);
    block->lent = true;
    *object = block->buffer.get(), *offset = int64_t(address_of(address) - block->address);
    return Status::Ok;
  }
}

// Pages of the host as a buffer: whole ones, which nobody may unmap before they are given up.
Status share(int32_t, void* host, int64_t bytes, void** address) {
  BCU_METAL_ENTER {
    const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
    if (!g.unified) return failed("the GPU has memory of its own");
    if (address_of(host) % page != 0)
      return failed("%p is not the beginning of a page of %llu bytes", host, (unsigned long long)page);
    const uint64_t whole = (uint64_t(bytes) + page - 1) / page * page;
    Block block;
    block.buffer = Own<id<MTLBuffer>>([g.device.get() newBufferWithBytesNoCopy:host
                                                                        length:NSUInteger(whole)
                                                                       options:MTLResourceStorageModeShared
                                                                   deallocator:nil]);
    if (!block.buffer) return failed("Metal makes no buffer of the %lld bytes at %p", (long long)bytes, host);
    block.address = [block.buffer.get() gpuAddress], block.bytes = bytes, block.foreign = block.pages = true;
    block.adopted = 1;
    *address = reinterpret_cast<void*>(block.address);
    if (g.blocks.emplace(block.address, std::move(block)).second) return Status::Ok;
    return failed("%p is shared already", host);
  }
}

}  // namespace

constinit const DeviceObjects kObjects = {&adopt, &give_up, &lend, &share};

Status allocate(Gpu& g, Lock& lock, int64_t bytes, uint64_t* address) {
  bytes = std::max<int64_t>(bytes, 1);
  Block block;
  bool made = take_from_pool(g, bytes, block) || make_block(g, bytes, g.unified, block);
  if (!made && !g.pool.empty()) {  // what work still uses is free when that is done
    settle_all(g, lock);
    made = take_from_pool(g, bytes, block);
    if (!made) {
      trim(g, 0);
      made = make_block(g, bytes, g.unified, block);
    }
  }
  if (!made) {
    failed("allocating device memory: Metal has no buffer of %lld bytes", (long long)bytes);
    return Status::Workspace;
  }
  *address = block.address;
  g.blocks.emplace(block.address, std::move(block));
  return Status::Ok;
}

Status release(Gpu& g, uint64_t address) {
  auto found = g.blocks.find(address);
  if (found == g.blocks.end() || found->second.foreign)
    return failed("freeing device memory: %p is no memory of this device", (void*)address);
  Block block = std::move(found->second);
  g.blocks.erase(found);
  if (block.lent) return Status::Ok;  // another library's work may still use it, of which we know nothing
  g.pooled += block.bytes;
  g.pool.push_back(std::move(block));
  trim(g, g.most_pooled);
  return Status::Ok;
}

Block* find(Gpu& g, uint64_t address) {
  auto after = g.blocks.upper_bound(address);
  if (after == g.blocks.begin()) return nullptr;
  Block& b = (--after)->second;
  return address < b.address + uint64_t(b.bytes) ? &b : nullptr;
}

void trim(Gpu& g, int64_t most) {
  const uint64_t oldest = reap(g);
  std::erase_if(g.blocks, [&](const auto& b) { return is_done_with(b.second, oldest); });
  if (g.pooled <= most) return;
  std::erase_if(g.pool, [&](const Block& b) {  // the oldest first
    const bool goes = g.pooled > most && b.used < oldest;
    if (goes) g.pooled -= b.bytes;
    return goes;
  });
}

Status copy(Gpu& g, Lock& lock, Stream& s, void* to, const void* from, int64_t bytes, CopyKind kind) {
  if (bytes == 0) return Status::Ok;
  if (kind == CopyKind::OnDevice) return copy_on_device(g, s, to, from, bytes);
  const bool to_device = kind == CopyKind::ToDevice;
  const void* on_device = to_device ? to : from;
  void* host = to_device ? const_cast<void*>(from) : to;
  Block* block = holding(g, on_device, bytes, "copying memory");
  if (!block) return Status::Launch;
  if ([block->buffer.get() storageMode] == MTLStorageModePrivate)
    return staged(g, lock, s, *block, address_of(on_device), host, bytes, to_device);
  // The host does the copy itself, when all work that was given with this memory is done.
  const auto kept = Own<id<MTLBuffer>>::kept(block->buffer.get());
  char* contents = block->contents(address_of(on_device));
  wait_until(g, lock, block->used);
  if (const Status status = told(g); status != Status::Ok) return status;
  std::memcpy(to_device ? contents : to, to_device ? from : contents, size_t(bytes));
  return Status::Ok;
}

Status fill(Gpu& g, Stream& s, uint64_t to, int32_t byte, int64_t bytes) {
  if (bytes == 0) return Status::Ok;
  Block* block = holding(g, reinterpret_cast<void*>(to), bytes, "filling memory");
  id<MTLCommandBuffer> buffer = block ? open_buffer(g, s) : nil;
  if (!buffer) return Status::Launch;
  id<MTLBlitCommandEncoder> blit = [buffer blitCommandEncoder];
  if (!blit) return failed("filling memory: the command buffer has no encoder for copies");
  [blit fillBuffer:block->buffer.get() range:NSMakeRange(to - block->address, NSUInteger(bytes)) value:uint8_t(byte)];
  [blit endEncoding];
  block->used = s.serial;
  dispatched(g, s);
  return Status::Ok;
}

}  // namespace baracuda::metal
