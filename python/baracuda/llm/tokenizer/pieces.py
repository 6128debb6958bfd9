"""SentencePiece's byte pair encoding, by the `sentencepiece` library: what files call the tokenizer "llama"."""

from __future__ import annotations

import struct
from importlib import import_module

from baracuda.describe.errors import InvalidProblemError
from baracuda.llm.tokenizer.libraries import needed
from baracuda.llm.tokenizer.vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, Vocabulary

_SPACE = "\u2581"
_VARINT, _BYTES, _FLOAT = 0, 2, 5
_BPE = 2  # of TrainerSpec.model_type


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, kind: int, value: bytes) -> bytes:
    """An entry of a protocol buffer."""
    tag = _number(number << 3 | kind)
    return tag + _number(len(value)) + value if kind == _BYTES else tag + value


def _model(v: Vocabulary) -> bytes:
    """The file of SentencePiece that has these pieces and scores: sentencepiece_model.proto's ModelProto."""
    unknown = v.metadata.whole("unknown_token_id", 0, least=0, most=len(v.pieces) - 1)
    bytes_there = sum(kind == BYTE for kind in v.kinds) == 256
    out = []
    for i, (piece, score, kind) in enumerate(zip(v.pieces, v.scores(), v.kinds, strict=True)):
        shown = UNKNOWN if i == unknown else CONTROL if kind == UNKNOWN or not piece else kind
        entry = _field(1, _BYTES, (piece or f"<empty {i}>").encode()) + _field(2, _FLOAT, struct.pack("<f", score))
        if shown != NORMAL:
            entry += _field(3, _VARINT, _number(shown))
        out.append(_field(1, _BYTES, entry))
    trainer = (
        _field(3, _VARINT, _number(_BPE))
        + _field(35, _VARINT, _number(bytes_there))
        + _field(40, _VARINT, _number(unknown))
    )
    for number in (41, 42, 43):  # tokens of begin, end and padding are none of its business
        trainer += _field(number, _VARINT, b"\xff" * 9 + b"\x01")
    as_it_is = _field(3, _VARINT, b"\0") + _field(4, _VARINT, b"\0") + _field(5, _VARINT, b"\1")
    return b"".join([*out, _field(2, _BYTES, trainer), _field(3, _BYTES, as_it_is)])


class Pieces:
    """Texts to pieces and back."""

    def __init__(self, v: Vocabulary) -> None:
        needed("sentencepiece")
        try:
            self._processor = import_module("sentencepiece").SentencePieceProcessor(model_proto=_model(v))
        except RuntimeError as error:
            raise InvalidProblemError(
                f"{v.metadata.path!r}: tokenizer: got tokens that SentencePiece refuses: {error}"
            ) from error
        self._v = v
        self._prefix = " " if v.metadata.flag("add_space_prefix", True) else ""

    def encode(self, text: str, *, first: bool) -> list[int]:
        """Tokens of a text without special ones; `first`: a text begins here, and with a space where the file wants it."""
        given = self._prefix + text if first else text
        found: list[int] = self._processor.encode(given)
        return found

    def decode(self, token: int) -> bytes:
        """The bytes that a token stands for."""
        piece = self._v.pieces[token]
        if self._v.kinds[token] == BYTE:
            return bytes([int(piece[3:5], 16)])
        return piece.replace(_SPACE, " ").encode()

    @property
    def leading(self) -> bytes:
        """What the first token of a text begins with that is none of the text's."""
        return self._prefix.encode()
