"""How many threads CPU kernels use; results never depend on it."""

from __future__ import annotations

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError

_wrong = _core.check_thread_settings()
if _wrong:
    raise InvalidProblemError(_wrong)


def set_num_threads(n: int) -> None:
    """Sets how many threads a kernel may use; 0 returns to the default (OMP_NUM_THREADS, torch's setting, or all CPUs)."""
    if n < 0:
        raise InvalidProblemError(f"set_num_threads: got {n}, want at least 0.")
    _core.set_num_threads(n)


def get_num_threads() -> int:
    """The number of threads that a kernel started here would use."""
    return int(_core.num_threads())
