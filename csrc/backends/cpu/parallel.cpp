#include "core/parallel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "backends/cpu/pace.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/probe.h"
#include "backends/cpu/shares.h"
#include "core/float_state.h"

// A test takes the pool on Linux, too.
#if defined(__linux__) && !defined(BCU_OWN_POOL)
#define BCU_SHARES_LIBGOMP 1
#include <link.h>
#else
#define BCU_SHARES_LIBGOMP 0
#endif

#if defined(__SANITIZE_THREAD__)
// libgomp is not instrumented: its fork and join have to be told to ThreadSanitizer.
#include <sanitizer/tsan_interface.h>
#define BCU_TSAN_ACQUIRE(address) __tsan_acquire(address)
#define BCU_TSAN_RELEASE(address) __tsan_release(address)
#else
#define BCU_TSAN_ACQUIRE(address) static_cast<void>(address)
#define BCU_TSAN_RELEASE(address) static_cast<void>(address)
#endif

namespace baracuda {
namespace {

constexpr int kMinThreadBound = 8;     // lets a two-core machine test oversubscribed teams
constexpr int kMaxThreadBound = 1024;  // beyond this a setting is taken for a slip
constexpr int kMaxHostThreads = 64;    // bits of HostRegion::taken
constexpr size_t kPathBytes = 4096;

#if !defined(BCU_LIBGOMP)
#define BCU_LIBGOMP \
  "libgomp.so.1"  // a test names a library that no system has, to reach the bundled and the serial case
#endif

struct Runtime {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags) = nullptr;  // null: serial
  int (*omp_max_threads)() = nullptr;
  int (*omp_thread_num)() = nullptr;
  int (*omp_in_parallel)() = nullptr;
  int env_threads = 0;  // BARACUDA_NUM_THREADS, 0 when unset
  int bound = 0;
  char text[kPathBytes + 64] = {};
};

constinit std::mutex g_init_mutex;
constinit Runtime g_storage;
constinit std::atomic<const Runtime*> g_runtime{nullptr};
constinit std::atomic<bool> g_forked{false};
constinit std::atomic<bool> g_fork_handler{false};
constinit std::atomic<bool> g_team_busy{false};
constinit Pace g_pace;                             // of whoever has the team
constinit std::atomic<int64_t> g_serial_until{0};  // 0: teams are worth it
constinit std::atomic<int64_t> g_stalls{0};
constinit std::atomic<int> g_paced{-1};  // -1: as BARACUDA_PACE_THREADS says, which is read with the first region
constinit std::atomic<int> g_set_threads{0};
constinit char g_bundled_path[kPathBytes] = {};

constinit thread_local int t_limit = 0;
constinit thread_local int t_index = 0;
constinit thread_local int t_region_threads = 0;  // 0 outside a parallel body
constinit thread_local const HostThreads* t_host = nullptr;

// 0 when unset; -1 when malformed.
int threads_from_env() {
  const char* text = std::getenv("BARACUDA_NUM_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  return errno == 0 && *end == '\0' && value >= 1 && value <= kMaxThreadBound ? static_cast<int>(value) : -1;
}

// 1 when unset; -1 when malformed.
int pacing_from_env() {
  const char* text = std::getenv("BARACUDA_PACE_THREADS");
  if (text == nullptr || *text == '\0') return 1;
  return (*text == '0' || *text == '1') && text[1] == '\0' ? *text - '0' : -1;
}

#if BCU_SHARES_LIBGOMP

constexpr const char* kRuntimeName = BCU_LIBGOMP;

// Path of the first mapped library whose file name starts with "libgomp": wheels rename theirs to libgomp-<hash>.so.
int find_mapped_libgomp(dl_phdr_info* info, size_t, void* data) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (std::strncmp(name, "libgomp", 7) != 0) return 0;
  std::snprintf(static_cast<char*>(data), kPathBytes, "%s", info->dlpi_name);
  return 1;
}

bool resolve(Runtime& rt, void* handle) {
  auto load = [handle](auto& fn, const char* symbol) {
    fn = reinterpret_cast<std::remove_reference_t<decltype(fn)>>(dlsym(handle, symbol));
    return fn != nullptr;
  };
  const bool found = load(rt.omp_max_threads, "omp_get_max_threads") && load(rt.omp_thread_num, "omp_get_thread_num") &&
                     load(rt.omp_in_parallel, "omp_in_parallel") && load(rt.parallel, "GOMP_parallel");
  if (!found) rt.parallel = nullptr;
  return found;
}

// True for a process that came from fork() without exec(): the kernel's PF_FORKNOEXEC, in the ninth field of
// /proc/self/stat.
bool forked_without_exec() {
  std::FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return false;
  char text[1024] = {};
  const size_t bytes = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[bytes] = '\0';
  const char* after_name = std::strrchr(text, ')');  // the second field may hold anything
  unsigned flags = 0;
  constexpr unsigned kForkNoExec = 0x40;
  return after_name != nullptr && std::sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
         (flags & kForkNoExec) != 0;
}

// True when this libgomp came into the process by a fork that our own handler did not see, because baracuda was loaded
// after it: the parent has it at the same place. Its workers stayed in the parent, so a region that the forking thread
// starts here could hang.
bool inherited_by_fork(const void* base) {
  if (base == nullptr || !forked_without_exec()) return false;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/maps", static_cast<int>(getppid()));
  std::FILE* maps = std::fopen(path, "re");
  if (maps == nullptr) return false;
  bool found = false;
  char line[kPathBytes + 128];
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    const auto start = static_cast<uintptr_t>(std::strtoull(line, nullptr, 16));
    found = start == reinterpret_cast<uintptr_t>(base) && std::strstr(line, "libgomp") != nullptr;
  }
  std::fclose(maps);
  return found;
}

// `handle` is never closed: the workers run in that library until the process ends.
bool adopt(Runtime& rt, void* handle, const char* origin) {
  if (handle == nullptr || !resolve(rt, handle)) return false;
  Dl_info info{};
  const bool named = dladdr(reinterpret_cast<void*>(rt.parallel), &info) != 0 && info.dli_fname != nullptr;
  if (named && inherited_by_fork(info.dli_fbase)) {
    rt.parallel = nullptr;
    std::snprintf(rt.text, sizeof rt.text, "serial (libgomp was loaded before this process was forked)");
    return true;
  }
  std::snprintf(rt.text, sizeof rt.text, "%s: %s", origin, named ? info.dli_fname : kRuntimeName);
  return true;
}

// The copy that was named, or the one that wheels have beside this library.
bool find_bundled(char* path) {
  if (g_bundled_path[0] != '\0') return std::snprintf(path, kPathBytes, "%s", g_bundled_path) > 0;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_bundled), &info) == 0 || info.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash - info.dli_fname) : 0;
  return folder > 0 && std::snprintf(path, kPathBytes, "%.*s/fallback/libgomp.so.1", folder, info.dli_fname) > 0;
}

void open_runtime(Runtime& rt) {
  // Matches the SONAME too, so torch's own copy is found; the second look finds renamed copies.
  if (adopt(rt, dlopen(kRuntimeName, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), "shared")) return;
  char path[kPathBytes] = {};
  if (dl_iterate_phdr(find_mapped_libgomp, path) != 0 &&
      adopt(rt, dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), "shared")) {
    return;
  }
  if (adopt(rt, dlopen(kRuntimeName, RTLD_NOW | RTLD_LOCAL), "system")) return;
  const char* why = dlerror();
  std::snprintf(rt.text, sizeof rt.text, "serial (no libgomp: %s)", why != nullptr ? why : "symbols missing");
  if (find_bundled(path)) adopt(rt, dlopen(path, RTLD_NOW | RTLD_LOCAL), "bundled");
}

#else

void open_runtime(Runtime& rt) {
  rt.parallel = pool_parallel;
  rt.omp_thread_num = pool_thread_num;
  rt.omp_max_threads = [] { return usable_cpus(); };
  rt.omp_in_parallel = [] { return 0; };
  std::snprintf(rt.text, sizeof rt.text, "own threads");
}

#endif

void after_fork_in_child() { g_forked.store(true, std::memory_order_relaxed); }

const Runtime& open_once() {
  init_parallel();
  const std::lock_guard lock(g_init_mutex);
  if (const Runtime* opened = g_runtime.load(std::memory_order_relaxed)) return *opened;
  Runtime& rt = g_storage;
  const int env = threads_from_env();
  rt.env_threads = env > 0 ? env : 0;
  int unset = -1;
  g_paced.compare_exchange_strong(unset, pacing_from_env() != 0);
  open_runtime(rt);
  int bound = std::max({kMinThreadBound, usable_cpus(), rt.env_threads});
  if (rt.parallel != nullptr) bound = std::max(bound, rt.omp_max_threads());
  rt.bound = std::min(bound, kMaxThreadBound);
  g_runtime.store(&rt, std::memory_order_release);
  return rt;
}

inline const Runtime& runtime() {
  const Runtime* rt = g_runtime.load(std::memory_order_acquire);
  return rt != nullptr ? *rt : open_once();
}

inline bool forked() { return g_forked.load(std::memory_order_relaxed); }

// Team size before any ThreadLimit. OpenMP's own setting is asked anew each time: a team of another size than torch's
// would make libgomp end and start threads at every change between the two.
int team_size(const Runtime& rt) {
  if (rt.parallel == nullptr) return 1;
  int n = g_set_threads.load(std::memory_order_relaxed);
  if (n <= 0) n = rt.env_threads > 0 ? rt.env_threads : rt.omp_max_threads();
  return std::clamp(n, 1, rt.bound);
}

int limited(int threads) { return t_limit > 0 && t_limit < threads ? t_limit : threads; }

struct Region {
  ParallelBody body;
  void* ctx;
  int64_t n;
  int64_t grain;
  int64_t chunks;
  int threads;  // workers that take chunks; under a ThreadLimit fewer than the team has
  bool timed;
  int64_t own_chunks, own_until;  // of a timed region: chunks that the caller ran, and when it had done so
  Shares* shares;                 // of a region that the team runs
};

inline void run_chunk(const Region& region, int64_t chunk) {
  const int64_t begin = chunk * region.grain;
  const int64_t left = region.n - begin;
  region.body(region.ctx, begin, left < region.grain ? region.n : begin + region.grain);
}

void run_serial(const Region& region) {
  for (int64_t chunk = 0; chunk < region.chunks; ++chunk) run_chunk(region, chunk);
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Whether a team was found not to be worth it, not long ago.
bool goes_alone() {
  const int64_t until = g_serial_until.load(std::memory_order_relaxed);
  if (until == 0) [[likely]]
    return false;
  if (nanoseconds() < until) return true;
  g_serial_until.store(0, std::memory_order_relaxed);
  return false;
}

void worker(void* data) noexcept {
  Region& region = *static_cast<Region*>(data);
  BCU_TSAN_ACQUIRE(&region.body);
  const int index = g_storage.omp_thread_num();
  if (index < region.threads) {
    const FloatState kernels_own;
    t_index = index;
    t_region_threads = region.threads;
    const int64_t chunks = region.shares->take(index, [&](int64_t chunk) { run_chunk(region, chunk); });
    if (index == 0 && region.timed) region.own_chunks = chunks, region.own_until = nanoseconds();
    t_index = 0;
    t_region_threads = 0;
  }
  BCU_TSAN_RELEASE(&region.threads);
}

// What one thread would have taken follows from the chunks that the caller ran, if there were any.
void keep_pace(const Region& region, int64_t start) {
  if (region.own_chunks == 0) return;
  const int64_t now = nanoseconds();
  const double each = static_cast<double>(region.own_until - start) / static_cast<double>(region.own_chunks);
  const auto serial = static_cast<int64_t>(each * static_cast<double>(region.chunks));
  const int64_t until = g_pace.finished(serial, now - start, now);
  if (until == 0) return;
  g_serial_until.store(until, std::memory_order_relaxed);
  g_stalls.store(g_pace.stalls(), std::memory_order_relaxed);
}

// False when the region has to run serially.
bool run_parallel(Region& region) {
  if (forked() || t_region_threads != 0) return false;
  const Runtime& rt = runtime();
  const int team = team_size(rt);
  region.threads = limited(team);
  if (region.threads < 2 || rt.omp_in_parallel() != 0 || goes_alone()) return false;
  // One region at a time: with k callers in parallel, k teams would fight for the same cores.
  if (g_team_busy.load(std::memory_order_relaxed) || g_team_busy.exchange(true, std::memory_order_acquire))
    return false;
  region.timed = g_paced.load(std::memory_order_relaxed) == 1 && g_pace.times_next();
  const int64_t start = region.timed ? nanoseconds() : 0;
  Shares shares(region.chunks, region.threads);
  region.shares = &shares;
  BCU_TSAN_RELEASE(&region.body);
  rt.parallel(worker, &region, static_cast<unsigned>(team), 0);
  BCU_TSAN_ACQUIRE(&region.threads);
  if (region.timed) keep_pace(region, start);
  g_team_busy.store(false, std::memory_order_release);
  return true;
}

// A region on a host's threads. Each that comes takes a free index, and waits where there is none; which chunk it was
// called for does not matter, as long as it comes.
struct HostRegion {
  Region& region;
  std::atomic<int64_t> next{0};  // the first chunk that nobody has
  std::atomic<uint64_t> taken{0};

  int take() {
    for (;;) {
      uint64_t now = taken.load(std::memory_order_relaxed);
      const int index = std::countr_one(now);
      if (index >= region.threads) {
        sched_yield();
      } else if (taken.compare_exchange_weak(now, now | uint64_t{1} << index, std::memory_order_acquire)) {
        return index;
      }
    }
  }
  void give(int index) { taken.fetch_and(~(uint64_t{1} << index), std::memory_order_release); }

  static void body(void* data, int64_t) {
    auto& host = *static_cast<HostRegion*>(data);
    const int64_t chunk = host.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= host.region.chunks) return;
    const int index = host.take();
    const FloatState kernels_own;
    t_index = index;
    t_region_threads = host.region.threads;
    run_chunk(host.region, chunk);
    t_index = 0;
    t_region_threads = 0;
    host.give(index);
  }
};

void run_on_host(Region& region, const HostThreads& threads) {
  region.threads = num_threads();
  HostRegion host{region};
  threads.run(threads.context, region.chunks, &HostRegion::body, &host);
  while (host.next.load(std::memory_order_relaxed) < region.chunks) HostRegion::body(&host, 0);
}

}  // namespace

HostThreads::HostThreads(HostParallelFor run, void* context) noexcept : run(run), context(context), before_(t_host) {
  if (run != nullptr) t_host = this;
}
HostThreads::~HostThreads() { t_host = before_; }

void parallel_for_raw(int64_t n, int64_t grain, ParallelBody body, void* ctx) noexcept {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) {
    body(ctx, 0, n);
    return;
  }
  Region region{body, ctx, n, grain, (n - 1) / grain + 1, 1, false, 0, 0, nullptr};
  if (t_host != nullptr && t_region_threads == 0) return run_on_host(region, *t_host);
  if (!run_parallel(region)) run_serial(region);
}

int num_threads() noexcept {
  if (t_region_threads != 0) return t_region_threads;
  if (t_host != nullptr) return std::min(limited(runtime().bound), kMaxHostThreads);
  return forked() ? 1 : limited(team_size(runtime()));
}

void set_num_threads(int n) noexcept { g_set_threads.store(n, std::memory_order_relaxed); }

int thread_index() noexcept { return t_index; }

int max_threads() noexcept {
  // A forked child keeps the answer that plans made in the parent were sized with.
  const Runtime* rt = g_runtime.load(std::memory_order_acquire);
  if (rt == nullptr && forked()) return kMinThreadBound;
  return rt != nullptr ? rt->bound : open_once().bound;
}

ThreadPace thread_pace() noexcept {
  const int64_t until = g_serial_until.load(std::memory_order_relaxed);
  const int paced = g_paced.load(std::memory_order_relaxed);
  return {paced < 0 ? pacing_from_env() != 0 : paced == 1, g_stalls.load(std::memory_order_relaxed),
          until != 0 && nanoseconds() < until};
}

void set_thread_pacing(bool on) noexcept {
  g_paced.store(on, std::memory_order_relaxed);
  if (!on) g_serial_until.store(0, std::memory_order_relaxed);
}

const char* thread_runtime() noexcept { return forked() ? "serial (forked child)" : runtime().text; }

void init_parallel() noexcept {
  if (g_fork_handler.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(g_init_mutex);
  if (g_fork_handler.load(std::memory_order_relaxed)) return;
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  g_fork_handler.store(true, std::memory_order_release);
}

bool check_thread_settings(std::string& error) {
  error.clear();
  if (pacing_from_env() < 0) {
    error = "BARACUDA_PACE_THREADS must be 0 or 1, got '" + std::string(std::getenv("BARACUDA_PACE_THREADS")) + "'";
    return false;
  }
  if (threads_from_env() >= 0) return true;
  error = "BARACUDA_NUM_THREADS must be an integer from 1 to " + std::to_string(kMaxThreadBound) + ", got '" +
          std::getenv("BARACUDA_NUM_THREADS") + "'";
  return false;
}

void set_bundled_thread_runtime(const char* path) noexcept {
  const std::lock_guard lock(g_init_mutex);
  std::snprintf(g_bundled_path, sizeof g_bundled_path, "%s", path != nullptr ? path : "");
}

int exchange_thread_limit(int limit) noexcept {
  const int before = t_limit;
  t_limit = limit > 0 ? limit : 0;
  return before;
}

}  // namespace baracuda
