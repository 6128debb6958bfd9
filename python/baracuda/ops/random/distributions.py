"""Random numbers of further distributions: uniform and normal numbers, and functions of them, in place; gumbel_softmax.

They are drawn in f32, in f64 for f64 and integers, and rounded to the element at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, isfinite, log1p, pi, sqrt
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.random.normal_tail import FAR, log_tail, tail_inverse
from baracuda.ops.random.random import rounded_into, run_like, uniform_

OPS = ()


def _want(name: str, good: bool, got: Any, wanted: str) -> None:
    if not good:
        raise InvalidProblemError(f"{name}: got {got}, want {wanted}.")


def _filled(input: Any, fill: Callable[[Any], Any], whole: bool = False) -> Any:
    """`input`, filled; what is drawn in another element is cast."""
    shape, code, *_ = _core.describe(input)
    element = Element(code)
    _want(
        "input",
        element.is_float or (whole and element.is_integer),
        element,
        "integers or floats" if whole else "floats",
    )
    wide = element if element in (Element.F32, Element.F64) else Element.F32 if element.is_float else Element.F64
    if wide is element:
        fill(input)
    else:
        rounded_into(input, run_like(input, shape, fill, wide), element)
    return input


@made_of("cast log1p mul neg uniform")
@composite
def exponential_(input: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with numbers of density lambd exp(-lambd x) and returns it, as Tensor.exponential_.

    -log1p(-u) / lambd, u as of uniform_. Not torch's stream.

    Args:
        input: Floats to fill.
        lambd: The rate, above 0.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("lambd", lambd > 0, lambd, "a number above 0")

    def fill(y: Any) -> Any:
        uniform_(y, generator=generator)
        return F.mul(F.log1p(F.neg(y, out=y), out=y), -1.0 / lambd, out=y)

    return _filled(input, fill)


@made_of("add cast mul tan uniform")
@composite
def cauchy_(input: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with numbers of density sigma / (pi ((x - median)^2 + sigma^2)) and returns it, as Tensor.cauchy_.

    median + sigma tan(pi (u - 1/2)), u as of uniform_. Not torch's stream.

    Args:
        input: Floats to fill.
        median: The median.
        sigma: Half the width at half the height, above 0.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("median", isfinite(median), median, "a finite number")
    _want("sigma", sigma > 0 and isfinite(sigma), sigma, "a finite number above 0")

    def fill(y: Any) -> Any:
        uniform_(y, generator=generator)
        F.tan(F.mul(F.add(y, -0.5, out=y), pi, out=y), out=y)
        return F.add(F.mul(y, float(sigma), out=y), float(median), out=y)

    return _filled(input, fill)


@made_of("abs add cast clamp log1p mul sign uniform")
@composite
def laplace_(input: Any, loc: float = 0.0, scale: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with numbers of density exp(-|x - loc| / scale) / (2 scale) and returns it, as torch.distributions.Laplace.

    loc - scale sign(v) log1p(-2 |v|), v uniform on [-1/2, 1/2), -1/2 being drawn as its neighbour. Not torch's stream.

    Args:
        input: Floats to fill.
        loc: The mean.
        scale: The mean distance from it, above 0.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("loc", isfinite(loc), loc, "a finite number")
    _want("scale", scale > 0 and isfinite(scale), scale, "a finite number above 0")

    def fill(y: Any) -> Any:
        uniform_(y, -0.5, 0.5, generator=generator)
        least = 2.0**-53 - 0.5 if Element(_core.describe(y)[1]) is Element.F64 else 2.0**-24 - 0.5
        sign = F.sign(F.clamp(y, least, 0.5, out=y))
        F.log1p(F.mul(F.abs(y, out=y), -2.0, out=y), out=y)
        return F.add(F.mul(F.mul(y, sign, out=y), -float(scale), out=y), float(loc), out=y)

    return _filled(input, fill)


@made_of("add cast clamp floor log1p mul neg uniform")
@composite
def geometric_(input: Any, p: float, *, generator: Any = None) -> Any:
    """Fills `input` with the number of tries until the first success, k = 1, 2, ... with (1 - p)^(k - 1) p, as Tensor.geometric_.

    1 + floor(log1p(-u) / log1p(-p)), u as of uniform_. Not torch's stream.

    Args:
        input: Floats or integers to fill, the latter with their largest number where more is drawn.
        p: The probability of a success, between 0 and 1.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("p", 0 < p < 1, p, "a number between 0 and 1")

    def fill(y: Any) -> Any:
        uniform_(y, generator=generator)
        F.mul(F.log1p(F.neg(y, out=y), out=y), 1.0 / log1p(-p), out=y)
        return F.add(F.floor(y, out=y), 1.0, out=y)

    return _filled(input, fill, whole=True)


@made_of("cast exp normal")
@composite
def log_normal_(input: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fills `input` with exp of normal numbers of a mean and a deviation, and returns it, as Tensor.log_normal_.

    Not torch's stream.

    Args:
        input: Floats to fill.
        mean: Mean of the logarithm.
        std: Standard deviation of the logarithm, above 0.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("mean", isfinite(mean), mean, "a finite number")
    _want("std", std > 0 and isfinite(std), std, "a finite number above 0")
    return _filled(input, lambda y: F.exp(F.normal_(y, float(mean), float(std), generator=generator), out=y))


def _fill_tail(y: Any, low: float, high: float, scale: float, least: float, generator: Any) -> Any:
    """`least` plus `scale` times the distance from `low` of normal numbers between two limits that are FAR from 0."""
    share, half, (*rest, first) = tail_inverse(low, high, 53 if Element(_core.describe(y)[1]) is Element.F64 else 24)
    uniform_(y, generator=generator)
    F.mul(F.log1p(F.mul(y, -share, out=y), out=y), -2.0, out=y)
    root = F.add(y, low * low)
    F.div(y, F.add(F.sqrt(root, out=root), low, out=root), out=y)
    at = F.add(F.mul(y, 1 / half, out=root), -1.0, out=root)
    gap = F.full_like(at, first)
    for coefficient in reversed(rest):
        F.add(F.mul(gap, at, out=gap), coefficient, out=gap)
    return F.add(F.mul(F.add(y, gap, out=y), scale, out=y), least, out=y)


@made_of("add cast clamp div erfinv fill log1p mul sqrt uniform")
@composite
def trunc_normal_(
    input: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *, generator: Any = None
) -> Any:
    """Fills `input` with normal numbers that lie in [a, b], and returns it, as torch.nn.init.trunc_normal_.

    mean + std sqrt(2) erfinv(v), v uniform between the values of erf that belong to a and b; where both lie two or more
    deviations to one side of the mean, by the inverse of the tail's own distribution. Not torch's stream.

    Args:
        input: Floats to fill.
        mean: Mean before what lies outside is left out.
        std: Standard deviation likewise, above 0.
        a: The least number.
        b: The largest number, above a.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("mean", isfinite(mean), mean, "a finite number")
    _want("std", std > 0 and isfinite(std), std, "a finite number above 0")
    _want("b", a < b, b, f"a number above a, which is {a}")
    ends = ((a - mean) / std, (b - mean) / std)
    side = 1.0 if ends[0] >= FAR else -1.0 if ends[1] <= -FAR else 0.0
    near, far = ends if side >= 0 else (-ends[1], -ends[0])
    holds = near < 1e150 and log_tail(near) > log_tail(far) if side else ends[0] < ends[1]
    _want("a", holds, a, "a range that holds more of the distribution: none of it lies in [a, b]")

    def fill(y: Any) -> Any:
        if side:
            _fill_tail(y, near, far, side * std, float(a if side > 0 else b), generator)
            return F.clamp(y, float(a), float(b), out=y)
        most = 1 - 2.0 ** (-53 if Element(_core.describe(y)[1]) is Element.F64 else -24)
        low, high = (max(-most, min(most, erf(x / sqrt(2)))) for x in ends)
        uniform_(y, low, high, generator=generator)
        F.mul(F.erfinv(y, out=y), std * sqrt(2), out=y)
        return F.clamp(F.add(y, float(mean), out=y), float(a), float(b), out=y)

    return _filled(input, fill)


def _noisy(input: Any, wide: Element, generator: Any, scale: float = 1.0) -> Any:
    """`input` plus Gumbel noise times a number, in the element that it is computed in."""

    def fill(y: Any) -> Any:
        # Half of the least number above 0 takes the place of 0, whose logarithm would win over all others.
        least = 2.0**-54 if wide is Element.F64 else 2.0**-25
        exponential_(y, generator=generator)
        return F.mul(F.log(F.clamp(y, least, out=y), out=y), -scale, out=y)

    return F.add(input, run_like(input, _core.describe(input)[0], fill, wide))


def _gumbel(input: Any, tau: float, hard: bool, dim: int, generator: Any) -> tuple[Any, Any]:
    """What gumbel_softmax gives, and the probabilities in the element that they are computed in."""
    _want("tau", tau > 0 and isfinite(tau), tau, "a finite number above 0")
    element = Element(_core.describe(input)[1])
    _want("logits", element.is_float, element, "floats")
    wide = Element.F64 if element is Element.F64 else Element.F32
    z = _noisy(input, wide, generator)
    soft = F.softmax(F.mul(z, 1.0 / tau), dim)
    made = soft
    if hard:
        made = F.scatter(F.zeros_like(soft), dim, F.argmax(soft, dim, True), 1.0)
    return (made if wide is element else F.cast(made, element)), soft


@made_of("add argmax cast clamp fill log log1p mul neg scatter softmax uniform")
@composite
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> Any:
    """softmax((logits + g) / tau) with Gumbel noise g, as torch.nn.functional.gumbel_softmax.

    Its largest element is at i with the probability that softmax(logits) gives i. Not torch's stream.

    Args:
        logits: Floats.
        tau: The temperature, above 0.
        hard: Whether the result is 1 at the largest element and 0 elsewhere; gradients are those of the soft one.
        eps: Of no effect, as in torch.
        dim: Along which the result adds up to 1.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    del eps
    return _gumbel(logits, tau, hard, dim, generator)[0]


@made_of("add argmax cast clamp log log1p mul neg uniform")
@composite
def gumbel_max(logits: Any, temperature: float = 1.0, dim: int = -1, *, generator: Any = None) -> Any:
    """The index along `dim` of the largest of logits / temperature plus Gumbel noise: i with the probability that softmax gives i.

    `sample_tokens` draws by the same probabilities, from what top_p and its kin keep, too. Not torch's stream.

    Args:
        logits: Floats; -inf is never drawn.
        temperature: Above 0.
        dim: Along which one is drawn.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    _want("temperature", temperature > 0 and isfinite(temperature), temperature, "a finite number above 0")
    element = Element(_core.describe(logits)[1])
    _want("logits", element.is_float, element, "floats")
    rank = max(1, len(_core.describe(logits)[0]))
    _want("dim", isinstance(dim, int) and -rank <= dim < rank, dim, f"one of {rank} dimensions, {-rank} to {rank - 1}")
    wide = Element.F64 if element is Element.F64 else Element.F32
    # Whichever of the two has a factor of at most 1 takes it, so that nothing becomes infinite, and in f32 also where logits are halves.
    if temperature <= 1:
        return F.argmax(_noisy(logits, wide, generator, temperature), dim)
    return F.argmax(_noisy(F.mul(F.cast(logits, wide), 1.0 / temperature), wide, generator), dim)


def _gumbel_vjp(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> tuple[Any, Any]:
    del eps
    made, soft = _gumbel(logits, tau, hard, dim, generator)
    element, wide = (Element(_core.describe(x)[1]) for x in (made, soft))

    def pull(dy: Any) -> Any:
        given = dy if wide is element else F.cast(dy, wide)
        dx = F.mul(F.softmax_backward(given, soft, dim), 1.0 / tau)
        return dx if wide is element else F.cast(dx, element)

    return made, pull


_differentiable: Any = gumbel_softmax
_differentiable.vjp_rule = _gumbel_vjp
