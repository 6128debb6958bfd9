"""Tensors of rank 8, the highest, and 9, which nothing takes: every function gives what torch gives, or an error that is ours.

Calls are those of tests/harness/differential, some of whose tensors have dimensions of size 1 put in until there are so many;
functions that torch does not have are called as in python/baracuda/ops/*/*_facts.py.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from differential import calls, functions
from differential.calls import Call
from differential.judge import judge
from differential.probe import Probe
from differential.values import T

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.facts import collected
from conftest import FULL

SAMPLES = collected("samples")

EACH = int(os.environ.get("BARACUDA_HIGH_RANKS", "12" if FULL else "1"))  # calls of each function
PARTS = 4
SEED = int(os.environ.get("BARACUDA_TEST_SEED", datetime.now(UTC).strftime("%Y%m%d")))
Rng = np.random.Generator


def lifted(x: np.ndarray, rank: int, rng: Rng) -> np.ndarray:
    """The same numbers with dimensions of size 1 put in, mostly in front."""
    shape = list(x.shape)
    while len(shape) < rank:
        shape.insert(0 if rng.random() < 0.6 else int(rng.integers(len(shape) + 1)), 1)
    return x.reshape(shape)


def of_rank(call: Call, rank: int, rng: Rng) -> Call:
    """The call with all its tensors, or some of them, of so high a rank."""
    share = 1.0 if rng.random() < 0.6 else 0.5

    def change(x: Any) -> Any:
        if isinstance(x, list):
            return [change(part) for part in x]
        if not isinstance(x, T) or rng.random() >= share:
            return x
        producer = "numpy" if x.producer == "own" else x.producer  # no bc.Tensor has rank 9
        return replace(x, array=lifted(x.array, rank, rng), layout="contiguous", producer=producer)

    return replace(call, given={k: change(v) for k, v in call.given.items()}, wants_out=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_of_high_ranks(part: int) -> None:
    """Results are torch's, and what is refused is refused by an error of ours."""
    wrong = []
    with Probe().installed() as probe:
        for i, name in enumerate(functions.names()[part::PARTS]):
            for k in range(EACH):
                rng = np.random.default_rng((SEED, i, k))
                rank = 9 if rng.random() < 0.2 else 8
                plain = calls.make(name, (SEED, k))
                found = judge(of_rank(plain, rank, rng), probe, rng)
                found = [f for f in found if not f.excuse and f.kind != "refused"]  # torch takes higher ranks
                if found and not judge(replace(plain, wants_out=False), probe, rng):  # else it is not the rank
                    wrong += map(str, found)
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("rank", [8, 9])
def test_functions_without_a_peer(rank: int) -> None:
    wrong = []
    for name, (args, options) in SAMPLES.items():
        for k in range(EACH):
            rng = np.random.default_rng((SEED, rank, k))

            def change(x: Any, rng: Rng = rng) -> Any:
                if isinstance(x, list):
                    return [change(part) for part in x]
                return lifted(x.copy(), rank, rng) if isinstance(x, np.ndarray) else x

            try:
                getattr(F, name)(*map(change, args), **options)
            except bc.BaracudaError:
                pass
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:10])
