"""Windows of all kinds between pages that nobody may touch, each held to its promise (tests/harness/windows.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from children import run_alone

import baracuda as bc
from conftest import FULL, SEED

_HARNESS = Path(__file__).parent / "harness"


def test_windows_of_any_kernel_stride_padding_and_dilation() -> None:
    code = f"import sys\nsys.path.insert(0, {str(_HARNESS)!r})\nimport windows\nwindows.main(*map(int, sys.argv[1:]))"
    run_alone(code, str(SEED), str(20_000 if FULL else 120), limit=3000 if FULL else 200)


def test_windows_wholly_in_the_padding_hold_nothing() -> None:
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    made = bc.plan(bc.MaxPoolDescriptor((1, 1, 5), (2,), stride=(1,), low=(60,), high=(60,), indices=True))
    y, where = made.run(
        x, np.empty(made.output_shapes()["y"], np.float32), np.empty(made.output_shapes()["indices"], np.int64)
    )
    inside = slice(59, 65)
    assert np.isneginf(np.delete(y[0, 0], inside)).all() and y[0, 0, inside].tolist() == [1, 2, 3, 4, 5, 5]
    assert (np.delete(where[0, 0], inside) == 0).all() and where[0, 0, inside].tolist() == [0, 1, 2, 3, 4, 4]
    means = bc.plan(bc.AvgPoolDescriptor((1, 1, 5), (2,), stride=(1,), low=(60,), high=(60,), count_include_pad=False))
    y = means.run(x, np.empty_like(y))
    assert np.isnan(np.delete(y[0, 0], inside)).all() and y[0, 0, inside].tolist() == [1, 1.5, 2.5, 3.5, 4.5, 5]
