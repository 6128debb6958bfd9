"""The tiny Llama of examples/tiny_llama: a training step and decoding, beside the same model in eager torch."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides, Statement

_MODULES = ("model", "training", "generation", "torch_model")


@lru_cache(maxsize=1)
def _example() -> dict[str, Any]:
    """The example's modules, from a checkout: beside the package, or in the working directory."""
    places = [Path(bc.__file__).parents[2], Path.cwd()]
    folder = next((p / "examples" / "tiny_llama" for p in places if (p / "examples" / "tiny_llama").is_dir()), None)
    if folder is None:
        raise FileNotFoundError("examples/tiny_llama is not here: run this in a checkout of the repository")
    sys.path.insert(0, str(folder))
    try:
        return {name: import_module(name) for name in _MODULES}
    finally:
        sys.path.remove(str(folder))


def _config(quick: bool) -> Any:
    config = _example()["model"].Config
    return config(d_model=32, layers=1, heads=4, kv_heads=2, hidden=48, context=16) if quick else config()


def _train(quick: bool, batch: int) -> Sides:
    modules, c = _example(), _config(quick)
    trainer = modules["training"].Trainer(c, batch, lr=2e-3, steps=200)
    peer = modules["torch_model"].TorchTrainer(c, trainer.parameters)
    rng = np.random.default_rng(0)
    ids, targets = (rng.integers(0, c.vocab, (batch, c.context)) for _ in range(2))
    theirs = (torch.from_numpy(ids), torch.from_numpy(targets))
    plans = {p.sku.name: p for p in trainer.plan.program.plans}

    def results() -> tuple[list[Any], list[Any]]:
        loss, gradients = modules["torch_model"].loss_and_gradients(c, trainer.parameters, ids, targets, torch.float32)
        names = list(gradients)
        value, found = trainer.gradients_of(ids, targets)
        return [value, *(found[n] for n in names)], [loss, *(gradients[n] for n in names)]

    return Sides(
        Statement("step(ids, targets)", {"step": trainer.step, "ids": ids, "targets": targets}),
        Statement("step(ids, targets)", {"step": peer.step, "ids": theirs[0], "targets": theirs[1]}),
        tuple(plans.values()), results,
    )  # fmt: skip


def _decode(quick: bool) -> Sides:
    modules, c = _example(), _config(quick)
    parameters = modules["model"].initialise(c, 0)
    generator = modules["generation"].Generator(c, parameters, modules["model"].rope_tables(c), temperature=0)
    decoder = modules["torch_model"].TorchDecoder(c, parameters)
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


def cases(quick: bool) -> list[Case]:
    """d_model 256, 4 layers, 8 heads, 2 KV heads, context 256, batch 8, f32."""
    batch, context = (2, 16) if quick else (8, 256)
    shape = f"batch {batch}, {context} tokens"
    peers = "eager torch, fused AdamW", "eager torch in inference_mode, KV cache"
    return [
        Case("tiny Llama training step", "llama", "f32", shape, peers[0], lambda: _train(quick, batch), goal=1.5,
             tokens=batch * context),
        Case("tiny Llama decoding", "llama", "f32", f"{context} tokens, greedy", peers[1], lambda: _decode(quick),
             goal=3.0, tokens=context),
    ]  # fmt: skip
