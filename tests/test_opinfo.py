"""PyTorch's own samples (OpInfo): entries that agreed whole stay so. tests/harness/opinfo/count.py counts, and writes the list."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from differential import functions
from differential.probe import Probe
from opinfo import entries
from opinfo.count import LIST, judged
from opinfo.judge import gradient_differs, wrong

from baracuda import _index
from conftest import FULL, SEED

VERSION, *WHOLE = LIST.read_text().split("\n")[:-1]
BY_NAME = {entries.title(e): e for e in entries.table()}
SAMPLES = None if FULL else 5  # of an entry and element


GRADIENTS_DIFFER = {"special.entr"}  # docs/not-like-torch.md says how


def _thinned(given: list[entries.Given], name: str) -> list[entries.Given]:
    if SAMPLES is None or len(given) <= SAMPLES:
        return given
    rng = np.random.default_rng([SEED, *name.encode()])
    return [given[i] for i in sorted(rng.choice(len(given), SAMPLES, replace=False))]


def test_the_table_is_that_of_the_list() -> None:
    """It is an internal of torch: with another version, count again and read what changed."""
    assert f"torch {torch.__version__.partition('+')[0]}" == VERSION
    assert set(WHOLE) <= set(BY_NAME) and sorted(WHOLE) == WHOLE


@pytest.mark.parametrize("name", WHOLE)
def test_samples_agree(name: str) -> None:
    entry = BY_NAME[name]
    fn = entries.function(entry)
    assert fn is not None, "the function is gone"
    given = [g for e in entries.elements(entry) for g in _thinned(entries.samples(entry, e), name)]
    with Probe().installed() as probe:
        found = wrong(entry, fn, given, probe)
    assert given and not found, f"{len(found)} of {len(given)}:\n" + "\n".join(found[:5])


def _sampled(name: str) -> bool:
    """Whether only this file compares the gradients of an entry's function."""
    fn = entries.function(BY_NAME[name])
    module = _index.FUNCTIONS.get(getattr(fn, "__name__", ""), "").rpartition(".")[2]
    return module in functions.SAMPLED and getattr(fn, "vjp_rule", None) is not None


@pytest.mark.parametrize("name", [n for n in WHOLE if _sampled(n) and n not in GRADIENTS_DIFFER])
def test_gradients_agree(name: str) -> None:
    entry = BY_NAME[name]
    fn = entries.function(entry)
    given = [
        g for e in entries.elements(entry) if e.is_floating_point for g in _thinned(entries.samples(entry, e), name)
    ]
    with Probe().installed() as probe:
        found = {text: g for g in given if (text := gradient_differs(entry, fn, g, probe))}
    assert given and not found, found


@pytest.mark.skipif(not FULL, reason="judges everything that is not in the list")
def test_the_list_is_whole() -> None:
    with Probe().installed() as probe:
        found = [n for n, e in BY_NAME.items() if n not in WHOLE and (j := judged(e, probe)) and j[0] and not j[1]]
    assert not found, "agree, too: python tests/harness/opinfo/count.py --write"


def test_differences_are_seen() -> None:
    """A function that is off by 1e-4, and one of another element."""
    entry = BY_NAME["exp"]
    given = entries.samples(entry, torch.float32)[:1]
    with Probe().installed() as probe:
        for other in (
            lambda x: torch.exp(x) * (1 + 1e-4),
            lambda x: torch.exp(x).double(),
            lambda x: torch.exp(x)[None],
        ):
            assert len(wrong(entry, other, given, probe)) == 1
