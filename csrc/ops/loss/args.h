// What losses of classes are given besides tensors.
#pragma once
#include "core/attrs.h"

namespace baracuda::loss {

enum class Reduction : int64_t { None, Mean, Sum };

// Targets equal to ignore_index add nothing to the loss, to its gradient or to the count that a mean divides by.
BCU_ATTRS(CrossEntropyAttrs, (i64, reduction), (i64, ignore_index))

}  // namespace baracuda::loss
