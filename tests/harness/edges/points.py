"""Random calls of functions that have a gradient, whose numbers lie at zeros, infinities, ties and ends of the range."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from differential import calls, functions
from differential.judge import CONSTANT
from differential.shapes import Making, Rng, Shape
from differential.values import FLOATS, PLAIN, POSITIVE, T, values_of
from opinfo import entries
from opinfo.entries import Given
from torch.utils._pytree import tree_flatten, tree_map

import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.prove.peers import torch_function
from baracuda.prove.reference import LARGEST

Array = np.ndarray[Any, Any]
THEMES = ("zeros", "ties", "infinity", "-infinity", "infinities", "rows", "tiny", "huge", "ends")
RANGE = ("tiny", "huge", "ends")  # themes in which torch's float64 is exact for f32 only
# Torch's gradients of these read and write outside of memory where a position is not finite, or far away.
DIES = ("grid_sample", "grid_sampler_2d", "grid_sampler_3d")


@dataclass
class Points:
    """A call on both sides: what it is given, torch's tensors, of which gradients are asked for some."""

    name: str
    theme: str
    fn: Callable[..., Any]
    theirs: Callable[..., Any]
    given: Given
    leaves: Callable[[Given], list[torch.Tensor]]
    seed: int

    def __repr__(self) -> str:
        def shown(x: Any) -> Any:
            return f"{str(x.dtype)[6:]}{x.tolist()}" if isinstance(x, torch.Tensor) else x

        args, options = tree_map(shown, self.given)
        return f"{self.name}({', '.join(map(str, args))}{', ' if options else ''}{options or ''}) {self.theme}"


def edges(rng: Rng, element: str, shape: Shape, theme: str) -> Array:
    """Numbers of a theme: ordinary ones among them, or a whole row without."""
    n = int(np.prod(shape, dtype=np.int64))
    found = rng.normal(size=n) * float(rng.choice([1, 1, 3]))
    some = rng.random(n) < float(rng.choice([0.15, 0.5, 1.0], p=[0.5, 0.3, 0.2]))
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    largest = LARGEST[Element.coerce(element)]
    infinities = {"infinity": np.inf, "-infinity": -np.inf, "infinities": signs * np.inf}
    if theme == "zeros":
        found = np.where(some, 0.0 * signs, found)
    elif theme == "ties":
        found = np.where(some, rng.choice([1.0, -2.0, 0.5, 0.0], n), found)
        found = np.full(n, found[0]) if n and rng.random() < 0.3 else found
    elif theme in infinities:
        found = np.where(some, infinities[theme], found)
    elif theme == "rows":  # one along some dimension, or everything
        found = found.reshape(shape)
        value = float(rng.choice([np.inf, -np.inf, 0.0, 1.0]))
        place: tuple[Any, ...] = ()
        if shape and n:
            axis = int(rng.integers(len(shape)))
            place = (*(slice(None),) * axis, int(rng.integers(shape[axis])))
        found[place if rng.random() < 0.8 else ...] = value
    else:
        low, high = np.log10(1 / largest) - 6, np.log10(largest)
        low, high = (low, high / -4) if theme == "tiny" else (high / 3, high) if theme == "huge" else (low, high)
        exponent = rng.uniform(low, high, n) if rng.random() < 0.7 else np.full(n, rng.uniform(low, high))
        with np.errstate(over="ignore"):
            ends = signs * 10.0**exponent * rng.uniform(0.3, 1, n)
        found = np.where(some, ends, 0.0 * found if rng.random() < 0.3 else ends if theme != "ends" else found)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(found).astype(Element.coerce(element).numpy).reshape(shape)


class Edged(Making):
    """Makes tensors of a theme, few elements each, and now and then the same ones twice."""

    def __init__(self, rng: Rng, theme: str) -> None:
        super().__init__(rng, gradient=True)
        self.element = (
            "f32" if theme in RANGE else str(rng.choice(["f32", "f64", "f16", "bf16"], p=[0.5, 0.3, 0.1, 0.1]))
        )
        self.producer, self.mode, self.theme, self.least = "torch", PLAIN, theme, 1
        self.before: T | None = None

    def tensor(self, shape: Shape, mode: str | None = None, element: str | None = None) -> T:
        element = element or self.element
        if element not in FLOATS:
            return T(np.asarray(values_of(self.rng, element, shape)), producer="torch")
        if self.before is not None and self.before.shape == shape and self.chance(0.25):
            return T(self.before.array.copy(), "contiguous", "torch")
        ordinary = mode not in (None, PLAIN, POSITIVE) or self.chance(0.2)
        array = (
            values_of(self.rng, element, shape, mode or PLAIN)
            if ordinary
            else edges(self.rng, element, shape, self.theme)
        )
        self.before = T(np.asarray(np.abs(array) if mode == POSITIVE else array), "contiguous", "torch")
        return self.before

    def shape(self, low: int = 0, high: int = 6, least: int = 0, elements: int = 3000) -> Shape:
        return super().shape(low, min(high, max(low, 4)), least, min(elements, 40))

    def size(self, least: int = 0, most: int = 70) -> int:
        return super().size(least, min(most, 9))


def _by_family(name: str, rng: Rng, theme: str, seed: int) -> Points:
    given = functions.family(name)(Edged(rng, theme), name)
    if name == "rms_norm":  # by default the input's own
        given.setdefault("eps", 1e-6)
    known = functions.parameters(name)
    order = [p for p in known if p in given or "*" + p in given]
    call = calls.Call(name, {p if p in given else "*" + p: given[p if p in given else "*" + p] for p in order})
    for wanted_next, p in zip(known, order, strict=False):
        if p != wanted_next or known[p].kind is inspect.Parameter.KEYWORD_ONLY or "*" + p in given:
            break
        call.positional += 1
    stops = functions.family(name).__name__ in ("pointwise_loss", "class_loss", "attention")
    wanted = [
        x.is_float and not x.index and not (stops and key in CONSTANT)
        for key, value in call.given.items()
        for x in (value if isinstance(value, list) else [value])
        if isinstance(x, T)
    ]

    def leaves(passed: Given) -> list[torch.Tensor]:
        found = [x for x in tree_flatten(passed)[0] if isinstance(x, torch.Tensor)]
        return [x for x, want in zip(found, wanted, strict=True) if want]

    positional, keywords = call.arguments(calls.native(call))
    return Points(name, theme, getattr(F, name), torch_function(name), (tuple(positional), keywords), leaves, seed)


@cache
def sampled() -> dict[str, Any]:
    """Functions by torch's samples of calls: those that no family of calls is known for."""
    found: dict[str, Any] = {}
    for entry in entries.table():
        fn = entries.function(entry)
        if fn is None or entry.name in entries.RANDOM or getattr(fn, "vjp_rule", None) is None:
            continue
        if fn.__name__ not in functions.names() and torch.float32 in entry.dtypes:
            found.setdefault(fn.__name__, entry)
    return found


@cache
def _samples(name: str) -> list[Given]:
    entry = sampled()[name]
    return [g for g in entries.samples(entry, torch.float32) if sum(x.numel() for x in _tensors(g)) < 3000]


def _tensors(value: Any) -> list[torch.Tensor]:
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def _by_sample(name: str, rng: Rng, theme: str, seed: int) -> Points:
    entry, samples = sampled()[name], _samples(name)
    fn: Any = entries.function(entry)
    chosen = samples[int(rng.integers(len(samples)))]
    making = Edged(rng, theme)
    whole = "f32" if theme in RANGE or making.element in ("f16", "bf16") else making.element

    def drawn(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point:
            return x
        if making.chance(0.2):
            return x.detach().to(getattr(torch, Element.coerce(whole).numpy.name))
        return making.tensor(tuple(x.shape), None, whole).native()

    given: Given = tree_map(drawn, chosen)

    def leaves(passed: Given) -> list[torch.Tensor]:
        bound = fn.__signature__.bind(*passed[0], **passed[1])
        return [x for x in _tensors(list(bound.arguments.values())) if x.dtype.is_floating_point]

    return Points(name, theme, fn, entry.op, given, leaves, seed)


@cache
def names() -> tuple[str, ...]:
    """The functions whose gradients are compared."""
    by_family = (n for n in functions.names() if functions.has_gradient(n))
    return (*by_family, *(n for n in sampled() if _samples(n)))


def make(name: str, seed: tuple[int, ...]) -> Points:
    """The call of a function for a seed."""
    rng = np.random.default_rng([*seed, *name.encode()])
    theme = str(rng.choice(("zeros", "ties", "tiny") if name in DIES else THEMES))
    made = _by_sample if name in sampled() else _by_family
    return made(name, rng, theme, int(rng.integers(2**31)))
