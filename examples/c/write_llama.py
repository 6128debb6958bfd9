"""Writes the decode step of the tiny Llama as a program, and the text that it generates, for run_llama.c: FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import baracuda as bc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tiny_llama"))
from model import Activations, Cache, Config, forward, initialise, rope_tables

CONFIG = Config(d_model=64, layers=2, heads=4, kv_heads=2, hidden=96, context=64)
PROMPT, COUNT, SEED = b"The quick brown fox", 40, 7


class ValueStore:
    """Where the model's arrays are while a program is built: activations are scratch, caches are arguments."""

    def __init__(self, builder: bc.ProgramBuilder) -> None:
        self.builder, self.device = builder, "cpu"
        self._names = iter(("token", "keys", "values"))
        self._numbers = iter(("position", "filled"))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Scratch."""
        return self.builder.scratch(shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """What outlives a step."""
        name = next(self._names)
        return (self.builder.input if name == "token" else self.builder.inout)(name, shape, dtype)

    def scalar(self, value: float) -> Any:
        """A number of `run`."""
        return self.builder.scalar(next(self._numbers), "int")


def decode_step() -> bc.Program:
    """(token, keys, values, next, position, filled, seed, draw): reads a byte at its position and draws the next one.

    The draw is argmax(logits - log(-log(u))), with numbers u that follow from seed and offset on every machine.
    """
    b = bc.ProgramBuilder()
    store: Any = ValueStore(b)
    weights = {name: b.constant(array, name) for name, array in initialise(CONFIG, seed=3).items()}
    cos, sin = rope_tables(CONFIG)
    tables = (b.constant(cos, "cos"), b.constant(sin, "sin"))
    activations = Activations(CONFIG, 1, 1, keep=False, store=store)
    forward(CONFIG, weights, activations, tables, b, Cache(CONFIG, 1, store))
    logits = activations.logits
    seed, draw = b.scalar("seed", "unsigned", 0), b.scalar("draw", "unsigned", 0)
    shape, noise, score = logits.shape, b.scratch(logits.shape), b.scratch(logits.shape)
    b.add(bc.RandomDescriptor("uniform", shape), y=noise, low=1e-7, high=1.0, seed=seed, offset=draw)
    for kind in ("log", "neg", "log"):
        b.add(bc.UnaryDescriptor(kind, shape), x=noise, y=noise)
    b.add(bc.BinaryDescriptor("sub", shape, shape), a=logits, b=noise, y=score)
    b.add(bc.ArgReduceDescriptor("argmax", shape, axis=-1), x=score, y=b.output("next", (1,), "i64"))
    return b.build()


def generate(program: bc.Program) -> bytes:
    """The prompt, continued."""
    c = CONFIG
    keys, values = (np.zeros((c.layers, 1, c.kv_heads, c.context, c.head_dim), np.float32) for _ in range(2))
    text, following = bytearray(PROMPT), np.zeros(1, np.int64)
    for position in range(len(PROMPT) + COUNT - 1):
        token = np.array([[text[position]]])
        program.run(
            token, keys, values, following, position=position, filled=position + 1, seed=SEED, draw=64 * position
        )
        if position + 1 >= len(text):
            text.append(int(following[0]))
    return bytes(text)


def main(folder: Path) -> None:
    """The program, its constants one after the other, and a line for each with its rank and sizes."""
    program = decode_step()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "decode.json").write_bytes(program.to_bytes())
    constants = [np.asarray(a) for a in program.constants]
    (folder / "constants.txt").write_text("".join(f"{a.ndim} {' '.join(map(str, a.shape))}\n" for a in constants))
    with (folder / "constants.f32").open("wb") as file:
        for a in constants:
            a.tofile(file)
    (folder / "prompt.txt").write_bytes(PROMPT)
    (folder / "text.txt").write_bytes(generate(program))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
