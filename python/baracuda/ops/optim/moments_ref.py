"""Float64 reference of the steps of Adamax, NAdam, RAdam and Lion."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor
from baracuda.ops.optim.moments import AdamaxDescriptor, LionDescriptor, NAdamDescriptor, RAdamDescriptor
from baracuda.ops.optim.rates_ref import EXPONENTS as EXPONENTS
from baracuda.ops.optim.rates_ref import Numbers, gradient_of, mean_of, step_cases, step_reference, worse
from baracuda.prove.reference import Array, Case, Expected, epsilon

_LATE: Numbers = {"lr": 1e-2, "beta1": 0.0, "beta2": 0.0, "eps": 1e-3, "step": 100000, "grad_scale": 0.3}
_EARLY: Numbers = {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1, "grad_scale": 128.0}
_SCALARS: dict[str, list[Numbers]] = {
    "adamax": [{"lr": 2e-3, "step": 1}, _EARLY | {"step": 7}, _LATE],
    "nadam": [
        {"lr": 2e-3, "mu_product": 0.45, "step": 1},
        _EARLY | {"momentum_decay": 0.3, "mu_product": 0.02, "step": 7},
        _LATE | {"mu_product": 0.0},
    ],
    "radam": [
        {"lr": 1e-3, "step": 3},
        {"lr": 1e-3, "step": 7},
        _EARLY | {"step": 40},
        {"lr": 1e-2, "weight_decay": 0.1, "step": 3000},
        _LATE,
    ],
    "lion": [
        {"lr": 1e-4},
        {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1, "grad_scale": 128.0},
        {"lr": 1e-2, "beta1": 0.0, "beta2": 0.0, "grad_scale": 0.3},
    ],
}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 600 tensors, some empty or 0-d; every mode; first and late steps; special values of gradients."""
    del direction
    yield from step_cases(op, element, rng, _SCALARS[op], _descriptor)


def _descriptor(op: str, shapes: Any, element: Element, mode: int) -> Descriptor:
    up = mode % 2 == 1
    if op in ("nadam", "radam"):
        return (NAdamDescriptor if op == "nadam" else RAdamDescriptor)(shapes, element, up, mode > 1)
    return (AdamaxDescriptor if op == "adamax" else LionDescriptor)(shapes, element, up)


def reference(case: Case) -> dict[str, list[Expected]]:
    """Outputs in float64, one per tensor of the list."""
    steps = {"adamax": _adamax, "nadam": _nadam, "radam": _radam, "lion": _lion}
    return step_reference(case, steps[case.descriptor.op])


def _correction(beta: float, step: float) -> float:
    """1 - beta^step, without the rounding of the power."""
    return float(-np.expm1(step * np.log(beta)))


def _adamax(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    g, size = gradient_of(desc, s, grad, p)
    m = mean_of(s["beta1"], kept[0], g, size)
    most = np.maximum(s["beta2"] * kept[1], np.abs(g) + s["eps"])
    u = Expected(most, np.maximum(s["beta2"] * kept[1], size + s["eps"]))
    rate = s["lr"] / _correction(s["beta1"], s["step"])
    moved = np.abs(p) + rate * m.magnitude / most * worse(most, u.magnitude)
    return [Expected(p - rate * m.value / most, moved), m, u]


def _moments(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> tuple[Any, ...]:
    """What NAdam and RAdam share: parameter, gradient and its size, moments, and how much worse the root is."""
    g, size = gradient_of(desc, s, grad, p, desc.decoupled_weight_decay)
    m, v = mean_of(s["beta1"], kept[0], g, size), mean_of(s["beta2"], kept[1], g * g, size * size)
    start = p * (1 - s["lr"] * s["weight_decay"]) if desc.decoupled_weight_decay else p
    return start, g, size, m, v, worse(v.value, v.magnitude)


def _nadam(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    start, g, size, m, v, more = _moments(desc, s, grad, p, kept)
    root = np.sqrt(v.value / _correction(s["beta2"], s["step"])) + s["eps"]
    mu, after = (s["beta1"] * (1 - 0.5 * 0.96 ** (t * s["momentum_decay"])) for t in (s["step"], s["step"] + 1))
    first, second = s["lr"] * (1 - mu) / (1 - s["mu_product"]), s["lr"] * after / (1 - s["mu_product"] * after)
    value = start - first * g / root - second * m.value / root
    return [Expected(value, np.abs(start) + (first * size + second * m.magnitude) / root * more), m, v]


def _length(beta: float, step: int) -> float:
    """The length of RAdam's average, which in f64 is a small difference of large numbers."""
    with localcontext(prec=60):
        b = Decimal(beta)
        return float(2 / (1 - b) - 1 - 2 * step * b**step / (1 - b**step))


def _radam(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    start, _, _, m, v, more = _moments(desc, s, grad, p, kept)
    beta, step, rate = s["beta2"], s["step"], s["lr"] / _correction(s["beta1"], s["step"])
    most = 2 / (1 - beta) - 1
    now = _length(beta, int(step))
    if now <= 5:
        return [Expected(start - rate * m.value, np.abs(start) + rate * m.magnitude), m, v]
    rate *= np.sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now) * _correction(beta, step))
    root = np.sqrt(v.value) + s["eps"]
    return [Expected(start - rate * m.value / root, np.abs(start) + rate * m.magnitude / root * more), m, v]


def _lion(desc: Any, s: Numbers, grad: Array, p: Array, kept: tuple[Array, ...]) -> list[Expected]:
    g, size = gradient_of(desc, s, grad, p, decoupled=True)
    toward = mean_of(s["beta1"], kept[0], g, size)
    start = p * (1 - s["lr"] * s["weight_decay"])
    # A sum that is 0 but for its rounding errors has either sign.
    eps = epsilon(desc.element.statistic)
    unsure = (np.abs(toward.value) < 4 * eps * toward.magnitude) & (toward.magnitude > 0)
    moved = np.abs(start) + s["lr"] * np.where(unsure, 2 / eps, 1)
    return [Expected(start - s["lr"] * np.sign(toward.value), moved), mean_of(s["beta2"], kept[0], g, size)]
