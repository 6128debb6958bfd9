#include "emulator/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace baracuda::emulator {
namespace {

constexpr size_t kAlignment = 256;  // CUDA's
// Freed memory keeps its addresses, so that late accesses are found: this many pieces, and a thirtieth of the addresses
// (there are two such devices in a process, and tensors of holes with records of their accesses take up to 100 TB).
constexpr size_t kKeptFreed = 1024, kKeptBytes = size_t{4} << 40;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Puts memory that can be mapped again in the place of `pages` bytes; the second mapping, or null.
void* map_twice(void* at, size_t pages) {
  const int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void *host = MAP_FAILED, *device = MAP_FAILED;
  if (ftruncate(file, off_t(pages)) == 0) {
    host = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    device = mmap(at, pages, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
  }
  close(file);
  if (host != MAP_FAILED && device != MAP_FAILED) return host;
  if (host != MAP_FAILED) munmap(host, pages);
  return nullptr;
}

// Guarded by the runtime's mutex, as all of it.
std::vector<Allocation*> opened;
int several = 0;

// Nobody can touch any longer what the Opened of this number does not name.
void close_unwanted(uint64_t number) {
  std::erase_if(opened, [number](Allocation* a) {
    if (number && a->wanted == number) return false;
    mprotect(a->first_page(), a->pages, PROT_NONE);
    a->open = false;
    return true;
  });
}

}  // namespace

size_t Allocation::tail() const { return round_up(bytes, kAlignment); }

Allocation* Heap::allocate(int device, size_t bytes, bool host_view) {
  size_t pages = round_up(std::max<size_t>(bytes, 1), kPage);
  if (bytes > limit_ || size_t(used_) + bytes > limit_) return nullptr;
  void* memory = mmap(nullptr, pages + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  void* host = host_view ? map_twice(memory, pages) : nullptr;
  if (host_view && !host) return munmap(memory, pages + kPage), nullptr;
  auto* a = new Allocation;
  a->bytes = bytes, a->pages = pages, a->device = device;
  a->data = static_cast<char*>(memory) + pages - a->tail();
  if (host) a->host = static_cast<char*>(host) + pages - a->tail();
  a->region.begin = a->data, a->region.end = a->data + bytes;
  mprotect(memory, pages, PROT_READ | PROT_WRITE);
  if (bytes <= kDeviceMemory) std::memset(a->data, 0xff, a->tail());  // larger ones are holes
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(memory, size_t(a->data - static_cast<char*>(memory)));
  __asan_poison_memory_region(a->data + bytes, a->tail() - bytes);
#endif
  mprotect(memory, pages, PROT_NONE);
  return add(a);
}

Allocation* Heap::add(Allocation* a) {
  all_.insert(std::upper_bound(all_.begin(), all_.end(), a, [](auto* x, auto* y) { return x->data < y->data; }), a);
  used_ += int64_t(a->bytes);
  return a;
}

Allocation* Heap::borrow(int device, char* host, size_t bytes) {
  void* memory = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Of no bytes, shared memory is mapped once more, and other memory refused.
  if (mremap(host, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == MAP_FAILED)
    return munmap(memory, bytes + kPage), nullptr;
  mprotect(memory, bytes, PROT_NONE);
  auto* a = new Allocation;
  a->bytes = a->pages = bytes, a->device = device, a->borrowed = true;
  a->data = static_cast<char*>(memory), a->host = host;
  a->region.begin = a->data, a->region.end = a->data + bytes;
  return add(a);
}

void open_host_view(const Allocation& a, bool open) {
  if (a.host) mprotect(a.host + a.tail() - a.pages, a.pages, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool Heap::release(void* data) {
  auto found = std::find_if(all_.begin(), all_.end(), [&](auto* a) { return a->data == data; });
  if (found == all_.end()) return false;
  Allocation* a = *found;
  all_.erase(found);
  used_ -= int64_t(a->bytes);
  forget(a->region);
  char* first = a->first_page();
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(first, a->pages);
#endif
  if (a->host) {
    if (!a->borrowed) munmap(a->host + a->tail() - a->pages, a->pages);
    mmap(first, a->pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  madvise(first, a->pages, MADV_DONTNEED);
  freed_.push_back({first, a->pages + kPage});
  kept_ += freed_.back().second;
  while (freed_.size() > kKeptFreed || kept_ > kKeptBytes) {
    kept_ -= freed_.front().second;
    munmap(freed_.front().first, freed_.front().second);
    freed_.erase(freed_.begin());
  }
  a->freed = true;  // and stays, some bytes of it: captured work may still name it
  return true;
}

Allocation* Heap::find(const void* p) {
  auto* c = static_cast<const char*>(p);
  auto after = std::upper_bound(all_.begin(), all_.end(), c, [](auto* x, auto* a) { return x < a->data; });
  if (after == all_.begin()) return nullptr;
  Allocation* a = *--after;
  return c < a->data + std::max<size_t>(a->bytes, 1) ? a : nullptr;
}

int64_t Heap::live() const { return int64_t(all_.size()); }

std::string Heap::list() const {
  std::string text;
  for (const Allocation* a : all_)
    text += "  " + std::to_string(a->bytes) + " bytes on device " + std::to_string(a->device) + "\n";
  return text;
}

std::string Heap::describe(const void* p) const {
  auto* c = static_cast<const char*>(p);
  for (const Allocation* a : all_) {
    if (a->host && c >= a->host + a->tail() - a->pages && c < a->host + a->tail())
      return "memory that work under way uses: " + std::to_string(a->bytes) + " bytes";
    if (c < a->first_page() || c >= a->data + a->tail() + kPage) continue;
    std::string what = std::to_string(a->bytes) + " bytes of device " + std::to_string(a->device);
    if (c < a->data) return std::to_string(a->data - c) + " bytes before " + what;
    if (c >= a->data + a->bytes) return std::to_string(c - a->data - a->bytes) + " bytes past the end of " + what;
    return "byte " + std::to_string(c - a->data) + " of " + what;
  }
  for (auto [first, bytes] : freed_)
    if (c >= first && c < first + bytes) return "device memory that has been freed";
  return "";
}

Opened::Several::Several() { ++several; }

Opened::Several::~Several() {
  if (--several == 0) close_unwanted(0);
}

Opened::Opened(std::span<Allocation* const> allocations) {
  static uint64_t count = 0;
  ++count;
  for (Allocation* a : allocations) a->wanted = count;
  close_unwanted(count);
  for (Allocation* a : allocations) {
    if (a->open) continue;
    mprotect(a->first_page(), a->pages, PROT_READ | PROT_WRITE);
    a->open = true;
    opened.push_back(a);
  }
}

Opened::~Opened() {
  if (several == 0) close_unwanted(0);
}

bool Opened::gone(std::span<Allocation* const> allocations) {
  return std::any_of(allocations.begin(), allocations.end(), [](const Allocation* a) { return a->freed; });
}

}  // namespace baracuda::emulator
