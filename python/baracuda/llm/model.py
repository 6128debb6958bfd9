"""A language model of a GGUF file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import InvalidProblemError, MemoryLimitError, shown, whole
from baracuda.engine.memory import bytes_of
from baracuda.llm.batch import Batch, Request
from baracuda.llm.cache import Cache, Compiled
from baracuda.llm.config import Config
from baracuda.llm.decoder import Decoder
from baracuda.llm.metadata import Metadata
from baracuda.llm.rope import tables_of
from baracuda.llm.tokenizer import Tokenizer
from baracuda.llm.tokenizer.vocabulary import Vocabulary
from baracuda.llm.weights import Weights

Array = np.ndarray[Any, np.dtype[np.float32]]

PAGE = 32  # tokens of a page
CHUNK = 512  # tokens of a prompt that are computed at once
_SCORED = 64  # tokens of which all logits are there at once
_IDLE = 2  # caches of generators that have ended
_CONTEXT = 4096  # where nothing is asked for


def load(path: str | PathLike[str], *, context: int | None = None, exact: bool = False) -> Model:
    """A model of a GGUF file, whose weights stay where they are in it.

    Nothing in the file is believed: sizes, names and shapes are held against each other before anything is computed.

    Args:
        path: The file. It must not be changed while the model is in use.
        context: The most tokens of a text, prompt and answer; None: what the model was trained with, at most 4096. The memory
            of a text's cache grows with it.
        exact: Whether rows that are multiplied with blocks are taken as they are. False rounds them to 8 bits as ggml does,
            which is faster.

    Returns:
        The model.

    Raises:
        UnsupportedError: The architecture is not known here; the message says which are, and what is missing.
        InvalidProblemError: The file is damaged, or its tensors are not those that its metadata asks for.
        OSError: It cannot be opened.
    """
    file = bc.load_gguf(path)
    return Model(fspath(path), file, context=context, exact=exact)


class Model:
    """A language model. Made by `load`. For one thread; generators and batches of it may take turns.

    Attributes:
        config: Its sizes and numbers.
        context: The most tokens of a text.
        metadata: What the file says about itself.
    """

    def __init__(self, path: str, file: bc.GgufFile, *, context: int | None, exact: bool) -> None:
        self._metadata = Metadata(path, file.metadata)
        self.metadata = file.metadata
        self.config = c = Config.of(self._metadata)
        self.context = min(c.context, _CONTEXT) if context is None else _limit("context", context, 2, c.context)
        self._decoder = Decoder(c, Weights(path, file.tensors, exact=exact))
        self._tables = tables_of(path, file.tensors, c, self.context)
        self._compiled: dict[tuple[int, ...], Compiled] = {}
        self._idle: list[Batch] = []

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return self._decoder.vocabulary

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Texts to tokens and back.

        Raises:
            UnsupportedError: The file's tokenizer is of a kind that is not known here, or a library is not installed.
            InvalidProblemError: The file's tokens are damaged.
        """
        return Tokenizer(self._metadata, self._words)

    @cached_property
    def _words(self) -> Vocabulary | None:
        """The tokens' texts, which no library is needed for; None where the file has none."""
        return Vocabulary.of(self._metadata) if self._metadata.has("tokenizer.ggml.tokens") else None

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int | None = None,
        stop: Sequence[int] | None = None,
        **sampling: Any,
    ) -> Iterator[int]:
        """The tokens that follow a prompt, one by one as they are made. What an earlier call had computed is not computed again.

        Args:
            prompt: A text, or tokens.
            max_tokens: How many at most; None: until a token ends the text, or the context is full.
            stop: Tokens that end it; by default the tokenizer's `ends`.
            **sampling: Of `Sampling`: temperature, top_k, top_p, min_p, seed. By default the most probable token is taken.

        Raises:
            InvalidProblemError: The prompt is empty or too long for the context, or a number is none that is possible.
        """
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        batch = self._idle.pop() if self._idle else self.batch(1)
        try:
            request = batch.add(ids, max_tokens=max_tokens, stop=stop, **sampling)
        except BaseException:
            self._rest(batch)
            raise
        return self._made(batch, request)

    def _made(self, batch: Batch, request: Request) -> Iterator[int]:
        try:
            for _, token in batch.run():
                yield token
        finally:
            batch.cancel(request)
            self._rest(batch)

    def _rest(self, batch: Batch) -> None:
        """Keeps a generator's cache for the next one, if there are not enough."""
        if len(self._idle) < _IDLE:
            self._idle.append(batch)

    def stream(self, prompt: str | Sequence[int], **options: Any) -> Iterator[str]:
        """The text that follows a prompt, piece by piece as it is made; arguments are those of `generate`."""
        return self.tokenizer.stream(self.generate(prompt, **options))

    def batch(
        self, sequences: int, *, context: int | None = None, memory_limit: int | str | None = None, chunk: int = CHUNK
    ) -> Batch:
        """Several texts at once, which join and leave at any step.

        Args:
            sequences: How many may run at once; more of them wait.
            context: The most tokens of a text; by default the model's.
            memory_limit: Bytes that keys and values may take, also as "2GiB"; None: those of `sequences` whole texts.
            chunk: How many tokens are computed in a step at most.

        Raises:
            MemoryLimitError: The limit is less than a page of the cache takes.
        """
        count = _limit("sequences", sequences, 1, 2**16)
        longest = self.context if context is None else _limit("context", context, 2, self.context)
        most = max(_limit("chunk", chunk, 1, 2**16), count)
        c = self.config
        page = 4 * PAGE * c.layers * c.kv_heads * (c.key_dim + c.value_dim)
        pages = count * -(-longest // PAGE)
        if memory_limit is not None:
            pages = min(pages, bytes_of(memory_limit, "memory_limit") // page)
        if not pages:
            raise MemoryLimitError(
                f"memory_limit: got {shown(memory_limit)}, want at least {page:,} bytes, a page of keys and values of {PAGE} tokens."
            )
        return Batch(Cache(self._compile(count, most, longest, pages)), most, self.vocabulary, self._ends())

    def _compile(self, sequences: int, chunk: int, context: int, pages: int) -> Compiled:
        key = sequences, chunk, context, pages
        if key not in self._compiled:
            self._compiled[key] = Compiled(self._decoder, self._tables, sequences, chunk, context, (pages, PAGE))
        return self._compiled[key]

    def _ends(self) -> frozenset[int]:
        """Tokens that end a text."""
        return frozenset() if self._words is None else self._words.ends

    def logits(self, ids: Sequence[int]) -> Array:
        """What the model says behind each token of a text.

        Args:
            ids: Tokens, at least one and no more than the context.

        Returns:
            (tokens, vocabulary), f32: row i are the logits of the token that follows ids[i].
        """
        given = self._checked(ids)
        found = np.empty((len(given), self.vocabulary), np.float32)
        for at, part in self._scored(given):
            found[at : at + len(part)] = part
        return found

    def _scored(self, ids: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Logits of a text's tokens, some at a time with the number of the first."""
        cache = Cache(self._compile(1, CHUNK, self.context, -(-self.context // PAGE)))
        cache.table[0] = np.arange(cache.table.shape[1])
        for at in range(0, len(ids), _SCORED):
            part = ids[at : at + _SCORED]
            yield at, cache.feed([part], range(len(part)))
            cache.past += len(part)

    def _checked(self, ids: Sequence[int]) -> list[int]:
        found = [whole(i) for i in ids]
        if not 1 <= len(found) <= self.context:
            raise InvalidProblemError(f"ids: got {len(found)} tokens, want 1 to {self.context}, the context.")
        for i, token in enumerate(found):
            if token is None or not 0 <= token < self.vocabulary:
                raise InvalidProblemError(
                    f"ids: token {i}: got {shown(ids[i])}, want integers from 0 to {self.vocabulary - 1}."
                )
        return [t for t in found if t is not None]

    def perplexity(self, text: str | Sequence[int]) -> float:
        """The exponential of the mean of -log p(token | those in front of it), in windows of the context, each for itself.

        Each window begins with the token of beginnings, where the model has one; else its first token is not counted.

        Args:
            text: A text, or its tokens without that of beginnings.
        """
        v = self.tokenizer if isinstance(text, str) else None
        ids = v.encode(text, bos=False) if v is not None and isinstance(text, str) else self._long(text)
        first = [] if v is None or v.bos is None else [v.bos]
        size, total, counted = self.context - len(first), 0.0, 0
        for begin in range(0, len(ids), size):
            window = [*first, *ids[begin : begin + size]]
            for at, logits in self._scored(window):
                wanted = np.array(window[at + 1 : at + 1 + len(logits)], np.int64)
                if len(wanted):
                    total += float(F.cross_entropy(logits[: len(wanted)], wanted, reduction="sum"))
                    counted += len(wanted)
        if not counted:
            raise InvalidProblemError(f"text: got {len(ids)} tokens, want at least two.")
        return math.exp(total / counted)

    def _long(self, ids: Any) -> list[int]:
        return [t for at in range(0, len(ids), self.context) for t in self._checked(ids[at : at + self.context])]


def _limit(name: str, value: Any, least: int, most: int) -> int:
    number = whole(value)
    if number is None or not least <= number <= most:
        more = " (the model was trained with no more)" if name == "context" else ""
        raise InvalidProblemError(f"{name}: got {shown(value)}, want an int from {least} to {most}{more}.")
    return number
