"""Reference of matrix products, in extended precision: a float64 sum would be no better than the f64 kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import erfc

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.matmul.matmul import Activation, MatmulDescriptor
from baracuda.prove.reference import Array, Case, Expected
from baracuda.prove.straddle import threshold

Shape = tuple[int, ...]

# (a, b): every side of the kernels' tiles, thin ones, ranks 2 to 8, broadcasting, K and other sizes 0.
SHAPES: list[tuple[Shape, Shape]] = [
    ((1, 1), (1, 1)), ((9, 17), (17, 33)), ((64, 64), (64, 64)), ((50, 300), (300, 100)), ((16, 2100), (2100, 20)),
    ((10, 4200), (4200, 9)), ((1, 130), (130, 70)), ((3, 513), (513, 40)), ((8, 31), (31, 130)), ((70, 33), (33, 1)),
    ((65, 17), (17, 5)), ((1, 2100), (2100, 1)), ((5, 0), (0, 7)), ((0, 4), (4, 3)), ((20, 4), (4, 0)),
    ((3, 20, 12), (3, 12, 15)), ((2, 1, 9, 4), (3, 4, 10)), ((40, 1, 3, 8), (8, 5)), ((12, 5, 9), (9, 11)),
    ((2, 1, 1, 2, 1, 2, 9, 3), (2, 2, 1, 3, 10)), ((128, 65, 3), (128, 3, 65)),
    ((threshold("block_rows", "matmul") + 140, 8), (8, 16)),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Products of all SHAPES with and without c and bias, sums over batch dimensions, cancellation, special values."""
    for i, (a, b) in enumerate(SHAPES):
        plain = MatmulDescriptor(a, b, element)
        c = None if i % 3 == 0 else plain.output_shape()[-1:] if i % 3 == 1 else plain.output_shape()
        yield _case(MatmulDescriptor(a, b, element, bias=i % 2 == 1, c_shape=c), rng)
    for a, b, batch in (
        ((3, 20, 9), (3, 9, 12), ()),
        ((2, 3, 11, 5), (3, 5, 14), (1, 3)),
        ((2, 3, 1, 5), (5, 14), (2, 1)),
        ((0, 10, 9), (0, 9, 11), ()),
    ):
        yield _case(MatmulDescriptor(a, b, element, batch_shape=batch), rng)
    if element.is_integer:
        return
    for activation in list(Activation)[1:]:
        for a, b in (((9, 17), (17, 33)), ((2, 70, 30), (30, 50)), ((4, 40), (40, 33)), ((6, 300), (300, 18))):
            plain = MatmulDescriptor(a, b, element)
            c = plain.output_shape() if len(a) == 2 else None
            yield _case(MatmulDescriptor(a, b, element, bias=a[0] != 4, c_shape=c, activation=activation), rng)
    yield from _special(element, rng)


def _case(desc: MatmulDescriptor, rng: np.random.Generator) -> Case:
    scalars: dict[str, float | int] = {"alpha": 0.5, "beta": -2.0}
    if desc.element.is_integer:
        dtype = desc.element.numpy
        most = np.iinfo(dtype)
        tensors = {
            p.name: rng.integers(most.min, most.max, p.shape, dtype, endpoint=True) for p in desc.signature().inputs
        }
        scalars = {"alpha": 3, "beta": -2}
    else:
        tensors = {p.name: rng.normal(0, 1, p.shape) for p in desc.signature().inputs}
    return Case(desc, tensors, scalars if desc.c_shape is not None else {})


def _special(element: Element, rng: np.random.Generator) -> Iterator[Case]:
    cancelling = _case(MatmulDescriptor((10, 600), (600, 50), element), rng)
    cancelling.tensors["a"][:, 300:] = -cancelling.tensors["a"][:, :300]
    cancelling.tensors["b"][300:] = cancelling.tensors["b"][:300]
    cancelling.note = "sums that cancel"
    yield cancelling
    for shape in ((20, 30), (2, 30)):
        desc = MatmulDescriptor(shape, (30, 40), element, c_shape=(*shape[:1], 40))
        wild = _case(desc, rng)
        a, b = wild.tensors["a"], wild.tensors["b"]
        a[0, 3], a[1, 5], a[1, 6] = np.nan, np.inf, 0.0
        b[6, 7], b[9, 8], b[5, 9] = np.inf, np.nan, -np.inf
        wild.tensors["c"][0, 0] = np.nan
        wild.note = "NaN and inf; 0 * inf is NaN"
        yield wild
        for activation in list(Activation)[1:]:
            yield Case(replace(desc, activation=activation), wild.tensors, note="NaN and inf, activated")
        tensors = {**wild.tensors, "c": np.full_like(wild.tensors["c"], np.nan)}
        yield Case(wild.descriptor, tensors, {"beta": 0.0}, "beta = 0 leaves c unread")
    least = {Element.F16: -24, Element.BF16: -133, Element.F32: -149, Element.F64: -1074}[element]
    tiny = _case(MatmulDescriptor((12, 40), (40, 50), element), rng)
    tiny.tensors["a"] = np.ldexp(rng.integers(-8, 9, (12, 40)).astype(np.float64), least)
    tiny.tensors["b"] = np.ldexp(tiny.tensors["b"], 8)
    tiny.note = "subnormal operands"
    yield tiny
    products = _case(MatmulDescriptor((12, 40), (40, 50), element), rng)
    if element is not Element.F16:
        half = least // 2
        products.tensors = {k: np.ldexp(v, half + 1) for k, v in products.tensors.items()}
    products.note = "products near the smallest number"
    yield products


def reference(case: Case) -> dict[str, Expected]:
    """Gives act(alpha * a @ b + beta * c + bias), summed to the output's batch."""
    desc = case.descriptor
    assert isinstance(desc, MatmulDescriptor)
    if desc.element.is_integer:
        return {"out": Expected(_whole(case, desc))}
    a, b = (case.tensors[n].astype(np.longdouble) for n in "ab")
    alpha, beta = case.scalars.get("alpha", 1.0), case.scalars.get("beta", 1.0)
    shape = tuple(map(largest, desc.output_shape()))
    with np.errstate(all="ignore"):
        product, size = a @ b, np.abs(a) @ np.abs(b)
        terms = a.shape[-1] * max(1, product.size // max(1, int(np.prod(shape))))
        value, magnitude = alpha * _sum_to(product, shape), abs(alpha) * _sum_to(size, shape)
        if desc.c_shape is not None and beta != 0:
            value, magnitude = value + beta * case.tensors["c"], magnitude + np.abs(beta * case.tensors["c"])
        if desc.bias:
            value, magnitude = value + case.tensors["bias"], magnitude + np.abs(case.tensors["bias"])
        if desc.activation is not Activation.NONE:
            value, magnitude = activated(value, desc.activation), STEEPEST * magnitude + np.abs(value)
        reach = _sum_to(size, shape).astype(np.float64)  # before alpha multiplies it
        return {"out": Expected(value.astype(np.float64), magnitude.astype(np.float64), terms, reach)}


def _whole(case: Case, desc: MatmulDescriptor) -> Array:
    """Of integers: modulo 2^64, and so modulo every smaller power."""
    wide = {n: x.astype(np.uint64) for n, x in case.tensors.items()}
    alpha, beta = (np.uint64(case.scalars.get(n, 1) % 2**64) for n in ("alpha", "beta"))
    with np.errstate(over="ignore"):
        value = alpha * _sum_to(wide["a"] @ wide["b"], tuple(map(largest, desc.output_shape())))
        for name, factor in (("c", beta), ("bias", np.uint64(1))):
            value = value + factor * wide.get(name, np.uint64(0))
    return value.astype(desc.element.numpy)


STEEPEST = 1.13  # no activation's slope is larger


def activated(x: Array, activation: Activation) -> Array:
    """The activation of float64 or longer numbers, to float64's precision of x."""
    with np.errstate(all="ignore"):
        if activation is Activation.RELU:
            return np.where(x < 0, 0, x)
        if activation is Activation.GELU:
            cdf = np.vectorize(erfc, otypes=[np.float64])((-x / np.sqrt(2)).astype(np.float64)) / 2
            return np.asarray(x * cdf)
        twice_u = np.sqrt(8 / np.pi) * (x + 0.044715 * x**3) if activation is Activation.GELU_TANH else x
        return np.asarray(x / (1 + np.exp(-twice_u)))


def _sum_to(x: Array, shape: Shape) -> Array:
    x = x.sum(tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, s in enumerate(shape[:-2]) if s == 1 and x.shape[i] != 1)
    return np.asarray(x.sum(axes, keepdims=True))
