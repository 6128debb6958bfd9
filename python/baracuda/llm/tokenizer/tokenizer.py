"""What users call: texts to tokens, tokens to texts, conversations to tokens."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from baracuda.describe.errors import InvalidProblemError, UnsupportedError, shown
from baracuda.llm.metadata import Metadata
from baracuda.llm.tokenizer.byte_pairs import BytePairs
from baracuda.llm.tokenizer.chat import rendered
from baracuda.llm.tokenizer.pieces import Pieces
from baracuda.llm.tokenizer.vocabulary import CONTROL, UNKNOWN, Splitter, Vocabulary


class _Encoding(Protocol):
    @property
    def leading(self) -> bytes: ...

    def encode(self, text: str, *, first: bool) -> list[int]: ...

    def decode(self, token: int) -> bytes: ...


_ENCODINGS: dict[str, Callable[[Vocabulary], _Encoding]] = {"llama": Pieces, "gpt2": BytePairs}


class Tokenizer:
    """The tokenizer of a GGUF file.

    Attributes:
        bos: The token that texts begin with; None for none.
        eos: The token that ends a text; None for none.
        ends: All tokens that end a text or an answer.
        chat_template: Jinja's text; None where the file has none: the model was not trained to chat.
    """

    def __init__(self, metadata: Metadata, vocabulary: Vocabulary | None = None) -> None:
        m = metadata.within("tokenizer.")
        kind = m.text("ggml.model")
        if kind not in _ENCODINGS:
            raise UnsupportedError(
                f"{m.path!r}: metadata 'tokenizer.ggml.model': got {kind!r}, want {' or '.join(map(repr, _ENCODINGS))}. Tokens can be "
                f"computed nevertheless."
            )
        self._v = Vocabulary.of(metadata) if vocabulary is None else vocabulary
        self._encoding = _ENCODINGS[kind](self._v)
        self.bos, self.eos, self.ends = self._v.bos, self._v.eos, self._v.ends
        self.chat_template: str | None = m.text("chat_template", None)

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self._v.pieces)

    @cached_property
    def _all(self) -> Splitter:
        return self._v.splitter(special=True)

    @cached_property
    def _of_users(self) -> Splitter:
        return self._v.splitter(special=False)

    def encode(self, text: str, *, bos: bool | None = None, special: bool = False) -> list[int]:
        """The tokens of a text.

        Args:
            text: Any text.
            bos: Whether the token of beginnings comes first; None: as the file says.
            special: Whether what looks like a control token, as "<eos>", is one. False for texts from elsewhere.
        """
        if not isinstance(text, str):
            raise InvalidProblemError(f"text: got {shown(text)}, want a str.")
        # Half of a surrogate pair is no character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        found: list[int] = []
        if bos is None:
            bos = self._v.begins
        if bos and self.bos is None:
            raise InvalidProblemError("bos: got True, want False: the file names no such token.")
        if bos and self.bos is not None:
            found.append(self.bos)
        first = True
        for part, whole in (self._all if special else self._of_users).split(text):
            if whole:
                found.append(self._v.ids[part])
            else:
                found += self._encoding.encode(part, first=first)
            first = whole
        return found

    def decode(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens. Bytes that are no UTF-8 become U+FFFD.

        Args:
            tokens: Any of the model's; those that the file has no text for are left out.
            special: Whether control tokens are shown, too.
        """
        raw = b"".join(self.bytes_of(t, special=special) for t in tokens)
        raw = raw.removeprefix(self._encoding.leading)  # the space that the first word was given is none of its own
        return raw.decode(errors="replace")

    def bytes_of(self, token: int, *, special: bool = False) -> bytes:
        """The bytes that a token stands for; none for control tokens, unless they are asked for."""
        if not 0 <= token < len(self._v.pieces):
            return b""
        if self._v.kinds[token] in (CONTROL, UNKNOWN):
            return self._v.pieces[token].encode() if special else b""
        return self._encoding.decode(token)

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """The text of tokens as they come: a character is given when all of its bytes are there."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token in tokens:
            if text := decoder.decode(self.bytes_of(token)):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    def chat(self, messages: Sequence[Mapping[str, Any]], *, answer: bool = True, **names: Any) -> list[int]:
        """The tokens of a conversation, by the file's chat template.

        Args:
            messages: Each with "role" ("system", "user", "assistant") and "content".
            answer: Whether an answer is to follow.
            **names: What the template may ask for besides, as `tools` or `enable_thinking`.

        Raises:
            UnsupportedError: The file has no template, or Jinja2 is not installed.
            InvalidProblemError: The template refuses the messages.
        """
        if self.chat_template is None:
            raise UnsupportedError(
                "messages: got a conversation, want a text: the file has no chat template, so the model was not trained to chat. "
                "Use encode."
            )
        pieces = self._v.pieces
        ends = {name: "" if t is None else pieces[t] for name, t in (("bos_token", self.bos), ("eos_token", self.eos))}
        text = rendered(self.chat_template, messages, add_generation_prompt=answer, **ends, **names)
        doubled = self.bos is not None and text.startswith(pieces[self.bos])
        return self.encode(text, special=True, bos=False if doubled else None)
