"""Float64 reference of the steps of Adagrad, RMSprop and Adadelta."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor
from baracuda.ops.optim.optim_ref import EXPONENTS as EXPONENTS
from baracuda.ops.optim.optim_ref import SHAPES
from baracuda.ops.optim.rates import AdadeltaDescriptor, AdagradDescriptor, RMSpropDescriptor
from baracuda.prove.reference import Array, Case, Expected

Numbers = dict[str, float | int]
# A descriptor, its scalars, a gradient, a parameter and its statistics; the new parameter, and the new statistics.
Step = Callable[[Any, Numbers, Array, Array, tuple[Array, ...]], list[Expected]]

_SCALARS: dict[str, list[Numbers]] = {
    "adagrad": [
        {"lr": 1e-2, "step": 1},
        {"lr": 0.05, "lr_decay": 0.1, "eps": 1e-6, "weight_decay": 0.1, "step": 7, "grad_scale": 128.0},
        {"lr": 1e-2, "lr_decay": 1e-3, "eps": 1e-3, "step": 100000, "grad_scale": 0.3},
    ],
    "rmsprop": [
        {"lr": 1e-2, "momentum": 0.9},
        {"lr": 0.05, "alpha": 0.9, "eps": 1e-6, "momentum": 0.5, "weight_decay": 0.1, "grad_scale": 128.0},
        {"lr": 1e-2, "alpha": 0.5, "eps": 1e-3, "momentum": 0.0, "grad_scale": 0.3},
    ],
    "adadelta": [
        {"lr": 1.0},
        {"lr": 0.05, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "grad_scale": 128.0},
        {"lr": 0.3, "rho": 0.0, "eps": 1e-3, "grad_scale": 0.3},
    ],
}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 600 tensors, some empty or 0-d; every mode; first and late steps; special values of gradients."""
    del direction
    yield from step_cases(op, element, rng, _SCALARS[op], _descriptor)


def _descriptor(op: str, shapes: Any, element: Element, mode: int) -> Descriptor:
    up = mode % 2 == 1
    if op == "rmsprop":
        return RMSpropDescriptor(shapes, element, up, mode > 1, mode in (1, 2))
    return (AdagradDescriptor if op == "adagrad" else AdadeltaDescriptor)(shapes, element, up)


def step_cases(
    op: str, element: Element, rng: np.random.Generator, scalars: list[Numbers], describe: Callable[..., Descriptor]
) -> Iterator[Case]:
    """Cases of a step.

    Args:
        op: The op's name.
        element: Of the parameters.
        rng: Random numbers.
        scalars: Sets of scalars, in turn.
        describe: Makes a descriptor of an op's name, shapes, an element and a mode from 0 to 3.
    """
    for i, shapes in enumerate(SHAPES):
        for mode in range(4) if i < 3 else (i % 4,):
            desc = describe(op, shapes, element, mode)
            yield Case(desc, _tensors(desc, shapes, rng), _taken(desc, scalars[(i + mode) % len(scalars)]))
    shapes = ((6,), (54,))  # less than a vector, and more than the longest
    for mode in range(4):
        desc = describe(op, shapes, element, mode)
        special = _tensors(desc, shapes, rng)
        for k, (n,) in enumerate(shapes):
            special["grads"][k][:] = np.resize([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30], n)
            for name in special.keys() - {"grads", "params"}:
                special[name][k][5::6] = np.nan
        yield Case(desc, special, _taken(desc, scalars[0]), "special values")


def _taken(desc: Any, scalars: Numbers) -> Numbers:
    still = desc.op == "rmsprop" and not desc.has_momentum
    return scalars | {"momentum": 0.0} if still else dict(scalars)


_SQUARES = {"state_sums", "square_avgs", "acc_deltas", "exp_avg_sqs"}


def _tensors(desc: Any, shapes: tuple[tuple[int, ...], ...], rng: np.random.Generator) -> dict[str, list[Array]]:
    def draw(scale: float) -> list[Array]:
        return [np.asarray(rng.normal(0, scale, s)) for s in shapes]

    made = {"grads": draw(1.0), "params": draw(1.0)}
    for name in desc.lists():
        if not desc.has(name):
            continue
        made[name] = [np.square(v) for v in draw(0.5)] if name in _SQUARES else draw(0.1)
        if name == "exp_infs":
            made[name] = [np.abs(v) for v in made[name]]
    if "grad_avgs" in made:  # a deviation that rounding leaves
        pairs = zip(made["square_avgs"], made["grad_avgs"], strict=True)
        made["square_avgs"] = [np.asarray(s + 4 * a * a) for s, a in pairs]
    return made


def reference(case: Case) -> dict[str, list[Expected]]:
    """Outputs in float64, one per tensor of the list."""
    return step_reference(case, {"adagrad": _adagrad, "rmsprop": _rmsprop, "adadelta": _adadelta}[case.descriptor.op])


def step_reference(case: Case, step: Step) -> dict[str, list[Expected]]:
    """Outputs of a step, for each tensor of the lists."""
    desc: Any = case.descriptor
    names = [p.name for p in desc.signature().present]
    s = {p.name: p.default for p in desc.numbers() if p.default is not None} | case.scalars
    with np.errstate(all="ignore"):
        found = [
            step(desc, s, g, p, tuple(kept)) for g, p, *kept in zip(*(case.tensors[n] for n in names), strict=True)
        ]
    return {name: [row[k] for row in found] for k, name in enumerate(names[1:])}


def gradient_of(desc: Any, s: Numbers, grad: Array, p: Array, decoupled: bool = False) -> tuple[Array, Array]:
    """The gradient that a step counts with, and the size of its parts."""
    g = (-grad if desc.maximize else grad) / s["grad_scale"]
    size = np.abs(g)
    if s["weight_decay"] and not decoupled:
        g, size = g + s["weight_decay"] * p, size + np.abs(s["weight_decay"] * p)
    return g, size


def mean_of(beta: float, kept: Array, new: Array, size: Array) -> Expected:
    """What beta kept + (1 - beta) new, is, whose parts have a size."""
    return Expected(beta * kept + (1 - beta) * new, beta * np.abs(kept) + (1 - beta) * size)


def worse(x: Array, size: Array) -> Array:
    """By how much more rounding errors of its parts count for where a sum nearly cancels."""
    return np.where(x > 0, size / np.where(x > 0, x, 1), 1)


def _adagrad(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    g, size = gradient_of(desc, s, grad, p)
    total = Expected(kept[0] + g * g, kept[0] + size * size)
    rate = s["lr"] / (1 + (s["step"] - 1) * s["lr_decay"])
    root = np.sqrt(total.value) + s["eps"]
    moved = np.abs(p) + rate * size / root * worse(total.value, total.magnitude)
    return [Expected(p - rate * g / root, moved), total]


def _rmsprop(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    g, size = gradient_of(desc, s, grad, p)
    squares = mean_of(s["alpha"], kept[0], g * g, size * size)
    found, v, v_size = [squares], squares.value, squares.magnitude
    if desc.centered:
        mean = mean_of(s["alpha"], kept[-1], g, size)
        v, v_size = v - mean.value**2, v_size + mean.magnitude**2
    root = np.sqrt(v) + s["eps"]
    move, moved = g / root, size / root * worse(v, v_size)
    if desc.has_momentum:
        move, moved = s["momentum"] * kept[1] + move, np.abs(s["momentum"] * kept[1]) + moved
        found.append(Expected(move, moved))
    if desc.centered:
        found.append(mean)
    return [Expected(p - s["lr"] * move, np.abs(p) + s["lr"] * moved), *found]


def _adadelta(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    g, size = gradient_of(desc, s, grad, p)
    squares = mean_of(s["rho"], kept[0], g * g, size * size)
    v, v_size = squares.value + s["eps"], squares.magnitude + s["eps"]
    ratio = np.sqrt(kept[1] + s["eps"]) / np.sqrt(v)
    delta, moved = ratio * g, ratio * size * worse(v, v_size)
    deltas = mean_of(s["rho"], kept[1], delta * delta, moved * moved)
    return [Expected(p - s["lr"] * delta, np.abs(p) + s["lr"] * moved), squares, deltas]
