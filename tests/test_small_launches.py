"""Launches of few rows skip the tile planner; at the edges of that shortcut the results are those of any other launch."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc

RNG = np.random.default_rng(5)


def add(a: np.ndarray, b: np.ndarray, y: np.ndarray) -> None:
    plan = bc.plan(
        bc.BinaryDescriptor("add", a.shape, b.shape, element=str(y.dtype).replace("float", "f").replace("int", "i"))
    )
    want = np.add(a, b)
    assert plan.run(a, b, y) is y
    np.testing.assert_array_equal(y, want)


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return RNG.integers(-99, 99, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    "shape",
    [(), (1,), (1, 1), (5,), (0, 3), (3, 0), (2, 3, 4), (8, 7), (9, 7), (8, 63), (9, 63), (9, 64), (64, 64), (4096,), (4097,),
     (2, 2, 2, 1, 3), (1, 255), (1, 256), (1, 257)],
)  # fmt: skip
def test_layouts_and_broadcasting(shape: tuple[int, ...], dtype: str) -> None:
    def layouts(x: np.ndarray) -> list[np.ndarray]:
        wide = np.zeros(tuple(2 * n + 1 for n in shape), dtype)
        gapped = wide[(..., *(slice(1, 2 * n, 2) for n in shape))]  # every dimension strided
        padded = np.zeros((*shape[:-1], shape[-1] + 3), dtype)[..., : shape[-1]] if shape else np.zeros((), dtype)
        turned = np.zeros(shape[::-1], dtype).T
        backwards = np.zeros(shape, dtype)[(..., *(slice(None, None, -1) for _ in shape))]
        made = [np.zeros(shape, dtype), gapped, padded, turned, backwards]
        for m in made:
            m[...] = x
        return made

    x, z = values(shape, dtype), values(shape, dtype)
    inputs, outputs = layouts(x), layouts(z)
    for i, k in {(0, 0), *((0, j) for j in range(5)), *((j, 0) for j in range(5)), (3, 3), (4, 4)}:
        a, y = inputs[i], outputs[k]
        for b in (z, values((), dtype), values((1,) * len(shape), dtype), values(shape[-1:], dtype)):
            add(a, b, y)
            add(b, a, y)
        if shape and shape[0] > 0:
            add(a, values((*shape[:-1], 1), dtype), y)


def test_in_place() -> None:
    for shape in [(4,), (3, 5), (8, 64), (4097,)]:
        a, b = values(shape, "float32"), values(shape, "float32")
        want = a + b
        bc.plan(bc.BinaryDescriptor("add", shape, shape)).run(a, b, a)
        np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("kind", ["glu", "swiglu"])
@pytest.mark.parametrize("gate_half", ["first", "second"])
@pytest.mark.parametrize("shape", [(2,), (4, 2), (8, 6), (9, 6), (3, 4, 2), (2, 2000), (0, 4), (4, 0)])
def test_gated_halves(kind: str, gate_half: str, shape: tuple[int, ...]) -> None:
    """The halves of one tensor as those of a larger launch, row by row, forward and backward, along each dimension."""
    for dim in range(len(shape)):
        if shape[dim] % 2:
            continue
        half = tuple(n // 2 if d == dim else n for d, n in enumerate(shape))
        x, dy = RNG.normal(size=shape).astype(np.float32), RNG.normal(size=half).astype(np.float32)
        desc = bc.GatedActivationDescriptor(kind, shape, split_dim=dim, gate_half=gate_half)
        y = bc.plan(desc).run(x, np.zeros(half, np.float32))
        dx = bc.plan(desc.backward()).run(dy, x, np.zeros(shape, np.float32))
        first, second = np.split(x.astype(np.float64), 2, dim)
        value, gate = (second, first) if gate_half == "first" else (first, second)
        s = 1 / (1 + np.exp(-gate))
        g, slope = (s, s * (1 - s)) if kind == "glu" else (gate * s, s * (1 + gate * (1 - s)))
        np.testing.assert_allclose(y, value * g, rtol=1e-5, atol=1e-6)
        parts = (dy * value * slope, dy * g) if gate_half == "first" else (dy * g, dy * value * slope)
        np.testing.assert_allclose(dx, np.concatenate(parts, dim), rtol=1e-4, atol=1e-5)
