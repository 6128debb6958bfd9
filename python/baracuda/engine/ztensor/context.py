"""Contexts: what a caller may cancel calls with."""

from __future__ import annotations

import threading
import time

from baracuda.describe.errors import BaracudaError


class CancelledError(BaracudaError, RuntimeError):
    """A call's context was cancelled, or its time was over, before the call began."""


class Context:
    """The context that a call may be given as its first argument, as Go's context.Context.

    A call asks it once, before it launches anything: a call that has begun runs to its end.

    Args:
        timeout: Seconds from now after which it counts as cancelled; None for never.
        parent: Counts for this one too.

    Example:
        >>> ctx = Context(timeout=5)
        >>> y = engine.ztensor.MatMul(ctx, a, b)
    """

    def __init__(self, timeout: float | None = None, parent: Context | None = None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._parent = parent
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Cancels all calls from now on; any thread may."""
        self._cancelled.set()

    def err(self) -> str:
        """Why calls are refused, or an empty text."""
        if self._cancelled.is_set():
            return "a cancelled context"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "a context whose time is over"
        return self._parent.err() if self._parent else ""

    def check(self, name: str) -> None:
        """Refuses a call.

        Raises:
            CancelledError: It was cancelled, or its time is over.
        """
        why = self.err()
        if why:
            raise CancelledError(f"{name}: got {why}, want one that is neither cancelled nor over. Nothing was done.")
