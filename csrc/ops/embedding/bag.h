// What embedding_bag makes of the rows of a bag. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::embedding {

enum BagMode : int32_t { kBagSum, kBagMean, kBagMax };

}  // namespace baracuda::embedding
