"""Generator: a position in a stream of random numbers, which follow from (seed, offset, element index) alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from baracuda import _core
from baracuda.describe.calls import Signed, signed
from baracuda.describe.errors import InvalidProblemError, whole

_WORD = 2**64
T = TypeVar("T")

# One for all generators: held for a few instructions, and let go of in a forked child, where its holder may be missing.
# A finaliser or a signal's handler may draw while its thread holds it: nothing between a look at the offset and its change
# calls a function or makes an object that a collection would come with.
_held = threading.RLock()


def _let_go() -> None:
    global _held
    _held = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class Generator(metaclass=Signed):
    """A position in the Philox4x32-10 stream of a seed.

    Each draw takes the blocks it needs and moves the offset on, so that no number is used twice. The offset counts
    blocks of four 32-bit words: a draw of n elements takes ceil(n / 4), or ceil(n / 2) for f64. Safe to share between
    threads.

    Args:
        seed: 0 <= seed < 2**64; None takes one from the operating system.
        offset: Block to start at.
    """

    __slots__ = ("_offset", "_seed")

    def __init__(self, seed: int | None = None, offset: int = 0) -> None:
        self._seed = _word("seed", int.from_bytes(os.urandom(8)) if seed is None else seed)
        self._offset = _word("offset", offset)

    @property
    def seed(self) -> int:
        """The key of the stream."""
        return self._seed

    @property
    def offset(self) -> int:
        """The next block that a draw will take."""
        return self._offset

    def manual_seed(self, seed: int) -> Generator:
        """Goes to the start of another seed's stream; returns the generator, as torch does."""
        word = _word("seed", seed)
        with _held:
            self._seed, self._offset = word, 0
        return self

    def take(self, blocks: int) -> tuple[int, int]:
        """Reserves blocks; returns (seed, offset), the scalars of a random plan. None where only shapes are asked for."""
        if (tracer := _core.tracer()) is not None:
            return tracer.draw(self, blocks)  # type: ignore[no-any-return]
        asking = _core.inferring()
        with _held:
            seed, start = self._seed, self._offset
            if not asking:
                self._offset = (start + blocks) % _WORD
        return seed, start

    def draw(self, blocks: int, use: Callable[[int, int], T]) -> T:
        """`use(seed, offset)` with blocks of its own, which are given back where it fails and nobody took others since."""
        seed, start = self.take(blocks)
        behind = (start + blocks) % _WORD
        try:
            return use(seed, start)
        except BaseException:
            with _held:
                if self._seed == seed and self._offset == behind:
                    self._offset = start
            raise

    def get_state(self) -> tuple[int, int]:
        """(seed, offset), for a checkpoint."""
        with _held:
            return self._seed, self._offset

    def set_state(self, state: tuple[int, int]) -> None:
        """Goes back to what `get_state` returned."""
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise InvalidProblemError(f"Generator.set_state: got {state!r}, want what get_state() gave.")
        seed, offset = (_word(n, v) for n, v in zip(("seed", "offset"), state, strict=True))
        with _held:
            self._seed, self._offset = seed, offset

    def __getstate__(self) -> tuple[int, int]:
        return self.get_state()

    def __setstate__(self, state: tuple[int, int]) -> None:
        self._seed, self._offset = state

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, offset={self._offset})"


def _word(name: str, value: int) -> int:
    found = whole(value)
    if found is None or not 0 <= found < _WORD:
        raise InvalidProblemError(f"Generator.{name}: got {value!r}, want an int with 0 <= {name} < 2**64.")
    return found


default_generator = Generator()


def chosen(generator: Generator | None) -> Generator:
    """The generator that a random function was given, or the one for all that were given none.

    Raises:
        InvalidProblemError: For what is no Generator of this package, such as torch's.
    """
    if generator is not None and not isinstance(generator, Generator):
        got = f"{type(generator).__module__}.{type(generator).__name__}"
        raise InvalidProblemError(f"generator: got {got}, want a bc.Generator or None.")
    return default_generator if generator is None else generator


@signed
def manual_seed(seed: int) -> Generator:
    """Seeds the generator that random functions use when none is given."""
    return default_generator.manual_seed(seed)
