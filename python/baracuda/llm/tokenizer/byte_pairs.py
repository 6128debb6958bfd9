"""Byte pair encoding over bytes, by the `tokenizers` library: what files call the tokenizer "gpt2"."""

from __future__ import annotations

from importlib import import_module

from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.llm.tokenizer.libraries import needed
from baracuda.llm.tokenizer.vocabulary import NORMAL, Vocabulary

_CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
_GPT2 = rf"{_CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"(?i:{_CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_END = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+(?i:{_CONTRACTIONS})?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*(?i:{_CONTRACTIONS})?"
    rf"|\p{{N}}{{1,3}}|{_END}"
)
_TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}|{_END}"
_DIGITS = r"\p{N}"  # each for itself, before the rest is cut
# Where texts are cut before bytes are joined, by what files call it: one expression after the other.
_CUTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "smaug-bpe", "dbrx"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"), (_QWEN2,)),
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "exaone4"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "granite-docling"), (_DIGITS, _GPT2)),
    **dict.fromkeys(("gpt-4o", "llama4"), (_GPT4O,)),
    "tekken": (_TEKKEN,),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}
# Whose pieces that are tokens are taken whole, however they would be joined.
_WHOLE = {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken"}


def _letters() -> dict[str, int]:
    """The letter that stands for each byte in a token's text, as GPT-2 has it."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {chr(b): b for b in kept} | {chr(256 + i): b for i, b in enumerate(others)}


class BytePairs:
    """Texts to tokens and back."""

    leading = b""

    def __init__(self, v: Vocabulary) -> None:
        needed("tokenizers")
        name = v.metadata.text("pre", "default")
        if name not in _CUTS:
            known = ", ".join(sorted(_CUTS))
            raise UnsupportedError(
                f"{v.metadata.path!r}: metadata 'tokenizer.ggml.pre': got {name!r}, want one of {known}; how texts are cut for it is not "
                f"known here. Tokens can be computed nevertheless."
            )
        self._v, self._bytes = v, _letters()
        self._all_bytes = set(self._bytes) <= set(v.ids)
        library = import_module("tokenizers")
        cuts = [library.pre_tokenizers.Split(library.Regex(cut), "isolated") for cut in _CUTS[name]]
        letters = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        merges = self._merges()
        try:
            model = library.models.BPE(v.ids, merges, ignore_merges=name in _WHOLE)
            self._library = library.Tokenizer(model)
        except Exception as error:  # the library raises its own base class for whatever it refuses
            raise InvalidProblemError(
                f"{v.metadata.path!r}: tokenizer: got tokens that cannot be used: {error}"
            ) from error
        self._library.pre_tokenizer = library.pre_tokenizers.Sequence([*cuts, letters])

    def _merges(self) -> list[tuple[str, str]]:
        """Pairs in the order in which they are joined."""
        found = []
        for line in self._v.metadata.texts("merges"):
            left, space, right = line.partition(" ") if line[:1] != " " else (" ", " ", line[2:])
            if not space or not right or left + right not in self._v.ids:
                continue  # it would make no token
            found.append((left, right))
        return found

    def encode(self, text: str, *, first: bool) -> list[int]:
        """Tokens of a text without special ones."""
        encoded = self._library.encode(text, add_special_tokens=False)
        found: list[int] = encoded.ids
        # The library leaves out what has no token.
        if not self._all_bytes and sum(len(self.decode(t)) for t in found) != len(text.encode()):
            raise self._v.unknown(text)
        return found

    def decode(self, token: int) -> bytes:
        """The bytes that a token stands for."""
        piece = self._v.pieces[token]
        if self._v.kinds[token] != NORMAL:
            return piece.encode()
        return b"".join(bytes([self._bytes[c]]) if c in self._bytes else c.encode() for c in piece)
