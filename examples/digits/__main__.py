"""Learns to read handwritten digits: a whole training step is one compiled graph.

    python examples/digits [--epochs N] [--picture FILE]

Forward, loss, backward, clipping and AdamW are traced from functions and replayed without Python. The data are
scikit-learn's 1,797 pictures of 8 x 8 pixels; a fifth of them is kept for the test.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from model import logits, loss, parameters, patches
from sklearn.datasets import load_digits

import baracuda as bc
import baracuda.functional as F

BATCH, RATE, DECAY = 64, 4e-3, 0.05


def training_step(p: dict[str, Any]) -> tuple[bc.ComputeGraph, Any]:
    """The graph of one step and its compiled plan: (parameters, pictures, digits, *moments, step, rate) -> loss."""
    pictures, digits = bc.TensorSpec((BATCH, 16, 4)), bc.TensorSpec((BATCH,), "i64")
    forward = bc.trace(loss, p, pictures, digits)
    wanted = forward.tensors[: len(p)]
    graph = forward.grad(forward.results, wanted)
    value, *gradients = graph.results
    first = [graph.add_leaf(g.shape, name=f"first.{name}") for name, g in zip(p, gradients, strict=True)]
    second = [graph.add_leaf(g.shape, name=f"second.{name}") for name, g in zip(p, gradients, strict=True)]
    step, rate = graph.add_leaf((), "i64", name="step"), graph.add_leaf((), name="rate")
    graph.add_op(F.clip_grad_norm_, gradients, 1.0)
    own = list(graph.tensors[: len(p)])
    graph.add_op(F.adamw_, own, gradients, first, second, step=step, lr=rate, weight_decay=DECAY)
    graph.outputs(value)
    return graph, graph.compile()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--picture", type=Path, help="writes the training step as SVG")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.images))
    x, digits = patches(data.images[order]), data.target[order].astype(np.int64)
    held = len(x) // 5
    p = parameters(rng)
    moments = [np.zeros_like(v) for _ in range(2) for v in p.values()]

    start = time.perf_counter()
    graph, step = training_step(p)
    read = bc.trace(
        lambda p, x: F.argmax(logits(p, x), 1), p, bc.TensorSpec((bc.Dim("n", max=len(x)), 16, 4))
    ).compile()
    print(f"traced and compiled in {time.perf_counter() - start:.2f} s: {step}")
    if options.picture:
        options.picture.write_text(graph.to_svg())

    count, total = 0, options.epochs * ((len(x) - held) // BATCH)
    start = time.perf_counter()
    for epoch in range(options.epochs):
        shuffled = held + rng.permutation(len(x) - held)
        for at in range(0, len(shuffled) - BATCH + 1, BATCH):
            chosen = shuffled[at : at + BATCH]
            count += 1
            rate = np.float32(RATE * min(count / 50, 0.5 + 0.5 * np.cos(np.pi * count / total)))
            value = step.run(p, x[chosen], digits[chosen], *moments, np.array(count), np.array(rate))
        if (epoch + 1) % 10 == 0 or epoch + 1 == options.epochs:
            right = np.mean(read.run(p, x[:held]) == digits[:held])
            print(f"epoch {epoch + 1:3}: loss {float(value):.3f}, {right:.1%} of {held} test pictures are read")
    seconds = time.perf_counter() - start
    print(
        f"{count} steps in {seconds:.1f} s, {seconds / count * 1e3:.2f} ms each, {step.launches} launches, {step.memory}"
    )


if __name__ == "__main__":
    main()
