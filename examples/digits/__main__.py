"""Learns to read handwritten digits: a whole training step is one compiled graph.

    python examples/digits [--model mixer|convnet] [--epochs N] [--picture FILE]

Forward, loss, backward, clipping and AdamW are one function, which bc.jit compiles: no Python runs between the kernels. The data are
scikit-learn's 1,797 pictures of 8 x 8 pixels; a fifth of them is kept for the test. The models, mixer.py and convnet.py,
know nothing of graphs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import convnet
import mixer
import numpy as np
from sklearn.datasets import load_digits

import baracuda as bc
import baracuda.functional as F

BATCH, RATE, DECAY = 64, 4e-3, 0.05


MODELS: dict[str, Any] = {"mixer": mixer, "convnet": convnet}


def training_step(model: Any) -> Any:
    """The compiled step (p, running, pictures, digits, moments, step, rate) -> loss, which writes the first two and the moments."""

    def loss(p: dict[str, Any], running: dict[str, Any], x: Any, digits: Any) -> Any:
        return F.cross_entropy(model.logits(p, running, x, training=True), digits, label_smoothing=0.1)

    @bc.jit
    def step(
        p: dict[str, Any], running: dict[str, Any], x: Any, digits: Any, moments: Any, count: Any, rate: Any
    ) -> Any:
        value, gradients = bc.value_and_grad(loss)(p, running, x, digits)
        listed = list(gradients.values())
        F.clip_grad_norm_(listed, 1.0)
        F.adamw_(list(p.values()), listed, *moments, step=count, lr=rate, weight_decay=DECAY)
        return value

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="mixer")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--picture", type=Path, help="writes the training step as SVG")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.images))
    model = MODELS[options.model]
    x, digits = model.inputs(data.images[order]), data.target[order].astype(np.int64)
    held = len(x) // 5
    p, running = model.parameters(rng), model.state()
    moments = [[np.zeros_like(v) for v in p.values()] for _ in range(2)]

    step, read = training_step(model), bc.jit(lambda p, running, x: F.argmax(model.logits(p, running, x), 1))
    if options.picture:
        graph = step.lower(p, running, x[:BATCH], digits[:BATCH], moments, 1, RATE)
        options.picture.write_text(graph.to_svg())

    count, total = 0, options.epochs * ((len(x) - held) // BATCH)
    start = time.perf_counter()
    for epoch in range(options.epochs):
        shuffled = held + rng.permutation(len(x) - held)
        for at in range(0, len(shuffled) - BATCH + 1, BATCH):
            chosen = shuffled[at : at + BATCH]
            count += 1
            rate = RATE * min(count / 50, 0.5 + 0.5 * np.cos(np.pi * count / total))
            value = step(p, running, model.vary(x[chosen], rng), digits[chosen], moments, count, rate)
        if (epoch + 1) % 10 == 0 or epoch + 1 == options.epochs:
            right = np.mean(read(p, running, x[:held]) == digits[:held])
            print(f"epoch {epoch + 1:3}: loss {float(value):.3f}, {right:.1%} of {held} test pictures are read")
    seconds = time.perf_counter() - start
    print(f"{count} steps in {seconds:.1f} s, {seconds / count * 1e3:.2f} ms each")


if __name__ == "__main__":
    main()
