// The functions of three operands on GPUs: the elementwise driver applies the functions of math.h.
#pragma once
#include "ops/ternary/math.h"
#include "simt/map.h"
