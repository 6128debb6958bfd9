// All that the text of a fused expression needs, which is carried as one text of its own (source.cpp).
#pragma once
#if defined(__METAL_VERSION__)
#pragma METAL fp contract(off)  // a product and a sum are two functions
#endif
#include "ops/expr/simt.h"
#include "simt/entry.h"
