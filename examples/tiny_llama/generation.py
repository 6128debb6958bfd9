"""KV-cached generation: one compiled graph for all positions, which draws the next byte, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from model import HOST, Cache, Config, empty_cache, forward, kernel
from storage import Array, Storage, read, write

import baracuda as bc
import baracuda.functional as F


def sampled(c: Config, logits: Array, temperature: float, seed: Any, offset: Any) -> Array:
    """argmax(logits / temperature - log(-log(u))), [rows]: a draw from softmax(logits / temperature)."""
    if temperature == 0:
        return F.argmax(logits, -1)
    noise = bc.empty(logits.shape, c.element, device=logits.device)
    uniform = kernel(logits.device, bc.RandomDescriptor, "uniform", logits.shape, c.element)
    uniform.run(y=noise, low=1e-7, high=1.0, seed=seed, offset=offset)
    return F.argmax(F.sub(F.div(logits, temperature), F.log(F.neg(F.log(noise)))), -1)


class Generator:
    """Generates one byte at a time."""

    def __init__(
        self,
        c: Config,
        parameters: dict[str, Array],
        tables: tuple[Array, Array],
        *,
        temperature: float = 0.7,
        seed: int = 0,
        store: Storage = HOST,
    ) -> None:
        self.config, self.store = c, store
        self.parameters, self.tables, self.temperature, self.seed = parameters, tables, temperature, seed
        self.cache = empty_cache(c, 1, store)
        self.byte, self.token = store.zeros((1, 1), np.int64), store.zeros((1,), np.int64)
        self.draws = store.scalar(0)
        self.logits = store.empty((1, c.vocab), c.dtype)
        self._given = given = (
            self.byte,
            self.cache.keys,
            self.cache.values,
            self.cache.position,
            self.cache.filled,
            self.draws,
        )
        self.graph = bc.trace(self.following, *given)
        self.plan = self.graph.compile()
        self._run = self.plan.bind(*given, out=(self.logits, self.token))

    def following(
        self, byte: Array, keys: Array, values: Array, position: Array, filled: Array, draws: Array
    ) -> tuple[Array, Array]:
        """The logits behind a byte at a position, and the byte that is drawn from them."""
        cache = Cache(keys, values, position, filled)
        logits = forward(self.config, self.parameters, byte, self.tables, cache)
        return logits, sampled(self.config, logits, self.temperature, self.seed, draws)

    def _place(self, byte: int, position: int) -> None:
        write(self.byte, byte)
        write(self.cache.position, position)
        write(self.cache.filled, position + 1)
        write(self.draws, (position + 1) * self.config.vocab)

    def feed(self, byte: int, position: int) -> None:
        """Runs the model on one byte: its logits, its place in the cache and the next byte are there afterwards."""
        self._place(byte, position)
        self._run()

    def feed_eagerly(self, byte: int, position: int) -> tuple[Array, Array]:
        """The same by functions called one by one; the logits and the next byte."""
        self._place(byte, position)
        return self.following(*self._given)

    def generate(self, prompt: bytes, count: int) -> bytes:
        """The prompt continued by `count` bytes, as far as the context reaches."""
        out = bytearray(prompt or b"\n")
        for position, byte in enumerate(out):
            self.feed(byte, position)
        while len(out) < min(len(prompt) + count, self.config.context):
            out.append(int(read(self.token)[0]))
            if len(out) < self.config.context:
                self.feed(out[-1], len(out) - 1)
        return bytes(out)
