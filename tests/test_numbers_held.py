"""Integers that an element does not hold, as Python numbers and as 0-d tensors, in every function that takes numbers as tensors:
torch's result, that of the number itself where docs/not-like-torch.md says so, or a refusal by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.binary.binary_kinds import KINDS

pytestmark = pytest.mark.filterwarnings("ignore")
ELEMENTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
X = [1, 2, 3, 100, 127]
NUMBERS = [
    0,
    1,
    2,
    7,
    -1,
    -3,
    44,
    127,
    128,
    200,
    255,
    256,
    300,
    -129,
    -200,
    -256,
    40000,
    70000,
    2**31,
    2**31 + 5,
    -(2**31) - 1,
    -(2**40),
]
# Functions of two, and those that are made of them.
BINARY = sorted({*(k for k in KINDS if hasattr(F, k)), "clamp_min", "clamp_max", "rsub", "true_divide"})
# Python integers, and 0-d tensors of signed elements, keep their value in these: so says docs/not-like-torch.md.
ITSELF: dict[str, Callable[[int, int], int]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "isclose": lambda a, b: abs(a - b) <= 1e-8 + 1e-5 * abs(b),
    "logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b), "logical_xor": lambda a, b: (a != 0) != (b != 0),
    "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "fmod": lambda a, b: (abs(a) % abs(b)) * (1 if a > 0 else -1),
    "bitwise_left_shift": lambda a, b: a << b if 0 <= b < 64 else 0,
    "bitwise_right_shift": lambda a, b: a >> b if 0 <= b < 64 else -(a < 0),
}  # fmt: skip
WHOLE = ("floor_divide", "remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift")


def _itself(name: str, a: Any, b: Any, element: torch.dtype) -> torch.Tensor | None:
    """With numbers as they are; wrapped to the element where it is no truth."""
    if name not in ITSELF:
        return None
    rows = [x.tolist() if isinstance(x, torch.Tensor) and x.ndim else [int(x)] * len(X) for x in (a, b)]
    if name in WHOLE[:3] and 0 in rows[1]:
        return None
    found = [int(ITSELF[name](p, q)) for p, q in zip(*rows, strict=True)]
    if name not in WHOLE:
        return torch.tensor(found).bool()
    return torch.tensor([(n + 2**63) % 2**64 - 2**63 for n in found]).to(element)


def _outcome(fn: Any, *args: Any) -> tuple[Any, str]:
    try:
        return fn(*args), ""
    except (RuntimeError, TypeError, ValueError, OverflowError, ZeroDivisionError, bc.BaracudaError) as error:
        if (
            fn.__module__ is not None
            and fn.__module__.startswith("baracuda")
            and not isinstance(error, bc.BaracudaError)
        ):
            raise
        return None, f"{type(error).__name__}: {error}"


def _same(got: Any, want: Any) -> bool:
    return got.dtype == want.dtype and torch.allclose(got.double(), want.double(), 1e-6, 1e-6, equal_nan=True)


def _theirs(name: str, *args: Any) -> Any:
    """torch's result, for what its function takes as a tensor only, too."""
    own = getattr(torch, name)
    found, why = _outcome(own, *args)
    if why.startswith("TypeError") and not any(isinstance(x, float) for x in args):
        like = next(x for x in args if isinstance(x, torch.Tensor))
        found, why = _outcome(own, *(torch.tensor(x).to(like.dtype) if isinstance(x, int) else x for x in args))
    return found


def _wrapped(v: Any, like: torch.Tensor) -> torch.Tensor:
    """A number as a tensor of like's element and shape, cut to the element's bits."""
    return (v if isinstance(v, torch.Tensor) else torch.tensor(v)).to(like.dtype).expand(like.shape).contiguous()


def _wants(name: str, a: Any, b: Any, element: torch.dtype) -> list[torch.Tensor]:
    """What the call may give: as of the number that is left of it, of the number itself, and, of floats, of the number as one."""
    like = a if isinstance(a, torch.Tensor) and a.ndim else b
    cut = [x if x is like else _wrapped(x, like) for x in (a, b)]
    floats = [x.float() if isinstance(x, torch.Tensor) else float(x) for x in (a, b)]
    found = [_outcome(getattr(F, name), *args)[0] for args in (cut, floats)]
    found = [x for x in found if x is not None and (x is found[0] or x.dtype.is_floating_point)]
    itself = _itself(name, a, b, element)
    return found if itself is None else [*found, itself]


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str) -> None:
    wrong = []
    for element in ELEMENTS:
        x = torch.tensor(X).to(element)
        for n in NUMBERS:
            for v in (n, torch.tensor(n), torch.tensor(n, dtype=torch.int32) if abs(n) < 2**31 else n):
                for args in ((x, v), (v, x)):
                    got, why = _outcome(getattr(F, name), *args)
                    if why:
                        continue
                    wants = _wants(name, *args, element)
                    if not any(_same(got, w) for w in wants):
                        wrong.append(f"{element} {args}: {got}, want one of {wants}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:6])


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_clamp_and_where(element: torch.dtype, rng: np.random.Generator) -> None:
    x, mask = torch.tensor(X).to(element), torch.tensor([True, False, True, False, True])
    wrong = []
    for n in NUMBERS:
        other = int(rng.choice(NUMBERS))
        for v, w in (
            (n, other),
            (torch.tensor(n), torch.tensor(other)),
            (torch.tensor(n), torch.tensor(other % 100, dtype=torch.int8)),
        ):
            calls: list[tuple[str, tuple[Any, ...]]] = [
                ("clamp", (x, v, None)), ("clamp", (x, None, v)), ("clamp", (x, v, w)), ("clamp", (x, w, v)),
                ("where", (mask, x, v)), ("where", (mask, v, x)), ("masked_fill", (x, mask, v)),
                ("index_fill", (x, 0, torch.tensor([1]), v)),
                ("fill", (x, v)), ("full_like", (x, v)), ("addcmul", (x, x, x)), ("sub", (x, x)),
            ]  # fmt: skip
            for name, args in calls:
                got, why = _outcome(getattr(F, name), *args)
                want = _theirs(name, *args)
                if not why and want is not None and not _same(got, want):
                    wrong.append(f"{name}{args}: {got}, torch {want}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:6])


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "floor_divide", "remainder", "fmod", "bitwise_right_shift"])
def test_negative_numbers_beside_unsigned_ones(name: str) -> None:
    """A number has to be refused where the bits of the result depend on its sign, which an unsigned element has not."""
    for element in (np.uint8, np.uint16, np.uint32, np.uint64):
        for args in ((np.array(X, element), -1), (-1, np.array(X, element))):
            with pytest.raises(bc.InvalidProblemError, match="got -1, want a number"):
                getattr(F, name)(*args)
