"""Reference of gamma, beta, Poisson and binomial numbers: the documented mapping, element by element, in extended precision.

Of an element whose comparisons lie within rounding nothing is expected (`Expected.reach`): it may be another draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import factorial
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.random_ref import philox
from baracuda.ops.random.rejection import RejectionDescriptor
from baracuda.prove.reference import Array, Case, Expected

_L = np.longdouble
_PI = _L("3.14159265358979323846264338327950288")
_SHAPES: list[tuple[tuple[int, ...], int, int]] = [
    ((5,), 0, 0), ((), 1, 2), ((3, 0, 2), 1, 2), ((270,), 123456789012345678, 2**32 - 100), ((7, 30), 2**64 - 1, 2**64 - 50),
    ((2, 1, 3, 2, 5, 2, 3, 1), 42, 10**12),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Keys and counters that wrap; small and large parameters, and the ends of their ranges."""
    del direction
    for shape, seed, offset in _SHAPES:
        desc = RejectionDescriptor(op, shape, element)
        yield Case(desc, _parameters(op, shape, rng), {"seed": seed, "offset": offset})


def _parameters(op: str, shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Any]:
    def ends(given: Any, *first: float) -> Array:
        x: Array = np.array(given)
        if x.size > 8:
            x.reshape(-1)[: len(first)] = first
        return x

    if op in ("gamma", "beta"):
        a, b = (10.0 ** rng.uniform(-2, 3, shape) for _ in range(2))
        if op == "gamma":
            return {"concentration": ends(a, 0, 1, 1e-3, 1 / 3, 5e3)}
        return {"concentration1": ends(a, 0, 1, 2e-2, 1, 3e3), "concentration0": ends(b, 1, 0, 3e-2, 1, 2e3)}
    if op == "poisson":
        return {"rate": ends(10.0 ** rng.uniform(-2, 3, shape), 0, 10, 9.9375, 1e-6, 4e3)}
    count = np.floor(10.0 ** rng.uniform(0, 3, shape))
    prob = rng.uniform(0, 1, shape) ** 2
    return {"count": ends(count, 0, 50, 50, 40, 7.5, 1000, 30), "prob": ends(prob, 0.5, 0, 1, 0.5, 0.5, 1e-3, 0.996)}


class _Drawn:
    """The numbers of one element; `sure` until a comparison lies within rounding."""

    def __init__(self, block: Callable[[int], tuple[Array, ...]], at: int, double: bool) -> None:
        self.block, self.at, self.double, self.next, self.sure = block, at, double, 0, True
        self.near = 2.0**-36 if double else 2.0**-13

    def words(self) -> list[int]:
        w = [int(v[self.at]) for v in self.block(self.next)]
        self.next += 1
        return w

    def decide(self, difference: Any, size: Any = 1.0) -> bool:
        """Whether a difference of numbers of some size is positive."""
        self.sure &= bool(abs(difference) > self.near * (1 + abs(size)))
        return bool(difference > 0)

    def wide(self, w: list[int]) -> list[int]:
        """The numbers that a block makes."""
        return [w[1] << 32 | w[0], w[3] << 32 | w[2]] if self.double else w

    def unit(self, w: int, bits: int = 0) -> Any:
        """(w + 1/2) / 2^bits."""
        return ((w >> 11) + _L(0.5)) / _L(2) ** 53 if self.double else (w + _L(0.5)) / _L(2) ** 32

    def exponential(self, w: int) -> Any:
        rest = (~w) & (2**64 - 1 if self.double else 2**32 - 1)
        return -np.log(self.unit(w)) if self.unit(w) < 0.5 else -np.log1p(-self.unit(rest))

    def hat(self) -> tuple[Any, Any, Any]:
        w = self.wide(self.words())
        bits = 63 if self.double else 31
        low = w[0] & (2**bits - 1)
        edge = ((low << 1 >> 11) + _L(0.5)) / _L(2) ** 54 if self.double else (low + _L(0.5)) / _L(2) ** 32
        return edge, (edge - 0.5 if w[0] >> bits else 0.5 - edge), self.unit(w[1])

    def gamma_try(self) -> tuple[Any, Any, Any]:
        w = self.words()
        if self.double:
            more = self.wide(self.words())
            v = (((w[1] >> 6) << 27) + (w[0] >> 5) + 1) / _L(2) ** 53
            turns = ((w[3] << 21) + (w[2] >> 11)) / _L(2) ** 53
            u, e = more
        else:
            v = _L(np.float32(w[0] >> 1) * np.float32(2.0**-31) + np.float32(2.0**-32))
            turns, u, e = w[1] / _L(2) ** 32, w[2], w[3]
        return np.sqrt(-2 * np.log(v)) * np.cos(2 * _PI * turns), self.unit(u), self.exponential(e)


def _gamma(d: _Drawn, shape: Any) -> tuple[Any, Any, Any]:
    """Value, what it is multiplied by e^- of, and the size of the value's terms."""
    if shape == 0:
        return _L(0), _L(0), _L(0)
    raised = shape < 1
    part = (shape + 1 if raised else shape) - _L(1) / 3
    c = 1 / (3 * np.sqrt(part))
    while True:
        z, u, e = d.gamma_try()
        x = c * z
        if not d.decide(1 + x):
            continue
        if d.decide(3 * part * _log_rest(x) - np.log(u), np.log(u)):
            size = part * ((1 + x) ** 3 + 3 * (1 + x) ** 2 * (abs(x) + 1))
            return part * (1 + x) ** 3, (e / shape if raised else _L(0)), size


def _log_rest(x: Any) -> Any:
    if abs(x) > 0.1:
        return np.log1p(x) - x + x**2 / 2 - x**3 / 3
    return -sum((-x) ** j / j for j in range(4, 30))


def _stirling(k: Any) -> Any:
    if k < 16:
        return np.log(_L(factorial(int(k)))) - ((k + _L(0.5)) * np.log(k) - k + np.log(2 * _PI) / 2)
    r = 1 / k
    parts = (_L(1) / 12, -_L(1) / 360, _L(1) / 1260, -_L(1) / 1680, _L(1) / 1188, -_L(691) / 360360)
    return sum(part * r ** (2 * i + 1) for i, part in enumerate(parts))


def _deviance(k: Any, mean: Any) -> Any:
    return mean if k == 0 else k * np.log(k / mean) + mean - k


def _log_poisson(k: Any, mean: Any) -> Any:
    return -mean if k == 0 else -_stirling(k) - _deviance(k, mean) - np.log(2 * _PI * k) / 2


def _log_binomial(k: Any, n: Any, p: Any) -> Any:
    if k == 0:
        return n * np.log1p(-p)
    if k == n:
        return n * np.log(p)
    roots = np.log(n / (2 * _PI * k * (n - k))) / 2
    terms = _stirling(n) - _stirling(k) - _stirling(n - k)
    return terms - _deviance(k, n * p) - _deviance(n - k, n * (1 - p)) + roots


def _arrivals(d: _Drawn, most: Any, unit: Any | None) -> Any:
    total, k = _L(0), 0
    while True:
        for w in d.wide(d.words()):
            gap = d.exponential(w)
            if unit is not None:
                steps = gap / unit
                whole = np.floor(steps)
                # Whichever side it is rounded to, only the sum's comparison matters.
                edge = min(steps - whole, whole + 1 - steps) <= d.near * (1 + steps) and total + whole + 2 >= most
                d.sure &= not edge
                gap = whole + 1
            total += gap
            if d.decide(total - most if unit is None else total - most - _L(0.5), most if unit is None else 0):
                return _L(k)
            k += 1


def _candidate(d: _Drawn, mean: Any, a: Any, b: Any, shift: Any) -> tuple[Any, Any, Any, Any]:
    edge, u, v = d.hat()
    whole = np.floor(mean)
    at = (2 * a / edge + b) * u + (mean - whole + shift)
    return whole + np.floor(at), edge, v, (at - np.floor(at), at)


def _taken(d: _Drawn, found: Any, inner: Any, scale: Any, a: Any, b: Any, log_share: Callable[[Any], Any]) -> bool:
    k, edge, v, (above, at) = found
    quick = bool(edge >= 0.07 and v <= inner)
    log_v = np.log(v * scale / (a / edge**2 + b))
    held = d.sure
    full = d.decide(log_share(k) - log_v, log_v)
    if quick:  # the full comparison holds, too, and rounding decides between the two
        d.sure = held and full
    taken = quick or full
    near = min(above, 1 - above) <= d.near / 8 * (1 + abs(at))
    # A neighbour instead of it, which may be taken or not.
    if near and (taken or abs(log_share(k) - log_v) < 1):
        d.sure = False
    return taken


def _poisson(d: _Drawn, mean: Any) -> Any:
    if mean < 10:
        return _arrivals(d, mean, None)
    b = _L("0.931") + _L("2.53") * np.sqrt(mean)
    a = -_L("0.059") + _L("0.02483") * b
    scale, inner = _L("1.1239") + _L("1.1328") / (b - _L("3.4")), _L("0.9277") - _L("3.6224") / (b - 2)
    while True:
        found = _candidate(d, mean, a, b, _L("0.43"))
        if found[0] >= 0 and _taken(d, found, inner, scale, a, b, lambda k: _log_poisson(k, mean)):
            return found[0]


def _binomial(d: _Drawn, n: Any, chance: Any) -> Any:
    n = np.floor(n)
    if n == 0 or chance == 0:
        return _L(0)
    if chance == 1:
        return n
    p = min(chance, 1 - chance)
    mean = n * p
    if mean < 10:
        d.sure &= bool(abs(mean - 10) > d.near)
        k = _arrivals(d, n, -np.log1p(-p))
    else:
        spread = np.sqrt(mean * (1 - p))
        b = _L("1.15") + _L("2.53") * spread
        a = -_L("0.0873") + _L("0.0248") * b + _L("0.01") * p
        inner, scale = _L("0.92") - _L("4.2") / b, (_L("2.83") + _L("5.1") / b) * spread
        top = _log_binomial(np.floor(mean + p), n, p)
        while True:
            found = _candidate(d, mean, a, b, _L("0.5"))
            share = lambda k: _log_binomial(k, n, p) - top  # noqa: E731
            if 0 <= found[0] <= n and _taken(d, found, inner, scale, a, b, share):
                k = found[0]
                break
    return n - k if chance > 0.5 else k


def reference(case: Case) -> dict[str, Expected]:
    """The outputs, where rounding decides nothing."""
    desc: Any = case.descriptor
    double = desc.element is Element.F64
    n = int(np.prod(desc.shape))
    seed, offset = int(case.scalars["seed"]), int(case.scalars["offset"])
    counter = np.arange(n, dtype=np.uint64) + np.uint64(offset)
    key, low = (seed & 0xFFFFFFFF, seed >> 32), np.uint64(0xFFFFFFFF)
    made: dict[tuple[int, int], tuple[Array, ...]] = {}

    def blocks(number: int) -> Callable[[int], tuple[Array, ...]]:
        def block(k: int) -> tuple[Array, ...]:
            if (k, number) not in made:
                places = (counter & low, counter >> np.uint64(32), np.full(n, k), np.full(n, number))
                made[k, number] = philox(places, key)
            return made[k, number]

        return block

    given = [np.asarray(x, _L).reshape(-1) for x in case.tensors.values()]
    y, size, reach = np.zeros(n), np.zeros(n), np.zeros(n)
    with np.errstate(all="ignore"):
        for i in range(n):
            d = [_Drawn(blocks(s), i, double) for s in (0, 1)]
            y[i], size[i] = _one(desc.kind, d, [x[i] for x in given])
            reach[i] = 0 if all(x.sure for x in d) else np.inf
    shape = desc.shape
    return {"y": Expected(y.reshape(shape), size.reshape(shape), reach=reach.reshape(shape))}


def _one(kind: str, d: list[_Drawn], given: list[Any]) -> tuple[Any, Any]:
    """An element, and the size of what it is made of."""
    if kind == "poisson":
        return (_poisson(d[0], given[0]),) * 2
    if kind == "binomial":
        return (_binomial(d[0], *given),) * 2
    x, less, size = _gamma(d[0], given[0])
    if kind == "gamma":
        return x * np.exp(-less), size * np.exp(-less) * (1 + less)
    other, less_other, other_size = _gamma(d[1], given[1])
    y = 1 / (1 + np.exp(np.log(other) - np.log(x) + (less - less_other)))
    unsure = sum(1 + abs(np.log(v)) + s / v for v, s in ((x, size), (other, other_size)) if v > 0) + less + less_other
    return y, y * (1 + (1 - y) * unsure)
