#include "bindings/host_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace baracuda::bindings {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;  // so that it sees memory that is used after it was given back
#else
constexpr bool kKeeps = true;
#endif

constexpr int list_of(size_t bytes) {
  if (bytes <= 256) return bytes <= 64 ? 0 : static_cast<int>((bytes - 1) / 64);
  const int octave = std::bit_width(bytes - 1) - 1;  // at least 8
  return (octave - 8) * 4 + static_cast<int>((bytes - 1) >> (octave - 2)) % 4 + 4;
}
constexpr size_t block_of(int list) {
  if (list < 4) return size_t(list + 1) * 64;
  return size_t(list % 4 + 5) << (list / 4 - 1 + 6);
}
static_assert(list_of(kPooledMost) == kPoolLists - 1 && block_of(kPoolLists - 1) == kPooledMost);
static_assert(list_of(0) == 0 && list_of(65) == 1 && list_of(256) == 3 && list_of(257) == 4);
static_assert(block_of(4) == 320 && block_of(7) == 512 && list_of(513) == 8 && block_of(8) == 640);

// Held for a few instructions; of a mutex, letting go costs as much as taking it.
class Spin {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

struct Block {
  Block* next;
};
struct List {
  Spin mutex;
  Block* first = nullptr;
  size_t bytes = 0;
};

// Never destroyed: tensors may outlive everything else.
List* lists();

void lock_all() {
  for (int i = 0; i < kPoolLists; ++i) lists()[i].mutex.lock();
}
void unlock_all() {
  for (int i = 0; i < kPoolLists; ++i) lists()[i].mutex.unlock();
}

// A child that is forked while another thread holds a list would wait for it for ever.
List* make_lists() {
  auto* made = new List[kPoolLists];
  pthread_atfork(&lock_all, &unlock_all, &unlock_all);
  return made;
}

List* lists() {
  static List* const all = make_lists();
  return all;
}

}  // namespace

HostMemory take_host_memory(size_t bytes) {
  if (bytes <= kPooledMost) {
    const int at = list_of(bytes);
    List& list = lists()[at];
    {
      std::lock_guard lock(list.mutex);
      if (Block* block = list.first) {
        list.first = block->next;
        list.bytes -= block_of(at);
        return {block, at};
      }
    }
    return {std::aligned_alloc(64, block_of(at)), at};
  }
  const bool large = bytes >= 4 * kHugePage;
  const size_t align = large ? kHugePage : 64;
  const size_t rounded = (bytes + align - 1) / align * align;
  if (rounded < bytes) return {};
  void* memory = std::aligned_alloc(align, rounded);
  if (memory && large) madvise(memory, rounded, MADV_HUGEPAGE);
  return {memory, -1};
}

void give_host_memory(HostMemory memory) {
  if (kKeeps && memory.list >= 0 && memory.data) {
    List& list = lists()[memory.list];
    std::lock_guard lock(list.mutex);
    if (list.bytes + block_of(memory.list) <= kPooledBytes) {
      list.first = new (memory.data) Block{list.first};
      list.bytes += block_of(memory.list);
      return;
    }
  }
  std::free(memory.data);
}

size_t pooled_bytes() {
  size_t bytes = 0;
  for (int i = 0; i < kPoolLists; ++i) {
    std::lock_guard lock(lists()[i].mutex);
    bytes += lists()[i].bytes;
  }
  return bytes;
}

}  // namespace baracuda::bindings
