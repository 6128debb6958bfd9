"""Attention and its cache beyond the generated tests: torch, long sequences, one plan for decoding, NaN, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.ops.attention.attention_ref import reference
from baracuda.prove.reference import Array, Case, worst

F32 = Element.F32


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def attend(
    q: Array, k: Array, v: Array, scalars: dict[str, Any] | None = None, threads: int = 0, **options: Any
) -> tuple[Array, ...]:
    desc = bc.AttentionDescriptor(q.shape, k.shape, v.shape, **options)
    plan = bc.plan(desc, preference=bc.PlanPreference(threads=threads) if threads else None)
    out, lse = np.empty(desc.out_shape, q.dtype), np.empty(q.shape[:3], np.float32)
    plan.run(q=q, k=k, v=v, out=out, lse=lse, workspace=bc.empty(plan.workspace_size, "u8"), **(scalars or {}))
    return out, lse


def within_bound(case: Case, outputs: dict[str, Array]) -> None:
    guarantee = bc.plan(case.descriptor).precision_guarantee
    expected = reference(case)
    for name, actual in outputs.items():
        share, text = worst(actual, expected[name], guarantee, F32, F32)
        assert share <= 1, f"{name}: {text}"


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries", "keys", "d", "dv"),
    [
        (2, 1, 2100, 2100, 16, 8),
        (4, 2, 65, 2053, 33, 31),
        (8, 2, 1, 2049, 64, 64),
        (3, 1, 5, 2100, 17, 70),
        (1, 1, 2, 5, 520, 3),
    ],
)
def test_long_and_odd_sizes(
    heads: int, kv_heads: int, queries: int, keys: int, d: int, dv: int, rng: np.random.Generator
) -> None:
    q, k, v = normal(rng, 1, heads, queries, d), normal(rng, 1, kv_heads, keys, d), normal(rng, 1, kv_heads, keys, dv)
    out, lse = attend(q, k, v, causal=True)
    desc = bc.AttentionDescriptor(q.shape, k.shape, v.shape, causal=True)
    within_bound(Case(desc, {"q": q, "k": k, "v": v}), {"out": out, "lse": lse})


def test_equal_scores_and_values_do_not_drift(rng: np.random.Generator) -> None:
    """Every rounding goes the same way here, which a long sum of its own would show."""
    keys = 20000
    q, k, v = np.zeros((1, 1, 40, 4), np.float32), normal(rng, 1, 1, keys, 4), np.full((1, 1, keys, 2), 0.1, np.float32)
    for rows in (40, 1):
        desc = bc.AttentionDescriptor((1, 1, rows, 4), k.shape, v.shape)
        out, lse = attend(q[:, :, :rows], k, v)
        within_bound(Case(desc, {"q": q[:, :, :rows], "k": k, "v": v}), {"out": out, "lse": lse})


@pytest.mark.parametrize("queries", [1, 3, 20])
def test_one_plan_serves_every_kv_len(queries: int, rng: np.random.Generator) -> None:
    """Prefixes of a cache whose rest is NaN: the rest is not read, and the diagonal ends at kv_len."""
    keys, length = 600, bc.Dim("length", max=32)
    k, v = normal(rng, 2, 2, keys, 16), normal(rng, 2, 2, keys, 16)
    plan = bc.plan(bc.AttentionDescriptor((2, 4, length, 16), k.shape, v.shape, causal=True))
    workspace = bc.empty(plan.workspace_size, "u8")
    q, out, lse = (
        normal(rng, 2, 4, queries, 16),
        np.empty((2, 4, queries, 16), np.float32),
        np.empty((2, 4, queries), np.float32),
    )
    for kv_len in (0, 1, 2, 64, 255, 257, 512, 599, 600):
        cache_k, cache_v = k.copy(), v.copy()
        cache_k[:, :, kv_len:], cache_v[:, :, kv_len:] = np.nan, np.nan
        plan.run(q=q, k=cache_k, v=cache_v, out=out, lse=lse, kv_len=np.array(kv_len), workspace=workspace)
        case = Case(
            bc.AttentionDescriptor(q.shape, k.shape, v.shape, causal=True), {"q": q, "k": k, "v": v}, {"kv_len": kv_len}
        )
        within_bound(case, {"out": out, "lse": lse})
        empty = max(queries - kv_len, 0)
        assert not out[:, :, :empty].any()
        assert np.isneginf(lse[:, :, :empty]).all()
        assert np.isfinite(lse[:, :, empty:]).all()


@pytest.mark.parametrize("kv_len", [-2, 11])
def test_kv_len_is_checked_before_writing(kv_len: int) -> None:
    x, out = np.ones((1, 1, 10, 4), np.float32), np.full((1, 1, 10, 4), 7, np.float32)
    plan = bc.plan(bc.AttentionDescriptor(x.shape, x.shape, x.shape, save_lse=False))
    with pytest.raises(bc.IndexOutOfRangeError):
        plan.run(q=x, k=x, v=x, out=out, kv_len=kv_len, workspace=bc.empty(plan.workspace_size, "u8"))
    assert (out == 7).all()


@pytest.mark.parametrize("queries", [2, 90])
def test_nan_behind_the_diagonal_stays_there(queries: int, rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 1, 4, queries, 8), normal(rng, 1, 2, queries, 8), normal(rng, 1, 2, queries, 8)
    clean, _ = attend(q, k, v, causal=True)
    at = queries // 2
    k[:, :, at:], v[:, :, at:] = np.nan, np.inf
    out, _ = attend(q, k, v, causal=True)
    np.testing.assert_array_equal(out[:, :, :at], clean[:, :, :at])
    assert np.isnan(out[:, :, at:]).all()


@pytest.mark.parametrize("queries", [1, 4, 200])
def test_bits_depend_on_neither_threads_nor_batch(queries: int, rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 3, 8, queries, 24), normal(rng, 3, 2, 500, 24), normal(rng, 3, 2, 500, 24)
    both = attend(q, k, v, causal=True)
    for got, want in zip(attend(q, k, v, threads=1, causal=True), both, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(attend(q[1:2], k[1:2], v[1:2], causal=True), both, strict=True):
        np.testing.assert_array_equal(got, want[1:2])


def test_gradient_bits_depend_on_neither_threads_nor_batch(rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 2, 8, 300, 20), normal(rng, 2, 2, 300, 20), normal(rng, 2, 2, 300, 20)
    out, lse = attend(q, k, v, causal=True)
    dout = normal(rng, *out.shape)

    def gradients(part: slice, threads: int) -> list[Array]:
        desc = bc.AttentionDescriptor(q[part].shape, k[part].shape, v[part].shape, causal=True).backward()
        plan = bc.plan(desc, preference=bc.PlanPreference(threads=threads))
        got = [np.empty_like(x[part]) for x in (q, k, v)]
        tensors = (dout[part], q[part], k[part], v[part], out[part], lse[part], *got)
        plan.run(**dict(zip(plan.arguments, tensors, strict=False)), workspace=bc.empty(plan.workspace_size, "u8"))
        return got

    whole = gradients(slice(0, 2), 2)
    for got, want in zip(gradients(slice(0, 2), 1), whole, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(gradients(slice(1, 2), 2), whole, strict=True):
        np.testing.assert_array_equal(got, want[1:])


def test_huge_scores_and_infinite_masks(rng: np.random.Generator) -> None:
    q, k, v = 1e4 * normal(rng, 1, 2, 70, 8), 1e4 * normal(rng, 1, 2, 70, 8), normal(rng, 1, 2, 70, 8)
    out, lse = attend(q, k, v)
    best = np.argmax(q.astype(np.float64) @ k.astype(np.float64).swapaxes(2, 3), -1)
    np.testing.assert_array_equal(out, np.take_along_axis(v, best[..., None], 2))
    assert np.isfinite(lse).all()
    mask = np.zeros((70, 70), np.float32)
    mask[3], mask[5, 1:] = -np.inf, -np.inf
    plan = bc.plan(bc.AttentionDescriptor(q.shape, k.shape, v.shape, mask_shape=mask.shape, mask_element="f32"))
    plan.run(q=q, k=k, v=v, mask=mask, out=out, lse=lse, workspace=bc.empty(plan.workspace_size, "u8"))
    assert not out[:, :, 3].any()
    assert np.isneginf(lse[:, :, 3]).all()
    np.testing.assert_array_equal(out[:, :, 5], v[:, :, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(("queries", "keys"), [(9, 9), (5, 12), (12, 5), (1, 40)])
@pytest.mark.parametrize("how", ["plain", "causal", "bool", "float", "scale", "gqa"])
def test_functional_is_torchs(dtype: str, queries: int, keys: int, how: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(7)
    kind = getattr(torch, dtype)
    kv_heads = 2 if how == "gqa" else 4
    q, k, v = (
        torch.randn(2, h, s, 16, dtype=torch.float64).to(kind)
        for h, s in ((4, queries), (kv_heads, keys), (kv_heads, keys))
    )
    options: dict[str, Any] = {
        "plain": {}, "causal": {"is_causal": True}, "scale": {"scale": 0.4}, "gqa": {"enable_gqa": True},
        "bool": {"attn_mask": torch.rand(queries, keys) > 0.2},
        "float": {"attn_mask": torch.randn(2, 1, queries, keys).to(kind)},
    }[how]  # fmt: skip
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*leaves, **options)
    dout = torch.randn_like(want)
    out, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, **options)
    # Both sides round; the plan's own promise is tested elsewhere.
    eps = torch.finfo(kind).eps
    torch.testing.assert_close(
        F.scaled_dot_product_attention(q, k, v, **options), want.detach(), atol=16 * eps, rtol=16 * eps
    )
    torch.testing.assert_close(out, want.detach(), atol=16 * eps, rtol=16 * eps)
    for got, ref in zip(pull(dout), torch.autograd.grad(want, leaves, dout), strict=True):
        torch.testing.assert_close(got, ref, atol=64 * eps, rtol=64 * eps)


WINDOWS: dict[str, dict[str, Any]] = {
    "left": {"window": (3, -1)},
    "both": {"window": (2, 1)},
    "right": {"window": (-1, 0), "causal_alignment": "bottom_right"},
    "causal": {"window": (4, 4), "is_causal": True, "causal_alignment": "bottom_right"},
    "softcap": {"softcap": 0.7},
    "alibi": {"alibi": (4,)},
    "alibi of the batch": {"alibi": (2, 4), "is_causal": True},
    "all": {"window": (6, 2), "softcap": 1.5, "alibi": (4,), "causal_alignment": "bottom_right", "mask": True},
}


def by_formula(torch: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """out and lse, written down with matrices of scores."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.mT * q.shape[-1] ** -0.5
    if cap := options.get("softcap"):
        s = cap * torch.tanh(s / cap)
    own = torch.arange(q.shape[2])[:, None]
    if options.get("causal_alignment") == "bottom_right":
        own = own + k.shape[2] - q.shape[2]
    distance = torch.arange(k.shape[2]) - own
    if (slopes := options.get("alibi_slopes")) is not None:
        s = s - slopes[..., None, None] * distance.abs()
    if (mask := options.get("attn_mask")) is not None:
        s = s + mask
    left, right = options.get("window", (-1, -1))
    right = 0 if options.get("is_causal") else right
    if left >= 0:
        s = s.masked_fill(distance < -left, -torch.inf)
    if right >= 0:
        s = s.masked_fill(distance > right, -torch.inf)
    lse = torch.logsumexp(s, -1)
    p = torch.where(torch.isneginf(s), 0.0, torch.exp(s - lse[..., None].clamp_min(-1e300)))
    return p @ v, lse


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(("queries", "keys"), [(40, 90), (21, 9), (1, 40)])
@pytest.mark.parametrize("how", list(WINDOWS))
def test_windows_caps_and_alibi(dtype: str, queries: int, keys: int, how: str) -> None:
    """Against matrices of scores and torch's autograd in f64; a query without any key gives zeros and no gradient."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(11)
    kind, options = getattr(torch, dtype), dict(WINDOWS[how])
    q, k, v = (torch.randn(2, h, s, 16, dtype=torch.float64).to(kind) for h, s in ((4, queries), (2, keys), (2, keys)))
    if "alibi" in options:
        slopes = torch.rand(*options.pop("alibi"), dtype=torch.float64)
        options["alibi_slopes"] = slopes if dtype == "float64" else slopes.float()
    if options.pop("mask", False):
        options["attn_mask"] = torch.randn(queries, keys, dtype=torch.float64).to(kind)
    exact = {n: o.double() if isinstance(o, torch.Tensor) else o for n, o in options.items()}
    leaves = [x.to(torch.float64, copy=True).requires_grad_() for x in (q, k, v)]
    want, want_lse = by_formula(torch, *leaves, exact)
    dout = torch.randn_like(want).to(kind)
    options["enable_gqa"] = True
    out, lse = F.scaled_dot_product_attention_forward(q, k, v, **options)
    same, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, **options)
    assert torch.equal(out, same)
    # Both sides round; the plan's own promise is tested elsewhere.
    eps = torch.finfo(kind).eps
    torch.testing.assert_close(out.double(), want.detach(), atol=16 * eps, rtol=16 * eps)
    torch.testing.assert_close(lse.double(), want_lse.detach(), atol=16 * eps, rtol=16 * eps)
    for got, ref in zip(pull(dout), torch.autograd.grad(want, leaves, dout.double()), strict=True):
        torch.testing.assert_close(got.double(), ref, atol=64 * eps, rtol=64 * eps)


@pytest.mark.parametrize("queries", [1, 3, 90])
def test_nan_outside_the_window_stays_there(queries: int, rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 1, 4, queries, 8), normal(rng, 1, 2, 300, 8), normal(rng, 1, 2, 300, 8)
    options: dict[str, Any] = {"window_left": 20, "window_right": 2, "softcap": 5.0}
    clean, lse = attend(q, k, v, **options)
    first = 300 - queries - 20  # of the first query
    for at in (slice(None, first), slice(300 - queries + 3, None)):  # before, and after it
        bad_k, bad_v = k.copy(), v.copy()
        bad_k[:, :, at], bad_v[:, :, at] = np.nan, np.inf
        got = attend(q, bad_k, bad_v, **options)
        np.testing.assert_array_equal(got[0][:, :, 0], clean[:, :, 0])
        np.testing.assert_array_equal(got[1][:, :, 0], lse[:, :, 0])
    k[:, :, first], v[:, :, first] = np.nan, np.nan  # the first query's first key
    got = attend(q, k, v, **options)
    assert np.isnan(got[0][:, :, 0]).all()
    np.testing.assert_array_equal(got[0][:, :, 1:], clean[:, :, 1:])


def test_a_window_follows_kv_len(rng: np.random.Generator) -> None:
    """Decoding with a window, one plan for all lengths: what lies before it is not read."""
    k, v, q = normal(rng, 1, 2, 700, 8), normal(rng, 1, 2, 700, 8), normal(rng, 1, 4, 2, 8)
    desc = bc.AttentionDescriptor(q.shape, k.shape, v.shape, causal=True, window_left=99)
    plan = bc.plan(desc)
    out, lse = np.empty_like(q), np.empty((1, 4, 2), np.float32)
    for kv_len in (1, 2, 99, 101, 256, 357, 600, 700):
        bad_k, bad_v = k.copy(), v.copy()
        for x in (bad_k, bad_v):
            x[:, :, : max(kv_len - 101, 0)] = x[:, :, kv_len:] = np.nan
        workspace = bc.empty(plan.workspace_size, "u8")
        plan.run(q=q, k=bad_k, v=bad_v, out=out, lse=lse, kv_len=kv_len, workspace=workspace)
        within_bound(Case(desc, {"q": q, "k": k, "v": v}, {"kv_len": kv_len}), {"out": out, "lse": lse})


def test_queries_whose_window_is_empty(rng: np.random.Generator) -> None:
    """More queries than keys: the window of the first ones lies before all keys, that of the last ones after them."""
    for queries, alignment, empty in ((50, "bottom_right", slice(0, 38)), (50, "top_left", slice(13, 50))):
        q, k, v = normal(rng, 1, 2, queries, 8), normal(rng, 1, 1, 10, 8), normal(rng, 1, 1, 10, 8)
        options: dict[str, Any] = {"window_left": 3, "window_right": 2, "causal_alignment": alignment}
        out, lse = attend(q, k, v, **options)
        assert not out[:, :, empty].any() and np.isneginf(lse[:, :, empty]).all()
        assert np.isfinite(np.delete(lse, np.arange(queries)[empty], 2)).all()
        how = {"enable_gqa": True, "window": (3, 2), "causal_alignment": alignment}
        _, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, **how)
        gradients = pull(np.ones_like(out))
        assert not gradients[0][:, :, empty].any() and all(np.isfinite(g).all() for g in gradients)


def test_functional_takes_rank_2_and_3(rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 3, 5, 8), normal(rng, 3, 6, 8), normal(rng, 3, 6, 4)
    full = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
    np.testing.assert_array_equal(F.scaled_dot_product_attention(q, k, v, is_causal=True), full)
    np.testing.assert_array_equal(F.scaled_dot_product_attention(q[0], k[0], v[0], is_causal=True), full[0])
    _, pull = bc.vjp(F.scaled_dot_product_attention, q[0], k[0], v[0])
    assert [g.shape for g in pull(np.ones((5, 4), np.float32))] == [(5, 8), (6, 8), (6, 4)]


@pytest.mark.parametrize(
    ("options", "heads", "error"),
    [
        ({"dropout_p": 1.1}, 2, bc.InvalidProblemError),
        ({"dropout_p": -0.1}, 2, bc.InvalidProblemError),
        ({"dropout_p": float("nan")}, 2, bc.InvalidProblemError),
        ({"dropout_p": "0.1"}, 2, bc.InvalidProblemError),
        ({"dropout_p": 0.1, "generator": 3}, 2, bc.InvalidProblemError),
        ({"is_causal": True, "attn_mask": np.ones((4, 4), bool)}, 2, bc.UnsupportedError),
        ({"attn_mask": np.ones((4, 5), bool)}, 2, bc.InvalidProblemError),
        ({"attn_mask": np.ones((4, 4), np.int32)}, 2, bc.InvalidProblemError),
        ({}, 4, bc.UnsupportedError),
        ({"enable_gqa": True}, 3, bc.InvalidProblemError),
        ({"window": 3}, 2, bc.InvalidProblemError),
        ({"window": (1, 2, 3)}, 2, bc.InvalidProblemError),
        ({"window": (1.5, 2)}, 2, bc.InvalidProblemError),
        ({"softcap": "30"}, 2, bc.InvalidProblemError),
        ({"softcap": float("nan")}, 2, bc.InvalidProblemError),
        ({"alibi_slopes": np.ones(2)}, 2, bc.InvalidProblemError),
        ({"alibi_slopes": np.ones(4, np.float32)}, 2, bc.InvalidProblemError),
        ({"causal_alignment": "right"}, 2, bc.InvalidProblemError),
    ],
)
def test_functional_refuses(options: dict[str, Any], heads: int, error: type[Exception]) -> None:
    q, k = np.ones((1, heads, 4, 8), np.float32), np.ones((1, 2, 4, 8), np.float32)
    with pytest.raises(error):
        F.scaled_dot_product_attention(q, k, k, **options)


@pytest.mark.parametrize(
    ("q", "k", "v", "options", "field"),
    [
        ((2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {}, "q_shape"),
        ((1, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), {}, "k_shape"),
        ((1, 2, 4, 8), (1, 2, 4, 9), (1, 2, 4, 8), {}, "k_shape"),
        ((1, 3, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {}, "k_shape"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 5, 8), {}, "v_shape"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"mask_shape": (4, 3)}, "mask_shape"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"causal": 2}, "causal"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"causal_alignment": "left"}, "causal_alignment"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"window_left": -2}, "window_left"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"window_right": 2.0}, "window_right"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"softcap": -1.0}, "softcap"),
        ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"softcap": 1e31}, "softcap"),
        ((2, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), {"alibi_shape": (1,)}, "alibi_shape"),
        ((2, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), {"alibi_shape": (1, 2)}, "alibi_shape"),
        ((2, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), {"alibi_shape": ()}, "alibi_shape"),
    ],
)
def test_descriptor_names_the_wrong_field(q: Any, k: Any, v: Any, options: dict[str, Any], field: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=rf"AttentionDescriptor\.{field}: got"):
        bc.AttentionDescriptor(q, k, v, **options)


@pytest.mark.parametrize(("position", "positions"), [(-1, None), (9, None), (0, [0, 9]), (0, [-1, 0])])
def test_append_checks_before_writing(position: int, positions: list[int] | None) -> None:
    cache, x = np.full((2, 1, 10, 4), 7, np.float32), np.ones((2, 1, 2, 4), np.float32)
    plan = bc.plan(bc.KvCacheAppendDescriptor(cache.shape, x.shape, None if positions is None else (2,)))
    extra = {"position": position} if positions is None else {"positions": np.array(positions)}
    with pytest.raises(bc.IndexOutOfRangeError):
        plan.run(cache=cache, x=x, **extra)
    assert (cache == 7).all()


def test_append_at_a_position_in_memory() -> None:
    cache, at = np.zeros((1, 2, 6, 3), np.float32), np.zeros((), np.int64)
    plan = bc.plan(bc.KvCacheAppendDescriptor(cache.shape, (1, 2, 1, 3)))
    for step in range(6):
        at[...] = step
        plan.run(cache=cache, x=np.full((1, 2, 1, 3), step + 1, np.float32), position=at)
    np.testing.assert_array_equal(cache, np.broadcast_to(np.arange(1, 7, dtype=np.float32)[:, None], cache.shape))
