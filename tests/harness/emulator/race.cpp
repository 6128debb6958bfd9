#include "emulator/race.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulator/emulator.h"

namespace baracuda::emulator {

Watch watch;

// The last access of one kind. Several readers, or several atomic writers, become one entry that stands for them all.
struct Access {
  uint32_t block = 0, epoch = 0;  // a block of an older launch: no access
  uint16_t warp_epoch = 0, who = 0;
  uint32_t pc = 0;  // from the anchor
};
struct Cell {
  Access write, read;
};

namespace {

// Access::who is a thread, or one of these; kAtomic is added to writes.
constexpr uint16_t kLanes = 0x4000, kThreads = 0x7ffe, kBlocks = 0x7fff, kAtomic = 0x8000;
constexpr int kCoarsest = 4;

struct Range {
  const char *begin, *end;
  bool holds(const char* p) const { return p >= begin && p < end; }
};

struct Memory {
  Region* shared = nullptr;
  std::vector<Bound*> bound;
  Region* last = nullptr;
  Range params{};
  std::vector<Range> module;  // data that bodies may read: tables of constants
};
Memory& memory() {
  static Memory* m = new Memory;
  return *m;
}
Memory* the;

const char* anchor() { return reinterpret_cast<const char*>(&access); }

std::string location(const void* pc) {
  Dl_info info;
  if (!dladdr(pc, &info) || !info.dli_fbase) return "?";
  size_t offset = size_t(static_cast<const char*>(pc) - static_cast<const char*>(info.dli_fbase)) - 1;
  char command[1200], line[600] = "";
  std::snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", info.dli_fname, offset);
  std::string found;
  if (FILE* pipe = popen(command, "r")) {
    // Innermost first; the vocabulary itself is not what a person looks for.
    while (std::fgets(line, sizeof line, pipe) && (found.empty() || found.find("/target_host.h:") != found.npos))
      found.assign(line, std::strcspn(line, " \n"));
    pclose(pipe);
  }
  size_t up = found.rfind("/../");  // of paths that the build gave relative to its folder
  if (up != found.npos) found.erase(0, up + 4);
  if (!found.empty() && found[0] != '?') return found;
  std::snprintf(line, sizeof line, "%.500s+0x%zx", info.dli_fname, offset);
  return line;
}

const char* name_of(const Region& region) {
  for (const Bound* b : the->bound)
    if (b->region == &region) return b->name.c_str();
  return "shared memory";
}

std::string block_name(uint32_t block) {
  Blocks b = block_of(block - watch.first_block);
  char text[64];
  std::snprintf(text, sizeof text, "block (%u, %u, %u)", b.x, b.y, b.z);
  return text;
}

std::string who(const Access& a) {
  uint16_t w = a.who & ~kAtomic;
  if (w == kBlocks) return "several blocks";
  if (w == kThreads) return "several threads of " + block_name(a.block);
  if (w & kLanes) return "several lanes of warp " + std::to_string(w & 31) + " of " + block_name(a.block);
  return "thread " + std::to_string(w) + " of " + block_name(a.block);
}

const char* verb(AccessKind kind) {
  return kind == AccessKind::Read ? "reads" : kind == AccessKind::Write ? "writes" : "atomically updates";
}

std::string myself() { return "thread " + std::to_string(watch.thread) + " of " + block_name(watch.block); }

[[noreturn]] void report_race(const Region& region, size_t offset, const Access& before, const char* had,
                              AccessKind kind, const void* pc) {
  watch.on = false;
  fail("RACE on byte %zu of %s: %s %s it at %s; %s %s it at %s", offset, name_of(region), myself().c_str(), verb(kind),
       location(pc).c_str(), who(before).c_str(), had, location(anchor() + int32_t(before.pc)).c_str());
}

[[noreturn]] void report_uninitialised(size_t offset, const void* pc) {
  watch.on = false;
  fail("UNINITIALISED: %s reads byte %zu of shared memory at %s, where nothing has been written", myself().c_str(),
       offset, location(pc).c_str());
}

[[noreturn]] void report_outside(const char* p, uint32_t bytes, AccessKind kind, const void* pc) {
  watch.on = false;
  const Region* nearest = nullptr;
  size_t distance = ~size_t{0};
  auto consider = [&](const Region* r) {
    size_t d = p >= r->end ? size_t(p - r->end) : p < r->begin ? size_t(r->begin - p) : 0;
    if (d < distance) distance = d, nearest = r;
  };
  for (const Bound* b : the->bound) consider(b->region);
  if (the->shared->begin != the->shared->end) consider(the->shared);
  std::string where = "at an address that is nothing to it";
  if (the->params.holds(p) || p == the->params.end)
    where = "in or past its parameters";
  else if (nearest && distance < (1u << 20))
    where = std::to_string(distance) + " bytes " +
            (p >= nearest->end ? "past the end of "
             : distance        ? "before "
                               : "into the last bytes of ") +
            name_of(*nearest);
  fail("OUT OF BOUNDS: %s %s %u bytes %s, at %s", myself().c_str(), verb(kind), bytes, where.c_str(),
       location(pc).c_str());
}

// Launches may bind hundreds of tensors, and most accesses are of parameters and of the thread's own stack.
Region* find(const char* p) {
  if (the->last && p >= the->last->begin && p < the->last->end) return the->last;
  if (p >= the->shared->begin && p < the->shared->end) return the->last = the->shared;
  if (the->params.holds(p) || on_own_stack(p)) return nullptr;
  auto after = std::upper_bound(the->bound.begin(), the->bound.end(), p,
                                [](const char* x, const Bound* b) { return x < b->region->begin; });
  if (after == the->bound.begin()) return nullptr;
  Region* region = (*--after)->region;
  return p < region->end ? the->last = region : nullptr;
}

bool readable(const char* p, uint32_t bytes) {
  if (the->params.holds(p)) return p + bytes <= the->params.end;
  return std::any_of(the->module.begin(), the->module.end(), [&](const Range& r) { return r.holds(p); });
}

constexpr size_t kMostlyHoles = size_t{2} << 30;

size_t bytes_of_cells(const Region& region, int shift) {
  return ((size_t(region.end - region.begin) >> shift) + 1) * sizeof(Cell);
}

// Cells of 2^shift bytes from now on; what was recorded holds for each part of a cell.
void refine(Region& region, int shift) {
  size_t bytes = size_t(region.end - region.begin);
  if (bytes > kMostlyHoles) shift = 0;  // never again: there are too many to copy
  void* memory = mmap(nullptr, bytes_of_cells(region, shift), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  auto* fine = memory == MAP_FAILED ? nullptr : static_cast<Cell*>(memory);
  if (!fine) fail("no memory for the race detector's records of %zu bytes", bytes);
  if (region.cells) {
    size_t n = (bytes >> region.shift) + 1, parts = size_t{1} << (region.shift - shift);
    for (size_t i = 0; i < n; ++i) {
      if (!region.cells[i].write.block && !region.cells[i].read.block) continue;
      for (size_t j = 0; j < parts && i * parts + j <= bytes >> shift; ++j) fine[i * parts + j] = region.cells[i];
    }
    forget(region);
  }
  region.cells = fine, region.shift = shift;
}

// The running thread's access as a record.
struct Now {
  uint32_t block, epoch;
  uint16_t warp_epoch, thread;
  uint32_t pc;

  uint16_t warp() const { return thread / 32; }
  bool before(const Access& a) const {  // a happened before this
    uint16_t w = a.who & ~kAtomic;
    if (a.block != block || w == kBlocks) return false;
    if (a.epoch < epoch || w == thread) return true;
    if (w == kThreads) return false;
    return (w & kLanes ? w & 31 : w / 32) == warp() && a.warp_epoch < warp_epoch;
  }
  Access alone(uint16_t flags = 0) const { return {block, epoch, warp_epoch, uint16_t(thread | flags), pc}; }
  // This access and the concurrent ones that `a` stands for, as one entry.
  Access together(const Access& a, uint16_t flags = 0) const {
    uint16_t w = a.who & ~kAtomic;
    if (before(a)) return alone(flags);
    if (a.block != block || w == kBlocks) return {block, epoch, warp_epoch, uint16_t(kBlocks | flags), pc};
    if (w != kThreads && (w & kLanes ? w & 31 : w / 32) == warp())
      return {block, epoch, warp_epoch, uint16_t(kLanes | warp() | flags), pc};
    return {block, epoch, warp_epoch, uint16_t(kThreads | flags), pc};
  }
};

void note(const Region& region, Cell& cell, size_t offset, AccessKind kind, const Now& now, const void* pc) {
  uint32_t oldest = region.shared ? watch.block : watch.first_block;
  bool written = cell.write.block >= oldest, read = cell.read.block >= oldest;
  bool atomic_before = cell.write.who & kAtomic;
  if (kind == AccessKind::Read) {
    if (region.shared && !written) report_uninitialised(offset, pc);
    if (written && !now.before(cell.write)) report_race(region, offset, cell.write, "wrote", kind, pc);
    cell.read = read ? now.together(cell.read) : now.alone();
    return;
  }
  if (read && !now.before(cell.read)) report_race(region, offset, cell.read, "read", kind, pc);
  bool both_atomic = kind == AccessKind::Atomic && atomic_before;
  if (written && !both_atomic && !now.before(cell.write))
    report_race(region, offset, cell.write, atomic_before ? "atomically updated" : "wrote", kind, pc);
  if (kind == AccessKind::Write)
    cell.write = now.alone(), cell.read.block = 0;
  else
    cell.write = written && atomic_before ? now.together(cell.write, kAtomic) : now.alone(kAtomic);
}

// The parts of the module that hold `code`: its tables of constants are no business of the detector's.
int add_module(dl_phdr_info* info, size_t, void* code) {
  std::vector<Range> parts;
  bool mine = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    auto* begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    parts.push_back({begin, begin + segment.p_memsz});
    mine |= parts.back().holds(static_cast<const char*>(code));
  }
  if (mine) the->module = parts;
  return mine;
}

}  // namespace

void begin_launch(Region* shared, const void* params, size_t param_bytes, std::span<Bound> bound, const void* code) {
  the = &memory();
  the->shared = shared, the->last = nullptr;
  the->params = {static_cast<const char*>(params), static_cast<const char*>(params) + param_bytes};
  the->bound.clear();
  for (Bound& b : bound) the->bound.push_back(&b);
  std::sort(the->bound.begin(), the->bound.end(),
            [](const Bound* a, const Bound* b) { return a->region->begin < b->region->begin; });
  the->module.clear();
  dl_iterate_phdr(&add_module, const_cast<void*>(code));
  watch.first_block = watch.block + 1;
  if (watch.block > 0xf0000000u) std::abort();  // numbers of blocks would repeat
}

void end_launch() {
  watch.on = false;
  the->last = the->shared = nullptr;
}

void begin_block() {
  ++watch.block;
  watch.shared_epoch = watch.global_epoch = 1;
  std::fill(std::begin(watch.warp_epoch), std::end(watch.warp_epoch), uint16_t{0});
#if defined(BCU_EMULATOR_RACE)
  watch.on = true;
#endif
}

void pass_barrier(bool global) {
  ++watch.shared_epoch;
  if (global) ++watch.global_epoch;
  std::fill(std::begin(watch.warp_epoch), std::end(watch.warp_epoch), uint16_t{0});
}

void pass_warp_sync(uint32_t warp) {
  if (++watch.warp_epoch[warp] == 0) fail("65536 warp_syncs without a barrier are more than the race detector counts");
}

void access(const void* p, uint32_t bytes, AccessKind kind, const void* pc) {
  auto* c = static_cast<const char*>(p);
  Region* region = find(c);
  if (!region) {
    if (on_own_stack(p) || (kind == AccessKind::Read && readable(c, bytes))) return;
    report_outside(c, bytes, kind, pc);
  }
  if (c + bytes > region->end) report_outside(c, bytes, kind, pc);
  size_t offset = size_t(c - region->begin);
  int shift = std::min(kCoarsest, std::countr_zero(offset | bytes));
  if (!region->cells || shift < region->shift) refine(*region, shift);
  Now now{watch.block, region->shared ? watch.shared_epoch : watch.global_epoch,
          region->shared ? watch.warp_epoch[watch.thread / 32] : uint16_t{0}, uint16_t(watch.thread),
          uint32_t(static_cast<const char*>(pc) - anchor())};
  size_t last = (offset + bytes - 1) >> region->shift;
  for (size_t i = offset >> region->shift; i <= last; ++i) note(*region, region->cells[i], offset, kind, now, pc);
}

void forget(Region& region) {
  if (region.cells) munmap(region.cells, bytes_of_cells(region, region.shift));
  region.cells = nullptr;
}

}  // namespace baracuda::emulator
