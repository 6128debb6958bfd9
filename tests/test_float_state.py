"""Bits do not depend on the caller's floating-point state, which is as it was afterwards (tests/harness/float_states.py)."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baracuda.functional as F
from baracuda import _core

_HARNESS = Path(__file__).parent / "harness"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the state's register is not known")
@pytest.mark.parametrize("threads", [1, 4])
def test_every_state_gives_the_same_bits_and_stays(threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(_HARNESS / "float_states.py")],
        env=os.environ | {"BARACUDA_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-6000:]}"


def test_what_torch_flushes_is_kept() -> None:
    torch = pytest.importorskip("torch")
    x = np.full(300_000, np.finfo(np.float32).tiny / 4, np.float32)
    want = F.mul(x, x * 0 + 1)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes nothing")
    try:
        for _ in range(5):
            assert F.mul(x, np.ones_like(x)).tobytes() == want.tobytes()
        flushed = torch.full((2,), 1e-40) * 0.5
        assert (flushed == 0).all(), "torch's own state is gone"
    finally:
        torch.set_flush_denormal(False)
    assert (want != 0).all() and _core.num_threads() > 0
