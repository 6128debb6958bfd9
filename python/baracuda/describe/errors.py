"""Errors: each carries a code and fields, and says what came, what is wanted and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why something cannot be done.

    Attributes:
        code: Enumerated reason (see docs/errors.md); part of the API.
        field: Argument or descriptor field that is at fault.
        got: What came.
        want: What is accepted.
        hint: What to do about it; may be empty.
        needed: A number that would do (bytes, a maximum), or -1.
        actual: The number that came, or -1.
    """

    code: str
    field: str
    got: str
    want: str
    hint: str = ""
    needed: int = -1
    actual: int = -1

    def __str__(self) -> str:
        """One readable line."""
        text = f"{self.field}: " if self.field else ""
        text += f"got {self.got}, want {self.want}" if self.got else f"want {self.want}"
        return f"{text} ({self.hint})" if self.hint else text


class BaracudaError(Exception):
    """Base of all errors of this package.

    Attributes:
        code: The first refusal's code, or "error".
        refusals: Every reason that was found.
    """

    def __init__(self, message: str, refusals: Sequence[Refusal] = ()) -> None:
        super().__init__(message)
        self.refusals = tuple(refusals)
        self.code = self.refusals[0].code if self.refusals else "error"


class InvalidProblemError(BaracudaError, ValueError):
    """A question that has no answer: a wrong shape, rank, element, attribute or argument."""


class UsageError(BaracudaError, TypeError):
    """A call that a signature does not allow: an argument is missing, unknown, given twice, or one too many."""


class UnsupportedError(BaracudaError, NotImplementedError):
    """A sound question that no kernel answers."""


class BackendUnavailableError(BaracudaError, RuntimeError):
    """The backend is not built into this wheel, or its device is absent."""


class MisalignedOperandError(InvalidProblemError):
    """A data pointer is not aligned as the kernel needs."""


class WorkspaceTooSmallError(BaracudaError, ValueError):
    """The workspace holds fewer bytes than the call needs: `plan.workspace_size`, or `workspace_for` its sizes.

    Attributes:
        needed: Bytes that the plan needs.
        got: Bytes that came.
    """

    def __init__(self, message: str, refusals: Sequence[Refusal] = ()) -> None:
        super().__init__(message, refusals)
        self.needed = self.refusals[0].needed if self.refusals else -1
        self.got = self.refusals[0].actual if self.refusals else -1


class BufferTooSmallError(BaracudaError, ValueError):
    """A tensor's known memory is smaller than its shape and strides reach.

    Attributes:
        needed: Bytes that the view reaches.
        got: Bytes that the memory has.
    """

    def __init__(self, message: str, refusals: Sequence[Refusal] = ()) -> None:
        super().__init__(message, refusals)
        self.needed = self.refusals[0].needed if self.refusals else -1
        self.got = self.refusals[0].actual if self.refusals else -1


class DeviceError(BaracudaError, RuntimeError):
    """A launch or a device failed."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device has not as much memory left as was asked for."""


class IndexOutOfRangeError(BaracudaError, IndexError):
    """An index in the data lies outside the indexed dimension."""


class IntegerDivisionError(BaracudaError, ZeroDivisionError):
    """An integer division by zero in the data."""


class ValueOutOfRangeError(BaracudaError, ValueError):
    """A number in the data lies outside what the op is defined for."""


class MemoryLimitError(BaracudaError, MemoryError):
    """An allocation would pass the limit that was set."""


_CLASS_OF_CODE: dict[str, type[BaracudaError]] = {
    "backend": BackendUnavailableError,
    "not_built": BackendUnavailableError,
    "no_device": BackendUnavailableError,
    "misaligned": MisalignedOperandError,
    "workspace": WorkspaceTooSmallError,
    "buffer_too_small": BufferTooSmallError,
    "workspace_alignment": MisalignedOperandError,
    "index_out_of_range": IndexOutOfRangeError,
    "integer_division": IntegerDivisionError,
    "value_out_of_range": ValueOutOfRangeError,
    "launch_failed": DeviceError,
    "device_memory": DeviceMemoryError,
    "not_a_tensor": InvalidProblemError,
}


def shown(value: object) -> str:
    """A value for a message: Python refuses to write integers of thousands of digits, and nobody reads long texts."""
    try:
        text = value._described() if isinstance(value, _core.Tensor) else repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too long to be shown"
    return text if len(text) <= 200 else text[:200] + " ..."


def whole(value: object) -> int | None:
    """An integer of any kind as an int; None for anything else, truth values too."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return index(value)  # type: ignore[arg-type]
    except Exception:  # a foreign `__index__` may raise anything
        return None


def is_text(value: object) -> bool:
    """Whether this is a text that the engine can read: surrogates alone are none."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def error_of(message: str, refusals: Sequence[tuple[Any, ...]], error_class: str | None) -> BaracudaError:
    """The exception for what the engine refuses: of this class, or of the one that the first refusal's code has."""
    reasons = [Refusal(*r) for r in refusals]
    made = _CLASS_OF_CODE.get(reasons[0].code, InvalidProblemError) if error_class is None else globals()[error_class]
    return made(message, reasons)


_core.set_error_factory(error_of)
