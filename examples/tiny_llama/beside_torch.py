"""The same work by PyTorch, in turns in this process, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import baracuda as bc

if TYPE_CHECKING:
    from generation import Generator
    from training import Batches, Trainer

Measured = list[tuple[str, float, float]]  # what, our seconds, torch's


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Median seconds of both, measured one after the other so that a busy machine disturbs both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, kept in zip((ours, theirs), times, strict=True):
            begin = perf_counter()
            call()
            kept.append(perf_counter() - begin)
    return median(times[0]), median(times[1])


def measure(trainer: Trainer, generator: Generator, batches: Batches, rounds: int = 5) -> Measured | None:
    """A training step and decoding, of the model as it is now; None where there is no PyTorch, or no such model of it.

    The trainer's parameters are other ones afterwards: its steps are real.
    """
    c = trainer.config
    if trainer.store.device != "cpu" or c.element != "f32" or find_spec("torch") is None:
        return None
    import torch
    from torch_model import TorchDecoder, TorchTrainer

    torch.set_num_threads(bc.get_num_threads())
    inputs, targets = batches[trainer.done]
    peer, decoder = TorchTrainer(c, trainer.parameters), TorchDecoder(c, trainer.parameters)
    ids, wanted = (torch.as_tensor(np.ascontiguousarray(a)) for a in (inputs, targets))

    def decode(feed: Callable[[int, int], Any]) -> Callable[[], None]:
        def run() -> None:
            for position in range(min(64, c.context)):
                feed(position % c.vocab, position)

        return run

    found: Measured = []
    for what, ours, theirs in (
        ("decoding 64 tokens", decode(generator.feed), decode(decoder.feed)),
        ("a training step", lambda: trainer.step(inputs, targets), lambda: peer.step(ids, wanted)),
    ):
        ours(), theirs()
        found.append((what, *in_turns(ours, theirs, rounds)))
    return found
