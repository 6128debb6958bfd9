"""What the arguments of each family's functions are: shapes that fit together, and options by their names."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from differential.values import (
    HOSTILE,
    INTEGERS,
    PLAIN,
    POSITIVE,
    UNIT,
    WEIGHT,
    Dtype,
    T,
    arranged,
    element_of,
    shape_of,
    size_of,
    values_of,
)

Rng: TypeAlias = np.random.Generator
Shape: TypeAlias = tuple[int, ...]
Arguments: TypeAlias = dict[str, Any]


class Making:
    """Makes the tensors of one call: of one producer, mostly of one element."""

    def __init__(self, rng: Rng, *, floats: float = 0.75, gradient: bool = False) -> None:
        self.rng = rng
        self.gradient = gradient
        self.element = element_of(rng, 1.0 if gradient else floats)
        self.producer = str(rng.choice(["numpy", "torch", "own", "jax"], p=(0.45, 0.4, 0.05, 0.1)))
        self.mode = HOSTILE if rng.random() < 0.25 else PLAIN
        self.mixed = not gradient and rng.random() < 0.12
        self.least = 0

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def tensor(self, shape: Shape, mode: str | None = None, element: str | None = None) -> T:
        """Of the call's element, or another one now and then."""
        if element is None:
            element = element_of(self.rng) if self.mixed and self.chance(0.6) else self.element
        how = PLAIN if mode is None else mode
        how = HOSTILE if self.mode == HOSTILE and mode in (None, POSITIVE) else how
        return arranged(
            self.rng, values_of(self.rng, element, shape, POSITIVE if how == WEIGHT else how), self.producer
        )

    def mask(self, shape: Shape) -> T:
        """A bool that stays one."""
        found = self.tensor(shape, element="bool")
        found.index = True
        return found

    def floats(self, shape: Shape, mode: str | None = None) -> T:
        """A float tensor, whatever the call's element is."""
        element = self.element if self.element in ("f32", "f16", "bf16", "f64") else "f32"
        return self.tensor(shape, mode, element)

    def indices(self, shape: Shape, size: int, negative: bool = True) -> T:
        """Indices of a dimension, i64 mostly; one of them out of range now and then."""
        low = -size if negative and self.chance(0.2) else 0
        found = self.rng.integers(low, max(size, 1), shape) if size or not self.chance(0.9) else np.zeros(shape, int)
        found = np.asarray(found, self.pick(np.int64, np.int64, np.int64, np.int32))
        if found.size and self.chance(0.03):
            found = found.copy()
            found.reshape(-1)[int(self.rng.integers(found.size))] = self.pick(size, -size - 1)
        made = arranged(self.rng, found, self.producer, repeated=False)
        made.index = True
        return made

    def shape(self, low: int = 0, high: int = 6, least: int = 0, elements: int = 3000) -> Shape:
        return shape_of(self.rng, (low, high), elements, max(least, self.least))

    def size(self, least: int = 0, most: int = 70) -> int:
        return size_of(self.rng, max(least, self.least), most)

    def dim(self, rank: int) -> int:
        return int(self.rng.integers(-max(rank, 1), max(rank, 1)))

    def part(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one."""
        found = tuple(1 if self.chance(0.2) else n for n in shape)
        return found[int(self.rng.integers(0, len(found) + 1)) :] if self.chance(0.3) else found

    def number(self, whole: bool | None = None) -> Any:
        """A number as people write it."""
        whole = self.chance(0.4) if whole is None else whole
        if whole:
            return int(self.rng.integers(-4, 5))
        return float(self.pick(0.5, -1.5, 2.0, 0.1, -0.0, 3.25, 1e-3, 100.0, -7.0))

    def dims(self, rank: int) -> Any:
        """One dimension, several, none or all."""
        kind = self.rng.random()
        if kind < 0.4:
            return self.dim(rank)
        if kind < 0.5:
            return self.pick((), [], None)
        chosen = self.rng.permutation(rank)[: int(self.rng.integers(0, rank + 1))]
        found = [int(d) - (rank if self.chance(0.3) else 0) for d in chosen]
        return tuple(found) if self.chance(0.6) else found


Family: TypeAlias = Callable[[Making, str], Arguments]

_UNIT_INPUTS = {"erfinv", "logit", "acos", "asin", "atanh", "arccos", "arcsin", "arctanh", "binary_cross_entropy"}
_POSITIVE_INPUTS = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh", "arccosh", "lgamma", "digamma"}


def unary(m: Making, name: str) -> Arguments:
    mode = (
        UNIT
        if name in _UNIT_INPUTS and m.chance(0.8)
        else POSITIVE
        if name in _POSITIVE_INPUTS and m.chance(0.8)
        else None
    )
    given: Arguments = {"input": m.tensor(m.shape(), mode)}
    whole = given["input"].element in INTEGERS
    numbers = {
        "celu": ("alpha",), "elu": ("alpha",), "leaky_relu": ("negative_slope",), "hardshrink": ("lambd",),
        "softshrink": ("lambd",), "softplus": ("beta", "threshold"), "logit": ("eps",), "nan_to_num": ("nan", "posinf", "neginf"),
    }  # fmt: skip
    for key in numbers.get(name, ()):
        if m.chance(0.6):
            given[key] = abs(m.number(whole)) if key in ("lambd", "beta", "threshold") else m.number(whole)
    if "eps" in given:
        given["eps"] = m.pick(0.1, 1e-6, 0.0, 0.5)
    if name == "threshold":
        given |= {"threshold": m.number(whole), "value": m.number(whole)}
    if name == "hardtanh" and m.chance(0.7):
        low = m.number(whole)
        given |= {"min_val": low, "max_val": low + abs(m.number(whole)) + 1}
    if name == "round" and m.chance(0.5):
        given["decimals"] = int(m.rng.integers(-3, 5))
    if name == "gelu" and m.chance(0.6):
        given["approximate"] = m.pick("none", "tanh")
    if name == "affine":
        given |= {"scale": m.number(), "shift": m.number()}
    return given


_NO_NUMBERS = {
    "hypot",
    "nextafter",
    "atan2",
    "arctan2",
    "copysign",
    "fmax",
    "fmin",
    "maximum",
    "minimum",
    "gcd",
    "lcm",
    "logaddexp",
    "logaddexp2",
    "heaviside",
    "isclose",
    "ldexp",
    "logical_and",
    "logical_or",
    "logical_xor",
}


def binary(m: Making, name: str) -> Arguments:
    if name.startswith(("bitwise", "gcd", "lcm")):
        m.element = m.pick(*INTEGERS, "bool") if m.chance(0.9) else m.element
    shape = m.shape()
    if name == "prelu":
        x = m.shape(0)
        return {"input": m.floats(x), "weight": m.floats((m.pick(1, x[1] if len(x) > 1 else 1),))}
    first, second = m.part(shape), m.part(shape)
    other = "exponent" if name == "pow" else "other"
    given: Arguments = {"input": m.tensor(first), other: m.tensor(second)}
    if m.chance(0.25) and name not in _NO_NUMBERS:
        given[other] = m.number(None if m.chance(0.5) else given["input"].element in INTEGERS)
        if m.chance(0.1):
            given[other] = m.chance(0.5)
    if name in ("add", "sub", "subtract") and m.chance(0.3):
        given["alpha"] = m.number(True) if given["input"].element not in ("f32", "f64", "f16", "bf16") else m.number()
    if name in ("div", "divide", "true_divide") and m.chance(0.4):
        given["rounding_mode"] = m.pick("floor", "trunc", None)
    if name == "isclose":
        near = m.rng.random(second) < 0.5
        with np.errstate(over="ignore", invalid="ignore"):
            equal = np.resize(given["input"].array, second).astype(given[other].array.dtype)
        given[other].array = np.where(near, given[other].array, equal)
        given[other].layout = "contiguous"
        if m.chance(0.4):
            given |= {"rtol": m.pick(0.0, 1e-2, 1.0), "atol": m.pick(0.0, 0.5), "equal_nan": m.chance(0.5)}
    return given


def ternary(m: Making, name: str) -> Arguments:
    shape = m.shape()
    if name == "where":
        given: Arguments = {
            "condition": m.mask(m.part(shape)),
            "input": m.tensor(m.part(shape)),
            "other": m.tensor(m.part(shape)),
        }
        if m.chance(0.2):
            given[m.pick("input", "other")] = m.number()
        return given
    if name in ("clamp", "clip"):
        given = {"input": m.tensor(m.part(shape))}
        ends = m.pick(("min", "max"), ("min",), ("max",), ("min", "max"))
        numbers = m.chance(0.6)
        return given | {e: m.number() if numbers else m.tensor(m.part(shape)) for e in ends}
    if name == "lerp":
        return {
            "input": m.floats(m.part(shape)),
            "end": m.floats(m.part(shape)),
            "weight": m.number(False) if m.chance(0.4) else m.floats(m.part(shape)),
        }
    given = {k: m.tensor(m.part(shape)) for k in ("input", "tensor1", "tensor2")}
    if m.chance(0.4):
        given["value"] = m.number()
    return given


def reduce(m: Making, name: str) -> Arguments:
    if name == "trace":
        return {"input": m.tensor(m.shape(2, 2))}
    x = m.shape()
    mode = m.pick(None, POSITIVE) if name == "prod" else None
    given: Arguments = {"input": m.tensor(x, mode)}
    if name == "logsumexp" or m.chance(0.75):
        given["dim"] = m.dim(len(x)) if name == "prod" else m.dims(len(x))
        if given["dim"] is None and name == "logsumexp":
            given["dim"] = 0
        if m.chance(0.5) and name != "count_nonzero" and given["dim"] is not None:
            given["keepdim"] = m.chance(0.6)
    if name in ("sum", "mean", "prod", "nansum", "nanmean") and m.chance(0.2):
        given["dtype"] = Dtype(m.pick("f64", "i64"))  # narrower ones would bound the gradient, too
    return given


def extrema(m: Making, name: str) -> Arguments:
    x = m.shape(least=int(m.chance(0.8)))
    given: Arguments = {"input": m.tensor(x)}
    if m.chance(0.75):
        given["dim"] = m.dim(len(x))
        if m.chance(0.5):
            given["keepdim"] = m.chance(0.6)
    return given


def along(m: Making, name: str) -> Arguments:
    """Scans and softmax: one dimension."""
    x = m.shape()
    given: Arguments = {"input": m.tensor(x), "dim": m.dim(len(x))}
    if m.chance(0.2) and name != "scaled_softmax":
        given["dtype"] = Dtype("f64")
    return given


def statistics(m: Making, name: str) -> Arguments:
    x = m.shape()
    if name == "cosine_similarity":
        given: Arguments = {"x1": m.tensor(m.part(x)), "x2": m.tensor(m.part(x)), "dim": m.dim(len(x))}
        if m.chance(0.3):
            given["eps"] = m.pick(1e-3, 1e-6)
        return given
    first = "x" if name == "vector_norm" else "input"
    given = {first: m.tensor(x)}
    if name in ("norm", "normalize", "vector_norm") and m.chance(0.7):
        order = m.pick(1, 2, 2.0, 0, float("inf"), float("-inf"), 3, 0.5, 1.5)
        given["ord" if name == "vector_norm" else "p"] = order
    if name == "normalize":
        given["dim"] = m.dim(len(x))
        return given
    if m.chance(0.7):
        given["dim"] = m.dims(len(x))
        if m.chance(0.4):
            given["keepdim"] = m.chance(0.6)
    if name in ("std", "var", "std_mean", "var_mean") and m.chance(0.5):
        given |= {"correction": m.pick(0, 1, 2)} if m.chance(0.7) or "dim" not in given else {"unbiased": m.chance(0.5)}
    return given


def gated(m: Making, name: str) -> Arguments:
    x = list(m.shape(1))
    if name == "silu_mul":
        return {"gate": m.floats(tuple(x)), "value": m.floats(tuple(x))}
    dim = m.dim(len(x))
    x[dim] += x[dim] % 2
    given: Arguments = {"input": m.floats(tuple(x))}
    return given | ({} if dim in (-1, len(x) - 1) and m.chance(0.5) else {"dim": dim})


def matmul(m: Making, name: str) -> Arguments:
    i, j, k, b = (m.size(most=40) for _ in range(4))
    t = m.tensor
    simple: dict[str, Arguments] = {
        "mm": {"input": (i, k), "mat2": (k, j)},
        "bmm": {"input": (b, i, k), "mat2": (b, k, j)},
        "mv": {"input": (i, k), "vec": (k,)},
        "dot": {"input": (k,), "tensor": (k,)},
        "vdot": {"input": (k,), "other": (k,)},
        "addmm": {"input": m.part((i, j)), "mat1": (i, k), "mat2": (k, j)},
        "addmv": {"input": m.part((i,)), "mat": (i, k), "vec": (k,)},
        "addbmm": {"input": m.part((i, j)), "batch1": (b, i, k), "batch2": (b, k, j)},
        "baddbmm": {"input": m.part((b, i, j)), "batch1": (b, i, k), "batch2": (b, k, j)},
        "int_mm": {"input": (i, k), "mat2": (k, j)},
    }
    if name in simple:
        given: Arguments = {key: t(shape) for key, shape in simple[name].items()}
        for key in ("beta", "alpha"):
            if name.startswith(("add", "badd")) and m.chance(0.4):
                given[key] = m.number(True) if m.element not in ("f32", "f64", "f16", "bf16") else m.number()
        return given
    batch = m.shape(0, 3, elements=40)
    if name == "linear":
        given = {"input": t((*batch, k)), "weight": t((j, k) if m.chance(0.9) else (k,))}
        return given | ({"bias": t((j,))} if m.chance(0.5) and len(given["weight"].shape) == 2 else {})
    first = (*m.part(batch), i, k) if m.chance(0.8) else (k,)
    second = (*m.part(batch), k, j) if m.chance(0.8) else (k,)
    return {"input": t(first), "other": t(second)}


def products(m: Making, name: str) -> Arguments:
    i, j = m.size(), m.size()
    if name == "addr":
        given: Arguments = {"input": m.tensor(m.part((i, j))), "vec1": m.tensor((i,)), "vec2": m.tensor((j,))}
        return given | {k: m.number(True) for k in ("beta", "alpha") if m.chance(0.4)}
    if name == "kron":
        return {"input": m.tensor(m.shape(0, 3, elements=40)), "other": m.tensor(m.shape(0, 3, elements=40))}
    return {"input": m.tensor((i,)), "vec2": m.tensor((j,))}


def contractions(m: Making, name: str) -> Arguments:
    if name == "chain_matmul":
        sizes = [m.size(most=20) for _ in range(int(m.rng.integers(2, 6)))]
        return {"*matrices": [m.floats((a, b)) for a, b in itertools.pairwise(sizes)]}
    if name == "inner":
        k = m.size()
        return {
            "input": m.tensor((*m.shape(0, 2, elements=60), k)),
            "other": m.tensor((*m.shape(0, 2, elements=60), k)),
        }
    if name == "tensordot":
        shared = m.shape(0, 2, elements=60)
        n = len(shared)
        given: Arguments = {
            "a": m.tensor((*m.shape(0, 2, elements=60), *shared)),
            "b": m.tensor((*shared, *m.shape(0, 2, elements=60))),
        }
        if n != 2 or m.chance(0.4):
            lists = [list(range(len(given["a"].shape) - n, len(given["a"].shape))), list(range(n))]
            given["dims"] = n if m.chance(0.5) else lists
        return given
    sizes = {letter: m.size(most=9) for letter in "abcdij"}
    terms = [
        "".join(m.rng.permutation(list("abcdij"))[: int(m.rng.integers(0, 5))])
        for _ in range(int(m.rng.integers(1, 4)))
    ]
    if m.chance(0.15) and terms[0]:
        terms[0] += terms[0][0]
    used = sorted(set("".join(terms)))
    result = "".join(m.rng.permutation(used)[: int(m.rng.integers(0, len(used) + 1))]) if used else ""
    equation = ",".join(terms) + (f"->{result}" if m.chance(0.7) else "")
    return {"equation": equation, "*operands": [m.tensor(tuple(sizes[x] for x in t)) for t in terms]}


def dtype_of(m: Making) -> Dtype:
    return Dtype(element_of(m.rng))
