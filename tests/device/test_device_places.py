"""Functions of values once, of segments and of places on a device give what they give on the cpu."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fakecuda import on_devices

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(0)
X, IDS, AT = RNG.integers(0, 5, (30, 3)).astype(np.float32), RNG.integers(0, 4, 30), RNG.integers(-30, 30, 7)
TWO = np.full((1, 3), 2, np.float32)
CALLS: dict[str, Callable[..., Any]] = {
    "unique": lambda x, ids, at, two: F.unique(x, True, True, True),
    "unique dim": lambda x, ids, at, two: F.unique(x, True, True, True, 0, return_index=True),
    "unique_consecutive": lambda x, ids, at, two: F.unique_consecutive(x, True, True),
    "unique_consecutive dim": lambda x, ids, at, two: F.unique_consecutive(x, True, True, 0),
    "mode": lambda x, ids, at, two: F.mode(x, 0),
    "nonzero_static": lambda x, ids, at, two: F.nonzero_static(x, size=100),
    "lexsort": lambda x, ids, at, two: F.lexsort(x, x, dim=0),
    "index": lambda x, ids, at, two: F.index(x, (None, at % 2)),
    "index_put": lambda x, ids, at, two: F.index_put(x, (at, None), two),
    "index_put accumulate": lambda x, ids, at, two: F.index_put(x, (at, None), two, True),
    "index_put mask": lambda x, ids, at, two: F.index_put(x, (F.gt(x, 2),), two[0, 0]),
    "cumsum": lambda x, ids, at, two: F.cumsum(x, 0, reverse=True, exclusive=True),
    **{
        f"segment_{n}": lambda x, ids, at, two, n=n: getattr(F, f"segment_{n}")(x, ids, 5)
        for n in ("sum", "mean", "prod", "max", "min", "softmax")
    },
}


@on_devices
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_cpu(name: str) -> None:
    """In a thread, whose scratch goes with it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_check, name).result()


def _check(name: str) -> None:
    given = (X, IDS, AT, TWO)
    there = CALLS[name](*(bc.asarray(a, device="cuda:1") for a in given))
    here = CALLS[name](*(bc.asarray(a) for a in given))
    pairs = zip(there, here, strict=True) if isinstance(here, tuple) else [(there, here)]
    for got, want in pairs:
        assert got.device == "cuda:1"
        np.testing.assert_allclose(got.to("cpu").numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
