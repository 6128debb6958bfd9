"""Weights in GGUF's blocks: quantized, written to a file, read where they lie in it, and what that costs and gains."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

import numpy as np
from generation import Generator
from model import HOST, Array, Config, forward, parameter_shapes
from storage import Storage, read, write
from training import Batches

import baracuda as bc
import baracuda.functional as F

EVALUATED = 4  # batches
UNSEEN = 1 << 40  # steps that no training reaches


def is_transposed(name: str, shape: tuple[int, ...]) -> bool:
    """Files have matrices as [out, in], as quant_matmul takes them; so lies the embedding, which is the last product, too."""
    return len(shape) == 2 and name != "embedding"


def save(c: Config, parameters: dict[str, Array], form: str, path: Path) -> list[str]:
    """Writes all parameters, matrices in blocks; returns the names of matrices that are written as they are.

    Those are the ones whose rows are no whole blocks.
    """
    tensors: dict[str, bc.GgufTensor] = {}
    kept = []
    for name, value in parameters.items():
        rows = value.T if is_transposed(name, value.shape) else value
        if len(value.shape) == 2 and rows.shape[1] % bc.BlockFormat(form).block_values == 0:
            tensors[name] = bc.GgufTensor(read(F.quantize(rows, form)), rows.shape, form)
            continue
        tensors[name] = bc.GgufTensor(read(value).T if rows is not value else read(value), rows.shape, None)
        if len(value.shape) == 2:
            kept.append(name)
    settings = {f"tiny_llama.{k}": v for k, v in asdict(c).items()}
    bc.save_gguf(path, tensors, {"general.architecture": "tiny_llama", **settings})
    return kept


def load(c: Config, path: Path, store: Storage = HOST) -> dict[str, Array]:
    """The parameters of a file: mapped on the cpu, copied to a device."""
    found = bc.load_gguf(path).tensors
    parameters: dict[str, Array] = {}
    for name, shape in parameter_shapes(c).items():
        t = found[name]
        data = t.data
        if store.device != "cpu":
            data = store.empty(t.data.shape, t.data.dtype)
            write(data, t.data)
        if t.format:
            parameters[name] = bc.GgufTensor(data, t.shape, t.format)
        else:
            parameters[name] = data.T if is_transposed(name, shape) else data
    return parameters


def nbytes(parameters: dict[str, Array]) -> int:
    """Bytes of all parameters."""
    return sum((p.data if isinstance(p, bc.GgufTensor) else p).nbytes for p in parameters.values())


def loss_of(generator: Generator, batches: Batches) -> float:
    """Mean loss of its parameters on some windows of the text that training did not draw."""
    c, store, losses = generator.config, generator.store, []
    ids, targets = (store.zeros((batches.batch, c.context), np.int64) for _ in range(2))
    for i in range(EVALUATED):
        for given, values in zip((ids, targets), batches[UNSEEN + i], strict=True):
            write(given, values)
        logits = forward(c, generator.parameters, ids, generator.tables)
        losses.append(float(read(F.cross_entropy(logits, targets.reshape(-1)))))
    return fmean(losses)


def speeds(generators: list[Generator], rounds: int = 7) -> list[float]:
    """Tokens per second of each, taken in turns."""
    seconds: list[list[float]] = [[] for _ in generators]
    for _ in range(rounds):
        for generator, taken in zip(generators, seconds, strict=True):
            begin = perf_counter()
            for position in range(generator.config.context):
                generator.feed(position % generator.config.vocab, position)
            read(generator.logits)  # waits for a device
            taken.append(perf_counter() - begin)
    return [g.config.context / median(taken) for g, taken in zip(generators, seconds, strict=True)]
