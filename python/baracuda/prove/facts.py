"""What a family's `<family>_facts.py` says of its functions beside their specs, for tests, measurements and docs.

A function's sample calls, what it is compared with, or why with nothing: an op that is added to a family changes files of that
family alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from baracuda.prove.draws import Rule

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

# Reasons why functions have no peer that random calls are compared with.
OWN = "an op of its own, which `verify` compares with its reference"
STATE = "writes to lists of tensors; compared with torch's own in tests/ops"
RANDOM = "gives random numbers of another stream"
SCALES = "of scales and codes that go together; compared with torch's and ONNX's in tests/ops and tests/conformance"
INNER = "the function without _forward, and what its gradient needs; vjp calls it"


@dataclass(frozen=True)
class Facts:
    """The facts of one family.

    Attributes:
        category: What kernel libraries call such ops; steps of optimizers and fused expressions have no category there.
        samples: By function: a call where random arguments do not fit.
        steps: By function: further calls, without which some of its steps would not run.
        drawn: By module: how random arguments are drawn (a function of tests/harness/differential/shapes*.py).
        sampled: Modules whose functions are compared on torch's own samples (OpInfo), and not at random.
        peers: By function: its formula, given torch, where torch has no function of its name.
        alone: By function: why it is compared with no peer.
        partly: By entry of torch's OpInfo table: why some of its samples differ or are refused.
        sweep: By function, else by module: the rule that draws calls of any size, for `bench --sweep` (prove/rules.py).
    """

    category: str | None = None
    samples: Mapping[str, Call] = field(default_factory=dict)
    steps: Mapping[str, Sequence[Call]] = field(default_factory=dict)
    drawn: Mapping[str, str] = field(default_factory=dict)
    sampled: Sequence[str] = ()
    peers: Mapping[str, Callable[[Any], Callable[..., Any]]] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    partly: Mapping[str, str] = field(default_factory=dict)
    sweep: Mapping[str, Rule] = field(default_factory=dict)


@cache
def facts() -> Mapping[str, Facts]:
    """Of every family."""
    rooms = sorted((Path(__file__).resolve().parents[1] / "ops").glob("*/*_facts.py"))
    return {p.parent.name: import_module(f"baracuda.ops.{p.parent.name}.{p.stem}").FACTS for p in rooms}


def collected(name: str) -> dict[str, Any]:
    """One mapping of all families'."""
    return {key: value for found in facts().values() for key, value in getattr(found, name).items()}


def call(*args: Any, **kwargs: Any) -> Call:
    """What a function is given."""
    return args, kwargs


def because(why: str, names: str) -> dict[str, str]:
    """One reason of several functions, whose names have spaces between."""
    return dict.fromkeys(names.split(), why)


def floats(*shape: int, dtype: str = "f4") -> np.ndarray[Any, Any]:
    """Normal numbers, always the same."""
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


def ramp(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from -1 to 1, evenly spaced."""
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ones(*shape: int) -> np.ndarray[Any, Any]:
    """Ones of i32."""
    return np.ones(shape, np.int32)


# What many samples are made of.
X, W, ONE, ROWS = floats(4, 6), floats(6), np.ones((), np.float32), floats(4, 1)
HEADS, TURN = floats(2, 5, 3, 8), floats(9, 4)
TARGET, LSE = np.array([1, 0, 2, 1]), floats(4)
LAYER, IMAGE = floats(3, 6), floats(2, 3, 4, 5)
LENGTHS = np.array([3, 11], np.int32)
CODES = np.arange(24, dtype=np.int8).reshape(4, 6)
WORDS = np.arange(64, dtype=np.int32).reshape(8, 8)
LONG = np.ones((3, 4), np.int64)
