"""varlen_attn beyond the generated tests: each sequence alone, torch's autograd, bad places of sequences, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.reference import Array

LENGTHS = ((5, 0, 70, 1, 17), (9, 4, 70, 300, 0))


def packed(rng: np.random.Generator, dtype: Any = np.float32) -> tuple[Array, Array, Array, Array, Array, int, int]:
    q_len, k_len = LENGTHS
    q, k, v = (rng.standard_normal(s).astype(dtype) for s in ((93, 4, 16), (383, 2, 16), (383, 2, 8)))
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in LENGTHS)
    return q, k, v, cu_q, cu_k, max(q_len), max(k_len)


@pytest.mark.parametrize("how", ["plain", "window", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_every_sequence_is_as_if_alone(dtype: Any, how: str, rng: np.random.Generator) -> None:
    """Bit for bit, gradients too."""
    q, k, v, cu_q, cu_k, *most = packed(rng, dtype)
    window, alone = (-1, -1), {}
    if how != "plain":
        window = (8, 0)
    if how == "all":
        alone = {"softcap": 1.5, "alibi_slopes": np.array([0.1, 0.2, 0.3, 0.4], np.float32)}
    out, lse = F.varlen_attn_forward(q, k, v, cu_q, cu_k, *most, enable_gqa=True, window_size=window, **alone)
    same, pull = bc.vjp(F.varlen_attn, q, k, v, cu_q, cu_k, *most, enable_gqa=True, window_size=window, **alone)
    np.testing.assert_array_equal(out, same)
    dout = rng.standard_normal(out.shape).astype(dtype)
    gradients = pull(dout)
    alone |= {"enable_gqa": True, "window": window, "causal_alignment": "bottom_right"}
    for b in range(len(cu_q) - 1):
        at_q, at_k = slice(*cu_q[b : b + 2]), slice(*cu_k[b : b + 2])
        args = [x.swapaxes(0, 1)[None] for x in (q[at_q], k[at_k], v[at_k])]
        want, want_lse = F.scaled_dot_product_attention_forward(*args, **alone)
        np.testing.assert_array_equal(out[at_q], want[0].swapaxes(0, 1))
        np.testing.assert_array_equal(lse[:, at_q], want_lse[0])
        wants = F.scaled_dot_product_attention_backward(dout[at_q].swapaxes(0, 1)[None], *args, want, want_lse, **alone)
        for got, ref, at in zip(gradients, wants, (at_q, at_k, at_k), strict=True):
            np.testing.assert_array_equal(got[at], ref[0].swapaxes(0, 1))


def test_gradients_are_those_of_torch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    q, k, v, cu_q, cu_k, *most = (
        torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in packed(rng, np.float64)
    )
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    rows = []
    for b in range(len(cu_q) - 1):
        at = [slice(int(c[b]), int(c[b + 1])) for c in (cu_q, cu_k, cu_k)]
        if at[0].start == at[0].stop:
            continue
        if at[1].start == at[1].stop:
            rows.append(torch.zeros(at[0].stop - at[0].start, 4, 8, dtype=torch.float64))
            continue
        one = [x[a].transpose(0, 1) for x, a in zip(leaves, at, strict=True)]
        rows.append(torch.nn.functional.scaled_dot_product_attention(*one, enable_gqa=True).transpose(0, 1))
    want = torch.cat(rows)
    dout = torch.randn(want.shape, dtype=torch.float64)
    out, pull = bc.vjp(F.varlen_attn, q, k, v, cu_q, cu_k, *most, enable_gqa=True)
    torch.testing.assert_close(out, want.detach(), atol=1e-13, rtol=1e-13)
    for got, ref in zip(pull(dout), torch.autograd.grad(want, leaves, dout), strict=True):
        torch.testing.assert_close(got, ref, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    ("cu_q", "cu_k", "name"),
    [
        ([1, 3, 6], [0, 4, 8], "cu_seq_q"),
        ([0, 4, 3], [0, 4, 8], "cu_seq_q"),
        ([0, 3, 7], [0, 4, 8], "cu_seq_q"),
        ([0, 3, 5], [0, 4, 8], "cu_seq_q"),
        ([0, -1, 6], [0, 4, 8], "cu_seq_q"),
        ([0, 0, 6], [0, 4, 8], "cu_seq_q"),
        ([0, 3, 6], [0, 8, 8], "cu_seq_k"),
        ([0, 3, 6], [2, 4, 8], "cu_seq_k"),
    ],
)
def test_places_are_checked_before_writing(cu_q: list[int], cu_k: list[int], name: str) -> None:
    q, k, out = np.ones((6, 2, 4), np.float32), np.ones((8, 2, 4), np.float32), np.full((6, 2, 4), 7, np.float32)
    plan = bc.plan(bc.VarlenAttentionDescriptor(q.shape, k.shape, k.shape, (3,), 4, 5, save_lse=False))
    with pytest.raises(bc.IndexOutOfRangeError, match=name):
        plan.run(
            q=q, k=k, v=k, cu_seq_q=np.array(cu_q, np.int32), cu_seq_k=np.array(cu_k, np.int32), out=out,
            workspace=bc.empty(plan.workspace_size, "u8"),
        )  # fmt: skip
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"enable_gqa": False}, "enable_gqa=True"),
        ({"cu_seq_k": np.array([0, 8])}, r"cu_seq_k: got i64 of shape \(2,\), want i32 of shape \(2,\)"),
        ({"cu_seq_k": np.array([0, 8, 8], np.int32)}, r"cu_seq_k: got i32 of shape \(3,\), want i32 of shape \(2,\)"),
        ({"cu_seq_q": np.array([0.0, 6]), "cu_seq_k": np.array([0.0, 8])}, "index_element: got 'f64'"),
        ({"window_size": 3}, "window_size: got 3"),
        ({"max_q": -1}, "max_q: got -1"),
        ({"max_q": 2.5}, "max_q: got float, want an int"),
        ({"softcap": -1.0}, "softcap: got -1.0"),
        ({"alibi_slopes": np.ones(4)}, "alibi_slopes: got f64"),
        ({"alibi_slopes": np.ones(3, np.float32)}, "alibi_shape: got"),
        ({"value": np.ones((7, 2, 4), np.float32)}, "value: got"),
        ({"query": np.ones((6, 4), np.float32)}, "query: got"),
        ({"causal_alignment": "left"}, "causal_alignment: got 'left'"),
    ],
)
def test_functional_refuses(change: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {
        "query": np.ones((6, 4, 4), np.float32), "key": np.ones((8, 2, 4), np.float32),
        "value": np.ones((8, 2, 4), np.float32), "cu_seq_q": np.array([0, 6], np.int32),
        "cu_seq_k": np.array([0, 8], np.int32), "max_q": 6, "max_k": 8, "enable_gqa": True,
    }  # fmt: skip
    assert F.varlen_attn(**given).shape == (6, 4, 4)
    with pytest.raises(bc.BaracudaError, match=match):
        F.varlen_attn(**given | change)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"q_shape": (6, 4)}, "q_shape"),
        ({"k_shape": (8, 3, 4), "v_shape": (8, 3, 4)}, "k_shape"),
        ({"k_shape": (8, 2, 5)}, "k_shape"),
        ({"v_shape": (7, 2, 4)}, "v_shape"),
        ({"cu_shape": (0,)}, "cu_shape"),
        ({"index_element": "u32"}, "index_element"),
        ({"max_k": -1}, "max_k"),
        ({"window_left": -2}, "window_left"),
        ({"softcap": 1e31}, "softcap"),
        ({"alibi_shape": (3, 4)}, "alibi_shape"),
    ],
)
def test_descriptor_names_the_wrong_field(fields: dict[str, Any], name: str) -> None:
    good: dict[str, Any] = {
        "q_shape": (6, 4, 4), "k_shape": (8, 2, 4), "v_shape": (8, 2, 4), "cu_shape": (3,), "max_q": 6, "max_k": 8
    }  # fmt: skip
    bc.VarlenAttentionDescriptor(**good)
    with pytest.raises(bc.InvalidProblemError, match=rf"VarlenAttentionDescriptor\.{name}: got"):
        bc.VarlenAttentionDescriptor(**good | fields)


@pytest.mark.parametrize(
    ("cu", "text"),
    [
        ([0, 3, 5], "got 5 as the last entry at element 2, want 6, the number of all rows"),
        ([1, 3, 6], "got 1 at element 0, want 0, where the first begins"),
        ([0, 5, 6], "got 5 at element 1, want no less than the entry before and at most 4"),
    ],
)
def test_what_is_wrong_with_places_is_said(cu: list[int], text: str) -> None:
    x = np.ones((6, 2, 4), np.float32)
    with pytest.raises(bc.IndexOutOfRangeError, match=rf"varlen_attn\(\): cu_seq_q: {text}"):
        F.varlen_attn(x, x, x, np.array(cu, np.int32), np.array([0, 3, 6], np.int32), 4, 4)
