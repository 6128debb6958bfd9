"""Float64 reference of the optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor
from baracuda.ops.optim.optim import AdamDescriptor, AdamWDescriptor, SGDDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25

SHAPES: list[tuple[tuple[int, ...], ...]] = [
    ((5,),),
    ((),),
    ((3, 4), (0, 7), (), (2, 1030), (2, 3, 2, 2, 2, 2, 2, 2)),
    ((40000,), (33,), (70, 500)),
    tuple((k % 7, k % 5 + 1) for k in range(600)),
]
_SCALARS: dict[str, list[dict[str, float | int]]] = {
    "adam": [
        {"lr": 1e-3, "step": 1},
        {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1, "step": 7, "grad_scale": 128.0},
        {"lr": 1e-2, "beta1": 0.0, "beta2": 0.0, "eps": 1e-3, "weight_decay": 0.0, "step": 100000, "grad_scale": 0.3},
    ],
    "sgd": [
        {"lr": 0.1, "momentum": 0.9, "step": 2},
        {"lr": 0.05, "momentum": 0.7, "weight_decay": 0.1, "step": 1, "grad_scale": 3.0},
        {"lr": 1e-2, "momentum": 0.3, "dampening": 0.4, "weight_decay": 0.01, "step": 100},
    ],
}
_DEFAULTS = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "grad_scale": 1.0, "momentum": 0.0, "dampening": 0.0}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 600 tensors, some empty or 0-d; every mode; first and late steps; special values of gradients."""
    del direction
    scalars = _SCALARS["sgd" if op == "sgd" else "adam"]
    for i, shapes in enumerate(SHAPES):
        for mode in range(4) if i < 3 else (i % 4,):
            desc = _descriptor(op, shapes, element, mode)
            given = dict(scalars[(i + mode) % len(scalars)])
            if op == "sgd":
                given |= {"momentum": 0.0} if mode == 0 else {"dampening": 0.0} if mode == 3 else {}
            yield Case(desc, _tensors(desc, shapes, rng), given)
    shapes = ((6,), (54,))  # less than a vector, and more than the longest
    for mode in range(4):
        desc = _descriptor(op, shapes, element, mode)
        special = _tensors(desc, shapes, rng)
        for k, (n,) in enumerate(shapes):
            special["grads"][k][:] = np.resize([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30], n)
            if op != "sgd":
                special["exp_avg_sqs"][k][:2] = 0.0
                special["exp_avg_sqs"][k][5::6] = np.nan
            if "max_exp_avg_sqs" in special:
                special["max_exp_avg_sqs"][k][1::6] = np.nan
        given = {"lr": 0.1} if op == "sgd" and mode == 0 else dict(scalars[0])
        yield Case(desc, special, given, "special values")


def _descriptor(op: str, shapes: Any, element: Element, mode: int) -> Descriptor:
    if op == "sgd":  # no buffers; with; maximize; nesterov
        return SGDDescriptor(shapes, element, mode > 0, mode == 3, mode == 2)
    cls = AdamWDescriptor if op == "adamw" else AdamDescriptor
    return cls(shapes, element, mode % 2 == 1, mode > 1)


def _tensors(desc: Descriptor, shapes: tuple[tuple[int, ...], ...], rng: np.random.Generator) -> dict[str, list[Array]]:
    def draw(scale: float) -> list[Array]:
        return [np.asarray(rng.normal(0, scale, s)) for s in shapes]

    made = {"grads": draw(1.0), "params": draw(1.0)}
    if isinstance(desc, SGDDescriptor):
        return made | ({"momentum_buffers": draw(1.0)} if desc.has_momentum else {})
    made |= {"exp_avgs": draw(0.1), "exp_avg_sqs": [np.square(v) for v in draw(0.5)]}
    if desc.signature()["max_exp_avg_sqs"].present:
        made["max_exp_avg_sqs"] = [np.square(v) for v in draw(0.5)]
    return made


def reference(case: Case) -> dict[str, list[Expected]]:
    """Outputs in float64, one per tensor of the list."""
    desc: Any = case.descriptor
    names = [p.name for p in desc.signature().present]
    found = []
    with np.errstate(all="ignore"):
        for row in zip(*(case.tensors[n] for n in names), strict=True):
            found.append(_sgd(desc, case.scalars, *row) if desc.op == "sgd" else _adam(desc, case.scalars, *row))
    return {name: [row[k] for row in found] for k, name in enumerate(names[1:])}


def _adam(desc: Any, scalars: dict[str, float], grad: Array, *rest: Array) -> list[Expected]:
    s = _DEFAULTS | {"weight_decay": 0.01 if desc.op == "adamw" else 0.0} | scalars
    (p, m, v), most = rest[:3], rest[3:]
    g = (-grad if desc.maximize else grad) / s["grad_scale"]
    g_size = np.abs(g)
    if desc.op == "adam" and s["weight_decay"]:
        g, g_size = g + s["weight_decay"] * p, g_size + np.abs(s["weight_decay"] * p)
    m_kept, m_new = s["beta1"] * m, (1 - s["beta1"]) * g
    m_size = np.abs(m_kept) + (1 - s["beta1"]) * g_size
    m = m_kept + m_new
    v_size = s["beta2"] * v + (1 - s["beta2"]) * g_size**2
    v = s["beta2"] * v + (1 - s["beta2"]) * g * g
    found = [Expected(m, m_size), Expected(v, v_size)]
    if most:
        v, v_size = np.maximum(most[0], v), np.maximum(most[0], v_size)
        found.append(Expected(v, v_size))
    rate = s["lr"] / (1 - s["beta1"] ** s["step"])
    root = np.sqrt(v) / np.sqrt(1 - s["beta2"] ** s["step"]) + s["eps"]
    kept = p * (1 - s["lr"] * s["weight_decay"]) if desc.op == "adamw" else p
    # Where the gradient nearly cancels, the rounding errors of its parts count for more in the root.
    worse = np.where(v > 0, v_size / np.where(v > 0, v, 1), 1)
    return [Expected(kept - rate * m / root, np.abs(kept) + rate * m_size / root * worse), *found]


def _sgd(desc: Any, scalars: dict[str, float], grad: Array, p: Array, *buffers: Array) -> list[Expected]:
    s = _DEFAULTS | {"weight_decay": 0.0} | scalars
    g = (-grad if desc.maximize else grad) / s["grad_scale"]
    size = np.abs(g)
    if s["weight_decay"]:
        g, size = g + s["weight_decay"] * p, size + np.abs(s["weight_decay"] * p)
    found = []
    if buffers:
        moved, moved_size = g, size
        if s["step"] > 1:
            kept, gain = s["momentum"] * buffers[0], 1 - s["dampening"]
            moved, moved_size = kept + gain * g, np.abs(kept) + abs(gain) * size
        found.append(Expected(moved, moved_size))
        g = g + s["momentum"] * moved if desc.nesterov else moved
        size = size + s["momentum"] * moved_size if desc.nesterov else moved_size
    return [Expected(p - s["lr"] * g, np.abs(p) + s["lr"] * size), *found]
