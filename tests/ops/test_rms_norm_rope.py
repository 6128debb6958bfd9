"""rms_norm_rope and qk_norm_rope beyond the generated tests: torch's formula and gradients, in place, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

EPS = 1e-6


def tables(rows: int, dim: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    angle = np.arange(rows)[:, None] * 100.0 ** (-np.arange(dim // 2) * 2 / dim)
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


def turned(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """Rotation of all columns as models write it."""
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary", [16, 8])
def test_heads_of_queries_and_keys_as_torch(interleaved: bool, rotary: int) -> None:
    made = torch.Generator().manual_seed(1)
    shapes = ((2, 5, 4, 16), (2, 5, 2, 16), (16,), (16,))  # [batch, sequence, heads, dim], seen as [batch, heads, ...]
    leaves = [torch.randn(s, dtype=torch.float64, generator=made).requires_grad_() for s in shapes]
    cos, sin = (torch.from_numpy(t) for t in tables(30, rotary))
    positions = torch.tensor([[3, 4, 5, 6, 7], [0, 0, 29, 1, 2]])
    wanted = []
    for x, weight in ((leaves[0], leaves[2]), (leaves[1], leaves[3])):
        v = torch.nn.functional.rms_norm(x, (16,), None, EPS) * (1 + weight)
        c, s = (t[positions][:, :, None] for t in (cos, sin))
        wanted.append(torch.cat([turned(v[..., :rotary], c, s, interleaved), v[..., rotary:]], -1).transpose(1, 2))
    dq, dk = (torch.randn(w.shape, dtype=torch.float64, generator=made) for w in wanted)
    torch.autograd.backward(wanted, [dq, dk])
    q, k, *weights = (v.detach() for v in leaves)
    options: dict[str, Any] = {
        "eps": EPS, "positions": positions, "interleaved": interleaved, "weight_offset": 1.0, "rotary_dim": rotary,
    }  # fmt: skip
    found, pull = bc.vjp(F.qk_norm_rope, q.transpose(1, 2), k.transpose(1, 2), *weights, cos, sin, **options)
    for got, want in zip(found, wanted, strict=True):
        assert torch.allclose(got, want, rtol=1e-12, atol=1e-12)
    gradients = pull(dq, dk)
    for got, leaf in zip(gradients, leaves, strict=True):
        wide = leaf.grad.transpose(1, 2) if leaf.dim() == 4 else leaf.grad
        assert torch.allclose(got, wide, rtol=1e-9, atol=1e-11)


def test_one_pass_rounds_once(rng: np.random.Generator) -> None:
    cos, sin = tables(6, 8, np.float32)
    x, weight = rng.normal(size=(3, 6, 8)).astype(np.float16), rng.normal(size=8).astype(np.float16)
    y = F.rms_norm_rope(x, weight, cos, sin, 1e-5)
    wide = F.rope(F.rms_norm(x.astype(np.float64), (8,), weight.astype(np.float64), 1e-5), *map(np.float64, (cos, sin)))
    assert np.array_equal(y, wide.astype(np.float16))
    assert F.rms_norm_rope(x, None, cos, sin, 1e-5).dtype == np.float16


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_in_place_gives_the_same_bits(element: str, rng: np.random.Generator) -> None:
    dtype = bc.Element.coerce(element, "element").numpy
    cos, sin = tables(40, 24, np.float32)
    x, dy = (rng.normal(size=(40, 3, 30)).astype(dtype).transpose(1, 0, 2) for _ in range(2))
    weight = rng.normal(size=30).astype(dtype)
    desc = bc.RmsNormRopeDescriptor(x.shape, 40, 24, "interleaved", element=element)
    forward, backward = bc.plan(desc), bc.plan(desc.backward())
    y, rstd = np.empty_like(x), np.empty((3, 40, 1), np.float32)
    same = x.copy(order="K")
    for to, source in ((y, x), (same, same)):
        forward.run(x=source, weight=weight, cos=cos, sin=sin, y=to, rstd=rstd, eps=1e-5)
    np.testing.assert_array_equal(same, y)
    given = {
        "weight": weight,
        "cos": cos,
        "sin": sin,
        "rstd": rstd,
        "workspace": bc.empty(backward.workspace_size, "u8"),
    }
    results = []
    for into in ("new", "dy", "x"):
        tensors = {"dy": dy.copy(order="K"), "x": x.copy(order="K")}
        dx, dweight = tensors.get(into, np.empty_like(x)), np.empty_like(weight)
        backward.run(**tensors, dx=dx, dweight=dweight, **given)
        results.append((dx.tobytes(), dweight.tobytes()))
    assert len(set(results)) == 1


def test_no_rows_give_a_gradient_of_zeros() -> None:
    cos, sin = tables(4, 6, np.float32)
    x, weight = np.empty((2, 0, 6), np.float32), np.ones(6, np.float32)
    y, pull = bc.vjp(F.rms_norm_rope, x, weight, cos, sin, 1e-5)
    dx, dweight = pull(y)
    assert dx.shape == x.shape and np.array_equal(dweight, np.zeros(6, np.float32))


def test_one_plan_serves_all_positions_and_lengths(rng: np.random.Generator) -> None:
    seq = bc.Dim("seq", max=20)
    plan = bc.plan(bc.RmsNormRopeDescriptor((2, seq, 8), 50, save=False))
    cos, sin = tables(50, 8, np.float32)
    weight = np.ones(8, np.float32)
    for length, position in ((1, 49), (20, 30), (0, 0)):
        x = rng.normal(size=(2, length, 8)).astype(np.float32)
        y = np.empty_like(x)
        plan.run(x=x, weight=weight, cos=cos, sin=sin, y=y, position=position, eps=1e-5)
        want = F.rope(F.rms_norm(x, (8,), weight, 1e-5), cos, sin, position)
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_wrong_calls_are_refused() -> None:
    cos, sin = tables(4, 6, np.float32)
    x, weight = np.zeros((2, 3, 6), np.float32), np.ones(6, np.float32)
    with pytest.raises(bc.IndexOutOfRangeError, match="4"):
        F.rms_norm_rope(x, weight, cos, sin, 1e-5, 2)
    y = np.full_like(x, 7)
    plan = bc.plan(bc.RmsNormRopeDescriptor(x.shape, 4, positions_shape=(3,), save=False))
    with pytest.raises(bc.IndexOutOfRangeError, match="positions"):
        plan.run(x=x, weight=weight, cos=cos, sin=sin, positions=np.array([0, -1, 2]), y=y, eps=1e-5)
    assert (y == 7).all(), "positions are looked up before the first write"
    with pytest.raises(bc.InvalidProblemError, match=r"weight_offset: got 1\.0, want 0 without a weight"):
        F.rms_norm_rope(x, None, cos, sin, weight_offset=1.0)
    with pytest.raises(bc.InvalidProblemError, match="at most 2048"):
        bc.RmsNormRopeDescriptor((3, 2050), 4)
    with pytest.raises(bc.InvalidProblemError, match="cos: got shape"):
        F.rms_norm_rope(x, weight, cos[0], sin[0])
    with pytest.raises(bc.InvalidProblemError, match="weight"):
        F.rms_norm_rope(x, weight[:4], cos, sin)
