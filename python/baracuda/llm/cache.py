"""Keys and values of some sequences in pages, and the compiled decoder over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import baracuda as bc
from baracuda.llm.decoder import Decoder, Packed
from baracuda.llm.rope import Tables

Array = Any
_LEAST = 8  # the least maximum that graphs of any length are traced for


class Compiled:
    """The decoder as one program for a number of sequences, of any number of tokens up to a chunk.

    Attributes:
        sequences: How many there may be at once.
        chunk: The most tokens of a call.
        context: The most tokens of a sequence.
    """

    def __init__(
        self, decoder: Decoder, tables: Sequence[Tables], sequences: int, chunk: int, context: int, shape: Sequence[int]
    ) -> None:
        self.decoder, self.tables = decoder, tables
        self.sequences, self.chunk, self.context, self.shape = sequences, chunk, context, tuple(shape)
        c, (pages, size) = decoder.config, self.shape
        most = max(chunk, _LEAST)
        n, rows = bc.Dim("tokens", max=most), bc.Dim("rows", max=most)
        kept = (c.layers, pages, size, c.kv_heads)
        spec: Any = bc.TensorSpec
        graph = bc.trace(
            self._forward, spec((n,), "i32"), spec((rows,), "i32"), spec((n,), "i64"), spec((sequences + 1,), "i32"),
            spec((sequences,), "i32"), spec((sequences,), "i32"), spec((sequences, -(-context // size)), "i32"),
            spec((*kept, c.key_dim), "f32"), spec((*kept, c.value_dim), "f32"),
        )  # fmt: skip
        self.plan = graph.compile(frozen=True)

    def _forward(
        self, ids: Array, rows: Array, positions: Array, starts: Array, past: Array, filled: Array, pages: Array,
        keys: Array, values: Array,
    ) -> Array:  # fmt: skip
        at = Packed(positions, starts, past, filled, pages)
        return self.decoder(ids, rows, keys, values, at, self.tables)


class Cache:
    """Keys and values of some sequences.

    Attributes:
        table: (sequences, most pages of one), i32: which pages are whose.
        past: (sequences,), i32: tokens that each has.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        c, (pages, size) = compiled.decoder.config, compiled.shape
        kept = (c.layers, pages, size, c.kv_heads)
        self.keys = np.zeros((*kept, c.key_dim), np.float32)
        self.values = np.zeros((*kept, c.value_dim), np.float32)
        self.table = np.zeros((compiled.sequences, -(-compiled.context // size)), np.int32)
        self.past = np.zeros(compiled.sequences, np.int32)

    def feed(self, ids: Sequence[Sequence[int]], rows: Sequence[int]) -> Array:
        """Runs the decoder on new tokens, whose keys and values are put behind those of `past`; the caller counts them there.

        Args:
            ids: Of each sequence its new tokens, none of those that wait.
            rows: Behind which of all these, one sequence's behind the other's, logits are wanted.

        Returns:
            (rows, vocabulary), f32.
        """
        counts = np.array([len(i) for i in ids])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        flat = np.concatenate([np.asarray(i, np.int32) for i in ids])
        positions = np.arange(len(flat)) - np.repeat(starts[:-1] - self.past, counts)
        filled = (self.past + counts).astype(np.int32)
        return self.compiled.plan.run(
            flat, np.asarray(rows, np.int32), positions.astype(np.int64), starts, self.past, filled, self.table, self.keys,
            self.values,
        )  # fmt: skip
