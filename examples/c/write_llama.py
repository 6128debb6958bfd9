"""Writes the decode step of the tiny Llama as a program, and the text that it generates, for run_llama.c: FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import baracuda as bc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tiny_llama"))
from generation import sampled
from model import Cache, Config, cache_shape, forward, initialise, rope_tables

CONFIG = Config(d_model=64, layers=2, heads=4, kv_heads=2, hidden=96, context=64)
PROMPT, COUNT, SEED = b"The quick brown fox", 40, 7


def decode_step() -> bc.Program:
    """(token, keys, values, position, filled, seed, draw, next): reads a byte at its position and draws the next one.

    A compiled graph's program. All but token, keys, values and next are 0-d tensors of whole numbers. The draw is
    argmax(logits - log(-log(u))), with numbers u that follow from seed and offset on every machine.
    """
    weights, tables = initialise(CONFIG, seed=3), rope_tables(CONFIG)

    def step(token: Any, keys: Any, values: Any, position: Any, filled: Any, seed: Any, draw: Any) -> Any:
        logits = forward(CONFIG, weights, token, tables, Cache(keys, values, position, filled))
        return sampled(CONFIG, logits, 1.0, seed, draw)

    token, cache = bc.TensorSpec((1, 1), "i64"), bc.TensorSpec(cache_shape(CONFIG, 1))
    whole, unsigned = bc.TensorSpec((), "i64"), bc.TensorSpec((), "u64")
    return bc.trace(step, token, cache, cache, whole, whole, unsigned, unsigned).compile().program


def generate(program: bc.Program) -> bytes:
    """The prompt, continued."""
    c = CONFIG
    keys, values = (np.zeros(cache_shape(c, 1), np.float32) for _ in range(2))
    text, following = bytearray(PROMPT), np.zeros(1, np.int64)
    for position in range(len(PROMPT) + COUNT - 1):
        token, draw = np.array([[text[position]]]), np.array(64 * position, np.uint64)
        places = np.array(position), np.array(position + 1)
        program.run(token, keys, values, *places, np.array(SEED, np.uint64), draw, following)
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
