"""Rotary embeddings beyond the generated tests: Llama's formula, in place, positions, refusals, exact tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.rope.rope import RopeLayout
from baracuda.prove.reference import Array


def tables(rows: int, dim: int, element: str = "f32") -> tuple[Array, Array]:
    shape = (rows, dim // 2)
    dtype = np.float64 if element == "f64" else np.float32
    cos, sin = np.empty(shape, dtype), np.empty(shape, dtype)
    bc.plan(bc.RopeTableDescriptor(shape, element)).run(cos=cos, sin=sin, base=10000.0)
    return cos, sin


def test_half_layout_is_llamas(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    cos, sin = tables(40, 16, "f64")
    x = torch.from_numpy(rng.standard_normal((2, 3, 7, 16)))
    c, s = (torch.from_numpy(np.concatenate([t, t], -1)[4:11]) for t in (cos, sin))
    turned = torch.cat([-x[..., 8:], x[..., :8]], -1)
    torch.testing.assert_close(F.rope(x, torch.from_numpy(cos), torch.from_numpy(sin), position=4), x * c + turned * s)


def test_interleaved_is_a_complex_product(rng: np.random.Generator) -> None:
    cos, sin = tables(9, 12, "f64")
    x = rng.standard_normal((2, 9, 12))
    want = (x[..., 0::2] + 1j * x[..., 1::2]) * (cos + 1j * sin)
    y = F.rope(x, cos, sin, interleaved=True)
    np.testing.assert_allclose(y[..., 0::2] + 1j * y[..., 1::2], want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("layout", list(RopeLayout))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_in_place_gives_the_same_bits_and_rotates_back(
    layout: RopeLayout, dtype: Any, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((2, 5, 3, 20)).astype(dtype).transpose(0, 2, 1, 3)
    element = {2: "f16", 4: "f32", 8: "f64"}[x.itemsize]
    cos, sin = tables(5, 14, "f64" if element == "f64" else "f32")
    desc = bc.RopeDescriptor(x.shape, 5, 14, layout, element=element)
    y, z = np.empty_like(x), x.copy(order="K")
    bc.plan(desc).run(x=x, cos=cos, sin=sin, y=y)
    bc.plan(desc).run(x=z, cos=cos, sin=sin, y=z)
    np.testing.assert_array_equal(y, z)
    np.testing.assert_array_equal(y[..., 14:], x[..., 14:])
    bc.plan(desc.backward()).run(dy=z, cos=cos, sin=sin, dx=z)
    assert np.abs(z - x).max() <= 16 * np.finfo(dtype).eps


def test_positions_select_rows(rng: np.random.Generator) -> None:
    cos, sin = tables(30, 8)
    x, at = rng.standard_normal((2, 3, 4, 8)).astype(np.float32), np.array([[3, 0, 29, 3], [5, 6, 7, 8]])
    y = F.rope(x, cos, sin, positions=at)
    for b in range(2):
        for s in range(4):
            one = F.rope(x[b, :, s : s + 1], cos, sin, position=int(at[b, s]))
            np.testing.assert_array_equal(y[b, :, s : s + 1], one)


@pytest.mark.parametrize(("position", "positions"), [(-1, None), (7, None), (0, [0, 1, 2, 10]), (0, [0, -1, 2, 3])])
def test_positions_are_checked_before_writing(position: int, positions: list[int] | None) -> None:
    cos, sin = tables(10, 8)
    x, y = np.ones((2, 4, 8), np.float32), np.full((2, 4, 8), 7, np.float32)
    plan = bc.plan(bc.RopeDescriptor(x.shape, 10, positions_shape=None if positions is None else (4,)))
    extra = {"position": position} if positions is None else {"positions": np.array(positions)}
    with pytest.raises(bc.IndexOutOfRangeError):
        plan.run(x=x, cos=cos, sin=sin, y=y, **extra)
    assert (y == 7).all()


def test_one_plan_serves_every_length(rng: np.random.Generator) -> None:
    length, rows = bc.Dim("length", max=16), bc.Dim("rows", max=64)
    plan = bc.plan(bc.RopeDescriptor((2, length, 8), rows))
    for n in (1, 5, 16):
        cos, sin = tables(n + 3, 8)
        x, y = rng.standard_normal((2, n, 8)).astype(np.float32), np.empty((2, n, 8), np.float32)
        plan.run(x=x, cos=cos, sin=sin, y=y, position=np.array(3))
        np.testing.assert_array_equal(y, F.rope(x, cos, sin, position=3))


def test_gradient_is_the_transposed_rotation(rng: np.random.Generator) -> None:
    cos, sin = tables(6, 8, "f64")
    x, dy = rng.standard_normal((2, 6, 8)), rng.standard_normal((2, 6, 8))
    for interleaved in (False, True):
        y, pull = bc.vjp(F.rope, x, cos, sin, interleaved=interleaved)
        np.testing.assert_allclose(np.sum(y * dy), np.sum(x * pull(dy)), rtol=1e-13)


def test_far_positions_are_exact() -> None:
    """Angles in f32 would be off by 1e-2 at position 100000."""
    mpmath = pytest.importorskip("mpmath")
    cos, sin = tables(100001, 8)
    for pair in range(4):
        angle = 100000 * mpmath.mpf(10000) ** (-mpmath.mpf(pair) / 4)
        assert abs(float(cos[-1, pair]) - float(mpmath.cos(angle))) <= np.finfo(np.float32).eps
        assert abs(float(sin[-1, pair]) - float(mpmath.sin(angle))) <= np.finfo(np.float32).eps


@pytest.mark.parametrize(
    ("shape", "rows", "options", "field"),
    [
        ((8,), 4, {}, "input_shape"),
        ((4, 7), 4, {}, "rotary_dim"),
        ((4, 8), 4, {"rotary_dim": 10}, "rotary_dim"),
        ((4, 8), 4, {"rotary_dim": 3}, "rotary_dim"),
        ((4, 8), -1, {}, "table_rows"),
        ((2, 4, 8), 4, {"positions_shape": (3,)}, "positions_shape"),
        ((4, 8), 4, {"positions_shape": (4,), "positions_element": "f32"}, "positions_element"),
        ((4, 8), 4, {"table_element": "i32"}, "table_element"),
        ((4, 8), 4, {"layout": "neox"}, "layout"),
    ],
)
def test_descriptor_names_the_wrong_field(shape: Any, rows: int, options: dict[str, Any], field: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=rf"RopeDescriptor\.{field}: got"):
        bc.RopeDescriptor(shape, rows, **options)
