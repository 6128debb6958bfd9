"""Calls that are refused: what is asserted of each, and which codes have been seen."""

from __future__ import annotations

from typing import Any

import pytest
from calls import ValidCall

import baracuda as bc

# Codes that no question on a machine with only a cpu can reach through the public API.
UNREACHED = {
    "op": "evaluate() is asked about rows of one op; select and capabilities() filter by op first",
    "direction": "as op: rows of the other direction are not candidates",
    "no_device": "a backend that is built but has no device: there is only the cpu here (BARACUDA_CPU_LEVEL, see test_forced_level)",
    "device_memory": "memory of a device; tests/device/test_device.py reaches it on the emulated ones",
    "launch_failed": "a kernel that breaks its own contract; cpu kernels have no way to fail",
}
# Codes that exist for rows which declare a limit; reached as soon as one row does.
BY_ROWS = {
    "arch": lambda r: r["backend"] == "cpu" and r["min_arch"] > 5,
    "deterministic": lambda r: not r["deterministic"],
    "batch_invariant": lambda r: not r["batch_invariant"],
    "math_precision": lambda r: r["math"] != "ieee",
    "aux_element": lambda r: bool(r["aux"]),
    "not_built": lambda r: r["backend"] != "cpu",
    "workspace_limit": lambda r: r["workspace"],
    "workspace": lambda r: r["workspace"],
    "workspace_alignment": lambda r: r["workspace"],
}
REACHED: set[str] = set()


def refused(
    call: ValidCall, code: str, field: str, cls: type[Exception] = bc.InvalidProblemError, **changes: Any
) -> bc.BaracudaError:
    """Asserts that the changed call is refused as said, by run and can_implement, and that nothing was written."""
    before = call.bytes()
    with pytest.raises(cls) as caught:
        call.run(**changes)
    error = caught.value
    assert isinstance(error, bc.BaracudaError)
    first = error.refusals[0]
    assert (first.code, first.field) == (code, field), f"{error}"
    assert type(error) is cls
    assert first.got and first.want and first.hint, f"says too little: {first}"
    assert first.field in str(error) and first.got in str(error) and first.want in str(error)
    assert call.bytes() == before, "a refused call wrote"
    answer = call.check(**changes)
    assert not answer and answer.verdict == "no"
    assert (code, field) in {(r.code, r.field) for r in answer.refusals}, f"{answer}"
    REACHED.update(r.code for r in answer.refusals)
    return error


def first_tensor(call: ValidCall, role: int | None = None, rank: int = 0) -> str | None:
    for p in call.tensors:
        if not p.variadic and (role is None or p.role == role) and len(p.shape) >= rank:
            return p.name
    return None
