"""Libraries that are not needed to compute, and asked for when a text is."""

from __future__ import annotations

from importlib.util import find_spec

from baracuda.describe.errors import UnsupportedError


def needed(name: str) -> None:
    """An error where a library is not installed.

    Raises:
        UnsupportedError: It is not; the message says how to install it.
    """
    if find_spec(name) is None:
        raise UnsupportedError(
            f"this model's texts need the library {name}, which is not installed: pip install {name}, or 'baracuda[llm]'. "
            f"Tokens can be computed without."
        )
