"""Tensors that a random call is given: elements, shapes, memory layouts, producers and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided

import baracuda as bc
from baracuda.describe.elements import Element
from baracuda.prove.layouts import LAYOUTS, REPEATED, buffer
from baracuda.prove.reference import LARGEST, to_reference

Array = np.ndarray[Any, Any]
FLOATS = ("f32", "f16", "bf16", "f64")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
UNSIGNED = ("u16", "u32", "u64")
ELEMENTS = (*FLOATS, *INTEGERS, *UNSIGNED, "bool")
_TORCH = {"bf16": "bfloat16", "bool": "bool"}
JAX = ("f32", "f16", "bf16", "i32", "i16", "i8", "u8", "u16", "u32", "bool")  # the others need another mode of jax
WINDOWS = "windows"  # every stride is 1: elements lie in several places of the view
PLAIN, POSITIVE, UNIT, HOSTILE = "plain", "positive", "unit", "hostile"
WEIGHT = "weight"  # positive even in a hostile call: weights of losses and classes


def torch_dtype(element: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, _TORCH.get(element) or Element.coerce(element).numpy.name)
    return found


@dataclass(frozen=True)
class Dtype:
    """An element given as an option: torch's dtype there, the producer's here."""

    element: str

    def __repr__(self) -> str:
        return self.element


def to_torch(array: Array) -> torch.Tensor:
    """The same memory as a tensor; NumPy's strides may not be negative."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(value: Any) -> Array:
    """What a result of any producer holds."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_neg()
        if value.dtype is torch.bfloat16:
            import ml_dtypes

            return np.asarray(value.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
        return np.asarray(value.numpy())
    return np.asarray(value.numpy() if isinstance(value, bc.Tensor) else value)


@dataclass
class T:
    """A tensor of a random call."""

    array: Array  # contiguous, in its element
    layout: str = "contiguous"
    producer: str = "numpy"
    index: bool = False  # numbers that stay integers where values are widened

    @property
    def element(self) -> str:
        return str(Element.coerce(self.array.dtype))

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def __repr__(self) -> str:
        shown = np.array2string(self.array.reshape(-1), separator=",", threshold=12).replace("\n", "")
        return f"{self.producer}:{self.element}{list(self.shape)}:{self.layout}{shown}"

    def ours(self) -> Any:
        """The tensor in its layout, of its producer."""
        if self.producer == "jax" and self.element in JAX:
            import jax

            return jax.numpy.asarray(self.array)
        view = self._view()
        view[...] = self.array
        if self.producer == "own":
            return bc.asarray(view)
        return to_torch(view) if self.producer == "torch" else view

    def _view(self) -> Array:
        if self.layout != WINDOWS:
            return buffer(self.shape, self.array.dtype, self.layout).view
        base = np.zeros(sum(self.shape) + 1, self.array.dtype)
        return as_strided(base, self.shape, base.strides * len(self.shape))

    def native(self) -> torch.Tensor:
        """Torch's own, in the same element."""
        return to_torch(self.array.copy())

    def wide(self) -> torch.Tensor:
        """Torch's own, in float64 where it is a float."""
        return torch.from_numpy(np.array(to_reference(self.array), order="C", copy=True))


def element_of(rng: np.random.Generator, floats: float = 0.75) -> str:
    """Mostly floats, of these mostly f32."""
    if rng.random() < floats:
        return str(rng.choice(FLOATS, p=(0.4, 0.2, 0.2, 0.2)))
    return str(rng.choice((*INTEGERS, *UNSIGNED, "bool")))


_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 257, 1025)
_WEIGHTS = np.array(
    (0.03, 0.16, 0.18, 0.17, 0.1, 0.08, 0.05, 0.04, 0.03, 0.03, 0.02, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.005, 0.005)
)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def size_of(rng: np.random.Generator, least: int = 0, most: int = 2000) -> int:
    """One dimension; 0 now and then."""
    return min(most, max(least, int(rng.choice(_SIZES, p=_WEIGHTS))))


def shape_of(
    rng: np.random.Generator, ranks: tuple[int, int] = (0, 6), elements: int = 3000, least: int = 0
) -> tuple[int, ...]:
    """Few dimensions mostly, none empty mostly, and not many elements."""
    low, high = ranks
    weights = np.array([0.08, 0.22, 0.3, 0.2, 0.1, 0.06, 0.04])[low : high + 1]
    rank = low + int(rng.choice(len(weights), p=weights / weights.sum()))
    shape: list[int] = []
    for _ in range(rank):
        shape.append(size_of(rng, least, max(elements // max(1, int(np.prod([n for n in shape if n]))), 1)))
    order = rng.permutation(rank)
    return tuple(shape[i] for i in order)


def _hostile(rng: np.random.Generator, element: str, n: int) -> Array:
    e = Element.coerce(element)
    largest = LARGEST[e]
    least = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}[element]
    tiny = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 5e-324}[element]
    special = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            largest,
            -largest,
            least,
            -least,
            tiny,
            -3 * tiny,
            1.0,
            -1.0,
            0.5,
            -0.5,
            2.0,
            1e-3,
            20.0,
            -100.0,
            largest / 2,
            least * 1.5,
        ]
    )
    chosen = special[rng.integers(0, len(special), n)]
    return np.where(rng.random(n) < 0.5, chosen, rng.normal(size=n))


def values_of(rng: np.random.Generator, element: str, shape: tuple[int, ...], mode: str = PLAIN) -> Array:
    """Numbers of an element; `mode` says which floats."""
    n = int(np.prod(shape, dtype=np.int64))
    e = Element.coerce(element)
    if element == "bool":
        return (rng.random(n) < 0.5).reshape(shape)
    if not e.is_float:
        info = np.iinfo(e.numpy)
        found = rng.integers(max(-20, info.min), 21, n)
        if mode == HOSTILE:
            ends = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2], dtype=object)
            found = np.where(rng.random(n) < 0.4, ends[rng.integers(0, len(ends), n)], found)
        return np.asarray(found).astype(e.numpy).reshape(shape)
    if mode == HOSTILE:
        found = _hostile(rng, element, n)
    elif mode == UNIT:
        found = rng.uniform(0, 1, n)
    else:
        found = rng.normal(size=n) * float(rng.choice([1, 1, 4, 0.05]))
        if rng.random() < 0.2:
            found = np.round(found)  # ties, and zeros
        found = np.abs(found) if mode == POSITIVE else found
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return found.astype(e.numpy).reshape(shape)


def arranged(rng: np.random.Generator, array: Array, producer: str, repeated: bool = True) -> T:
    """The values in some memory layout that the producer has; equal along a dimension where its stride is 0."""
    element = str(Element.coerce(array.dtype))
    if producer == "jax" and element not in JAX:
        producer = "numpy"
    names = [WINDOWS, *(n for n in LAYOUTS if producer == "numpy" or n != "negative")]
    layout = "contiguous" if producer == "jax" or rng.random() < 0.4 else str(rng.choice(names))
    if layout in (*REPEATED, WINDOWS) and not repeated:
        layout = "sliced"
    if layout == WINDOWS and array.size:
        places = np.indices(array.shape).sum(0) if array.ndim else np.zeros((), int)
        array = np.asarray(array.reshape(-1)[places % array.size])
    if layout in REPEATED and array.ndim and array.size:
        array = np.ascontiguousarray(np.broadcast_to(np.take(array, [0], REPEATED[layout]), array.shape))
    return T(array, layout, producer)
