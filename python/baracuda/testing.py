"""For the tests of code that uses baracuda: failures on purpose."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = ("alloc", "launch")


@dataclass(slots=True)
class Asked:
    """A failure that was asked for.

    Attributes:
        happened: Whether it has come about; set when the `with` block ends.
    """

    happened: bool = False


@contextmanager
def fail(*, after: int = 0, on: str = "launch") -> Iterator[Asked]:
    """Lets one call inside of the `with` block fail, on whatever backend and thread it is; those after it work again.

        with pytest.raises(bc.DeviceError), bc.testing.fail(after=2):
            train_step()          # its third launch fails; did that leave everything as it was?

    Args:
        after: How many calls succeed before the one that fails.
        on: "launch": a kernel's launch, by a plan or a function, is a `bc.DeviceError`, and the outputs' bytes are as
            before. "alloc": memory that baracuda itself asks for, for a `bc.Tensor` or a function's workspace, is a
            `bc.DeviceMemoryError` (a `MemoryError`); arrays that NumPy or torch allocate are not counted.

    Yields:
        What says afterwards whether it happened.

    Raises:
        InvalidProblemError: An argument is none of these, or a failure of this kind is asked for already.
    """
    if on not in _KINDS:
        raise InvalidProblemError(f"fail.on: got {on!r}, want one of {', '.join(_KINDS)}.")
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < 2**62:
        raise InvalidProblemError(f"fail.after: got {after!r}, want an int of at least 0.")
    kind = _KINDS.index(on)
    before = _core.inject(kind, after)
    if before >= 0:
        _core.inject(kind, before)
        raise InvalidProblemError(f"fail.on: got {on!r} again, want one failure of a kind at a time.")
    asked = Asked()
    try:
        yield asked
    finally:
        asked.happened = _core.inject(kind, -1) < 0
