"""Random calls of bc.functional and its gradients give what torch gives, computed in float64, or are excused by name."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from differential import calls, functions
from differential.calls import Call
from differential.excuse import Excuse, call, rows, t
from differential.excuses import EXCUSES
from differential.judge import Finding, judge
from differential.probe import Probe
from differential.values import Dtype

import baracuda.functional as F
from baracuda import _index
from baracuda.prove.peers import torch_function
from conftest import FULL, SEED

SHARDS = 16
CALLS = 105_000 if FULL else 2_500  # of all shards together
AGAIN = "python tests/harness/differential/again.py {name} {seed} {number}"


def run(name: str, number: int, probe: Probe) -> list[Finding]:
    """One call of a function, by its number."""
    seed = (SEED, number)
    return judge(calls.make(name, seed), probe, np.random.default_rng(seed))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_calls_agree_with_torch(shard: int) -> None:
    """Every function in turn; which of its calls a shard makes depends on the seed alone."""
    names = functions.names()
    wrong: list[str] = []
    made: Counter[str] = Counter()
    with Probe().installed() as probe:
        for at in range(shard, CALLS, SHARDS):
            name, number = names[at % len(names)], at // len(names)
            found = [f for f in run(name, number, probe) if not f.excuse]
            made[name] += 1
            if found:
                again = AGAIN.format(name=name, seed=SEED, number=number)
                wrong.append(f"{again}\n    {found[0]}")
    assert not wrong, f"{len(wrong)} of {made.total()} calls:\n" + "\n".join(wrong[:20])


def test_every_function_is_compared_or_has_a_reason() -> None:
    everything = {n for n in dir(F) if not n.endswith("_backward")}
    assert set(functions.ABSENT) <= everything, "reasons for functions that are not there"
    for name in everything - set(functions.ABSENT):
        assert callable(torch_function(name))
        assert _index.FUNCTIONS[name].rpartition(".")[2] in functions.DRAWN, name


def test_every_kind_of_call_is_made() -> None:
    """Gradients, out=, all producers, layouts, elements and ranks, wrong calls, mixed elements, hostile numbers."""
    seen: Counter[str] = Counter()
    for number in range(12):
        for name in functions.names():
            call = calls.make(name, (SEED, number))
            seen.update(k for k in ("gradient", "wants_out", "hostile", "mixed") if getattr(call, k))
            seen["wrong"] += bool(call.wrong)
            for x in call.tensors().values():
                seen.update(
                    (x.producer, x.layout, x.element, f"rank {len(x.shape)}", *(["empty"] if 0 in x.shape else []))
                )
    wanted = {"gradient", "wants_out", "hostile", "mixed", "wrong", "numpy", "torch", "own", "jax", "empty"}
    wanted |= {
        "negative",
        "one_row",
        "windows",
        "transposed",
        "sliced",
        *calls.ELEMENTS,
        *(f"rank {r}" for r in range(7)),
    }
    assert not wanted - {k for k, n in seen.items() if n >= 3}


@pytest.mark.parametrize("excuse", EXCUSES, ids=lambda e: e.row.replace("`", "")[:60])
def test_excuses_are_rows_of_the_page_and_needed(excuse: Excuse) -> None:
    assert excuse.row in rows(), "docs/not-like-torch.md has no such row"
    with Probe().installed() as probe:
        found = judge(excuse.example(), probe, np.random.default_rng(1))
    if excuse.by_processor and not found:
        pytest.skip("on this processor torch's library adds in an order that gives the same")
    assert excuse.row in {f.excuse for f in found}, f"its example does not need it: {[str(f) for f in found]}"


FAULTS = {
    "value": ("exp", lambda x: x * (1 + 1e-4)),
    "element": ("add", lambda x: x.astype(np.float32) if x.dtype != np.float32 else x.astype(np.float64)),
    "shape": ("sum", lambda x: x[None]),
    "kind": ("neg", torch.as_tensor),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_differences_are_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are a little off, of another element, shape or kind."""
    name, change = FAULTS[kind]
    right = getattr(F, name)

    def wrong(*args: object, **kwargs: object) -> object:
        made = right(*args, **kwargs)
        return change(made) if isinstance(made, np.ndarray) and made.size and np.isfinite(made).all() else made

    monkeypatch.setitem(vars(F), name, wrong)
    monkeypatch.setattr(functions, "parameters", lambda n: dict(inspect.signature(right).parameters))
    with Probe().installed() as probe:
        found = {f.kind for number in range(40) for f in run(name, number, probe) if not f.excuse}
    assert kind in found


# What the fuzzing found when it was first run.
FOUND = {
    "out of another rank, seen through a view": Call(
        "mv", {"input": t(np.eye(2)), "vec": t([1.0, 2.0])}, wants_out=True
    ),
    "any over no dimension": call("any", input=t([[0.0, 2.0], [0.0, 0.0]]), dim=()),
    "all over no dimension": call("all", input=t([[0.0, 2.0], [0.0, 0.0]]), dim=[], keepdim=True),
    "cosine_similarity broadcast": call(
        "cosine_similarity", gradient=True, x1=t(np.ones((3, 1, 2))), x2=t([1.0, 2.0]), dim=2
    ),
    "roll of rank 0": call("roll", input=t(3.0), shifts=[-2], dims=[0]),
    "a bool subtracted": call("sub", input=t([1], "i32"), other=t([1], "bool")),
    "arange of integers from a fraction": call("arange", start=0.5, end=6.5, step=2, dtype=Dtype("u8")),
    "i32 indices of a row": call("take_along_dim", input=t([1.0, 2.0]), indices=t([1], "i32")),
    "stack of rank 0": call("stack", gradient=True, tensors=[t(1.0), t(2.0)]),
    "group_norm of several elements": call(
        "group_norm", input=t(np.ones((2, 4, 3)), "f64"), num_groups=2, weight=t(np.ones(4))
    ),
    "corrections beyond the count": call("var_mean", gradient=True, input=t(1.0), correction=2),
    "gradient by a keyword": call("pow", gradient=True, input=t([2.0]), exponent=3.0),
    "text for a truth": call("nonzero", input=t([1.0]), as_tuple="nonsense"),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_mended(what: str) -> None:
    example = replace(FOUND[what], wrong="out" if FOUND[what].wants_out else "")
    with Probe().installed() as probe:
        found = [f for seed in range(4) for f in judge(example, probe, np.random.default_rng(seed))]
    assert [str(f) for f in found if "shape" in f.kind or not f.excuse] == []
