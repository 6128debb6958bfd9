"""Sinks of attention beyond the generated tests: torch's softmax with one more column, gradients, merging, tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

torch = pytest.importorskip("torch")


def composed(q: Any, k: Any, v: Any, sinks: Any, mask: Any = None) -> Any:
    """As gpt-oss has it: the sink is one more column of the scores, dropped after the softmax."""
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
    scores = scores if mask is None else scores + mask
    column = sinks[None, :, None, None].expand(*scores.shape[:3], 1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1] @ v


def problem(queries: int, keys: int, dtype: Any = None) -> list[Any]:
    torch.manual_seed(queries)
    shapes = (2, 4, queries, 16), (2, 4, keys, 16), (2, 4, keys, 8), (4,)
    return [torch.randn(s, dtype=dtype or torch.float64) for s in shapes]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 7), (1, 600), (3, 300), (70, 90)])
def test_values_and_gradients_are_those_of_one_more_column(queries: int, keys: int, masked: bool) -> None:
    given = problem(queries, keys)
    mask = torch.randn(queries, keys, dtype=torch.float64) if masked else None
    leaves = [x.clone().requires_grad_() for x in given]
    want = composed(*leaves, mask)
    out, pull = bc.vjp(F.scaled_dot_product_attention, *given[:3], mask, sinks=given[3])
    torch.testing.assert_close(out, want.detach(), atol=1e-13, rtol=1e-13)
    dout = torch.randn_like(out)
    found = pull(dout)
    assert len(found) == 4 + masked
    assert not masked or found[3] is None
    for got, ref in zip((*found[:3], found[-1]), torch.autograd.grad(want, leaves, dout), strict=True):
        torch.testing.assert_close(got, ref, atol=1e-12, rtol=1e-12)


def test_a_sink_that_counts_nothing_changes_no_bit() -> None:
    for queries in (1, 70):
        q, k, v, sinks = problem(queries, 600, torch.float32)
        nothing = torch.full_like(sinks, -torch.inf)
        for got, want in zip(
            F.scaled_dot_product_attention_forward(q, k, v, sinks=nothing),
            F.scaled_dot_product_attention_forward(q, k, v),
            strict=True,
        ):
            assert torch.equal(got, want)


def test_no_keys_leave_the_sink_alone() -> None:
    for queries in (1, 70):
        q, k, v, sinks = problem(queries, 9, torch.float32)
        out, lse = F.scaled_dot_product_attention_forward(q, k[:, :, :0], v[:, :, :0], sinks=sinks)
        assert not out.any()
        assert torch.equal(lse, sinks[None, :, None].expand_as(lse))


def test_in_one_part_of_a_merge_it_counts_once() -> None:
    q, k, v, sinks = problem(5, 40)
    want = F.scaled_dot_product_attention_forward(q, k, v, sinks=sinks)
    front = F.scaled_dot_product_attention_forward(q, k[:, :, :17], v[:, :, :17], sinks=sinks)
    back = F.scaled_dot_product_attention_forward(q, k[:, :, 17:], v[:, :, 17:])
    for got, ref in zip(F.attention_merge(*front, *back), want, strict=True):
        torch.testing.assert_close(got, ref, atol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("sink", [np.nan, np.inf, 1e30, -1e30])
def test_special_sinks(sink: float) -> None:
    for queries in (1, 70):
        q, k, v, sinks = problem(queries, 600, torch.float32)
        sinks[1] = sink
        out, lse = F.scaled_dot_product_attention_forward(q, k, v, sinks=sinks)
        clean = F.scaled_dot_product_attention(q, k, v, sinks=torch.where(torch.arange(4) == 1, -torch.inf, sinks))
        assert torch.equal(out[:, [0, 2, 3]], clean[:, [0, 2, 3]])
        if np.isnan(sink):
            assert out[:, 1].isnan().all()
            assert lse[:, 1].isnan().all()
        elif sink > 0:
            assert not out[:, 1].any()
            assert (lse[:, 1] == sinks[1]).all()
        else:
            assert torch.equal(out, clean)


@pytest.mark.parametrize("sink", [np.nan, np.inf, -np.inf])
def test_gradients_of_infinite_sinks_are_their_limit(sink: float) -> None:
    q, k, v, sinks = problem(3, 20, torch.float32)
    sinks[1] = sink
    out, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, sinks=sinks)
    dsinks = pull(torch.ones_like(out))[-1]
    assert dsinks[[0, 2, 3]].isfinite().all()
    assert dsinks[1].isnan() if np.isnan(sink) else dsinks[1] == 0


def test_packed_gradients_are_those_of_each_sequence(rng: np.random.Generator) -> None:
    lengths = (5, 0, 70, 1), (9, 4, 70, 300)
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in lengths)
    q, k, v = (rng.standard_normal((sum(n), 4, 8)) for n in (*lengths, lengths[1]))
    sinks = rng.standard_normal(4)
    out, pull = bc.vjp(F.varlen_attn, q, k, v, cu_q, cu_k, 70, 300, sinks=sinks, window_size=(-1, 0))
    dout = rng.standard_normal(out.shape)
    found, total = pull(dout), np.zeros(4)
    for b in range(4):
        at, keys = slice(*cu_q[b : b + 2]), slice(*cu_k[b : b + 2])
        one = [x[s].swapaxes(0, 1)[None] for x, s in ((q, at), (k, keys), (v, keys))]
        options: dict[str, Any] = {"sinks": sinks, "is_causal": True, "causal_alignment": "bottom_right"}
        want, of_one = bc.vjp(F.scaled_dot_product_attention, *one, **options)
        np.testing.assert_array_equal(out[at], want[0].swapaxes(0, 1))
        gradients = of_one(dout[at].swapaxes(0, 1)[None])
        np.testing.assert_array_equal(found[1][keys], gradients[1][0].swapaxes(0, 1))
        total += gradients[3]
    np.testing.assert_allclose(found[3], total, rtol=1e-12)


def test_gradients_in_a_graph() -> None:
    """Also with a mask of floats and slopes, which have none, on either side."""
    q, k, v, sinks = (x.numpy().astype(np.float32) for x in problem(6, 9))
    mask, slopes = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32), np.ones(4, np.float32)
    kwargs = {"sinks": sinks, "alibi_slopes": slopes}
    graph = bc.trace(F.scaled_dot_product_attention, q, k, v, mask, **kwargs)
    wrt = [
        x for x, name in zip(graph.tensors, graph.leaf_names, strict=True) if name not in ("attn_mask", "alibi_slopes")
    ]
    _, got = graph.grad(graph.results, wrt).compile().run(q, k, v, mask, **kwargs)
    y, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, mask, **kwargs)
    want = [x for x in pull(np.ones_like(y)) if x is not None]
    assert len(got) == len(want) == 4
    for x, g in zip(want, got, strict=True):
        np.testing.assert_array_equal(x, g)
    with pytest.raises(bc.InvalidProblemError, match="attn_mask is a constant of scaled_dot_product_attention"):
        graph.grad(graph.results, graph.tensors)
