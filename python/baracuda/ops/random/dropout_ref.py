"""Reference of dropout: the documented mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.dropout import DropoutBackwardDescriptor, DropoutDescriptor
from baracuda.ops.random.random_ref import words
from baracuda.prove.reference import Array, Case, Expected

_CASES: list[tuple[tuple[int, ...], float, int, int]] = [
    ((5,), 0.5, 0, 0), ((), 0.25, 1, 2), ((3, 0, 2), 0.5, 1, 2), ((1030,), 0.1, 2**64 - 1, 2**64 - 50),
    ((7, 300), 0.0, 5, 5), ((2, 1, 3, 2, 5, 2, 3, 4), 1.0, 42, 10**12), ((70000,), 0.9, 7, 0),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Sizes around the kernels' groups; nothing and everything dropped; NaN and infinities."""
    del op
    cls = DropoutDescriptor if direction == "forward" else DropoutBackwardDescriptor
    for shape, p, seed, offset in _CASES:
        x = np.asarray(rng.normal(0, 1, shape))
        if x.size > 1000:
            x.reshape(-1)[:12] = [np.nan, np.inf, -np.inf, 0] * 3
        name = "x" if direction == "forward" else "dy"
        yield Case(
            cls(shape, element), {name: x}, {"p": p, "seed": seed, "offset": offset}, exact_gradient=x.size < 1000
        )


def mask(shape: tuple[int, ...], p: float, seed: int, offset: int) -> Array:
    """Whether each element is kept."""
    n = int(np.prod(shape))
    top, bottom = float(np.float32(p)).as_integer_ratio()
    drawn = np.stack(words(seed, offset, -(-n // 4)), 1).reshape(-1)[:n]
    return np.asarray(drawn >= np.uint64(-(-top * 2**32 // bottom))).reshape(shape)


def reference(case: Case) -> dict[str, Expected]:
    """The output in float64."""
    desc: Any = case.descriptor
    s = case.scalars
    forward = isinstance(desc, DropoutDescriptor)
    x = case.tensors["x" if forward else "dy"]
    kept = mask(x.shape, s["p"], int(s["seed"]), int(s["offset"]))
    y = np.where(kept, x / (1 - s["p"]) if s["p"] < 1 else 0.0, 0.0)
    return {"y" if forward else "dx": Expected(np.asarray(y))}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    dy = case.tensors["dy"]
    return Case(DropoutDescriptor(dy.shape, Element.F64), {"x": np.zeros(dy.shape)}, case.scalars)
