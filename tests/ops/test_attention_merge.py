"""attention_merge beyond the generated tests: parts of attention, gradients of parts, NaN, empty parts, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.reference import Array


def parts(rng: np.random.Generator, dtype: Any) -> tuple[Array, Array, Array]:
    q, k, v = (rng.standard_normal(s).astype(dtype) for s in ((2, 4, 9, 16), (2, 2, 50, 16), (2, 2, 50, 16)))
    return q, k, v


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("cut", [1, 17, 49])
def test_parts_of_the_keys_are_the_whole(cut: int, dtype: Any, rng: np.random.Generator) -> None:
    q, k, v = parts(rng, dtype)
    whole = F.scaled_dot_product_attention_forward(q, k, v, enable_gqa=True)
    a = F.scaled_dot_product_attention_forward(q, k[:, :, :cut], v[:, :, :cut], enable_gqa=True)
    b = F.scaled_dot_product_attention_forward(q, k[:, :, cut:], v[:, :, cut:], enable_gqa=True)
    eps = np.finfo(dtype).eps
    for merged in (F.attention_merge(*a, *b), F.attention_merge(*b, *a)):
        for got, want in zip(merged, whole, strict=True):
            np.testing.assert_allclose(got, want, rtol=16 * eps, atol=16 * eps)


def test_gradients_of_parts_take_the_merged_result(rng: np.random.Generator) -> None:
    q, k, v = parts(rng, np.float64)
    out, lse = F.scaled_dot_product_attention_forward(q, k, v, enable_gqa=True)
    dout = rng.standard_normal(out.shape)
    want = F.scaled_dot_product_attention_backward(dout, q, k, v, out, lse, enable_gqa=True)
    halves = [(k[:, :, s], v[:, :, s]) for s in (slice(0, 20), slice(20, 50))]
    done = [F.scaled_dot_product_attention_forward(q, *half, enable_gqa=True) for half in halves]
    out, lse = F.attention_merge(*done[0], *done[1])
    got = [F.scaled_dot_product_attention_backward(dout, q, *half, out, lse, enable_gqa=True) for half in halves]
    np.testing.assert_allclose(got[0][0] + got[1][0], want[0], atol=1e-13)
    for i in (1, 2):
        np.testing.assert_allclose(np.concatenate([got[0][i], got[1][i]], 2), want[i], atol=1e-13)


def test_a_part_without_keys_is_left_out(rng: np.random.Generator) -> None:
    out = rng.standard_normal((6, 5)).astype(np.float32)
    lse = np.array([0.3, -200.0, 700.0, -np.inf, np.inf, 1e-20], np.float32)
    for nothing in (0.0, np.nan, np.inf):
        empty, none = np.full_like(out, nothing), np.full(6, -np.inf, np.float32)
        for got in (F.attention_merge(out, lse, empty, none), F.attention_merge(empty, none, out, lse)):
            np.testing.assert_array_equal(got[0], np.where(np.isneginf(lse)[:, None], 0, out))
            np.testing.assert_array_equal(got[1], lse)


def test_nan_stays(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((6, 3)).astype(np.float32) for _ in range(2))
    la = np.array([np.nan, 1, np.nan, np.nan, 5, 0], np.float32)
    lb = np.array([1, np.nan, np.nan, -np.inf, 2, 0], np.float32)
    a[4, 1] = np.nan
    b[5, 2] = np.inf
    out, lse = F.attention_merge(a, la, b, lb)
    assert np.isnan(out[:4]).all() and np.isnan(lse[:4]).all()
    assert np.isnan(out[4]).tolist() == [False, True, False] and np.isfinite(lse[4:]).all()
    assert np.isinf(out[5]).tolist() == [False, False, True]


def test_far_parts_keep_the_nearer_one() -> None:
    a, b = np.full((1, 4), 3, np.float32), np.full((1, 4), 1e30, np.float32)
    out, lse = F.attention_merge(a, np.float32([500.0]), b, np.float32([-500.0]))
    np.testing.assert_array_equal(out, a)
    assert lse[0] == 500


def test_in_place(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((5, 7)).astype(np.float32) for _ in range(2))
    la, lb = (rng.standard_normal(5).astype(np.float32) for _ in range(2))
    want = F.attention_merge(a, la, b, lb)
    bc.plan(bc.AttentionMergeDescriptor((5, 7))).run(out_a=a, lse_a=la, out_b=b, lse_b=lb, out=a, lse=la)
    np.testing.assert_array_equal(a, want[0])
    np.testing.assert_array_equal(la, want[1])


def test_refusals() -> None:
    out, lse = np.ones((3, 4), np.float32), np.ones(3, np.float32)
    for args, name in (
        ((out, lse[:2], out, lse), "lse_a"),
        ((out, lse.astype(np.float64), out, lse), "lse_a"),
        ((out, lse, out[:, :3], lse), "out_b"),
        ((out, lse, out.astype(np.float16), lse), "out_b"),
        ((out, lse, out, out), "lse_b"),
        ((out.astype(np.float64), lse, out.astype(np.float64), lse), "lse_a"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=f"attention_merge: {name}: got"):
            F.attention_merge(*args)
    with pytest.raises(bc.InvalidProblemError, match=r"AttentionMergeDescriptor\.shape"):
        bc.AttentionMergeDescriptor(())
    for args, name in (
        ((out[:, :3], lse, out, lse, out, lse), "dout"),
        ((out, lse[:2], out, lse, out, lse), "dlse"),
        ((out, lse, out, lse, out.astype(np.float64), lse), "out_b"),
        ((out, lse, out, out, out, lse), "lse_a"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=f"attention_merge_backward: {name}: got"):
            F.attention_merge_backward(*args)


@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 40), (4, 1), (3, 2100), (2, 0)])
def test_gradients_are_those_of_torch(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    leaves = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in (shape, shape[:-1]) * 2]
    a, la, b, lb = leaves
    lse = torch.logaddexp(la, lb)
    out = (la - lse).exp()[..., None] * a + (lb - lse).exp()[..., None] * b
    cotangents = [torch.randn(x.shape, dtype=torch.float64) for x in (out, lse)]
    want = torch.autograd.grad([out, lse], leaves, cotangents)
    got_out, pull = bc.vjp(F.attention_merge, *(x.detach() for x in leaves))
    torch.testing.assert_close(got_out, (out.detach(), lse.detach()), atol=1e-14, rtol=1e-14)
    for got, ref in zip(pull(cotangents), want, strict=True):
        torch.testing.assert_close(got, ref, atol=1e-12, rtol=1e-12)


def test_a_part_without_keys_has_no_gradient(rng: np.random.Generator) -> None:
    a, nothing = rng.standard_normal((3, 5)), np.full((3, 5), np.nan)
    la, none = rng.standard_normal(3), np.full(3, -np.inf)
    dout, dlse = rng.standard_normal((3, 5)), rng.standard_normal(3)
    for swap in (1, -1):
        parts = [(a, la), (nothing, none)][::swap]
        grads = F.attention_merge_backward(dout, dlse, *parts[0], *parts[1])
        (da, dla), (db, dlb) = [grads[:2], grads[2:]][::swap]
        np.testing.assert_array_equal(da, dout)
        np.testing.assert_array_equal(dla, dlse)
        assert not db.any() and not dlb.any()
    for x in F.attention_merge_backward(dout, dlse, nothing, none, nothing, none):
        assert not x.any()


def test_gradients_of_parts_through_the_merge(rng: np.random.Generator) -> None:
    """Attention over two halves, merged: the gradients of the merge make those of the whole for the values."""
    q, k, v = parts(rng, np.float64)
    halves = [(k[:, :, s], v[:, :, s]) for s in (slice(0, 20), slice(20, 50))]
    dout = rng.standard_normal(q.shape)
    done = [F.scaled_dot_product_attention_forward(q, *half, enable_gqa=True) for half in halves]
    _, pull = bc.vjp(F.attention_merge, *done[0], *done[1])
    grads = pull((dout, np.zeros(q.shape[:3])))
    out, lse = F.scaled_dot_product_attention_forward(q, k, v, enable_gqa=True)
    want = F.scaled_dot_product_attention_backward(dout, q, k, v, out, lse, enable_gqa=True)[2]
    got = [
        F.scaled_dot_product_attention_backward(d, q, *half, *part, enable_gqa=True)[2]
        for d, half, part in zip(grads[::2], halves, done, strict=True)
    ]
    np.testing.assert_allclose(np.concatenate(got, 2), want, atol=1e-13)


@pytest.mark.parametrize("cuts", [(), (20,), (5, 20), (1, 7, 20, 21, 49)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_any_number_of_parts_are_the_whole(dtype: Any, cuts: tuple[int, ...], rng: np.random.Generator) -> None:
    """One without keys among them, whose out is not looked at; gradients are those of the merges one by one."""
    q, k, v = parts(rng, dtype)
    whole = F.scaled_dot_product_attention_forward(q, k, v, enable_gqa=True)
    states: list[Any] = []
    for first, last in zip((0, *cuts), (*cuts, 50), strict=True):
        keys = k[:, :, first:last], v[:, :, first:last]
        states += F.scaled_dot_product_attention_forward(q, *keys, enable_gqa=True)
    nothing = np.full_like(states[0], np.nan), np.full_like(states[1], -np.inf)
    eps = np.finfo(dtype).eps
    for given in (states, [*states[:2], *nothing, *states[2:]], [*nothing, *states]):
        for got, want in zip(F.attention_merge_states(*given), whole, strict=True):
            np.testing.assert_allclose(got, want, rtol=16 * eps, atol=16 * eps)
    if len(states) == 6:
        dy = [rng.standard_normal(x.shape).astype(x.dtype) for x in states[:2]]
        merged = F.attention_merge(*states[:4])
        *first, c, d = F.attention_merge_backward(*dy, *merged, *states[4:])
        want = [*F.attention_merge_backward(*first, *states[:4]), c, d]
        for got, ref in zip(bc.vjp(F.attention_merge_states, *states)[1](dy), want, strict=True):
            np.testing.assert_array_equal(got, ref)


def test_states_come_in_pairs() -> None:
    x = np.ones((2, 3), np.float32)
    for given in ((), (x,), (x, x[:, 0], x), (x, x), (x, x[:1, 0])):
        with pytest.raises(bc.InvalidProblemError, match="states"):
            F.attention_merge_states(*given)
