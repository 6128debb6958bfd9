// The vector math library: branch-free functions of float and double, at most 2 ulp over the full range.
#pragma once
#include "baracuda/math/erf.h"
#include "baracuda/math/exp.h"
#include "baracuda/math/hyperbolic.h"
#include "baracuda/math/inverse_trig.h"
#include "baracuda/math/log.h"
#include "baracuda/math/pow.h"
#include "baracuda/math/trig.h"
