#include "backends/cpu/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace baracuda {
namespace {

constexpr CpuLevel kAllLevels[] = {CpuLevel::Neon, CpuLevel::NeonDot, CpuLevel::V2,
                                   CpuLevel::V3,   CpuLevel::V4,      CpuLevel::V4X};

// Typical sizes, for systems that tell nothing: tile sizes derived from them are safe everywhere.
constexpr int64_t kDefaultL1d = 32 << 10;
constexpr int64_t kDefaultL2 = 512 << 10;
constexpr int64_t kDefaultL3 = 8 << 20;

constexpr uint32_t bit(int n) { return uint32_t{1} << n; }
constexpr bool has(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

#if defined(__linux__)

// First line of a small system file, without its newline; empty when it cannot be read.
std::string read_line(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return {};
  char line[256] = {};
  const bool got = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  if (!got) return {};
  line[std::strcspn(line, "\n")] = '\0';
  return line;
}

// "32K", "1024K", "8M" or plain bytes; 0 when malformed.
int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || value <= 0) return 0;
  if (*end == 'K') return value << 10;
  if (*end == 'M') return value << 20;
  return value;
}

// sysfs first: sysconf adds up the L3 instances on some machines and knows nothing on aarch64.
int64_t cache_bytes(int level, int sysconf_name, int64_t fallback) {
  constexpr int kMaxIndex = 8;
  for (int index = 0; index < kMaxIndex; ++index) {
    char path[128];
    auto field = [&](const char* name) {
      std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
      return read_line(path);
    };
    if (std::atoi(field("level").c_str()) != level || field("type") == "Instruction") continue;
    if (const int64_t bytes = parse_size(field("size")); bytes > 0) return bytes;
  }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (const long bytes = sysconf(sysconf_name); bytes > 0) return bytes;
#endif
  static_cast<void>(sysconf_name);
  return fallback;
}

int count_physical_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return usable_cpus();
  std::set<std::pair<std::string, std::string>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    char path[128];
    auto field = [&](const char* name) {
      std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
      return read_line(path);
    };
    std::string core = field("core_id");
    if (core.empty()) return usable_cpus();
    cores.emplace(field("physical_package_id"), std::move(core));
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

void fill_system(CpuInfo& info) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  constexpr int kNames[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
#else
  constexpr int kNames[] = {-1, -1, -1};
#endif
  info.l1d_bytes = cache_bytes(1, kNames[0], kDefaultL1d);
  info.l2_bytes = cache_bytes(2, kNames[1], kDefaultL2);
  info.l3_bytes = cache_bytes(3, kNames[2], kDefaultL3);
  info.physical_cores = count_physical_cores();
}

#elif defined(__APPLE__)

int64_t sysctl_number(const char* name, int64_t fallback) {
  int64_t value = 0;
  size_t bytes = sizeof value;
  return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value > 0 ? value : fallback;
}

void fill_system(CpuInfo& info) {
  info.l1d_bytes = sysctl_number("hw.l1dcachesize", kDefaultL1d);
  info.l2_bytes = sysctl_number("hw.l2cachesize", kDefaultL2);
  info.l3_bytes = sysctl_number("hw.l3cachesize", kDefaultL3);
  info.physical_cores = static_cast<int>(sysctl_number("hw.physicalcpu", 1));
}

#else

void fill_system(CpuInfo& info) {
  info.l1d_bytes = kDefaultL1d;
  info.l2_bytes = kDefaultL2;
  info.l3_bytes = kDefaultL3;
  info.physical_cores = usable_cpus();
}

#endif

std::string model_name() {
#if defined(__x86_64__)
  uint32_t words[13] = {};
  uint32_t highest = __get_cpuid_max(0x80000000u, nullptr);
  if (highest >= 0x80000004u) {
    for (uint32_t i = 0; i < 3; ++i) {
      __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
    }
    char text[sizeof words];
    std::memcpy(text, words, sizeof words);  // the thirteenth word ends the string
    std::string name = text;
    const size_t first = name.find_first_not_of(' ');
    const size_t last = name.find_last_not_of(' ');
    if (first != std::string::npos) return name.substr(first, last - first + 1);
  }
  return "x86-64";
#elif defined(__APPLE__)
  char text[256] = {};
  size_t bytes = sizeof text - 1;
  return sysctlbyname("machdep.cpu.brand_string", text, &bytes, nullptr, 0) == 0 ? text : "arm64";
#elif defined(__aarch64__)
  std::string part = read_line("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
  return part.empty() ? "aarch64" : "aarch64 midr " + part;
#else
  return "unknown";
#endif
}

}  // namespace

const char* cpu_level_name(CpuLevel level) noexcept {
  switch (level) {
    case CpuLevel::Neon:
      return "neon";
    case CpuLevel::NeonDot:
      return "neon_dot";
    case CpuLevel::V2:
      return "v2";
    case CpuLevel::V3:
      return "v3";
    case CpuLevel::V4:
      return "v4";
    case CpuLevel::V4X:
      return "v4x";
    case CpuLevel::Generic:
      break;
  }
  return "generic";
}

CpuidBits read_cpuid() noexcept {
  CpuidBits bits;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) bits.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    bits.leaf7_ebx = ebx;
    bits.leaf7_ecx = ecx;
    const uint32_t subleaves = eax;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) bits.leaf7_1_eax = eax;
  }
  if (__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx) != 0) bits.ext1_ecx = ecx;
  if (has(bits.leaf1_ecx, bit(27))) {  // OSXSAVE: xgetbv is legal
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    bits.xcr0 = (uint64_t{high} << 32) | low;
  }
#endif
  return bits;
}

CpuLevel x86_level(const CpuidBits& bits) noexcept {
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
  constexpr uint32_t kV2Leaf1 = bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23);
  if (!has(bits.leaf1_ecx, kV2Leaf1) || !has(bits.ext1_ecx, bit(0))) return CpuLevel::Generic;
  // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; the OS saves xmm and ymm.
  constexpr uint32_t kV3Leaf1 = bit(12) | bit(22) | bit(27) | bit(28) | bit(29);
  constexpr uint32_t kV3Leaf7 = bit(3) | bit(5) | bit(8);
  constexpr uint64_t kYmmState = 0x6;
  if (!has(bits.leaf1_ecx, kV3Leaf1) || !has(bits.leaf7_ebx, kV3Leaf7) || !has(bits.ext1_ecx, bit(5)) ||
      (bits.xcr0 & kYmmState) != kYmmState) {
    return CpuLevel::V2;
  }
  // AVX512 F, DQ, CD, BW, VL; the OS saves the mask registers and both halves of the zmm state.
  constexpr uint32_t kV4Leaf7 = bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
  constexpr uint64_t kZmmState = 0xe6;
  if (!has(bits.leaf7_ebx, kV4Leaf7) || (bits.xcr0 & kZmmState) != kZmmState) return CpuLevel::V3;
  const bool vnni = has(bits.leaf7_ecx, bit(11));
  const bool bf16 = has(bits.leaf7_1_eax, bit(5));
  return vnni && bf16 ? CpuLevel::V4X : CpuLevel::V4;
}

CpuLevel arm_level(uint64_t hwcap, uint64_t hwcap2) noexcept {
  // CRC32, ATOMICS, ASIMDRDM of Armv8.1, which the compiler may take; ASIMDDP; I8MM, BF16 of the second word.
  constexpr uint32_t kDot = bit(7) | bit(8) | bit(12) | bit(20), kDot2 = bit(13) | bit(14);
  const bool all = has(static_cast<uint32_t>(hwcap), kDot) && has(static_cast<uint32_t>(hwcap2), kDot2);
  return all ? CpuLevel::NeonDot : CpuLevel::Neon;
}

CpuLevel hardware_cpu_level() noexcept {
#if defined(__x86_64__)
  return x86_level(read_cpuid());
#elif defined(__aarch64__) && defined(__linux__)
  return arm_level(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#elif defined(__aarch64__) && defined(__APPLE__)
  const auto feature = [](const char* name) { return sysctl_number(name, 0) != 0; };
  const bool dot = feature("hw.optional.arm.FEAT_DotProd") && feature("hw.optional.arm.FEAT_I8MM") &&
                   feature("hw.optional.arm.FEAT_BF16");
  return dot ? CpuLevel::NeonDot : CpuLevel::Neon;
#elif defined(__aarch64__)
  return CpuLevel::Neon;
#else
  return CpuLevel::Generic;
#endif
}

bool cpu_level_runs_on(CpuLevel level, CpuLevel hardware) noexcept {
  const auto arm = [](CpuLevel l) { return l == CpuLevel::Neon || l == CpuLevel::NeonDot; };
  return arm(level) == arm(hardware) && level <= hardware;
}

CpuLevel best_cpu_level(std::string& error) {
  error.clear();
  const CpuLevel hardware = hardware_cpu_level();
  const char* wanted = std::getenv("BARACUDA_CPU_LEVEL");
  if (wanted == nullptr || *wanted == '\0') return hardware;
  std::string usable;
  bool known = false;
  for (const CpuLevel level : kAllLevels) {
    const char* name = cpu_level_name(level);
    known = known || std::strcmp(wanted, name) == 0;
    if (!cpu_level_runs_on(level, hardware)) continue;
    if (std::strcmp(wanted, name) == 0) return level;
    usable += (usable.empty() ? "" : ", ") + std::string(name);
  }
  error = "BARACUDA_CPU_LEVEL=" + std::string(wanted) +
          (known ? ": this machine lacks that level" : ": unknown level") +
          "; usable here: " + (usable.empty() ? "none" : usable);
  return hardware;
}

int usable_cpus() noexcept {
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

const CpuInfo& cpu_info() {
  // Kept for the life of the process: no destructor that could run before a last reader.
  static const CpuInfo* const info = [] {
    auto* fresh = new CpuInfo;
    fresh->model = model_name();
    fresh->level = hardware_cpu_level();
    fresh->usable_cpus = usable_cpus();
    fill_system(*fresh);
    return fresh;
  }();
  return *info;
}

}  // namespace baracuda
