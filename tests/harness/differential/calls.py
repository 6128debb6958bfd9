"""Random calls: one from each seed, right mostly, wrong in one place now and then."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from baracuda.describe.elements import Element
from differential import functions
from differential.shapes import Making, Rng
from differential.values import ELEMENTS, FLOATS, JAX, Dtype, T, arranged, to_torch, torch_dtype, values_of

WRONG = 0.1
# In torch the smallest number over -1 ends the process.
DIES = ("lcm", "gcd", "div", "divide", "true_divide", "floor_divide", "remainder", "fmod")
# Integers that are values: large ones of others are sizes, and memory.
VALUES = (
    "value",
    "alpha",
    "beta",
    "fill_value",
    "input",
    "other",
    "exponent",
    "min",
    "max",
    "dim",
    "diagonal",
    "padding_idx",
)
KEPT = ("f32", "f64")  # elements that a widened number is rounded to before


@dataclass
class Call:
    """A call as both sides make it."""

    name: str
    given: dict[str, Any]
    producer: str = "numpy"
    positional: int = 0
    gradient: bool = False
    hostile: bool = False
    wants_out: bool = False
    wrong: str = ""
    mixed: bool = False
    out: T | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.given.items())
        extra = "".join(f" {k}" for k in ("gradient", "wants_out") if getattr(self, k)) + (
            f" wrong: {self.wrong}" if self.wrong else ""
        )
        return f"{self.name}({inside}){extra}"

    def tensors(self) -> dict[str, T]:
        """All tensors, those of lists by number."""
        found: dict[str, T] = {}
        for key, value in self.given.items():
            for i, x in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(x, T):
                    found[f"{key}[{i}]" if isinstance(value, list) else key] = x
        return found

    def arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for i, (key, value) in enumerate(given.items()):
            if key[0] == "*":
                positional += value
            elif i < self.positional:
                positional.append(value)
            else:
                keywords[key] = value
        return positional, keywords


def _dtype(value: Dtype, producer: str) -> Any:
    return torch_dtype(value.element) if producer == "torch" else Element.coerce(value.element).numpy


def ours(call: Call) -> dict[str, Any]:
    """The arguments for bc.functional."""

    def make(x: Any) -> Any:
        if isinstance(x, list):
            return [make(v) for v in x]
        return x.ours() if isinstance(x, T) else _dtype(x, call.producer) if isinstance(x, Dtype) else x

    return {k: make(v) for k, v in call.given.items()}


def native(call: Call) -> dict[str, Any]:
    """The arguments for torch's own function."""

    def make(x: Any) -> Any:
        if isinstance(x, list):
            return [make(v) for v in x]
        return x.native() if isinstance(x, T) else torch_dtype(x.element) if isinstance(x, Dtype) else x

    return {k: make(v) for k, v in call.given.items()}


def wide(call: Call, compute: str) -> dict[str, Any]:
    """The arguments in float64, rounded to what a result's element is computed in where they are of a wider one."""

    def number(x: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.float32(x)) if compute == "f32" else x

    def tensor(x: T) -> torch.Tensor:
        if x.index or compute not in KEPT:
            return x.wide()
        if x.element in FLOATS and x.element != "f64":
            return x.wide()
        kept = x.native().to(torch_dtype(compute))
        return kept.double()

    def make(x: Any) -> Any:
        if isinstance(x, list):
            return [make(v) for v in x]
        if isinstance(x, Dtype):
            return torch.float64 if x.element in FLOATS else torch_dtype(x.element)
        return tensor(x) if isinstance(x, T) else number(x) if type(x) is float else x

    found = {k: make(v) for k, v in call.given.items()}
    if call.name == "rms_norm" and "eps" not in found:  # the input's own
        found["eps"] = float(torch.finfo(torch_dtype(compute)).eps)
    return found


def _spoil(rng: Rng, call: Call) -> None:
    """Changes one thing."""
    tensors, m = call.tensors(), Making(rng)
    numbers = [k for k, v in call.given.items() if type(v) is int]
    kind = (
        m.pick("element", "element", "shape", "shape", "number", "text")
        if numbers
        else m.pick("element", "shape", "shape", "text")
    )
    if kind == "text":
        options = [k for k, v in call.given.items() if isinstance(v, (str, bool)) and k[0] != "*"]
        if options:
            key = m.pick(*options)
            call.given[key], call.wrong = "nonsense", f"{key} is text"
        return
    if kind == "number":
        key = m.pick(*numbers)
        call.given[key] = m.pick(call.given[key] + 7, call.given[key] - 9, 1.5, 2**31 if key in VALUES else -1)
        call.wrong = f"another number for {key}"
        return
    if not tensors:
        return
    key = m.pick(*tensors)
    chosen = tensors[key]
    element, shape = chosen.element, list(chosen.shape)
    if kind == "element":
        element = m.pick(*ELEMENTS)
    elif shape and m.chance(0.7):
        shape[int(rng.integers(len(shape)))] += m.pick(1, -1) if min(shape) else 1
        shape = [max(n, 0) for n in shape]
    else:
        shape = [*shape, 1] if m.chance(0.5) or not shape else shape[:-1]
    keep = np.resize(chosen.array, shape) if chosen.array.size else np.zeros(shape, chosen.array.dtype)
    made = keep if kind == "shape" else values_of(rng, element, tuple(shape))
    if chosen.index and kind == "element":
        made = np.zeros(shape, Element.coerce(element).numpy)
    again = arranged(rng, np.ascontiguousarray(made).reshape(shape), chosen.producer)
    chosen.array, chosen.layout = again.array, again.layout
    call.wrong = f"another {kind} for {key}"


def make(name: str, seed: tuple[int, ...]) -> Call:
    """The call of a function for a seed."""
    rng = np.random.default_rng([*seed, *name.encode()])
    gradient = functions.has_gradient(name) and bool(rng.random() < 0.35)
    making = Making(rng, gradient=gradient)
    given = functions.family(name)(making, name)
    known = functions.parameters(name)
    order = [p for p in known if p in given or "*" + p in given]
    call = Call(
        name, {p if p in given else "*" + p: given[p if p in given else "*" + p] for p in order}, making.producer
    )
    call.gradient, call.mixed, call.hostile = gradient, making.mixed, making.mode == "hostile"
    # Positional as far as nothing is left out and nothing is keyword-only, or fewer.
    for p, wanted in zip(order, known, strict=False):
        if p != wanted or known[p].kind is inspect.Parameter.KEYWORD_ONLY or "*" + p in given:
            break
        call.positional += 1
    required = sum(known[p].default is inspect.Parameter.empty for p in order[: call.positional])
    call.positional = int(rng.integers(min(required, call.positional), call.positional + 1))
    call.wants_out = not gradient and "out" in known and bool(rng.random() < 0.15)
    if rng.random() < WRONG:
        _spoil(rng, call)
    if name in DIES:
        for x in call.tensors().values():
            if x.array.dtype.kind == "i":
                x.array = np.asarray(np.maximum(x.array, np.iinfo(x.array.dtype).min + 1))
    if call.producer == "jax" and any(x.producer != "jax" or x.element not in JAX for x in call.tensors().values()):
        call.producer = "numpy"
        for x in call.tensors().values():
            x.producer = "numpy"
    if call.wants_out and rng.random() < 0.3:
        call.wrong = call.wrong or "out"
    return call


def out_like(rng: Rng, call: Call, result: torch.Tensor) -> T | None:
    """What out= is given: a tensor like the result, or one of another shape or element."""
    producer = call.producer if call.producer in ("numpy", "torch") else "numpy"
    element = str(Element.coerce(result.dtype))
    shape = tuple(result.shape)
    if call.wrong == "out":
        if rng.random() < 0.5:
            element = str(rng.choice(ELEMENTS))
        else:
            shape = (*shape, 2)
    return arranged(rng, np.zeros(shape, Element.coerce(element).numpy), producer, repeated=False)


def torch_out(out: T) -> torch.Tensor:
    return to_torch(out.array.copy())
