"""What each function of a fused expression is in C: of floats, and of whole numbers.

Operands are a, b, c, d, e in their order, numbers behind arrays; T is their type, U the unsigned one of its width. Functions
are those of <tgmath.h>, so that one text does for float and double; `@name(...)` is another one of this table.
"""

from __future__ import annotations

_PI, _LN2, _LOG2E = "(T)3.14159265358979323846", "(T)0.69314718055994530942", "(T)1.44269504088896340736"
_QUOTIENT = "T r = fmod(a, b), q = (a - r) / b; if (r != 0 && (r < 0) != (b < 0)) q -= 1; return b == 0 ? a / b : "
_GELU = "(T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x)"
_BELL = "exp(-b * b / 2) * (T)0.39894228040143267794"

COMPARED = {
    "eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
    "logical_and": "a != 0 && b != 0", "logical_or": "a != 0 || b != 0", "logical_xor": "(a != 0) != (b != 0)",
    "logical_not": "a == 0", "where": "a != 0 ? b : c",
}  # fmt: skip

_SAME = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
         "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "sqrt", "cbrt", "floor", "ceil", "trunc")  # fmt: skip

FLOATS = COMPARED | {name: f"{name}(a)" for name in _SAME} | {
    "neg": "-a", "abs": "fabs(a)", "sign": "(a > 0) - (a < 0)", "square": "a * a", "relu": "a < 0 ? 0 : a",
    "round": "rint(a)", "step": "a > 0", "isnan": "a != a", "isinf": "fabs(a) == INFINITY", "isfinite": "a - a == 0",
    "signbit": "signbit(a) != 0", "frac": "a - trunc(a)", "cube": "a * a * a", "reciprocal": "1 / a", "rsqrt": "1 / sqrt(a)",
    "sinc": f"a == 0 ? 1 : sin({_PI} * (a - 2 * rint(a / 2))) / ({_PI} * a)", "deg2rad": "a * (T)0.01745329251994329577",
    "rad2deg": "a * (T)57.29577951308232088", "sigmoid": "T z = exp(-fabs(a)); return (a < 0 ? z : 1) / (1 + z);",
    "silu": "a * @sigmoid(a)", "relu6": "a < 0 ? 0 : a > 6 ? 6 : a", "hardsigmoid": "@relu6(a + 3) / 6",
    "hardswish": "a * (@relu6(a + 3) / 6)",
    "selu": "(T)1.05070098735548049342 * (a > 0 ? a : (T)1.67326324235437728481 * expm1(a))",
    "mish": "a * tanh(log1p(exp(a)))", "softsign": "a / (1 + fabs(a))", "logsigmoid": "(a < 0 ? a : 0) - log1p(exp(-fabs(a)))",
    "tanhshrink": "a - tanh(a)", "gelu": "a * (erfc(-a * (T)0.70710678118654752440) / 2)",
    "gelu_tanh": f"T x = a; return a * @sigmoid(2 * {_GELU});",
    # numbers behind an operand
    "affine": "a * b + c", "hardtanh": "a < b ? b : a > c ? c : a", "threshold": "a <= b ? c : a", "leaky_relu": "a > 0 ? a : a * b",
    "hardshrink": "a >= -b && a <= b ? 0 : a", "softshrink": "a > b ? a - b : a < -b ? a + b : 0 * a",
    "elu": "a > 0 ? a : b * expm1(a)", "celu": "a > 0 ? a : b * expm1(a / b)",
    "softplus": "T z = a * b; return z > c ? a : ((z > 0 ? z : 0) + log1p(exp(-fabs(z)))) / b;",
    "logit": "T z = b < 0 ? a : a < b ? b : a > 1 - b ? 1 - b : a; return log(z / (1 - z));",
    "nan_to_num": "a != a ? b : a == INFINITY ? c : a == -INFINITY ? d : a",
    "clamp": "T y = a < b || b != b ? b : a; y = y > c || c != c ? c : y; return a != a ? a : y;",
    # of two and three
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "pow": "b == 2 ? a * a : pow(a, b)", "add_scaled": "fma(c, b, a)",
    "maximum": "a >= b || a != a ? a : b", "minimum": "a <= b || a != a ? a : b", "fmax": "a >= b || b != b ? a : b",
    "fmin": "a <= b || b != b ? a : b", "fmod": "fmod(a, b)", "atan2": "atan2(a, b)", "hypot": "hypot(a, b)",
    "remainder": "T r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r;",
    "floor_divide": _QUOTIENT + "q == 0 ? copysign(q, a / b) : rint(q);", "trunc_divide": "trunc(a / b)",
    "copysign": "copysign(a, b)",
    "nextafter": "nextafter(a, b)", "xlogy": "a == 0 && b == b ? 0 : a * log(b)",
    "logaddexp": f"a == b ? a + {_LN2} : (a < b ? b : a) + log1p(exp(-fabs(a - b)))",
    "logaddexp2": f"a == b ? a + 1 : (a < b ? b : a) + log1p(exp2(-fabs(a - b))) * {_LOG2E}",
    "ldexp":
        "if (b - b != 0) return a * exp2(b); T n = b > 9999 ? 9999 : b < -9999 ? -9999 : trunc(b);"
        " return ldexp(a * exp2(b - trunc(b)), (int)n);",
    "prelu": "a > 0 ? a : b * a",
    "heaviside": "a == 0 ? b : a > 0", "isclose":
        "a == b || (e != 0 && a != a && b != b) || (fabs(b) < INFINITY && fabs(a - b) <= d + fabs(c * b))",
    "addcmul": "fma(d * b, c, a)", "addcdiv": "a + d * b / c", "lerp": "fabs(c) < (T)0.5 ? fma(c, b - a, a) : fma(a - b, 1 - c, b)",
    "clamp_tensors": "@clamp(a, b, c)",
    # gradients: a is dy, b the operand or the result, whichever the function saves
    "neg_backward": "-a", "abs_backward": "b > 0 ? a : b < 0 ? -a : 0", "square_backward": "a * b * 2", "relu_backward": "b <= 0 ? 0 : a",
    "frac_backward": "a", "cube_backward": "a * b * b * 3", "reciprocal_backward": "-a * b * b", "sqrt_backward": "a / (2 * b)",
    "cbrt_backward": "a / (3 * b * b)", "rsqrt_backward": "a * (b * ((T)-0.5 * b * b))", "exp_backward": "a * b",
    "exp2_backward": f"a * (b * {_LN2})", "expm1_backward": "a * (b + 1)", "log_backward": "a / b",
    "log2_backward": f"a / b * {_LOG2E}", "log10_backward": "a * (T)0.43429448190325182765 / b", "log1p_backward": "a / (1 + b)",
    "sin_backward": "a * cos(b)", "cos_backward": "-a * sin(b)", "tan_backward": "a * (1 + b * b)",
    "asin_backward": "a / sqrt((1 - b) * (1 + b))", "acos_backward": "-a / sqrt((1 - b) * (1 + b))",
    "atan_backward": "T t = 1 / b; return fabs(b) > 1 ? a / (1 + t * t) * t * t : a / (1 + b * b);",
    "sinh_backward": "a * cosh(b)", "cosh_backward": "a * sinh(b)", "tanh_backward": "a * ((1 - b) * (1 + b))",
    "asinh_backward": "a / hypot(1, b)", "acosh_backward": "a / (sqrt(b - 1) * sqrt(b + 1))", "atanh_backward": "a / ((1 - b) * (1 + b))",
    "erf_backward": "a * ((T)1.12837916709551257390 * exp(-b * b))", "erfc_backward": "-a * ((T)1.12837916709551257390 * exp(-b * b))",
    "deg2rad_backward": "@deg2rad(a)", "rad2deg_backward": "@rad2deg(a)", "sigmoid_backward": "a * (b * (1 - b))",
    "silu_backward": "T s = @sigmoid(b); return a * (s * (1 + (s == 1 || s == 0 ? 0 : b * (1 - s))));",
    "relu6_backward": "b <= 0 || b >= 6 ? 0 : a",
    "softsign_backward": "T t = 1 + fabs(b); return a / t / t;", "logsigmoid_backward": "a * @sigmoid(-b)",
    "tanhshrink_backward": "T t = tanh(b); return a * t * t;",
    "gelu_backward": f"a * (erfc(-b * (T)0.70710678118654752440) / 2 + (fabs(b) > 40 ? 0 : b * ({_BELL})))",
    "gelu_tanh_backward":
        f"T x = b, u = {_GELU}, p = @sigmoid(2 * u), q = @sigmoid(-2 * u);"
        " T slope = (T)0.79788456080286535588 * (1 + 3 * (T)0.044715 * x * x);"
        " return a * (p + (fabs(x) > 20 ? 0 : 2 * x * p * q * slope));",
    "affine_backward": "a * c", "leaky_relu_backward": "b > 0 ? a : a * c", "threshold_backward": "b <= c ? 0 : a",
    "hardtanh_backward": "b <= c || b >= d ? 0 : a", "clamp_backward": "b >= c && b <= d ? a : 0",
    "softplus_backward": "b * c > d ? a : a * @sigmoid(b * c)", "hardsigmoid_backward": "b > -3 && b < 3 ? a / 6 : 0",
    "hardswish_backward": "b <= -3 ? 0 : b >= 3 ? a : a * (b / 3 + (T)0.5)",
    "selu_backward": "a * (T)1.05070098735548049342 * (b > 0 ? 1 : (T)1.67326324235437728481 * exp(b))",
    "mish_backward":
        "T t = tanh(log1p(exp(b))); return a * (t + (fabs(b) > 100 ? 0 : b * @sigmoid(b) * (1 - t) * (1 + t)));",
    "hardshrink_backward": "b >= -c && b <= c ? 0 : a", "softshrink_backward": "b >= -c && b <= c ? 0 : a",
    "elu_backward": "b > 0 ? a : a * (c * exp(b))", "celu_backward": "b > 0 ? a : a * exp(b / c)",
    "logit_backward": "T low = c < 0 ? 0 : c; return b < low || b > 1 - low ? (c < 0 ? NAN : 0) : a / (b * (1 - b));",
    "nan_to_num_backward": "b - b == 0 ? a : 0",
    "sinc_backward":
        f"T z = {_PI} * b * {_PI} * b, p = (T)-1 / 6, y = 2 * p; if (z < 1) {{ for (int k = 2; k < 10; ++k) {{"
        f" p *= -z / (2 * k * (2 * k + 1)); y += 2 * k * p; }} return a * ({_PI} * {_PI} * b * y); }}"
        f" return a * ((cos({_PI} * (b - 2 * rint(b / 2))) - @sinc(b)) / b);",
    # of two: a is dy, b and c the operands
    "mul_backward_a": "a * c", "mul_backward_b": "a * b", "div_backward_a": "a / c", "div_backward_b": "-a * ((b / c) / c)",
    "pow_backward_a": "T p = pow(b, c - 1); return c == 0 || p == 0 ? 0 : a * (c * p);",
    "pow_backward_b": "T p = pow(b, c); return (b == 0 && c >= 0) || (p == 0 && b > 0) ? 0 : a * (p * log(b));",
    "maximum_backward_a": "b < c ? 0 : b == c ? a / 2 : a", "maximum_backward_b": "b > c ? 0 : b == c ? a / 2 : a",
    "minimum_backward_a": "b > c ? 0 : b == c ? a / 2 : a", "minimum_backward_b": "b < c ? 0 : b == c ? a / 2 : a",
    "fmax_backward_a": "b >= c || c != c ? a : 0", "fmax_backward_b": "b >= c || c != c ? 0 : a",
    "fmin_backward_a": "b <= c || c != c ? a : 0", "fmin_backward_b": "b <= c || c != c ? 0 : a",
    "fmod_backward_a": "a", "fmod_backward_b": "-a * (c == 0 ? b / c : rint((b - fmod(b, c)) / c))",
    "remainder_backward_a": "a", "remainder_backward_b": "-a * @floor_divide(b, c)",
    "atan2_backward_a": "T h = hypot(b, c); return h == 0 || h == INFINITY ? 0 : a * (c / h / h);",
    "atan2_backward_b": "T h = hypot(b, c); return h == 0 || h == INFINITY ? 0 : -a * (b / h / h);",
    "hypot_backward_a":
        "T up = fabs(b) + fabs(c) < (T)1e-30 ? (T)0x1p100 : 1;"
        " return a * (fabs(b) == INFINITY ? copysign(1, b) : b * up / hypot(b * up, c * up));",
    "hypot_backward_b": "@hypot_backward_a(a, c, b)",
    "copysign_backward_a": "b == 0 ? 0 : a * copysign(1, b) * copysign(1, c)", "copysign_backward_b": "0",
    "xlogy_backward_a": "b == 0 && c <= 0 ? 0 : @xlogy(a, c)", "xlogy_backward_b": "a * (b / c)",
    "logaddexp_backward_a": "a * @sigmoid(b == c ? 0 : b - c)", "logaddexp_backward_b": "a * @sigmoid(b == c ? 0 : c - b)",
    "logaddexp2_backward_a": f"a * @sigmoid(b == c ? 0 : (b - c) * {_LN2})",
    "logaddexp2_backward_b": f"a * @sigmoid(b == c ? 0 : (c - b) * {_LN2})",
    "ldexp_backward_a": "@ldexp(a, c)", "ldexp_backward_b": f"a * @ldexp(b * {_LN2}, c)",
    "clamp_tensors_backward_a": "b >= c && b <= d ? a : 0", "clamp_tensors_backward_b": "b < c && c < d ? a : 0",
    "clamp_tensors_backward_c": "b > d || d < c ? a : 0",
    "where_backward_a": "b != 0 ? a : 0", "where_backward_b": "b != 0 ? 0 : a",
    "prelu_backward_a": "b > 0 ? a : a * c", "prelu_backward_b": "b > 0 ? 0 : a * b",
    "lerp_backward_a": "a * (1 - d)", "lerp_backward_b": "a * d", "lerp_backward_c": "a * (c - b)",
    "addcmul_backward_a": "a", "addcmul_backward_b": "a * (e * d)", "addcmul_backward_c": "a * (e * c)",
    "addcdiv_backward_a": "a", "addcdiv_backward_b": "a * (e / d)", "addcdiv_backward_c": "-a * (e * c / d / d)",
}  # fmt: skip

# Sums and products wrap, by way of U. A divisor of zero gives 0, where the kernels' call is an error.
WHOLE = COMPARED | dict.fromkeys(("floor", "ceil", "round", "trunc"), "a") | {
    "neg": "(T)(0 - (U)a)", "abs": "a < 0 ? (T)(0 - (U)a) : a", "sign": "(a > 0) - (a < 0)", "square": "(T)((U)a * (U)a)",
    "relu": "a < 0 ? 0 : a", "step": "a > 0", "isnan": "0", "isinf": "0", "isfinite": "1", "signbit": "a < 0",
    "bitwise_not": "~a",
    "popcount": "T n = 0; for (T i = 0; i < b; ++i) n += (U)a >> i & 1; return n;",
    "clz": "T n = 0; while (n < b && !((U)a >> (b - 1 - n) & 1)) ++n; return n;",
    "ctz": "T n = 0; while (n < b && !((U)a >> n & 1)) ++n; return n;",
    "relu6": "a < 0 ? 0 : a > 6 ? 6 : a", "affine": "(T)((U)a * (U)b + (U)c)", "hardtanh": "a < b ? b : a > c ? c : a",
    "threshold": "a <= b ? c : a", "clamp": "T y = a < b ? b : a; return y > c ? c : y;", "clamp_tensors": "@clamp(a, b, c)",
    "add": "(T)((U)a + (U)b)", "sub": "(T)((U)a - (U)b)", "mul": "(T)((U)a * (U)b)", "add_scaled": "(T)((U)a + (U)c * (U)b)",
    "pow": "if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b & 1 ? (T)-1 : 1) : 0; U y = 1, x = (U)a;"
           " for (U n = (U)b; n; n >>= 1, x *= x) if (n & 1) y *= x; return (T)y;",
    "maximum": "a >= b ? a : b", "minimum": "a <= b ? a : b", "fmax": "a >= b ? a : b", "fmin": "a <= b ? a : b",
    "fmod": "b == 0 || ((T)-1 < 0 && b == (T)-1) ? 0 : a % b",
    "remainder": "T r = @fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r;",
    "trunc_divide": "b == 0 ? 0 : (T)-1 < 0 && b == (T)-1 ? (T)(0 - (U)a) : a / b",
    "floor_divide": "T q = @trunc_divide(a, b); return @fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;",
    "heaviside": "a == 0 ? b : a > 0", "bitwise_and": "a & b", "bitwise_or": "a | b", "bitwise_xor": "a ^ b",
    "gcd": "U x = a < 0 ? 0 - (U)a : (U)a, y = b < 0 ? 0 - (U)b : (U)b; while (y) { U r = x % y; x = y; y = r; } return (T)x;",
    "lcm": "T g = @gcd(a, b); return g == 0 ? 0 : @abs((T)((U)@trunc_divide(a, g) * (U)b));",
    "addcmul": "(T)((U)a + (U)d * (U)b * (U)c)",
}  # fmt: skip

# Around values: what a cast does to numbers out of range, and halves, of which C has none.
HELPERS = {
    "to_u64": "static inline uint64_t to_u64(double x) { return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x; }",
    "odd": """// To float, so that rounding again to fewer bits rounds once.
static inline float odd(double x) {
  float y = (float)x;
  uint32_t u;
  if (!((double)y != x) || x != x) return y;
  memcpy(&u, &y, 4);
  u = (fabs((double)y) > fabs(x) ? u - 1 : u) | 1;
  memcpy(&y, &u, 4);
  return y;
}""",
    "load_f16": """static inline float load_f16(uint16_t h) {
  uint32_t m = h & 0x7fffu, u = (m << 13) + (m >= 0x7c00u ? 0x70000000u : 0x38000000u);
  float y;
  memcpy(&y, &u, 4);
  if (m < 0x400u) y = (float)m * 0x1p-24f;
  return h & 0x8000u ? -y : y;
}""",
    "store_f16": """static inline uint16_t store_f16(float x) {
  uint32_t u, sign;
  memcpy(&u, &x, 4);
  sign = u >> 16 & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (u >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
  if (u < 0x38800000u) return (uint16_t)(sign | (uint32_t)rint(fabs((double)x) * 0x1p24));
  return (uint16_t)(sign | ((u + 0xfffu + (u >> 13 & 1) - 0x38000000u) >> 13));
}""",
    "load_bf16": """static inline float load_bf16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float y;
  memcpy(&y, &u, 4);
  return y;
}""",
    "store_bf16": """static inline uint16_t store_bf16(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  if (x != x) return (uint16_t)(u >> 16 | 0x40u);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}""",
}
