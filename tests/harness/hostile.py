"""Calls made of what people pass, wrong things included, for every function of bc.functional; and malformed documents."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

import baracuda as bc
from baracuda import _index
from baracuda.memory import generator
from baracuda.prove.reference import round_to

# Sizes, axes and numbers at and beyond every end; nothing of these is memory that a test machine has.
NUMBERS = (0, 1, -1, 2, 0.5, 2**31, -(2**31) - 1, 2**62, 2**63, -(2**64), 10**400, float("nan"), float("inf"), True)
ODD = (None, "sum", "mean", "x", "\ud800", (), [], (1,), (0, 1), [2**62] * 4, (2**62, 1), ([0], [1]), object(), {}, 1j)
ELEMENTS = ("f32", "f32", "f32", "f16", "f64", "i32", "i64", "u8", "bool")
SHAPES = ((4, 6), (4, 6), (6,), (6, 6), (), (2, 4, 6), (4,), (0, 6), (1, 6), (2, 3, 4, 6))


def tensor(rng: random.Random) -> Any:
    """A small array, now and then read-only, of another layout, a bc.Tensor's, or nothing that has memory."""
    element = bc.Element.coerce(rng.choice(ELEMENTS))
    shape = rng.choice(SHAPES)
    values = np.asarray([rng.randrange(4) for _ in range(int(np.prod(shape)))], np.float64).reshape(shape)
    made = np.asarray(round_to(values, element)).astype(element.numpy)
    kind = rng.randrange(12)
    if kind == 0:
        made.flags.writeable = False
    elif kind == 1 and made.ndim > 1:
        made = np.ascontiguousarray(made.swapaxes(0, -1)).swapaxes(0, -1)
    elif kind == 2 and made.ndim:
        made = made[::-1]
    elif kind == 3:
        return bc.asarray(made)
    return made


def value(p: inspect.Parameter, rng: random.Random, known: list[Any]) -> Any:
    """Something for a parameter: often of the kind that its name or default tells, at times anything."""
    kind = rng.randrange(20)
    if kind == 0:
        return rng.choice(ODD)
    if kind == 1:
        return rng.choice(NUMBERS)
    if p.default is not p.empty and p.name != "out" and kind < 15:
        return p.default
    if isinstance(p.default, (int, float)) or p.name.endswith(("_size", "shape", "dim", "dims", "axis", "count")):
        return rng.choice(NUMBERS)
    if p.name == "generator":
        return rng.choice((None, bc.Generator(1), 3))
    if known and kind < 9:
        return rng.choice(known)  # the same tensor twice: an alias
    if kind == 19:
        return [tensor(rng) for _ in range(rng.randrange(4))]
    return tensor(rng)


def calls(name: str, rng: random.Random, count: int) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """(function, args, kwargs) of a function, made of what its signature tells."""
    fn = getattr(import_module(_index.FUNCTIONS[name]), name)
    parameters = inspect.signature(fn).parameters.values()
    for _ in range(count):
        known: list[Any] = []
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in parameters:
            if p.kind is p.VAR_KEYWORD:
                continue
            listed = p.kind is p.VAR_POSITIONAL
            found = value(p, rng, known)
            known.extend(v for v in tensors_in(found) if not any(v is k for k in known))
            if listed:
                args.extend(found if isinstance(found, list) else [found])
            elif p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = found
            else:
                args.append(found)
        yield fn, tuple(args), kwargs


def tensors_in(*values: Any) -> list[Any]:
    """All tensors among values and lists of them."""
    found = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found.extend(tensors_in(*v))
        elif isinstance(v, np.ndarray) or hasattr(v, "__dlpack__"):
            found.append(v)
    return found


def state(*values: Any) -> list[Any]:
    """What tensors hold, how often torch saw them written, and where the generators stand."""
    found: list[Any] = [generator.default_generator.get_state()]
    for v in values:
        if isinstance(v, bc.Generator):
            found.append(v.get_state())
    for t in tensors_in(*values):
        host = t if isinstance(t, np.ndarray) else t.detach().double().numpy() if hasattr(t, "_version") else t.numpy()
        found.append((getattr(t, "_version", 0), host.shape, host.tobytes()))
    return found


# What a document may hold in any place.
VALUES = (
    None, True, -1, 2**31, 2**63, 10**400, 1.5, float("nan"), float("inf"), "", "x", "cuda:0", "\ud800", "a" * 10000, [], {}, [[]],
    [-1], ["x"], [2**62] * 4, [10**50], [[[[[[1]]]]]], {"dim": []}, {"dim": ["n", 4, 1, 1, 0]}, {"dim": ["n", -4, 0, 0, 0]},
    {"dim": None}, {"dim": ["\ud800", 4, 1, 1, 0]}, "baracuda.choose.plan", "baracuda.nonsense", "json", "os",
)  # fmt: skip


def _places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield (*at, key)
        yield from _places(node[key], (*at, key))


def malformed(good: bytes, rng: random.Random, each: int) -> Iterator[bytes]:
    """Documents of which one place holds something else, something more, or nothing; cut ones; ones that are deep."""
    for place in _places(json.loads(good)):
        for wrong in [*rng.sample(VALUES, each), None, "drop", "add"]:
            document = json.loads(good)
            node = document
            for key in place[:-1]:
                node = node[key]
            if wrong == "drop":
                del node[place[-1]]
            elif wrong == "add" and isinstance(node, dict):
                node["new"] = 1
            else:
                node[place[-1]] = wrong
            yield json.dumps(document).encode()
    cut = rng.randrange(len(good))
    yield from (good[:cut], good[:cut] + b"\xff" + good[cut:], good[:cut] + b"[" + good[cut:])
    for depth in (10, 990, 100000):
        nest = b"[" * depth + b"]" * depth
        yield from (nest, nest[:depth], good.replace(b'"schema": 1', b'"schema": ' + nest))
        yield good.replace(b'"fields": {', b'"fields": {"kind": ' + nest + b", ")
