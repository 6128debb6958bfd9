"""Dropout inside attention: the mask of op dropout, torch's arithmetic with it, gradients, generators, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.reference import Array

torch = pytest.importorskip("torch")


def operands(rng: np.random.Generator, *shape: int, count: int = 3) -> list[Any]:
    return [torch.from_numpy(rng.standard_normal(shape)) for _ in range(count)]


def factors(shape: tuple[int, ...], p: float, state: tuple[int, int]) -> Any:
    """What op dropout, from the same generator, makes of ones."""
    return torch.from_numpy(F.dropout(np.ones(shape), p, generator=bc.Generator(*state)))


def by_torch(q: Any, k: Any, v: Any, kept: Any, added: Any = 0.0) -> Any:
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5 + added
    return (torch.softmax(scores, -1) * kept) @ v


@pytest.mark.parametrize(
    ("shape", "keys", "p", "causal"),
    [((2, 3, 37, 8), 37, 0.4, True), ((1, 2, 70, 16), 131, 0.1, False), ((3, 2, 1, 8), 601, 0.5, False), ((1, 1, 5, 4), 9, 1.0, False)],
)  # fmt: skip
def test_as_torch_with_the_same_mask(
    rng: np.random.Generator, shape: tuple[int, ...], keys: int, p: float, causal: bool
) -> None:
    (q, dy), (k, v) = operands(rng, *shape, count=2), operands(rng, *shape[:2], keys, shape[3], count=2)
    state = 2**63 + 11, 2**64 - 5
    kept = factors((*shape[:3], keys), p, state)
    added = torch.full((shape[2], keys), -torch.inf).triu(1) if causal else 0.0
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    want = by_torch(*leaves, kept, added)
    want.backward(dy)
    how: dict[str, Any] = {"dropout_p": p, "is_causal": causal}
    generator = bc.Generator(*state)
    out = F.scaled_dot_product_attention(q, k, v, **how, generator=generator)
    torch.testing.assert_close(out, want.detach())
    assert generator.offset == (state[1] + -(-kept.numel() // 4)) % 2**64
    again, pull = bc.vjp(F.scaled_dot_product_attention, q, k, v, **how, generator=bc.Generator(*state))
    assert torch.equal(again, out)
    for found, leaf in zip(pull(dy), leaves, strict=True):
        torch.testing.assert_close(found, leaf.grad)


def test_grouped_heads_a_mask_and_lower_ranks(rng: np.random.Generator) -> None:
    (q,), (k, v) = operands(rng, 2, 4, 9, 8, count=1), operands(rng, 2, 2, 13, 8, count=2)
    added = torch.from_numpy(rng.standard_normal((9, 13)))
    kept = factors((2, 4, 9, 13), 0.3, (5, 7))
    k4, v4 = (x.repeat_interleave(2, 1) for x in (k, v))
    how: dict[str, Any] = {"dropout_p": 0.3, "attn_mask": added, "enable_gqa": True, "generator": bc.Generator(5, 7)}
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, **how), by_torch(q, k4, v4, kept, added))
    flat = F.scaled_dot_product_attention(q[0], q[0], q[0], dropout_p=0.3, generator=bc.Generator(5, 7))
    whole = F.scaled_dot_product_attention(q[:1], q[:1], q[:1], dropout_p=0.3, generator=bc.Generator(5, 7))
    assert torch.equal(flat, whole[0])


def run(plan: Any, x: Array, **numbers: Any) -> Array:
    out = np.empty_like(x)
    plan.run(x, x, x, out=out, **numbers, workspace=bc.empty(plan.workspace_size, "u8"))
    return out


def test_one_plan_for_every_probability_and_any_threads(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 150, 16)).astype(np.float32)
    desc = bc.AttentionDescriptor(x.shape, x.shape, x.shape, dropout=True, save_lse=False)
    one, all_of_them = bc.plan(desc, preference=bc.PlanPreference(threads=1)), bc.plan(desc)
    for p in (0.0, 0.2, 0.7):
        found = run(all_of_them, x, dropout_p=p, seed=3, offset=1)
        np.testing.assert_array_equal(run(one, x, dropout_p=p, seed=3, offset=1), found)
        assert (found == run(all_of_them, x, dropout_p=p, seed=4, offset=1)).all() == (p == 0)
    plain = bc.plan(bc.AttentionDescriptor(x.shape, x.shape, x.shape, save_lse=False))
    np.testing.assert_array_equal(run(all_of_them, x, dropout_p=0.0, seed=3), run(plain, x))
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(bc.InvalidProblemError, match="dropout_p"):
            run(all_of_them, x, dropout_p=p, seed=3)


def test_the_default_generator_and_traces(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 2, 6, 8)).astype(np.float32)
    bc.manual_seed(9)
    first, second = (F.scaled_dot_product_attention(x, x, x, dropout_p=0.5) for _ in range(2))
    assert not np.array_equal(first, second)
    bc.manual_seed(9)
    np.testing.assert_array_equal(F.scaled_dot_product_attention(x, x, x, dropout_p=0.5), first)
    assert np.array_equal(
        F.scaled_dot_product_attention(x, x, x, generator=bc.Generator(1)), F.scaled_dot_product_attention(x, x, x)
    )
    graph = bc.trace(lambda a: F.scaled_dot_product_attention(a, a, a, dropout_p=0.5), x).compile()
    bc.manual_seed(9)
    np.testing.assert_array_equal(graph.run(x), first)


def test_a_seed_is_asked_for(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 2, 6, 8)).astype(np.float32)
    with pytest.raises(bc.InvalidProblemError, match="seed: got None"):
        F.scaled_dot_product_attention_forward(x, x, x, dropout_p=0.5)
    out, _ = F.scaled_dot_product_attention_forward(x, x, x, dropout_p=0.5, seed=8, offset=2)
    want = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, generator=bc.Generator(8, 2))
    np.testing.assert_array_equal(out, want)
