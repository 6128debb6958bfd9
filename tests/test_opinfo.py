"""PyTorch's own samples (OpInfo): those of functions that are here agree, but for what the families' facts say of some."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from differential import functions
from differential.probe import Probe
from opinfo import entries
from opinfo.count import judged
from opinfo.judge import gradient_differs, wrong

from baracuda import _index
from conftest import FULL, SEED

WHOLE = entries.whole()
BY_NAME = {entries.title(e): e for e in entries.table()}
SAMPLES = None if FULL else 5  # of an entry and element


GRADIENTS_DIFFER = {"special.entr"}  # docs/not-like-torch.md says how


def _thinned(given: list[entries.Given], name: str) -> list[entries.Given]:
    if SAMPLES is None or len(given) <= SAMPLES:
        return given
    rng = np.random.default_rng([SEED, *name.encode()])
    return [given[i] for i in sorted(rng.choice(len(given), SAMPLES, replace=False))]


def test_facts_name_entries_of_the_table() -> None:
    """It is an internal of torch: with another version, count again and read what changed."""
    assert torch.__version__.partition("+")[0] == entries.VERSION
    assert set(entries.PARTLY) <= set(BY_NAME) and len(WHOLE) > 400


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


@pytest.mark.skipif(not FULL, reason="judges all samples of these")
@pytest.mark.parametrize("name", sorted(entries.PARTLY))
def test_what_differs_still_does(name: str) -> None:
    with Probe().installed() as probe:
        found = judged(BY_NAME[name], probe)
    assert found is not None and (found[1] or not found[0]), "agrees whole now: drop it from the facts"


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
