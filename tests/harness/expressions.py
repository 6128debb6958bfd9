"""Random expressions: fused, traced, compiled, saved and differentiated, they give what the calls give one after the other.

An expression is a list of instructions over values, of which some are used twice, some never, and some are results. It is
interpreted with bc.functional on tensors, on stand-ins and while a graph is traced, and with torch in f64 for gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import baracuda.functional as F
from baracuda.describe.elements import Element

Shape = tuple[int, ...]
Rng = np.random.Generator
EXTENTS, SHARES = (0, 1, 2, 3, 5, 17), (0.06, 0.2, 0.24, 0.24, 0.2, 0.06)
MOST_ELEMENTS = 4096


@dataclass(frozen=True)
class Op:
    """One kind of instruction: what it is here and in torch, of how many values, and what else it is given."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    operands: int = 1
    option: Callable[[Rng, Shape], Any] | None = None


def _axes(rng: Rng, shape: Shape) -> tuple[tuple[int, ...], bool]:
    """The last axes, mostly, or some others; whether they stay."""
    rank, count = len(shape), int(rng.integers(1, max(len(shape), 1) + 1))
    last = tuple(range(max(rank - count, 0), rank))
    other = tuple(sorted(int(a) for a in rng.permutation(rank)[:count]))
    return (last if rng.random() < 0.7 else other) or (0,), bool(rng.random() < 0.6)


def _order(rng: Rng, shape: Shape) -> tuple[int, ...]:
    return tuple(int(a) for a in rng.permutation(len(shape)))


def _part(rng: Rng, shape: Shape) -> Any:
    """A key: a range of one axis, a step, or one row."""
    if not shape:
        return Ellipsis
    axis = int(rng.integers(len(shape)))
    n = shape[axis]
    start = int(rng.integers(0, n + 1))
    key: Any = slice(start, int(rng.integers(start, n + 1)), int(rng.integers(1, 3)))
    if n and rng.random() < 0.3:
        key = int(rng.integers(-n, n))
    return (*(slice(None),) * axis, key)


def _wider(rng: Rng, shape: Shape) -> Shape:
    """What it broadcasts to."""
    grown = tuple(int(rng.choice((1, 2, 3))) if n == 1 else n for n in shape)
    return (int(rng.choice((1, 2))), *grown) if len(shape) < 4 and rng.random() < 0.4 else grown


def _flat(rng: Rng, shape: Shape) -> Shape:
    return (int(np.prod(shape)),) if rng.random() < 0.5 else (1, *shape[::-1])


def _number(rng: Rng, shape: Shape) -> float:
    return float(rng.choice((-1.5, -0.0, 0.25, 1.0, 2.0)))


def _axis(rng: Rng, shape: Shape) -> int:
    return int(rng.integers(-len(shape), len(shape))) if shape else 0


def _reduced(name: str) -> Op:
    def theirs(x: Any, given: Any) -> Any:
        axes, keep = given
        if x.ndim == 0:
            return x + 0
        if name in ("amax", "amin"):
            return getattr(torch, name)(x, axes, keepdim=keep)
        if name == "prod":
            for a in reversed(axes):
                x = torch.prod(x, a, keepdim=keep)
            return x
        return getattr(torch, name)(x, axes, keepdim=keep)

    def ours(x: Any, given: Any) -> Any:
        axes, keep = given
        x = F.copy(x)  # fused, it has the bits of the contiguous array
        if name != "prod":
            return getattr(F, name)(x, axes if len(x.shape) else (), keep)
        for a in reversed(axes):
            x = F.prod(x, a, keep)
        return x

    return Op(ours, theirs, option=_axes)


def _same(name: str, theirs: Callable[..., Any] | None = None, operands: int = 1) -> Op:
    found: Callable[..., Any] = theirs or getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return Op(getattr(F, name), found, operands)


def _guarded(x: Any) -> Any:
    return F.add(F.square(x), 1.0)


OPS: dict[str, Op] = {
    **{n: _same(n) for n in ("tanh", "sigmoid", "sin", "cos", "square", "neg", "abs", "relu", "softplus", "atan", "erf")},
    **{n: _same(n) for n in ("silu", "gelu", "asinh")},
    **{n: _same(n, operands=2) for n in ("add", "sub", "mul", "maximum", "minimum")},
    "hypot": Op(lambda a, b: F.hypot(a, _guarded(b)), lambda a, b: torch.hypot(a, b * b + 1), 2),
    "div": Op(lambda a, b: F.div(a, _guarded(b)), lambda a, b: a / (b * b + 1), 2),
    "exp": Op(lambda x: F.exp(F.clamp(x, -2.0, 2.0)), lambda x: torch.exp(torch.clamp(x, -2, 2))),
    "sqrt": Op(lambda x: F.sqrt(_guarded(x)), lambda x: torch.sqrt(x * x + 1)),
    "log1p": Op(lambda x: F.log1p(F.abs(x)), lambda x: torch.log1p(torch.abs(x))),
    "where": Op(lambda a, b, c: F.where(F.gt(a, 0.1), b, c), lambda a, b, c: torch.where(a > 0.1, b, c), 3),
    "lerp": _same("lerp", operands=3),
    "addcmul": _same("addcmul", operands=3),
    "scaled": Op(lambda a, b, n: F.add(a, b, alpha=n), lambda a, b, n: torch.add(a, b, alpha=n), 2, _number),
    "times": Op(lambda x, n: F.mul(x, n), lambda x, n: x * n, 1, _number),
    **{n: _reduced(n) for n in ("sum", "mean", "amax", "amin", "prod")},
    "permute": Op(lambda x, o: x.permute(o), lambda x, o: x.permute(o), option=_order),
    "part": Op(lambda x, k: x[k], lambda x, k: x[k], option=_part),
    "expand": Op(lambda x, s: x.expand(s), lambda x, s: x.expand(s), option=_wider),
    "unsqueeze": Op(lambda x, a: x.unsqueeze(a), lambda x, a: x.unsqueeze(a), option=_axis),
    "reshape": Op(lambda x, s: F.copy(x).reshape(s), lambda x, s: x.reshape(s), option=_flat),
    "softmax": Op(lambda x, a: F.softmax(x, a), lambda x, a: torch.softmax(x, a), option=_axis),
    "cumsum": Op(lambda x, a: F.cumsum(x, a), lambda x, a: torch.cumsum(x, a), option=_axis),
}  # fmt: skip
VIEWS = frozenset({"permute", "part", "expand", "unsqueeze", "reshape"})
# Elementwise functions are what is fused, so that most instructions are such.
_WEIGHTS = {
    n: 0.5 if n in VIEWS or n in ("softmax", "cumsum") else 1.2 if n in ("sum", "mean", "amax") else 1.0 for n in OPS
}

_WHOLE = ("add", "sub", "mul", "maximum", "minimum", "neg", "abs", "square", "sum", "amax", "amin", "cumsum", *VIEWS)
# What other elements than floats are computed with.
_FEWER: dict[str, tuple[str, ...]] = {
    **{e: _WHOLE for e in ("i32", "i64", "u8", "i8")},
    "bool": ("maximum", "minimum", "mul", "amax", *VIEWS),
}
ELEMENTS = ("f32", "f64", "f32", "f64", "f32", "f64", "f16", "bf16", *_FEWER)

Instruction = tuple[str, tuple[int, ...], Any]


@dataclass(frozen=True)
class Expression:
    """What is computed.

    Attributes:
        arrays: Its arguments.
        captured: Further values, which graphs capture; fused functions are given them as arguments.
        instructions: In order; each makes the next value.
        results: Numbers of the values that are returned.
    """

    arrays: tuple[np.ndarray, ...]
    captured: tuple[np.ndarray, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[int, ...]

    def of(self, arrays: Any, captured: Any = (), theirs: bool = False) -> tuple[Any, ...]:
        """Its results, of these arguments and these captured values."""
        known = [*arrays, *captured]
        for name, at, option in self.instructions:
            op = OPS[name]
            given = [known[i] for i in at] + ([] if op.option is None else [option])
            known.append((op.theirs if theirs else op.ours)(*given))
        return tuple(known[i] for i in self.results)

    @property
    def used(self) -> set[int]:
        """Values that the results are made of, and the results."""
        first, found = len(self.arrays) + len(self.captured), set(self.results)
        for k in reversed(range(len(self.instructions))):
            if first + k in found:
                found |= set(self.instructions[k][1])
        return found

    @property
    def function(self) -> Callable[..., Any]:
        """As a function of all arrays, captured ones too, of one result or a tuple."""

        def body(**given: Any) -> Any:
            made = self.of(tuple(given.values()))
            return made if len(made) > 1 else made[0]

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [f"x{i}" for i in range(len(self.arrays) + len(self.captured))]
        body.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
        return body

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in (*self.arrays, *self.captured))
        return f"{shapes} ({len(self.captured)} captured): {list(self.instructions)} -> {self.results}"


def _shape(rng: Rng, of: Shape) -> Shape:
    """One that broadcasts to another."""
    made = tuple(1 if rng.random() < 0.25 else n for n in of)
    return made[int(rng.integers(0, len(made) + 1)) :] if rng.random() < 0.3 else made


def drawn(rng: Rng, element: str) -> Expression:
    """An expression of one to 24 instructions that torch takes, of arrays of one element."""
    dtype, floats = Element.coerce(element).numpy, element not in _FEWER
    of = tuple(int(n) for n in rng.choice(EXTENTS, int(rng.integers(0, 4)), p=SHARES))
    counts = int(rng.integers(1, 4)), int(rng.choice(3, p=(0.5, 0.3, 0.2)))
    arrays, captured = (
        tuple((rng.normal(size=_shape(rng, of)) * (1 if floats else 3)).astype(dtype) for _ in range(count))
        for count in counts
    )
    known = [torch.from_numpy(np.asarray(a.real, np.float64)) for a in (*arrays, *captured)]
    names = [n for n in OPS if floats or n in _FEWER[element]]
    weights = np.array([_WEIGHTS[n] for n in names])
    made: list[Instruction] = []
    for _ in range(int(rng.integers(1, 25))):
        name = str(rng.choice(names, p=weights / weights.sum()))
        op = OPS[name]
        newest = len(known) - 1 - np.minimum(rng.geometric(0.35, op.operands) - 1, len(known) - 1)
        at = tuple(
            int(i) for i in np.where(rng.random(op.operands) < 0.6, newest, rng.integers(len(known), size=op.operands))
        )
        option = op.option(rng, tuple(known[at[0]].shape)) if op.option else None
        try:
            x = op.theirs(*(known[i] for i in at), *([] if op.option is None else [option]))
        except (RuntimeError, IndexError):  # shapes that do not go together, or the greatest of nothing
            continue
        if x.numel() > MOST_ELEMENTS or x.ndim > 5 or bool((x.abs() > 1e6).any()):
            continue
        made.append((name, at, option))
        known.append(x)
    first = len(arrays) + len(captured)
    at = (0, len(known) - 1 if rng.random() < 0.3 else 0)  # so that something depends on an argument
    try:
        known.append(known[0] * known[at[1]])
    except RuntimeError:
        at = (0, 0)
        known.append(known[0] * known[0])
    made.append(("mul", at, None))
    count = int(rng.integers(1, 4))
    results = {len(known) - 1, *(int(i) for i in rng.integers(first, len(known), count - 1))}
    return Expression(arrays, captured, tuple(made), tuple(int(i) for i in rng.permutation(sorted(results))))
