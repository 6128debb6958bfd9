"""Gamma, beta, Poisson and binomial numbers by Philox4x32-10. Kernels in csrc/ops/random, reference in rejection_ref.py.

Element i, counted in logical row-major order, depends on (seed, offset, i) and its own parameters only: the same bits for
every layout and thread count. It makes as many tries as it needs, and which one is taken depends on logarithms, so that
backends, and machines with other arithmetic, are promised less than of uniform numbers: the same result within the row's
bound, but for elements of which a comparison, or a floor, lies within rounding (of f32 about one in 10^4; one in 10^2
for Poisson and binomial numbers of a mean of 10^8). These may be another draw of the same distribution. The mapping:

- Block k of an element is Philox4x32-10 of the counter (offset + i modulo 2**64, k, s), k in the third word and s in the
  fourth, under the key `seed`; s is 0, and 1 for what concentration0 of beta needs. For f64 two words make one of 64 bits.
- E = -ln((w + 1/2) 2**-32), of f64 by the upper 53 bits; u likewise.
- gamma (Marsaglia and Tsang, 2000): a try takes z by Box-Muller of two words (f64: of a block), u of the next, E of the last.
  d = a - 1/3, c = 1 / (3 sqrt(d)); where 1 + c z > 0 and ln(u) < 3 d (ln(1 + x) - x + x^2/2 - x^3/3), x = c z, it is
  d (1 + x)^3. Below 1, a is raised by 1, and the result multiplied by exp(-E / a).
- beta: X / (X + Y) of two gamma numbers, by the difference of their logarithms.
- poisson: below a mean of 10 how many E, added up, stay within it; PTRS (Hormann, 1993) above.
- binomial: by the likelier outcome, p <= 1/2. Below a mean of 10 how many floor(E / -ln(1 - p)) + 1, added up, stay within n;
  BTRS (Hormann, 1993) above.
"""

from __future__ import annotations

from math import inf
from numbers import Real
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor
from baracuda.memory.device import name_of
from baracuda.memory.generator import chosen
from baracuda.ops.indexing.compact import expanded
from baracuda.ops.random.random import planned, rounded_into, run_like

PARAMETERS = {
    "gamma": ("concentration",),
    "beta": ("concentration1", "concentration0"),
    "poisson": ("rate",),
    "binomial": ("count", "prob"),
}


@descriptor(family="random", kinds=tuple(PARAMETERS))
class RejectionDescriptor(Descriptor):
    """Draws each element of y from a distribution with parameters of its own; the mapping is in the module's docstring.

    Parameters are finite and not negative, and `prob` lies in [0, 1]: else ValueOutOfRangeError, before anything is
    written. A concentration of 0 gives 0 (of beta 0 or 1 by which one it is, NaN by both); `count` is rounded down.

    Args:
        kind: "gamma" (with a rate of 1), "beta", "poisson" or "binomial".
        shape: Shape of y and of the parameters, rank 0-8.
        element: f16, bf16, f32 or f64, of all; halves are drawn in f32.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(
            *(tensor(name, self.shape, self.element) for name in PARAMETERS[self.kind]),
            output("y", self.shape, self.element),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.shape)


_WHY = NotDifferentiable("random numbers are drawn, not computed, from their parameters")
OPS = (
    Op("gamma", RejectionDescriptor, _WHY, "y[i] of the density x^(a - 1) exp(-x) / gamma(a)"),
    Op("beta", RejectionDescriptor, _WHY, "y[i] of the density x^(a - 1) (1 - x)^(b - 1) / beta(a, b)"),
    Op("poisson", RejectionDescriptor, _WHY, "y[i] = k with probability exp(-r) r^k / k!"),
    Op("binomial", RejectionDescriptor, _WHY, "y[i] = k with probability (n over k) p^k (1 - p)^(n - k)"),
)


def _parameter(name: str, given: Any, y: Any) -> Any:
    """A number or a tensor as one of y's shape and element."""
    shape, code, _, *place = _core.describe(y)
    element = Element(code)
    if not hasattr(given, "__dlpack__"):
        if isinstance(given, bool) or not isinstance(given, Real):
            raise InvalidProblemError(f"{name}: got {type(given).__name__}, want a number or a tensor.")
        given = F.full((), float(given), dtype=element, device=name_of((place[0], place[1])))
    own, own_code, *_ = _core.describe(given)
    if Element(own_code) is not element:
        raise InvalidProblemError(f"{name}: got {Element(own_code)}, want {element}, as the result. Cast it first.")
    if tuple(broadcast(shape, own, name)) != tuple(shape):
        raise InvalidProblemError(f"{name}: got shape {tuple(own)}, want one that broadcasts to {tuple(shape)}.")
    return expanded(given, tuple(shape))


def _rate(rate: Any, y: Any) -> Any:
    """What gamma numbers in y are divided by; None for 1."""
    if hasattr(rate, "__dlpack__"):
        return _parameter("rate", rate, y)
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < float(rate) < inf:
        raise InvalidProblemError(f"rate: got {rate!r}, want a finite number above 0, or a tensor of them.")
    return None if rate == 1 else float(rate)


def _fill(kind: str, y: Any, given: tuple[Any, ...], generator: Any, rate: Any = 1.0) -> Any:
    by = _rate(rate, y)
    shape, code, _, *place = _core.describe(y)
    made, blocks = planned(RejectionDescriptor(kind, shape, Element(code)), (place[0], place[1]))
    parameters = [_parameter(name, x, y) for name, x in zip(PARAMETERS[kind], given, strict=True)]
    chosen(generator).draw(blocks, lambda seed, offset: made.run(*parameters, y, seed, offset))
    return y if by is None else F.div(y, by, out=y)


def _new(kind: str, given: tuple[Any, ...], generator: Any, rate: Any = 1.0) -> Any:
    """In the shape that the parameters have together."""
    names = PARAMETERS[kind]
    tensors = {k: x for k, x in (*zip(names, given, strict=True), ("rate", rate)) if hasattr(x, "__dlpack__")}
    if not tensors:
        raise InvalidProblemError(f"{names[0]}: got {type(given[0]).__name__}, want a tensor. np.asarray() makes one.")
    shape: Any = ()
    for name, x in tensors.items():
        own, code, *_ = _core.describe(x)
        if not Element(code).is_float:
            raise InvalidProblemError(f"{name}: got {Element(code)}, want floats. Cast it first.")
        shape = broadcast(shape, own, " and ".join(tensors))
    return run_like(next(iter(tensors.values())), tuple(shape), lambda y: _fill(kind, y, given, generator, rate))


def _filled(kind: str, input: Any, given: tuple[Any, ...], generator: Any) -> Any:
    """`input`, filled; integers with what is drawn in f64."""
    shape, code, *_ = _core.describe(input)
    element = Element(code)
    whole = kind in ("poisson", "binomial")
    if element.is_float:
        return _fill(kind, input, given, generator)
    if not whole or not element.is_integer:
        raise InvalidProblemError(f"input: got {element}, want {'integers or floats' if whole else 'floats'}.")
    made = run_like(input, shape, lambda y: _fill(kind, y, given, generator), Element.F64)
    return rounded_into(input, made, element)


@composite
def poisson(input: Any, generator: Any = None) -> Any:
    """Poisson numbers whose means are the elements of `input`, as torch.poisson. Not torch's stream.

    Args:
        input: Means, finite and not negative: floats.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _new("poisson", (input,), generator)


@composite
def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """How many of `count` tries succeed, each with probability `prob`, as torch.binomial. Not torch's stream.

    Args:
        count: How many tries, finite and not negative, rounded down; floats, which broadcast with prob.
        prob: Probabilities, of the same element.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _new("binomial", (count, prob), generator)


@made_of("div gamma")
@composite
def gamma(concentration: Any, rate: Any = 1.0, *, generator: Any = None) -> Any:
    """Gamma numbers, of the density rate^a x^(a - 1) exp(-rate x) / G(a), as torch.distributions.Gamma. Not torch's stream.

    Args:
        concentration: a, finite and not negative: floats, or a number where rate is a tensor.
        rate: A number above 0, or a tensor, whose values are not checked; they broadcast.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _new("gamma", (concentration,), generator, rate)


@composite
def beta(concentration1: Any, concentration0: Any, *, generator: Any = None) -> Any:
    """Beta numbers, of the density x^(a - 1) (1 - x)^(b - 1) / B(a, b), as torch.distributions.Beta. Not torch's stream.

    Args:
        concentration1: a, finite and not negative: floats, or a number where concentration0 is a tensor.
        concentration0: b; they broadcast.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _new("beta", (concentration1, concentration0), generator)


@made_of("cast clamp fill poisson")
@composite
def poisson_(input: Any, rate: Any, *, generator: Any = None) -> Any:
    """Fills `input` with Poisson numbers of a mean and returns it. Not torch's stream.

    Args:
        input: Floats or integers to fill, the latter with their largest number where more is drawn.
        rate: The mean: a number, or a tensor of one for each element (f64 for integers).
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _filled("poisson", input, (rate,), generator)


@made_of("binomial cast clamp fill")
@composite
def binomial_(input: Any, count: Any, prob: Any, *, generator: Any = None) -> Any:
    """Fills `input` with the successes of `count` tries and returns it. Not torch's stream.

    Args:
        input: Floats or integers to fill, the latter with their largest number where more is drawn.
        count: How many tries: a number, or a tensor of one for each element (f64 for integers).
        prob: The probability of a success, likewise.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _filled("binomial", input, (count, prob), generator)


@made_of("div fill gamma")
@composite
def gamma_(input: Any, concentration: Any, rate: Any = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with numbers of a gamma distribution and returns it; see gamma.

    Args:
        input: Floats to fill.
        concentration: A number, or a tensor of one for each element.
        rate: A number above 0, or a tensor of one for each element, whose values are not checked.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    shape, code, *_ = _core.describe(input)
    if not Element(code).is_float:
        raise InvalidProblemError(f"input: got {Element(code)}, want floats.")
    if not hasattr(rate, "__dlpack__"):
        return _fill("gamma", input, (concentration,), generator, rate)
    by = _rate(rate, input)  # which may be `input` itself
    return F.div(run_like(input, shape, lambda y: _fill("gamma", y, (concentration,), generator)), by, out=input)


@made_of("beta fill")
@composite
def beta_(input: Any, concentration1: Any, concentration0: Any, *, generator: Any = None) -> Any:
    """Fills `input` with numbers of a beta distribution and returns it; see beta.

    Args:
        input: Floats to fill.
        concentration1: A number, or a tensor of one for each element.
        concentration0: Likewise.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    return _filled("beta", input, (concentration1, concentration0), generator)
