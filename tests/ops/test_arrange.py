"""Cat, stack, pad, repeat, flip, roll, triangles, diagonals, slices: torch's results, promotion, gradients and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

X = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
V = torch.arange(5, dtype=torch.float64)


def _pads() -> list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    calls = [((1, 2), "constant", 3.5), ((1, 2, 0, 1), "constant", None), ((-1, 2, 3, -2), "constant", 1.0)]
    found = []
    for mode in ("reflect", "replicate", "circular"):
        calls += [((1, 2), mode, None), ((-1, 2), mode, None), ((2, 1, 1, 2), mode, None), ((2, -1), mode, None)]
    for pad, mode, value in calls:
        found.append((f"pad {pad} {mode}", F.pad, torch.nn.functional.pad, (X, pad, mode, value)))
    return found


CALLS: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    *_pads(),
    ("flip", F.flip, torch.flip, (X, (0, -1))),
    ("flip none", F.flip, torch.flip, (X, ())),
    ("roll", F.roll, torch.roll, (X, (1, -7), (0, 2))),
    ("roll twice", F.roll, torch.roll, (X, (1, 5), (2, 2))),
    ("roll row", F.roll, torch.roll, (V, 2)),
    ("tril", F.tril, torch.tril, (X, 1)),
    ("triu", F.triu, torch.triu, (X, -1)),
    ("diag vector", F.diag, torch.diag, (V, -2)),
    ("diag matrix", F.diag, torch.diag, (X[0], 1)),
    ("repeat", F.repeat, torch.Tensor.repeat, (X, (2, 1, 3, 2))),
    ("tile", F.tile, torch.tile, (X, (2, 3))),
    ("tile short", F.tile, torch.tile, (V, (2, 3))),
    ("interleave", F.repeat_interleave, torch.repeat_interleave, (X, 3, 1)),
    ("roll all", F.roll, torch.roll, (X, -7)),
    ("roll all of a view", F.roll, torch.roll, (X.transpose(0, 2), 5)),
    ("interleave all", F.repeat_interleave, torch.repeat_interleave, (X, 2)),
    ("interleave by tensor", F.repeat_interleave, torch.repeat_interleave, (X, torch.tensor([2, 0, 3]), 1)),
    ("interleave ends empty", F.repeat_interleave, torch.repeat_interleave, (X, torch.tensor([0, 2, 0]).int(), -2)),
    ("interleave to nothing", F.repeat_interleave, torch.repeat_interleave, (X, torch.tensor([0, 0, 0]), 1)),
    ("interleave all by tensor", F.repeat_interleave, torch.repeat_interleave, (X, torch.arange(24) % 3)),
    ("interleave by one", F.repeat_interleave, torch.repeat_interleave, (X, torch.tensor([3]), 0)),
    ("diag_embed", F.diag_embed, torch.diag_embed, (X,)),
    ("diag_embed above", F.diag_embed, torch.diag_embed, (X, 2, 0, 2)),
    ("diag_embed below", F.diag_embed, torch.diag_embed, (X, -1, 3, 1)),
    ("interleave row", F.repeat_interleave, torch.repeat_interleave, (V, 2)),
]


@pytest.mark.parametrize(("ours", "torchs", "args"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_results_and_gradients_are_torchs(
    ours: Callable[..., Any], torchs: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    x = args[0].clone().requires_grad_()
    want = torchs(x, *args[1:])
    dy = torch.randn_like(want)
    want.backward(dy)
    y, pull = bc.vjp(ours, *args)
    assert torch.equal(y, want.detach())
    torch.testing.assert_close(pull(dy), x.grad, rtol=1e-14, atol=1e-14)
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.complex128):
        if ours is F.pad and args[2] != "constant" and not dtype.is_floating_point:
            continue
        given = args[0].to(dtype)
        assert torch.equal(ours(given, *args[1:]), torchs(given, *args[1:])), dtype


def test_lists() -> None:
    parts = [torch.randn(2, n, 3, requires_grad=True) for n in (1, 4, 0, 2)]
    want = torch.cat(parts, 1)
    dy = torch.randn_like(want)
    want.backward(dy)
    y, pull = bc.vjp(F.cat, [p.detach() for p in parts], 1)
    assert torch.equal(y, want.detach())
    for got, p in zip(pull(dy), parts, strict=True):
        assert torch.equal(got, p.grad)
    same = [p.detach()[:, :1] for p in (parts[0], parts[1], parts[3])]
    for dim in (0, 2, -1, -4):
        y, pull = bc.vjp(F.stack, same, dim)
        assert torch.equal(y, torch.stack(same, dim))
        assert all(torch.equal(g, s) for g, s in zip(pull(y), same, strict=True))
    out = np.empty((4, 3), np.float32)
    assert F.cat([np.ones((1, 3), np.float32), np.zeros((3, 3), np.float32)], out=out) is out and out.sum() == 3
    assert isinstance(F.stack([bc.zeros((2,)), bc.zeros((2,))]), bc.Tensor)


def test_lists_are_promoted() -> None:
    for a, b in (
        ("float32", "int64"),
        ("int8", "uint8"),
        ("bool", "int16"),
        ("float16", "bfloat16"),
        ("float64", "float16"),
    ):
        x, y = torch.ones(3).to(getattr(torch, a)), torch.zeros(2).to(getattr(torch, b))
        got = F.cat([x, y])
        assert got.dtype == torch.cat([x, y]).dtype and torch.equal(got, torch.cat([x, y]))
        assert F.stack([x[:2], y]).dtype == torch.stack([x[:2], y]).dtype
    legacy = [torch.ones(2, 3), torch.zeros(0, dtype=torch.float64)]
    assert torch.equal(F.cat(legacy, 1), torch.cat(legacy, 1)) and F.cat(legacy, 1).dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: F.cat([]), "tensors"),
        (lambda: F.cat([V, X]), "shapes"),
        (lambda: F.cat([V], 1), "axis"),
        (lambda: F.stack([V, V[:2]]), "tensors"),
        (lambda: F.flip(X, (0, 0)), "dims: got"),
        (lambda: F.flip(X, 3), "dims: got"),
        (lambda: F.roll(X, (1, 2), 0), "shifts"),
        (lambda: F.tril(V), "input: got"),
        (lambda: F.diag(X), "input: got"),
        (lambda: F.pad(X, (1,)), "pad"),
        (lambda: F.pad(X, "x"), "want a list of integers"),
        (lambda: F.pad(X, (1, [])), "want a list of integers"),
        (lambda: F.pad(X, (1.5, 2)), "want a list of integers"),
        (lambda: F.pad(X, 3), "want a list of integers"),
        (lambda: F.pad(X, (4, 0), "reflect"), "pad: got"),
        (lambda: F.pad(X, (0, 5), "circular"), "pad: got"),
        (lambda: F.pad(X, (-3, -2)), "pad: got"),
        (lambda: F.pad(V, (1, 1), "reflect"), "pad"),
        (lambda: F.repeat(X, (2, 2)), "repeats"),
        (lambda: F.repeat_interleave(X, torch.tensor([1, 2]), 1), "repeats"),
        (lambda: F.repeat_interleave(X, torch.tensor([1, -2, 3]), 1), "repeats"),
        (lambda: F.repeat_interleave(X, torch.ones(3), 1), "repeats"),
        (lambda: F.repeat_interleave(X, -1, 1), "repeats"),
        (lambda: F.repeat_interleave(X, 2, 3), "dim"),
        (lambda: F.repeat_interleave(X, 2, 0, output_size=5), "output_size"),
        (lambda: F.repeat_interleave(X, torch.tensor([1, 2, 3]), 1, output_size=5), "output_size"),
        (lambda: F.roll(X, (1, 2)), "shifts"),
        (lambda: F.diag_embed(X, 0, 1, 1), "dim2"),
        (lambda: F.diag_embed(X[0, 0, 0]), "input"),
        (lambda: F.diag_embed_backward(X), "dy"),
        (lambda: F.linspace(0, 1, 3, dtype="bool"), "dtype"),
        (lambda: F.linspace(0, 300, 3, dtype="u8"), "end: got 300, want a number that u8 holds"),
        (lambda: F.slice_scatter(V, V, 0, 1), "src"),
        (lambda: F.arange(0, 5, -1), "step"),
        (lambda: F.arange(0, 5, 0.5, dtype="i64"), "step"),
        (lambda: F.arange([]), "end"),
        (lambda: F.arange(np.nan, 5), "start"),
        (lambda: F.arange(0, 1e300, 1e-300), "end: .* 2\\^40 numbers"),
        (lambda: F.arange(10**30), "end: .* 2\\^40 numbers"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], field: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=field):
        call()


def test_slices() -> None:
    source = torch.ones(2, 2, 4, dtype=torch.float64)
    for start, end, step in ((0, 2, 1), (None, None, 2), (-2, None, 1), (1, 100, 1)):
        args = (X, source, 1, start, end, step)
        assert torch.equal(F.slice_scatter(*args), torch.slice_scatter(*args))
    y, pull = bc.vjp(F.slice_scatter, X, source, 1, 1, 3)
    dx, dsource = pull(y)
    assert torch.equal(dx[:, 1:3], torch.zeros(2, 2, 4, dtype=torch.float64)) and torch.equal(dsource, y[:, 1:3])
    made = bc.plan(bc.WriteSliceDescriptor((5, 3), 2))
    x, part = np.zeros((5, 3), np.float32), np.ones((2, 3), np.float32)
    made.run(x, part, x, np.int64(2))
    assert x.sum() == 6 and (x[2:4] == 1).all()
    for start in (-1, 4, 2**40):
        with pytest.raises(bc.IndexOutOfRangeError):
            made.run(x, part, x, start)
    assert x.sum() == 6


def test_repeats_alone_give_positions() -> None:
    for repeats in ([1, 0, 3], [0, 0], [2, 0], []):
        given = torch.tensor(repeats, dtype=torch.int64)
        assert torch.equal(F.repeat_interleave(given), torch.repeat_interleave(given))
    got = F.repeat_interleave(np.arange(6.0).reshape(2, 3), np.array([2, 1, 0]), 1, output_size=3)
    assert isinstance(got, np.ndarray) and got.tolist() == [[0, 0, 1], [3, 3, 4]]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8", "int16"])
def test_whole_numbers_between_two(dtype: str) -> None:
    for first, last in ((0, 10), (10, 0), (3, 3), (0, 100), (5, 119), (0.5, 9.7), (0, 3), (0, 7), (1, 127)):
        for steps in (0, 1, 2, 4, 5, 7, 13, 31, 101):
            want = torch.linspace(first, last, steps, dtype=getattr(torch, dtype))
            got = F.linspace(first, last, steps, dtype=dtype)
            assert got.dtype.name == dtype and np.array_equal(got, want.numpy()), (first, last, steps)
    out = torch.empty(5, dtype=torch.int32)
    assert (
        F.linspace(-5, 10, 5, out=out) is out and out.tolist() == torch.linspace(-5, 10, 5, dtype=torch.int32).tolist()
    )
    wide = F.linspace(-(2**62), 2**62, 5, dtype="i64")
    assert np.array_equal(wide, torch.linspace(-(2**62), 2**62, 5, dtype=torch.int64).numpy())


def test_new_arrays() -> None:
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.5, 3.0, 0.4), (3, 3), (1, 2, 0.3)):
        got, want = F.arange(*args), torch.arange(*args)
        assert got.dtype.name == str(want.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(got, want.numpy())
    for args in ((0.0, 1.0, 7), (3, -2, 6), (1.0, 2.0, 1), (1.0, 2.0, 0)):
        np.testing.assert_allclose(F.linspace(*args), torch.linspace(*args).numpy(), rtol=1e-6)
    np.testing.assert_array_equal(F.eye(3, 5, dtype="i16"), torch.eye(3, 5).short().numpy())
    for value in (True, 3, 2.5):
        got, want = F.full((2, 3), value), torch.full((2, 3), value)
        assert got.dtype.name == str(want.dtype).removeprefix("torch.") and (got == want.numpy()).all()
    assert (F.full((2,), 2.5, dtype="i64") == 2).all() and F.full((2,), torch.tensor(2.0)).dtype == np.float32
    assert F.zeros(2, 3).shape == F.ones((2, 3)).shape == (2, 3) and F.ones(2, dtype="i8").dtype == np.int8
    assert F.zeros(()).shape == () and F.zeros(2, 3).sum() == 0 and F.ones(2, 3).sum() == 6
    like = F.ones_like(X, dtype=torch.int64)
    assert (
        torch.equal(like, torch.ones_like(X, dtype=torch.int64)) and F.full_like(V, 3, dtype="u8").dtype == torch.uint8
    )
    assert torch.equal(F.concat([V, V]), torch.concat([V, V])) and bc.vjp(F.concat, [V, V])[1](torch.cat([V, V]))[
        1
    ].equal(V)
    out = torch.empty(4, dtype=torch.float16)
    assert F.arange(4, out=out) is out and out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [[], [3], None, 2.5, -1, True, "x", np.array([1, 2])])
def test_new_arrays_want_counts(count) -> None:
    for name, call in (("steps", lambda: F.linspace(0, 1, count)), ("n", lambda: F.eye(count))):
        with pytest.raises(bc.InvalidProblemError, match=f"{name}: got .*, want an int of at least 0"):
            call()
    with pytest.raises(bc.InvalidProblemError, match="elements"):
        F.linspace(0, 1, 2**62)


def test_large_parts() -> None:
    """Beyond the sizes where threads and streamed stores come in."""
    x = np.arange(5_000_000, dtype=np.int32).reshape(2500, 2000)
    np.testing.assert_array_equal(F.cat([x, x[:7]]), np.concatenate([x, x[:7]]))
    np.testing.assert_array_equal(F.cat([x, x[:, :7]], 1), np.concatenate([x, x[:, :7]], 1))
    np.testing.assert_array_equal(F.flip(x, (0, 1)), x[::-1, ::-1])
    np.testing.assert_array_equal(F.roll(x, (3, 5), (0, 1)), np.roll(x, (3, 5), (0, 1)))
    np.testing.assert_array_equal(F.tril(x), np.tril(x))
    for far in (2**63 - 1, 2**62, -(2**63)):
        np.testing.assert_array_equal(F.tril(x, far), x if far > 0 else np.zeros_like(x))
        np.testing.assert_array_equal(F.triu(x, far), np.zeros_like(x) if far > 0 else x)


def test_lists_are_remembered_by_the_shapes_of_their_tensors() -> None:
    """A list may be changed between calls, and be longer than a key holds."""
    parts = [V[:2], V[2:]]
    before = F.cat._cache_size
    assert torch.equal(F.cat(parts), V) and torch.equal(F.cat(tuple(parts)), V)
    parts[0] = V[2:]
    assert torch.equal(F.cat(parts), torch.cat(parts))
    parts.append(V[:1].to(torch.int64))
    assert torch.equal(F.cat(parts), torch.cat(parts))
    assert F.cat._cache_size <= before + 4  # the mixed list takes several plans, which depend on strides, too
    many = [V[i % 2 :] for i in range(500)]
    assert torch.equal(F.cat(many), torch.cat(many)) and torch.equal(F.cat(many), torch.cat(many))
    assert torch.equal(F.stack([V] * 300), torch.stack([V] * 300))
    with pytest.raises(bc.BaracudaError, match=r"tensors\[1\].*NoneType"):
        F.cat([V, None])
    with pytest.raises(bc.BaracudaError, match="tensors: got an empty list, want a list of at least one tensor"):
        F.cat([])
    with pytest.raises(
        bc.BaracudaError, match="tensors: got an object of type Tensor, want a list of at least one tensor"
    ):
        F.cat(V)
