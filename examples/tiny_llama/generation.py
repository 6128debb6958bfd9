"""KV-cached generation: one program for all positions; the position is a number read at launch."""

from __future__ import annotations

import numpy as np
from model import Activations, Array, Cache, Config, forward
from program import Program, scalar

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
    ) -> None:
        self.config = c
        self.cache = Cache(c, batch=1)
        self.activations = Activations(c, 1, 1, keep=False)
        self.decode = forward(c, parameters, self.activations, tables, self.cache).compile()
        self.token = np.zeros((1,), np.int64)
        self.draws = scalar(0)
        self.sample = self._sampler(temperature, seed).compile()

    def _sampler(self, temperature: float, seed: int) -> Program:
        """argmax(logits / temperature - log(-log(u))): a draw from softmax(logits / temperature)."""
        p, e = Program(), self.config.element
        logits = self.activations.logits
        if temperature == 0:
            p.add(bc.ArgReduceDescriptor("argmax", logits.shape, axis=-1, element=e), x=logits, y=self.token)
            return p
        noise, score = np.empty_like(logits), np.empty_like(logits)
        shape = logits.shape
        p.add(bc.RandomDescriptor("uniform", shape, e), y=noise, low=1e-7, high=1.0, seed=seed, offset=self.draws)
        for kind in ("log", "neg", "log"):
            p.add(bc.UnaryDescriptor(kind, shape, e), x=noise, y=noise)
        p.add(bc.BinaryDescriptor("div", shape, None, e), a=logits, number=temperature, y=score)
        p.add(bc.BinaryDescriptor("sub", shape, shape, e), a=score, b=noise, y=score)
        p.add(bc.ArgReduceDescriptor("argmax", shape, axis=-1, element=e), x=score, y=self.token)
        return p

    def feed(self, byte: int, position: int) -> None:
        """Runs the model on one byte; its logits and its place in the cache are ready afterwards."""
        self.activations.ids[...] = byte
        self.cache.position[...] = position
        self.cache.filled[...] = position + 1
        self.decode.run()

    def generate(self, prompt: bytes, count: int) -> bytes:
        """The prompt continued by `count` bytes, as far as the context reaches."""
        out = bytearray(prompt or b"\n")
        for position, byte in enumerate(out):
            self.feed(byte, position)
        while len(out) < min(len(prompt) + count, self.config.context):
            self.draws[...] = len(out) * self.config.vocab
            self.sample.run()
            out.append(int(self.token[0]))
            if len(out) < self.config.context:
                self.feed(out[-1], len(out) - 1)
        return bytes(out)
