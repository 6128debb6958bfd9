"""Compares the gradients of a call with those of torch's float64, or with their limit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from differential.values import to_numpy
from opinfo.entries import Given
from torch.utils._pytree import tree_map

import baracuda as bc
from baracuda.describe.elements import Element
from baracuda.prove.reference import LARGEST, epsilon, to_reference
from edges.points import Points, _tensors

Array = np.ndarray[Any, Any]
# Numbers in the place of an infinity, and of a zero, on the way there.
FAR = ((30.0, 100.0, 300.0, 700.0), (2.0**10, 2.0**20, 2.0**40, 2.0**80))
PATHS = 4
NEAR = ((1e-3, 1e-6, 1e-12, 1e-24), (-1e-3, -1e-6, -1e-12, -1e-24))


@dataclass
class Finding:
    """One gradient that differs."""

    points: Points
    kind: str  # value; limit, where torch's is NaN; refused, escaped, shape
    which: int = 0
    at: tuple[int, ...] = ()
    got: float = 0.0
    want: float = 0.0
    detail: str = ""
    excuse: str = ""

    def __str__(self) -> str:
        if self.kind not in ("value", "limit"):
            return f"{self.kind}: {self.detail}: {self.points!r}"
        place = f"{self.kind}: gradient {self.which} at {list(self.at)}"
        return f"{place}: got {self.got!r}, want {self.want!r}: {self.points!r}"


def _widened(given: Given, change: Any = None) -> Given:
    def wide(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            if not x.dtype.is_floating_point:
                return x.detach().clone()
            made = x.detach().double().clone()
            return made if change is None else change(made)
        return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x

    made: Given = tree_map(wide, given)
    return made


def _outs(value: Any) -> list[torch.Tensor]:
    return [x for x in _tensors(value) if x.dtype.is_floating_point]


def _dys(points: Points, outs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Ordinary numbers, by the seed, that halves hold."""
    rng = np.random.default_rng(points.seed)
    return [torch.from_numpy(np.array(np.round(rng.normal(size=tuple(x.shape)) * 8) / 8 + 0.0625)) for x in outs]


def theirs(points: Points, change: Any = None) -> list[Array] | None:
    """Torch's gradients in float64; None where it refuses the call, or has none."""
    given = _widened(points.given, change)
    try:
        leaves = [x.requires_grad_() for x in points.leaves(given)]
        outs = [x for x in _outs(points.theirs(*given[0], **given[1])) if x.requires_grad]
        if not outs:
            return None
        found = torch.autograd.grad(
            outs, leaves, [d.to(x.dtype) for d, x in zip(_dys(points, outs), outs, strict=True)], allow_unused=True
        )
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return None
    return [np.zeros(tuple(x.shape)) if g is None else g.numpy() for g, x in zip(found, leaves, strict=True)]


def leaves_of(points: Points) -> list[torch.Tensor]:
    """What gradients are asked for."""
    return points.leaves(points.given)


def ours(points: Points) -> list[Any]:
    y, pull = bc.vjp(points.fn, *points.given[0], **points.given[1])
    outs = _outs(y)
    dys = [d.to(x.dtype) for d, x in zip(_dys(points, outs), outs, strict=True)]
    return _tensors(pull(dys[0] if len(outs) == 1 else tuple(dys)))


def _nan_values(points: Points, shape: tuple[int, ...]) -> Array:
    """Where the value itself is NaN, whose gradient nobody can say; everywhere if shapes do not tell."""
    given = _widened(points.given)
    nan = [np.isnan(x.detach().numpy()) for x in _outs(points.theirs(*given[0], **given[1]))]
    alike = [x for x in nan if x.shape == shape]
    whole = any(bool(x.any()) for x in nan)
    return alike[0] if alike else np.full(shape, whole)


def _steps(points: Points, values: Any, replaced: Any) -> list[list[Array]]:
    found = [theirs(points, lambda x, v=v: replaced(x, v)) for v in values]
    return [f for f in found if f is not None]


def _limit(steps: list[Array]) -> Array:
    """Where a sequence goes: to a number, to 0, to an infinity; NaN where it does not say."""
    with np.errstate(all="ignore"):
        first, before, last = steps[0], steps[-2], steps[-1]
        still = np.abs(last - before) <= 1e-5 * np.abs(last)
        sinks = (np.abs(last) < 1e-2 * np.abs(before)) | (np.abs(last) < 1e-12) & (np.abs(last) <= np.abs(before))
        grows = (
            (np.abs(last) > 10 * np.abs(before)) & (np.sign(last) == np.sign(before)) & (np.abs(last) > np.abs(first))
        )
        made = np.where(still, last, np.where(sinks, 0.0, np.where(grows, np.sign(last) * np.inf, np.nan)))
        return np.asarray(np.where((last == before) | (np.isinf(last) & np.isnan(made)), last, made))


def _infinite(x: torch.Tensor, v: float, pace: Any = 1.0) -> torch.Tensor:
    return torch.where(x.isinf(), x.sign() * v * pace, x)


def _zero(x: torch.Tensor, v: float, pace: Any = 1.0) -> torch.Tensor:
    return torch.where(x == 0, torch.full_like(x, v) * pace, x)


def _of(ways: list[list[list[Array]]]) -> list[list[Array]]:
    """For each gradient its limit on each way."""
    whole = [w for w in ways if len(w) > 1]
    return [[_limit([step[i] for step in w]) for w in whole] for i in range(len(whole[0][0]) if whole else 0)]


def limits(points: Points) -> list[list[Array]]:
    """The limits of each gradient on some ways: a number on one of them is as good as torch's."""
    ways = [_steps(points, values, _infinite) for values in FAR]
    ways += [_steps(points, values, _zero) for values in NEAR]
    ways += [_steps(points, v, lambda x, e: _zero(_infinite(x, 1 / abs(e)), e)) for v in NEAR]
    # Ties and ends of domains are left on both sides.
    ways += [_steps(points, v, lambda x, e: x + e * (x == x.round()) * x.abs().clamp(min=1.0)) for v in NEAR]
    return _of(ways)


def demanded(points: Points) -> list[Array]:
    """For each gradient its limit where it is the same however infinities and zeros are reached, else NaN."""
    rng = np.random.default_rng(points.seed)

    def apart(x: torch.Tensor, v: float) -> torch.Tensor:
        pace = torch.from_numpy(rng.uniform(0.5, 2, tuple(x.shape)))
        turned = pace * torch.from_numpy(rng.choice([-1.0, 1.0], tuple(x.shape)))
        return _zero(_infinite(x, v, pace), 1 / v**2, turned)

    found = []
    for per_way in _of([_steps(points, values, apart) for values in FAR * PATHS]):
        low, high = np.minimum.reduce(per_way), np.maximum.reduce(per_way)
        with np.errstate(all="ignore"):
            found.append(np.where((low == high) | (np.abs(high - low) <= 1e-4 * np.abs(low)), low, np.nan))
    return found


def _same(got: Array, want: Array, element: Element, size: float) -> Array:
    """Whether numbers are the same but for rounding: their bounds are the business of test_guarantee.py."""
    eps = max(epsilon(element), epsilon(element.compute))
    largest = LARGEST[element]
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= max(np.sqrt(eps), 1e-6) * np.abs(want) + 256 * eps * size
        beyond = (np.abs(want) >= largest / 4) & (np.sign(got) == np.sign(want)) & (np.abs(got) >= largest / 8)
        return np.asarray((got == want) | (np.isnan(got) & np.isnan(want)) | close | beyond)


def judge(points: Points) -> tuple[int, list[Finding]]:
    """How many gradients were compared, and those that are neither torch's nor a limit."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = theirs(points)
        if want is None:
            return 0, []
        try:
            got = ours(points)
        except bc.BaracudaError as refusal:
            return 0, [Finding(points, "refused", detail=str(refusal)[:300])]
        except Exception as error:
            return 0, [Finding(points, "escaped", detail=f"{type(error).__name__}: {error}"[:300])]
        if [tuple(g.shape) for g in got] != [w.shape for w in want]:
            return 0, [
                Finding(points, "shape", detail=f"{[tuple(g.shape) for g in got]}, want {[w.shape for w in want]}")
            ]
        return sum(w.size for w in want), _differing(points, got, want)


def _differing(points: Points, got: list[Any], want: list[Array]) -> list[Finding]:
    found: list[Finding] = []
    near: list[list[Array]] | None = None
    must: list[Array] | None = None
    for i, (mine, torchs) in enumerate(zip(got, want, strict=True)):
        array = to_numpy(mine)
        element = Element.coerce(array.dtype)
        values, exact = np.asarray(to_reference(array), np.float64), torchs
        if np.isnan(exact).any():  # torch's formula may end where there is a limit
            must = demanded(points) if must is None else must
            exact = np.where(np.isnan(exact), must[i], exact) if must else exact
        size = float(np.abs(exact[np.isfinite(exact)]).max(initial=1.0))
        right = _same(values, exact, element, size)
        if right.all():
            continue
        near = limits(points) if near is None else near
        for limit in near[i] if near else []:
            right = right | (_same(values, limit, element, size) & ~np.isnan(limit))
        right = right | _nan_values(points, exact.shape)
        if not right.all():
            at = tuple(int(k) for k in np.argwhere(~right)[0])
            kind = "limit" if np.isnan(torchs[at]) else "value"
            found.append(Finding(points, kind, i, at, float(values[at]), float(exact[at])))
    return found
