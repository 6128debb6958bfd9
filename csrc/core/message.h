// What errors say, to every host: refusals as text, and as status codes.
#pragma once
#include <string>
#include <string_view>

#include "core/device.h"
#include "core/plan.h"
#include "core/select.h"

namespace baracuda {

// "x: got f16, want f32 (cast it first)".
BCU_API std::string line_of(const Refusal& refusal);
// An error's whole text: the first refusal, after where it happened.
BCU_API std::string message_of(const Refusals& refusals, std::string_view where);
BCU_API Status status_of(Code code);

// A failed launch as a refusal.
BCU_API Refusal refusal_of(const PlanCore& plan, Status status, const Failure& failure);

// What a kernel found in the data of an earlier launch, and whose that was: "embedding forward on cuda:1".
struct FaultReport {
  std::string where;
  Refusal refusal;
};
BCU_API FaultReport report_of(const DeviceFault& fault, Backend backend, int32_t device);

// Why a question has no plan: the candidates with all their reasons, nearest miss first.
struct NoPlan {
  bool unavailable = false;  // the device cannot be used, whatever is asked
  std::string message;
  Refusals refusals;
};
BCU_API NoPlan no_plan(const Question& question, const Selection& selection, std::string_view subject);

}  // namespace baracuda
