"""Graphs and fused expressions beside `torch.compile` (inductor), which is given time to compile before.

Inductor allocates its results; everything it is asked for has static shapes, as it prefers.
"""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-overload, unused-ignore, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as T

import baracuda as bc
import baracuda.functional as F
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, noise, space, text
from baracuda.bench.cases.fused import _cheap, _heavy, _turned
from baracuda.bench.cases.llama import _config, _example

PEER = "torch.compile"


def _cheap_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x * w + w).neg().abs() + w
    return torch.square(torch.maximum(y * x, w) - w)


def _heavy_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (torch.sigmoid(torch.tanh(x) * w) + x).abs().neg().exp()
    return (y * w).abs().sqrt()


def _turned_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu((x.T + w) / 2)


def _fused(fn: Callable[..., Any], peer: Callable[..., torch.Tensor], e: str, n: int, rows: bool = False) -> Sides:
    x, w = noise(n, n, element=e), noise(n, n, element=e, seed=1)
    y = space(n) if rows else space(n, n, element=e)
    expr = bc.expr.fuse(fn)
    compiled = torch.compile(peer, dynamic=False)
    with torch.inference_mode():
        compiled(x, w)
    kernels = [bc.plan(d) for d in expr.explain(x, w).kernels]

    def ours() -> Any:
        return expr(x, w, out=y)

    @torch.inference_mode()
    def theirs() -> torch.Tensor:
        return compiled(x, w)

    return Sides(Statement.call(ours), Statement.call(theirs), kernels, lambda: ([ours()], [theirs()]))


def _block(quick: bool) -> Sides:
    """gelu(x W + b) * mask + residual, and layer_norm of it."""
    rows, width = (8, 16) if quick else (2048, 1024)
    x, w, b = noise(rows, width), noise(width, width, seed=1) / width**0.5, noise(width, seed=2)
    mask, residual = (noise(rows, width, seed=3) > 0).float(), noise(rows, width, seed=4)
    g, s = noise(width, seed=5), noise(width, seed=6)
    tensors = (x, w, b, mask, residual, g, s)

    def ours(x: Any, w: Any, b: Any, mask: Any, residual: Any, g: Any, s: Any) -> Any:
        y = F.add(F.mul(F.gelu(F.add(F.matmul(x, w), b)), mask), residual)
        return F.layer_norm(y, (width,), g, s)

    def peer(x: Any, w: Any, b: Any, mask: Any, residual: Any, g: Any, s: Any) -> torch.Tensor:
        return T.layer_norm(T.gelu(x @ w + b) * mask + residual, (width,), g, s)

    plan = bc.trace(ours, *tensors).compile()
    out = space(rows, width)
    run = plan.bind(*tensors, out=out)
    compiled = torch.compile(peer, dynamic=False)

    @torch.inference_mode()
    def theirs() -> torch.Tensor:
        return compiled(*tensors)

    theirs()
    plans = {p.sku.name: p for p in plan.program.plans}

    def results() -> tuple[list[Any], list[Any]]:
        run()
        return [out], [theirs()]

    return Sides(Statement.call(run), Statement.call(theirs), tuple(plans.values()), results)


def _train(quick: bool, batch: int) -> Sides:
    modules, c = _example(), _config(quick)
    trainer = modules["training"].Trainer(c, batch, lr=2e-3, steps=200)
    peer = modules["torch_model"].TorchTrainer(c, trainer.parameters)
    ids, targets = np.random.default_rng(0).integers(0, c.vocab, (2, batch, c.context))
    theirs = (torch.from_numpy(ids), torch.from_numpy(targets))
    peer.model.loss = torch.compile(peer.model.loss, dynamic=False)
    peer.step(*theirs)
    plans = {p.sku.name: p for p in trainer.plan.program.plans}
    return Sides(
        Statement("step(ids, targets)", {"step": trainer.step, "ids": ids, "targets": targets}),
        Statement("step(ids, targets)", {"step": peer.step, "ids": theirs[0], "targets": theirs[1]}),
        tuple(plans.values()),
    )


def _decode(quick: bool) -> Sides:
    modules, c = _example(), _config(quick)
    parameters = modules["model"].initialise(c, 0)
    generator = modules["generation"].Generator(c, parameters, modules["model"].rope_tables(c), temperature=0)
    decoder = modules["torch_model"].CompiledDecoder(c, parameters)
    decoder.feed(65, 0)
    plans = {p.sku.name: p for p in generator.plan.program.plans}

    def ours() -> None:
        byte = 65
        for position in range(c.context):
            generator.feed(byte, position)
            byte = int(generator.token[0])

    def peer() -> None:
        byte = 65
        for position in range(c.context):
            byte = int(decoder.feed(byte, position).argmax())

    def results() -> tuple[list[Any], list[Any]]:
        mine, theirs = [], []
        for position, byte in enumerate(np.random.default_rng(0).integers(0, c.vocab, c.context)):
            generator.feed(int(byte), position)
            mine.append(generator.logits.reshape(-1).copy())
            theirs.append(decoder.feed(int(byte), position).reshape(-1).numpy().copy())
        return mine, theirs

    return Sides(Statement.call(ours), Statement.call(peer), tuple(plans.values()), results)


def _row_sum(x: Any, w: Any) -> Any:
    return F.sum(_heavy(x, w), -1)


def _row_sum_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _heavy_torch(x, w).sum(-1)


def cases(quick: bool) -> list[Case]:
    """What section "graph" of the benchmark promises: the required ratios of fused chains, a block and the tiny Llama."""
    n, batch = (64, 2) if quick else (4096, 8)
    out: list[Case] = []

    def add(
        name: str, e: str, sizes: str, build: Callable[[], Sides], required: float, goal: float, **rest: Any
    ) -> None:
        out.append(Case(name, "graph", e, sizes, PEER, build, required=required, goal=goal, **rest))

    def chain(
        name: str, e: str, fn: Callable[..., Any], peer: Callable[..., Any], required: float, goal: float,
        rows: bool = False,
    ) -> None:  # fmt: skip
        moved = (2 * n * n + (n if rows else n * n)) * SIZE[e]
        add(name, e, text((n, n)), partial(_fused, fn, peer, e, n, rows), required, goal, bytes=moved, ceiling="memory")

    chain("10 cheap functions, compiled", "f32", _cheap, _cheap_torch, 1.15, 1.3)
    chain("10 cheap functions, compiled", "bf16", _cheap, _cheap_torch, 0.65, 1.1)
    chain("10 functions, compiled", "f32", _heavy, _heavy_torch, 1.6, 2.3)
    chain("relu((x.T + w) / 2), compiled", "f32", _turned, _turned_torch, 1.5, 2.0)
    chain("10 functions and a sum of rows, compiled", "f32", _row_sum, _row_sum_torch, 1.5, 2.0, rows=True)
    add("gelu(x W + b) * mask + residual, layer_norm", "f32", "8x16" if quick else "2048x1024", partial(_block, quick),
        1.1, 1.3)  # fmt: skip
    tokens = 16 if quick else 256
    add("tiny Llama training step, compiled", "f32", f"batch {batch}, {tokens} tokens", partial(_train, quick, batch),
        1.3, 1.5, tokens=batch * tokens)  # fmt: skip
    add("tiny Llama decoding, compiled", "f32", f"{tokens} tokens, greedy", partial(_decode, quick), 5.0, 7.0,
        tokens=tokens)  # fmt: skip
    return out
