"""A Llama of functions, traced: loss, all gradients and a step of AdamW as one graph, beside PyTorch in f64."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from test_graph import own_numbers  # noqa: F401

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "tiny_llama"))

from model import Config, initialise, rope_tables
from torch_model import TorchLlama

C = Config(d_model=64, layers=2, heads=4, kv_heads=2, hidden=96, vocab=50, context=48)
WEIGHTS = {k: np.asarray(v) for k, v in initialise(C, 0).items()}
COS, SIN = map(np.asarray, rope_tables(C))
RNG = np.random.default_rng(5)


def logits(w: dict[str, Any], ids: Any) -> Any:
    batch, length = ids.shape
    cos, sin = COS[:length], SIN[:length]
    x = F.embedding(ids, w["embedding"])
    for i in range(C.layers):
        name = f"layers.{i}."
        joint = F.matmul(F.rms_norm(x, (C.d_model,), w[name + "attention_norm"], C.eps), w[name + "qkv"])
        split = joint.reshape(batch, length, C.heads + 2 * C.kv_heads, C.head_dim).permute(0, 2, 1, 3)
        q = F.rope(split[:, : C.heads], cos, sin)
        k = F.rope(split[:, C.heads : C.heads + C.kv_heads], cos, sin)
        v = split[:, C.heads + C.kv_heads :]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        y = F.copy(y.permute(0, 2, 1, 3)).reshape(batch, length, C.d_model)
        x = F.add(x, F.matmul(y, w[name + "out"]))
        h = F.matmul(F.rms_norm(x, (C.d_model,), w[name + "mlp_norm"], C.eps), w[name + "gate_up"])
        x = F.add(x, F.matmul(F.silu_and_mul(h), w[name + "down"]))
    return F.matmul(F.rms_norm(x, (C.d_model,), w["norm"], C.eps), w["embedding"].T)


def loss(w: dict[str, Any], ids: Any, targets: Any) -> Any:
    found = logits(w, ids)
    return F.cross_entropy(found.reshape(-1, C.vocab), targets.reshape(-1))


def reference(w: dict[str, np.ndarray], ids: np.ndarray, targets: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    model = TorchLlama(C, w, torch.float64)
    value = model.loss(torch.tensor(ids), torch.tensor(targets))
    value.backward()
    return value.item(), {k: v.grad.numpy() for k, v in model.w.items()}


def tokens(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    return RNG.integers(0, C.vocab, (batch, length)), RNG.integers(0, C.vocab, (batch, length))


def near(got: np.ndarray, want: np.ndarray) -> None:
    assert np.abs(got - want).max() <= 2e-4 * max(np.abs(want).max(), 1e-3)


@pytest.mark.parametrize("length", [bc.Dim("n", max=C.context), 24], ids=["any", "fixed"])
def test_loss_and_gradients(length: Any) -> None:
    ids = bc.TensorSpec((2, length), "i64")
    graph = bc.trace(loss, WEIGHTS, ids, ids)
    plan = graph.grad(graph.results, graph.tensors[: len(WEIGHTS)]).compile()
    for n in (24,) if length == 24 else (1, 7, 24, C.context):
        given = tokens(2, n)
        want, gradients = reference(WEIGHTS, *given)
        value, found = plan.run(WEIGHTS, *given)
        assert abs(value - want) < 1e-5 * want
        for (name, gradient), got in zip(gradients.items(), found, strict=True):
            assert got.shape == gradient.shape, name
            near(got, gradient)
    assert plan.memory.planned < 0.5 * plan.memory.unplanned
    assert plan.memory.planned <= 1.1 * plan.memory.lower_bound


def test_with_less_memory_values_are_computed_again() -> None:
    given = tokens(2, 48)
    graph = bc.trace(loss, WEIGHTS, *given)
    graph = graph.grad(graph.results, graph.tensors[: len(WEIGHTS)])
    free = graph.compile()
    limit = int(0.9 * free.memory.planned)
    tight = graph.compile(memory_limit=limit)
    assert tight.memory.planned <= limit and tight.launches > free.launches
    value, gradients = free.run(WEIGHTS, *given)
    again, others = tight.run(WEIGHTS, *given)
    assert value == again and all(np.array_equal(a, b) for a, b in zip(gradients, others, strict=True))
    with pytest.raises(bc.MemoryLimitError, match=r"memory_limit=1000, want at least \d+ bytes"):
        graph.compile(memory_limit=1000)


def test_a_training_step_is_one_graph() -> None:
    ids, targets = tokens(2, 24)
    forward = bc.trace(loss, WEIGHTS, ids, targets)
    graph = forward.grad(forward.results, forward.tensors[: len(WEIGHTS)])
    value, *gradients = graph.results
    own = list(graph.tensors[: len(WEIGHTS)])
    moments = [[graph.add_leaf(w.shape, name=f"{m}.{k}") for k, w in WEIGHTS.items()] for m in ("first", "second")]
    step, rate = graph.add_leaf((), "i64", name="step"), graph.add_leaf((), name="rate")
    norm = graph.add_op(F.clip_grad_norm_, gradients, 1.0)
    graph.add_op(F.adamw_, own, gradients, *moments, step=step, lr=rate, beta2=0.95, weight_decay=0.1)
    graph.outputs(value, norm)
    plan = graph.compile()

    ours = {k: w.copy() for k, w in WEIGHTS.items()}
    state = [np.zeros_like(w) for _ in range(2) for w in ours.values()]
    model = TorchLlama(C, WEIGHTS, torch.float64)
    optimizer = torch.optim.AdamW(model.w.values(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for k in range(1, 4):
        found, size = plan.run(ours, ids, targets, *state, np.array(k), np.array(1e-3, np.float32))
        optimizer.zero_grad()
        want = model.loss(torch.tensor(ids), torch.tensor(targets))
        want.backward()
        length = torch.nn.utils.clip_grad_norm_(model.w.values(), 1.0)
        optimizer.step()
        assert abs(found - want.item()) < 1e-4 * want.item() and abs(size - length.item()) < 1e-3 * length.item()
    for name, w in model.w.items():
        assert np.abs(ours[name] - w.detach().numpy()).max() < 2e-5, name
