// The gated activations on GPUs: the elementwise driver applies the functions of math.h.
#pragma once
#include "ops/gated/math.h"
#include "simt/map.h"
