// What is made of the terms that one place gets. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::indexing {

enum Fold : int32_t { kAssign, kSum, kProd, kMean, kMax, kMin };

// Blocks of a GPU that look for the largest index.
enum : int { kLargest = 256 };

// Elements that a warp of a GPU counts before any are moved.
enum : int { kSimtChunk = 1024 };

}  // namespace baracuda::indexing
