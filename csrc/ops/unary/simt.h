// The functions of one number on GPUs: the elementwise driver applies those of math.h.
#pragma once
#include "ops/unary/math.h"
#include "simt/map.h"
