"""What a GGUF file says about itself, read entry by entry: nothing is believed that was not checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from baracuda.describe.errors import InvalidProblemError, shown

_MISSING = object()


class Metadata:
    """A file's metadata.

    Attributes:
        path: The file's name, for messages.
        entries: All of them, by key.
        prefix: What the keys of the architecture begin with, as "llama.".
    """

    def __init__(self, path: str, entries: Mapping[Any, Any], prefix: str = "") -> None:
        self.path, self.entries, self.prefix = path, entries, prefix

    def within(self, prefix: str) -> Metadata:
        """The same entries, of which those that begin with a prefix are asked for without it."""
        return Metadata(self.path, self.entries, prefix)

    def wrong(self, key: str, got: str, want: str) -> InvalidProblemError:
        """The error for an entry that is no good."""
        return InvalidProblemError(f"{self.path!r}: metadata {self.prefix + key!r}: got {got}, want {want}.")

    def has(self, key: str) -> bool:
        """Whether the file says it."""
        return self.prefix + key in self.entries

    def _value(self, key: str, default: Any, want: str) -> Any:
        value = self.entries.get(self.prefix + key, _MISSING)
        if value is not _MISSING:
            return value
        if default is _MISSING:
            raise self.wrong(key, "nothing", f"{want}; the file is incomplete, or was written for another program")
        return default

    def whole(self, key: str, default: Any = _MISSING, *, least: int = 1, most: int = 2**31 - 1) -> Any:
        """An integer; of a list, one for each layer, that which all entries are."""
        want = f"an integer from {least} to {most}"
        value = self._value(key, default, want)
        if value is default:
            return value
        if isinstance(value, np.ndarray) and value.size and (value == value.flat[0]).all():
            value = value.flat[0]
        elif isinstance(value, (np.ndarray, list)):
            raise self.wrong(key, f"a list, {shown(value)}", f"{want}; layers that differ in it are not supported")
        if (
            isinstance(value, (bool, np.bool_))
            or not isinstance(value, (int, np.integer))
            or not least <= value <= most
        ):
            raise self.wrong(key, shown(value), want)
        return int(value)

    def number(self, key: str, default: Any = _MISSING, *, above: float = 0.0) -> Any:
        """A finite number above a bound."""
        want = f"a finite number above {above:g}"
        value = self._value(key, default, want)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value < math.inf:
            raise self.wrong(key, shown(value), want)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        value = self._value(key, default, "true or false")
        if not isinstance(value, bool):
            raise self.wrong(key, shown(value), "true or false")
        return value

    def text(self, key: str, default: Any = _MISSING) -> Any:
        """A text."""
        value = self._value(key, default, "a text")
        if value is not default and not isinstance(value, str):
            raise self.wrong(key, shown(value), "a text in UTF-8")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        value = self._value(key, _MISSING, "a list of texts")
        if isinstance(value, np.ndarray) and not value.size:  # an empty list may be one of anything
            return []
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.wrong(key, shown(value)[:80], "a list of texts in UTF-8")
        return value

    def numbers(self, key: str, count: int, default: Any = _MISSING) -> Any:
        """An array of so many finite numbers."""
        want = f"a list of {count} finite numbers"
        value = self._value(key, default, want)
        if value is default:
            return value
        if not isinstance(value, np.ndarray) or value.shape != (count,) or not np.isfinite(value).all():
            got = f"a list of {len(value)}" if isinstance(value, (list, np.ndarray)) else shown(value)
            raise self.wrong(key, got, want)
        return value
