"""ztensor's failures on purpose. bc.testing.fail has any allocation and any launch fail, without other types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from baracuda.describe.errors import DeviceError, InvalidProblemError
from baracuda.engine.names import Name, Named, tensor
from baracuda.engine.ztensor.table import Ztensor

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine


class FailableTensor:
    """A tensor whose `Set` fails when it is told to.

    Args:
        tensor: What is written to.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._fail, self._after, self._calls = False, 0, 0

    def SetFailOnSet(self, fail: bool) -> None:
        """Has every `Set` fail, or none."""
        self._fail = fail

    def SetFailOnSetAfter(self, count: int) -> None:
        """Has the count-th `Set` from now on fail, and those after it; 0: none."""
        self._after, self._calls = count, 0

    def Set(self, value: Any, *indices: int) -> None:
        """Writes an element.

        Raises:
            DeviceError: It was told to.
        """
        self._calls += 1
        if self._fail or 0 < self._after <= self._calls:
            raise DeviceError(f"Set: a failure that was asked for, in call {self._calls}.")
        from baracuda import functional as F

        F.copy(tensor(value), out=tensor(self.tensor)[indices])


class FailableZeroer:
    """`Zero` of an engine, which fails when it is told to.

    Args:
        engine: Whose.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._fail = engine, False

    def SetFailOnZero(self, fail: bool) -> None:
        """Has every `Zero` fail, or none."""
        self._fail = fail

    def Zero(self, a: Any) -> None:
        """Sets all elements to 0.

        Raises:
            DeviceError: It was told to.
        """
        if self._fail:
            raise DeviceError("Zero: a failure that was asked for.")
        Ztensor(self._engine).Zero(a)


def _set(result: FailableTensor, made: Any) -> None:
    if tuple(tensor(result.tensor).shape) != tuple(made.shape):
        raise InvalidProblemError(f"result: got shape {tuple(tensor(result.tensor).shape)}, want {tuple(made.shape)}.")
    for i in range(made.shape[0]):
        for j in range(made.shape[1]):
            result.Set(made[i, j], i, j)


def _summed(e: Engine, a: Any, axis: int, keepDims: bool, zeroer: FailableZeroer, result: Any) -> None:
    zeroer.Zero(result)
    Ztensor(e).Sum(a, axis, keepDims, result)


class TestableEngine(Named):
    """ztensor's TestableEngine: three calls whose results are written element by element, so that one of these can fail.

    Args:
        engine: What computes.
    """

    __test__ = False
    system = "ztensor.TestableEngine"
    names: ClassVar[Mapping[str, Name]] = {
        "TestableMatMul": Name("a b result", lambda e, a, b, result: _set(result, e.F.matmul(a, b)),
            "`F.matmul`, set in a FailableTensor"),
        "TestableTranspose": Name("a result", lambda e, a, result: _set(result, tensor(a).T), "a.T, set in a FailableTensor"),
        "TestableSum": Name("a axis keepDims zeroer result", _summed, "zeroer.Zero(result), then `Sum` into it",
            "sums along any axis, and keeps dimensions"),
    }  # fmt: skip
