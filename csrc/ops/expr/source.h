// The text of a program's kernel for GPUs, of functors from the families' own headers.
#pragma once
#include <string>

#include "core/source.h"
#include "ops/expr/program.h"

namespace baracuda::expr {

// What a kernel that is made from a program's text needs to know besides: how it is launched.
struct Written {
  std::string text;  // what `whole` says of core/source.h
  int pack = 0;      // elements that a thread reads at once
};
// `params` are the elements of inputs and outputs, at their places in the signature.
BCU_API Written write_kernel(const Program& program, const ParamMeta* params, Backend backend, bool whole);

BCU_API std::string kernel_text(const Problem& problem, Backend backend, bool whole);

}  // namespace baracuda::expr
