"""Float64 reference of the optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.elements import Element
from baracuda.ops.optim import AdamWDescriptor
from baracuda.reference import Array, Case, Expected

_SHAPES: list[tuple[tuple[int, ...], ...]] = [
    ((5,),),
    ((),),
    ((3, 4), (0, 7), (), (2, 1030), (2, 3, 2, 2, 2, 2, 2, 2)),
    ((40000,), (33,), (70, 500)),
    tuple((k % 7, k % 5 + 1) for k in range(600)),
]
_SCALARS = [
    {"lr": 1e-3, "step": 1},
    {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1, "step": 7, "grad_scale": 128.0},
    {"lr": 1e-2, "beta1": 0.0, "beta2": 0.0, "eps": 1e-3, "weight_decay": 0.0, "step": 100000, "grad_scale": 0.3},
]
_DEFAULTS = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "grad_scale": 1.0}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 600 tensors, some empty or 0-d; first and late steps; special values of gradients."""
    del op, direction
    for i, shapes in enumerate(_SHAPES):
        desc = AdamWDescriptor(shapes, element, i % 2 == 1)
        yield Case(desc, _tensors(shapes, rng), dict(_SCALARS[i % len(_SCALARS)]))
    special = _tensors(((6,),), rng)
    special["grads"][0][:] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30]
    special["exp_avg_sqs"][0][:2] = 0.0
    yield Case(AdamWDescriptor(((6,),), element), special, dict(_SCALARS[0]), "special values")


def _tensors(shapes: tuple[tuple[int, ...], ...], rng: np.random.Generator) -> dict[str, list[Array]]:
    def draw(scale: float) -> list[Array]:
        return [np.asarray(rng.normal(0, scale, s)) for s in shapes]

    return {
        "grads": draw(1.0),
        "params": draw(1.0),
        "exp_avgs": draw(0.1),
        "exp_avg_sqs": [np.square(v) for v in draw(0.5)],
    }


def reference(case: Case) -> dict[str, list[Expected]]:
    """Outputs in float64, one per tensor of the list."""
    desc = case.descriptor
    assert isinstance(desc, AdamWDescriptor)
    s = _DEFAULTS | case.scalars
    rows = zip(*(case.tensors[n] for n in ("grads", "params", "exp_avgs", "exp_avg_sqs")), strict=True)
    found = [_step(s, -1.0 if desc.maximize else 1.0, *row) for row in rows]
    names = ("params", "exp_avgs", "exp_avg_sqs")
    return {name: [row[k] for row in found] for k, name in enumerate(names)}


def _step(
    s: dict[str, float], sign: float, grad: Array, p: Array, m: Array, v: Array
) -> tuple[Expected, Expected, Expected]:
    with np.errstate(all="ignore"):
        g = sign * grad / s["grad_scale"]
        m_kept, m_new = s["beta1"] * m, (1 - s["beta1"]) * g
        m = m_kept + m_new
        m_size = np.abs(m_kept) + np.abs(m_new)
        v = s["beta2"] * v + (1 - s["beta2"]) * g * g
        rate = s["lr"] / (1 - s["beta1"] ** s["step"])
        root = np.sqrt(v) / np.sqrt(1 - s["beta2"] ** s["step"]) + s["eps"]
        kept = p * (1 - s["lr"] * s["weight_decay"])
        return Expected(kept - rate * m / root, np.abs(kept) + rate * m_size / root), Expected(m, m_size), Expected(v)
