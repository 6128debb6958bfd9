// `probe_test levels` checks the rules on machines described by hand; `probe_test print` shows this machine for
// test_parallel.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/probe.h"
#include "check.h"

namespace bc = baracuda;
using bc::CpuidBits;
using bc::CpuLevel;

namespace {

// Every bit set: the best machine there is. Each check below takes one thing away.
CpuidBits everything() { return {~0u, ~0u, ~0u, ~0u, ~0u, ~uint64_t{0}}; }

template <class Change>
CpuLevel level_after(Change change) {
  CpuidBits bits = everything();
  change(bits);
  return bc::x86_level(bits);
}

void test_levels() {
  CHECK(bc::x86_level(everything()) == CpuLevel::V4X);
  CHECK(bc::x86_level(CpuidBits{}) == CpuLevel::Generic);
  for (const int bit : {0, 9, 13, 19, 20, 23}) {
    CHECK(level_after([&](CpuidBits& b) { b.leaf1_ecx &= ~(1u << bit); }) == CpuLevel::Generic);
  }
  CHECK(level_after([](CpuidBits& b) { b.ext1_ecx &= ~1u; }) == CpuLevel::Generic);
  for (const int bit : {12, 22, 27, 28, 29}) {
    CHECK(level_after([&](CpuidBits& b) { b.leaf1_ecx &= ~(1u << bit); }) == CpuLevel::V2);
  }
  for (const int bit : {3, 5, 8}) {
    CHECK(level_after([&](CpuidBits& b) { b.leaf7_ebx &= ~(1u << bit); }) == CpuLevel::V2);
  }
  CHECK(level_after([](CpuidBits& b) { b.ext1_ecx &= ~(1u << 5); }) == CpuLevel::V2);
  for (const int bit : {16, 17, 28, 30, 31}) {
    CHECK(level_after([&](CpuidBits& b) { b.leaf7_ebx &= ~(1u << bit); }) == CpuLevel::V3);
  }
  CHECK(level_after([](CpuidBits& b) { b.leaf7_ecx &= ~(1u << 11); }) == CpuLevel::V4);
  CHECK(level_after([](CpuidBits& b) { b.leaf7_1_eax &= ~(1u << 5); }) == CpuLevel::V4);
  // A kernel or hypervisor that does not save the wide registers: cpuid alone would promise too much.
  CHECK(level_after([](CpuidBits& b) { b.xcr0 = 0; }) == CpuLevel::V2);
  CHECK(level_after([](CpuidBits& b) { b.xcr0 = 0x3; }) == CpuLevel::V2);
  CHECK(level_after([](CpuidBits& b) { b.xcr0 = 0x7; }) == CpuLevel::V3);
  CHECK(level_after([](CpuidBits& b) { b.xcr0 = 0x67; }) == CpuLevel::V3);
  CHECK(level_after([](CpuidBits& b) { b.xcr0 = 0xe7; }) == CpuLevel::V4X);

  // CRC32, ATOMICS, ASIMDRDM, ASIMDDP; I8MM, BF16: none may lack, and others do not matter.
  constexpr uint64_t kWord = 1u << 7 | 1u << 8 | 1u << 12 | 1u << 20, kWord2 = 1u << 13 | 1u << 14, kAll = ~uint64_t{0};
  CHECK(bc::arm_level(kWord, kWord2) == CpuLevel::NeonDot && bc::arm_level(kAll, kAll) == CpuLevel::NeonDot);
  CHECK(bc::arm_level(0, 0) == CpuLevel::Neon);
  for (uint64_t one = 1; one != 0; one <<= 1) {
    CHECK(bc::arm_level(kAll & ~one, kAll) == (kWord & one ? CpuLevel::Neon : CpuLevel::NeonDot));
    CHECK(bc::arm_level(kAll, kAll & ~one) == (kWord2 & one ? CpuLevel::Neon : CpuLevel::NeonDot));
  }

  CHECK(bc::cpu_level_runs_on(CpuLevel::V2, CpuLevel::V4X) && bc::cpu_level_runs_on(CpuLevel::V3, CpuLevel::V3));
  CHECK(!bc::cpu_level_runs_on(CpuLevel::V4, CpuLevel::V3) && !bc::cpu_level_runs_on(CpuLevel::V4X, CpuLevel::V4));
  CHECK(!bc::cpu_level_runs_on(CpuLevel::Neon, CpuLevel::V4X) && !bc::cpu_level_runs_on(CpuLevel::V2, CpuLevel::Neon));
  CHECK(bc::cpu_level_runs_on(CpuLevel::Neon, CpuLevel::NeonDot) &&
        !bc::cpu_level_runs_on(CpuLevel::NeonDot, CpuLevel::Neon));
  CHECK(!bc::cpu_level_runs_on(CpuLevel::V4X, CpuLevel::NeonDot) &&
        !bc::cpu_level_runs_on(CpuLevel::NeonDot, CpuLevel::V4X));
  CHECK(!bc::cpu_level_runs_on(CpuLevel::V2, CpuLevel::Generic));
  CHECK(bc::cpu_level_runs_on(CpuLevel::Generic, CpuLevel::Generic));
}

void print() {
  std::string error = "not cleared";
  const CpuLevel best = bc::best_cpu_level(error);
  const bc::CpuInfo& info = bc::cpu_info();
  std::printf(
      "best=%s\nhardware=%s\nerror=%s\nmodel=%s\nusable_cpus=%d\nphysical_cores=%d\nl1d=%lld\nl2=%lld\nl3=%lld\n",
      bc::cpu_level_name(best), bc::cpu_level_name(info.level), error.c_str(), info.model.c_str(), info.usable_cpus,
      info.physical_cores, static_cast<long long>(info.l1d_bytes), static_cast<long long>(info.l2_bytes),
      static_cast<long long>(info.l3_bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "levels") == 0) {
    test_levels();
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "print") == 0) {
    print();
    return 0;
  }
  std::fputs("usage: probe_test levels|print\n", stderr);
  return 2;
}
