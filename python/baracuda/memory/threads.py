"""How many threads CPU kernels use; results never depend on it."""

from __future__ import annotations

from baracuda import _core
from baracuda.describe.calls import signed
from baracuda.describe.errors import InvalidProblemError, shown, whole

_wrong = _core.check_thread_settings()
if _wrong:
    raise InvalidProblemError(_wrong)


@signed
def set_num_threads(n: int) -> None:
    """Sets how many threads a kernel may use; 0 returns to the default (OMP_NUM_THREADS, torch's setting, or all CPUs)."""
    count = whole(n)
    if count is None or not 0 <= count < 2**31:
        raise InvalidProblemError(f"set_num_threads: n: got {shown(n)}, want an int of at least 0 (0: the default).")
    _core.set_num_threads(count)


@signed
def get_num_threads() -> int:
    """The number of threads that a kernel started here would use."""
    return int(_core.num_threads())
