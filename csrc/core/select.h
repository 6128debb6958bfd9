// From a question to a plan: the first row of its op, in the order of preference, that takes it.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "core/api.h"
#include "core/plan.h"

namespace baracuda {

struct Selection {
  std::unique_ptr<PlanCore> plan;                  // null: no row takes the problem, or the device failed
  std::vector<std::pair<int32_t, Refusal>> later;  // rows that took it, but not when they were made ready for it
  bool failed = false;                             // with `failure`
  Refusal failure{};
};

// The rows of other backends are passed over; the plan has what `finish` makes of its signature.
BCU_API Selection select(const Question& question, Signature signature, int32_t threads);

}  // namespace baracuda
