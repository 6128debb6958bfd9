// The vector math library: branch-free functions of float and double, at most 2 ulp over the full range (activations: 4
// ulp, gelu more in its tail; inverse hyperbolic functions and erfinv: 3.5; those of gamma: 6 above zero), right at
// infinity, NaN, subnormal numbers and -0. The comment above each function is its promise, which tests/math keeps. It
// is the largest error found, rounded up: for f32 over every value where the result is not trivial, with and without
// FMA (cos: up to 2^30; pow, atan2, hypot: by sampling), for f64 over some 10^6 values. An ulp is the distance of
// neighbouring floats at the exact result.
#pragma once
#include "baracuda/math/activation.h"
#include "baracuda/math/erf.h"
#include "baracuda/math/exp.h"
#include "baracuda/math/hyperbolic.h"
#include "baracuda/math/inverse_hyperbolic.h"
#include "baracuda/math/inverse_trig.h"
#include "baracuda/math/log.h"
#include "baracuda/math/pow.h"
#include "baracuda/math/special.h"
#include "baracuda/math/trig.h"
