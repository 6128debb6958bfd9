"""KV-cached generation: one program for all positions; the position is a number read at launch."""

from __future__ import annotations

import numpy as np
from model import HOST, Activations, Cache, Config, forward
from program import Program
from storage import Array, Storage, read, write

import baracuda as bc


class Generator:
    """Generates one byte at a time; `sample` draws by the Gumbel-max trick, in plans as well."""

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
        self.cache = Cache(c, 1, store)
        self.activations = Activations(c, 1, 1, keep=False, store=store)
        self.decode = Program(store.device)
        forward(c, parameters, self.activations, tables, self.decode, self.cache)
        self.decode.compile()
        self.token = store.zeros((1,), np.int64)
        self.draws = store.scalar(0)
        self.sample = self._sampler(temperature, seed).compile()

    def _sampler(self, temperature: float, seed: int) -> Program:
        """argmax(logits / temperature - log(-log(u))): a draw from softmax(logits / temperature)."""
        p, e = Program(self.store.device), self.config.element
        logits = self.activations.logits
        if temperature == 0:
            p.add(bc.ArgReduceDescriptor("argmax", logits.shape, axis=-1, element=e), x=logits, y=self.token)
            return p
        shape = logits.shape
        noise, score = (self.store.empty(shape, self.config.dtype) for _ in range(2))
        p.add(bc.RandomDescriptor("uniform", shape, e), y=noise, low=1e-7, high=1.0, seed=seed, offset=self.draws)
        for kind in ("log", "neg", "log"):
            p.add(bc.UnaryDescriptor(kind, shape, e), x=noise, y=noise)
        p.add(bc.BinaryDescriptor("div", shape, None, e), a=logits, number=temperature, y=score)
        p.add(bc.BinaryDescriptor("sub", shape, shape, e), a=score, b=noise, y=score)
        p.add(bc.ArgReduceDescriptor("argmax", shape, axis=-1, element=e), x=score, y=self.token)
        return p

    def feed(self, byte: int, position: int) -> None:
        """Runs the model on one byte; its logits and its place in the cache are ready afterwards."""
        write(self.activations.ids, byte)
        write(self.cache.position, position)
        write(self.cache.filled, position + 1)
        self.decode.run()

    def generate(self, prompt: bytes, count: int) -> bytes:
        """The prompt continued by `count` bytes, as far as the context reaches."""
        out = bytearray(prompt or b"\n")
        for position, byte in enumerate(out):
            self.feed(byte, position)
        while len(out) < min(len(prompt) + count, self.config.context):
            write(self.draws, len(out) * self.config.vocab)
            self.sample.run()
            out.append(int(read(self.token)[0]))
            if len(out) < self.config.context:
                self.feed(out[-1], len(out) - 1)
        return bytes(out)
