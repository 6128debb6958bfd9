"""Functions of each element, and their gradients."""

from __future__ import annotations

from typing import Any

from baracuda.torch.lowering.common import F, cast, filled, is_tensor
from baracuda.torch.table import NotMapped, Want, lowers


@lowers(
    "abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor ceil copysign cos cosh deg2rad digamma eq erf erfc erfinv exp exp2 expm1 floor "
    "fmax fmin fmod frac ge gt heaviside hypot isinf isnan le lerp lgamma log log10 log1p log2 logaddexp "
    "logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum ne neg nextafter "
    "rad2deg reciprocal relu remainder rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt tan tanh trunc xlogy gcd lcm "
    "silu softplus mish hardswish hardsigmoid hardshrink softshrink isneginf isposinf nan_to_num "
    "special_entr special_ndtr special_xlog1py"
)
def same_name(want: Want, *args: Any, **kwargs: Any) -> Any:
    """Torch's names and arguments are baracuda's; numbers in the place of a tensor are torch's wrapped numbers."""
    fn = getattr(F, want.name.removeprefix("special_"))
    return fn(*_with_tensor(want, args), **{name: value for name, value in kwargs.items() if value is not None})


def _with_tensor(want: Want, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of which at least one is a tensor."""
    if not any(is_tensor(a) for a in args):
        raise NotMapped("no argument is a tensor")
    return args


@lowers("add sub mul.Tensor mul.Scalar div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode floor_divide")
def arithmetic(want: Want, x: Any, y: Any, alpha: Any = 1, *, rounding_mode: str | None = None) -> Any:
    """Sums, differences, products, quotients."""
    fn = getattr(F, want.name)
    if rounding_mode is not None:
        return fn(x, y, rounding_mode=rounding_mode)
    return fn(x, y) if alpha == 1 else fn(x, y, alpha=alpha)


@lowers("rsub")
def rsub(want: Want, x: Any, y: Any, alpha: Any = 1) -> Any:
    """The second less the first."""
    return F.rsub(x, y, alpha=alpha)


@lowers("pow")
def power(want: Want, x: Any, y: Any) -> Any:
    """Powers; those of 1, 2 and 3 have kernels of their own."""
    if is_tensor(x) and str(x.element) == want.element and not isinstance(y, bool) and not is_tensor(y):
        if y == 1:
            return F.copy(x)
        if y in (2, 3):
            return F.square(x) if y == 2 else F.cube(x)
    return F.pow(x, y)


@lowers("round.default round.decimals")
def rounded(want: Want, x: Any, *, decimals: int = 0) -> Any:
    """To so many places after the point."""
    return F.round(x, decimals=decimals)


@lowers("clamp clamp_min clamp_max")
def clamp(want: Want, x: Any, *bounds: Any, min: Any = None, max: Any = None) -> Any:
    """Between bounds."""
    if want.name != "clamp":
        return cast(getattr(F, want.name)(x, bounds[0]), want.element)
    low, high = (*bounds, None, None)[:2]
    return F.clamp(x, low if min is None else min, high if max is None else max)


@lowers("where.self")
def where(want: Want, condition: Any, x: Any, y: Any) -> Any:
    """One or the other."""
    return F.where(condition, x, y)


@lowers("masked_fill.Scalar")
def masked_fill(want: Want, x: Any, mask: Any, value: Any) -> Any:
    """A number where the mask says so."""
    return F.masked_fill(x, mask, value)


@lowers("masked_fill.Tensor")
def masked_fill_by_tensor(want: Want, x: Any, mask: Any, value: Any) -> Any:
    """A tensor's only element where the mask says so."""
    return F.where(mask, cast(value, want.element), x)


@lowers("addcmul.default addcdiv.default")
def add_of_two(want: Want, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    """X + value a b, or x + value a / b."""
    return getattr(F, want.name)(x, a, b, value=value)


@lowers("gelu.default")
def gelu(want: Want, x: Any, *, approximate: str = "none") -> Any:
    """X times the normal distribution's integral."""
    return F.gelu(x, approximate)


@lowers("gelu_backward.default")
def gelu_backward(want: Want, dy: Any, x: Any, *, approximate: str = "none") -> Any:
    """Its gradient."""
    return F.gelu_backward(dy, x, approximate)


@lowers("hardtanh.default leaky_relu.default")
def bounded(want: Want, x: Any, *args: Any) -> Any:
    """Pieces of lines; bounds of integers are integers."""
    whole = not want.result.dtype.is_floating_point
    return getattr(F, want.name)(x, *[int(a) if whole else a for a in args])


@lowers("elu.default")
def elu(want: Want, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """With its scales: those of `selu` and `celu`, too."""
    y = F.elu(x if input_scale == 1 else F.mul(x, input_scale), alpha)
    if input_scale != 1:
        y = F.where(F.gt(x, 0), x, y)
    return y if scale == 1 else F.mul(y, scale)


@lowers("elu_backward.default")
def elu_backward(want: Want, dy: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Any) -> Any:
    """Of x, or of the result."""
    grown = F.add(x, alpha * scale) if is_result else F.mul(F.exp(F.mul(x, input_scale)), alpha * scale)
    return F.mul(dy, F.where(F.gt(x, 0), scale, F.mul(grown, input_scale)))


@lowers(
    "silu_backward.default mish_backward.default hardsigmoid_backward.default hardswish_backward.default "
    "softplus_backward.default hardtanh_backward.default logit_backward.default"
)
def pulled(want: Want, dy: Any, x: Any, *args: Any) -> Any:
    """Gradients by the argument, of baracuda's name and arguments."""
    return getattr(F, want.name)(dy, x, *args)


@lowers("sigmoid_backward.default tanh_backward.default")
def pulled_by_result(want: Want, dy: Any, y: Any) -> Any:
    """Gradients by the result."""
    return getattr(F, want.name)(dy, y)


@lowers("hardshrink_backward.default softshrink_backward.default")
def shrink_backward(want: Want, dy: Any, x: Any, bound: Any) -> Any:
    """Gradients of what is 0 around 0."""
    return getattr(F, want.name)(dy, x, bound)


@lowers("leaky_relu_backward.default")
def leaky_relu_backward(want: Want, dy: Any, x: Any, slope: Any, is_result: bool) -> Any:
    """Of x or of the result: they have one sign where the slope is positive."""
    if is_result and slope < 0:
        raise NotMapped("of the result of a negative slope")
    return F.leaky_relu_backward(dy, x, slope)


@lowers("threshold.default")
def threshold(want: Want, x: Any, bound: Any, value: Any) -> Any:
    """X above a bound, else a value."""
    return F.threshold(x, bound, value)


@lowers("threshold_backward.default")
def threshold_backward(want: Want, dy: Any, x: Any, bound: Any) -> Any:
    """Dy above the bound, else 0; of `relu` the bound is 0, and x may be its result."""
    return F.threshold_backward(dy, x, bound, 0)


@lowers("log_sigmoid_forward.default")
def log_sigmoid(want: Want, x: Any) -> Any:
    """The second result is a buffer that the cpu's kernels keep: the gradient here reads x alone."""
    buffer = want.results[1]
    return F.logsigmoid(x), None if buffer is None else filled(buffer, 0)


@lowers("log_sigmoid_backward.default")
def log_sigmoid_backward(want: Want, dy: Any, x: Any, buffer: Any) -> Any:
    """Its gradient."""
    return F.logsigmoid_backward(dy, x)


@lowers("prelu.default _prelu_kernel.default")
def prelu(want: Want, x: Any, weight: Any) -> Any:
    """The slope of negative numbers is an array that broadcasts."""
    return F.where(F.gt(x, 0), x, F.mul(x, weight))


@lowers("_prelu_kernel_backward.default")
def prelu_backward(want: Want, dy: Any, x: Any, weight: Any) -> Any:
    """By x, and by the slope at each place."""
    positive = F.gt(x, 0)
    return F.where(positive, dy, F.mul(dy, weight)), F.where(positive, 0.0, F.mul(dy, x))


@lowers("glu.default")
def glu(want: Want, x: Any, dim: int = -1) -> Any:
    """One half times the sigmoid of the other."""
    return F.glu(x, dim)


@lowers("glu_backward.default")
def glu_backward(want: Want, dy: Any, x: Any, dim: int) -> Any:
    """Its gradient."""
    return F.glu_backward(dy, x, dim)
