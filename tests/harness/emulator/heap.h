// A fake device's memory: pages that nobody can touch except while a kernel or a copy runs, so that the host
// faults where it follows a device pointer. Blocks end at a page's end and begin with NaN bits.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/race.h"

namespace baracuda::emulator {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kDeviceMemory = size_t{2} << 30;

struct Allocation {
  char* data = nullptr;
  char* host = nullptr;         // where the host sees the same memory, if it does
  size_t bytes = 0, pages = 0;  // mapped bytes; a guard page follows them
  int device = 0;
  bool borrowed = false;  // the host's own
  bool freed = false;     // what a graph still names
  bool open = false;
  uint64_t wanted = 0, bound = 0;  // the last Opened, and the last launch, that named it
  Region region;
  char* first_page() const { return data + tail() - pages; }
  size_t tail() const;  // bytes from `data` to the guard page
};

class Heap {
 public:
  // Null when the device's memory is used up.
  Allocation* allocate(int device, size_t bytes, bool host_view = false);
  // Whole pages of the host's, which the device sees elsewhere; null where they are not shareable, as malloc's.
  Allocation* borrow(int device, char* host, size_t bytes);
  bool release(void* data);
  // What holds p, or null. A pointer just past the end is held by nothing.
  Allocation* find(const void* p);
  int64_t live() const;
  int64_t live_bytes() const { return used_; }
  std::string list() const;
  // In words, where an address lies; empty if it is not near device memory.
  std::string describe(const void* p) const;
  // How much memory there is: more than the machine has, for tensors that are mostly holes.
  void set_limit(size_t bytes) { limit_ = bytes; }

 private:
  Allocation* add(Allocation* a);
  std::vector<Allocation*> all_;                 // by address
  std::vector<std::pair<char*, size_t>> freed_;  // kept unmapped-but-reserved for a while: late uses fault
  size_t kept_ = 0;                              // bytes of addresses in freed_
  int64_t used_ = 0;
  size_t limit_ = kDeviceMemory;
};

// Makes memory accessible for as long as it lives; where one follows another within Several, what both name stays so.
class Opened {
 public:
  // Of launches one after another: a list's 600 launches would each open and close all tensors of the list.
  class Several {
   public:
    Several();
    ~Several();
    Several(const Several&) = delete;
    Several& operator=(const Several&) = delete;
  };

  explicit Opened(std::span<Allocation* const> allocations);
  ~Opened();
  // Says so where memory was freed since the work that needs it was given: a graph may be launched at any time.
  static bool gone(std::span<Allocation* const> allocations);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
};

// Lets the host touch what it sees of an allocation, or not.
void open_host_view(const Allocation& a, bool open);

}  // namespace baracuda::emulator
