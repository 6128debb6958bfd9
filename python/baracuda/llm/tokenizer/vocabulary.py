"""The tokens of a file: what they are, and which are special."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from baracuda.describe.errors import InvalidProblemError
from baracuda.llm.metadata import Metadata

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# Tokens that end an answer, whatever the file calls its end of text.
_ENDS = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>", "<EOT>", "</s>",
    "<|end▁of▁sentence|>",
)  # fmt: skip
# Byte pairs whose texts begin with a token of their own where the file says nothing.
_BEGIN = ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken")


@dataclass(frozen=True)
class Vocabulary:
    """What `tokenizer.ggml.*` says.

    Attributes:
        metadata: Those entries.
        pieces: The text of each token.
        kinds: What each is: NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED or BYTE.
        ids: The number of each piece.
        bos: The token that texts begin with; None for none.
        eos: The token that ends a text; None for none.
        ends: All tokens after which nothing is to be made.
        begins: Whether texts begin with `bos` where nothing else is said.
    """

    metadata: Metadata
    pieces: list[str]
    kinds: list[int]
    ids: dict[str, int]
    bos: int | None
    eos: int | None
    ends: frozenset[int]
    begins: bool

    @classmethod
    def of(cls, metadata: Metadata) -> Vocabulary:
        """Reads it.

        Raises:
            InvalidProblemError: An entry is missing or no such thing.
        """
        m = metadata.within("tokenizer.ggml.")
        pieces = m.texts("tokens")
        if not pieces:
            raise m.wrong("tokens", "an empty list", "the text of each token")
        kinds = m.numbers("token_type", len(pieces), None)
        kinds = [NORMAL] * len(pieces) if kinds is None else [int(k) for k in kinds]
        if not set(kinds) <= set(range(BYTE + 1)):
            raise m.wrong("token_type", str(next(k for k in kinds if not 0 <= k <= BYTE)), f"kinds from 0 to {BYTE}")

        def token(name: str) -> int | None:
            found = m.whole(f"{name}_token_id", None, least=0, most=2**32 - 1)
            return found if found is not None and found < len(pieces) else None

        ids = {piece: i for i, piece in enumerate(pieces)}
        bos, eos = token("bos"), token("eos")
        ends = {t for t in (eos, token("eot"), token("eom")) if t is not None}
        ends |= {ids[end] for end in _ENDS if kinds[ids.get(end, 0)] == CONTROL and end in ids}
        usual = m.text("model", "") == "llama" or m.text("pre", "") in _BEGIN
        begins = m.flag("add_bos_token", usual) and bos is not None
        return cls(m, pieces, kinds, ids, bos, eos, frozenset(ends), begins)

    def scores(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """Of each token: the larger, the earlier it is joined."""
        found: np.ndarray[tuple[int], np.dtype[np.float32]] = self.metadata.numbers("scores", len(self.pieces))
        return found.astype(np.float32)

    def splitter(self, *, special: bool) -> Splitter:
        """What finds tokens that are never made of others: those of users, and with `special` those of control, too."""
        kinds = {USER_DEFINED, *((CONTROL, UNKNOWN) if special else ())}
        return Splitter([p for p, kind in zip(self.pieces, self.kinds, strict=True) if kind in kinds and p])

    def unknown(self, text: str) -> InvalidProblemError:
        """The error for a text that has no tokens."""
        return InvalidProblemError(
            f"text: got {text[:40]!r}, want characters that the model's {len(self.pieces)} tokens make."
        )


class Splitter:
    """Cuts texts at certain tokens; where several begin, at the longest."""

    def __init__(self, pieces: list[str]) -> None:
        whole = sorted(pieces, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, whole)) if whole else r"(?!)")

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Parts that are not empty, each with whether it is such a token."""
        at = 0
        for match in self._found.finditer(text):
            if match.start() > at:
                yield text[at : match.start()], False
            yield match[0], True
            at = match.end()
        if at < len(text):
            yield text[at:], False
