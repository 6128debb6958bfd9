// What a row makes once for a plan, when it is selected: the algorithms that a library chose, compiled code. Every
// launch of the plan reads it, none changes it.
#pragma once
#include "core/launch.h"
#include "core/row.h"

namespace baracuda {

struct Prepared {
  virtual ~Prepared() = default;
  int64_t workspace = 0;  // bytes that a launch needs, in place of the row's rule; -1: by that rule
};

struct Preparation {
  Problem problem;  // sizes are the maxima
  const Row* row = nullptr;
  int32_t device = 0;
  int64_t most_workspace = 0;  // what the caller allows
};

// Ok with `out`; Unsupported with `why`: the next row is asked; else an error that the module's last_error() tells.
using Prepare = Status (*)(const Preparation&, Prepared** out, Reason* why);

}  // namespace baracuda
