// Rows of backends that this build does not have: they need no cpu kernel, and every question names them with the
// reason.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "backends/cpu/family.h"
#include "backends/cpu/loader.h"
#include "core/evaluate.h"
#include "core/plan.h"
#include "skus.inc"

namespace baracuda {

template <>
struct CpuKernel<sample::Here> {
  static Status run(const Launch&) { return Status::Ok; }
};

}  // namespace baracuda

namespace baracuda {
namespace {

// As the build compiles a family in two slices.
using Kernels = std::array<Kernel, 4>;
constexpr Kernel kHere = &CpuKernel<sample::Here>::run;
constexpr Kernels kFirstSlice = cpu_kernels<sample::kTable, 0, 2>(), kSecondSlice = cpu_kernels<sample::kTable, 1, 2>();
static_assert(cpu_kernels<sample::kTable>() == Kernels{kHere, nullptr, nullptr, kHere});
static_assert(kFirstSlice == Kernels{kHere} && kSecondSlice == Kernels{nullptr, nullptr, nullptr, kHere});

constexpr FamilyKernels kFirst = {"sample", kFirstSlice.data(), 4}, kSecond = {"sample", kSecondSlice.data(), 4};
constexpr const FamilyKernels* kFamilies[] = {&kFirst, &kSecond};

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  std::exit(1);
}

bool has(const Answer& a, Code code, const char* reason) {
  for (const Refusal& r : a.refusals)
    if (r.code == code && r.hint.find(reason) != std::string::npos) return true;
  return false;
}

void kernels_are_found_in_any_slice() {
  std::string reason;
  check(find_kernel(0, reason) == kHere && find_kernel(3, reason) == kHere, "cpu rows have their kernels");
  check(!find_kernel(1, reason) && reason.find("no module of the cuda backend") != std::string::npos,
        "cuda row: reason");
  check(!find_kernel(2, reason) && reason.find("no module of the metal backend") != std::string::npos,
        "metal row: reason");
}

void unbuilt_rows_stay_visible(Backend asked) {
  Question q;
  q.op = "sample", q.direction = Direction::Forward, q.backend = asked, q.element = Element::F32, q.has_problem = true;
  const auto answers = evaluate_all(q);
  check(answers.size() == 3, "every row of the op and direction is answered for");
  check((answers[0].verdict == Verdict::Yes) == (asked != Backend::Cuda), "the cpu row");
  // Only a backend that is asked about is looked at: that may start its driver.
  const bool any = asked == Backend::Any;
  check(has(answers[1], Code::NotBuilt, "no module of the cuda backend") == (any || asked == Backend::Cuda),
        "the cuda row says why it cannot run");
  check(has(answers[2], Code::NotBuilt, "no module of the metal backend") == any,
        "the metal row says why it cannot run");
  check(has(answers[2], Code::Backend, "") == !any, "a row of another backend says so");
}

void captures_refuse_what_they_cannot_hold() {
  Row row = row_at(1);
  Refusal why;
  check(!refuse_in_capture(row, false, false, why) && !refuse_in_capture(row, true, false, why),
        "a row says it is safe");
  check(refuse_in_capture(row, false, true, why) && why.hint.find("pass stream=") == 0,
        "the default stream is no place");
  row.flags &= ~kCaptureSafe;
  check(!refuse_in_capture(row, false, false, why), "a row that is not safe runs where nothing is captured");
  check(refuse_in_capture(row, true, false, why) && why.code == Code::Capture && why.field == "stream" &&
            why.hint.find("not capture_safe") != std::string::npos,
        "and says why it does not run where something is");
}

}  // namespace

LoadedBackend open_cpu_backend() {
  LoadedBackend b;
  b.state = {true, true, 4, "v4", ""};
  b.families.emplace_back(kFamilies);
  return b;
}

}  // namespace baracuda

int main() {
  baracuda::kernels_are_found_in_any_slice();
  for (auto asked : {baracuda::Backend::Any, baracuda::Backend::Cpu, baracuda::Backend::Cuda})
    baracuda::unbuilt_rows_stay_visible(asked);
  baracuda::captures_refuse_what_they_cannot_hold();
  std::puts("ok");
}
