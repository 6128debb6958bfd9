// The text of kernels that are compiled on the machine that runs them.
#pragma once
#include <string>

#include "core/row.h"

namespace baracuda {

// What a row compiles for a problem on a backend: all of it, or without what is the same for every problem. Empty
// where it compiles nothing; a family that has texts declares source_of(Row) in its shapes.h.
using SourceRule = std::string (*)(const Problem&, Backend, bool whole);
constexpr SourceRule source_of(const Row&) { return nullptr; }

// Null: the row's kernels are compiled beforehand.
BCU_API SourceRule source_rule(int32_t row);

}  // namespace baracuda
