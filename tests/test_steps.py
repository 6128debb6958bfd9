"""What functions without a row of their own are declared to be made of, compared with the plans that run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from differential import calls, functions
from differential.probe import Probe
from differential.values import to_numpy
from opinfo import entries
from opinfo.judge import tensors
from torch.utils._pytree import tree_map

import baracuda as bc
from baracuda import __main__ as command
from baracuda import _index
from baracuda import functional as F
from baracuda.choose.sku import rows
from baracuda.ops.random.random import _planned, planned
from baracuda.prove.facts import collected
from conftest import FULL

CALLS = 400 if FULL else 60  # random ones of each function, some of which it refuses


SAMPLES = collected("steps")
OWN = [n for n in dir(F) if n not in _index.OPS]
TABLE = {(r["op"], r["direction"]) for r in rows()}


def _launched(probe: Probe, call: Callable[[], Any]) -> set[tuple[str, str]]:
    """The ops of a call's plans, with their directions; none where the function refuses the call."""
    record = probe.fresh()
    for plans in (planned, _planned):  # made by other tests, unseen by the probe
        plans.cache_clear()
    try:
        call()
    except bc.BaracudaError:
        return set()
    return {(r.plan.descriptor.op, r.plan.descriptor.direction) for r in record.ran}


def _random_call(name: str, number: int) -> Callable[[], Any]:
    made = calls.make(name, (7, number))
    positional, keywords = made.arguments(calls.ours(made))
    return lambda: getattr(F, name)(*positional, **keywords)


def _random_pull(name: str, number: int) -> Callable[[], Any]:
    """The gradient of a random call with respect to its results; nothing where it has none."""
    made = calls.make(name, (7, number))
    positional, keywords = made.arguments(calls.ours(made))
    keywords.pop("out", None)
    try:
        y, pull = bc.vjp(getattr(F, name), *positional, **keywords)
    except bc.BaracudaError:
        return lambda: None
    ones = [to_numpy(x) for x in (y if isinstance(y, tuple) else (y,))]
    ones = [np.ones(x.shape, x.dtype) for x in ones]
    return lambda: pull(ones[0] if len(ones) == 1 else tuple(ones))


def _of_torch(name: str) -> list[Callable[[], Any]]:
    """Calls with the samples that torch's table has of a function, also of mixed elements, of bools, and with dtype=."""
    found: list[Callable[[], Any]] = []
    options_of = getattr(F, name).__signature__.parameters
    for entry in entries.table():
        fn = entries.function(entry)
        if fn is not getattr(F, name):
            continue
        for element in entries.elements(entry):
            for args, options in entries.samples(entry, element)[:CALLS]:
                given = [x for x in tensors((args, options)) if x.dtype is element]
                found.append(partial(fn, *args, **options))
                for other in (torch.float64, torch.int32, torch.bool) if len(found) % 3 == 0 else ():
                    for few in (given[-1:], given):
                        mixed = tree_map(lambda x: x.to(other) if any(x is y for y in few) else x, (args, options))  # noqa: B023
                        found.append(partial(fn, *mixed[0], **mixed[1]))
                if "dtype" in options_of:
                    found.append(partial(fn, *args, **(options | {"dtype": "f64"})))
    return found


def _declared(name: str) -> bool:
    return bool(getattr(getattr(F, name), "steps", ""))


@pytest.mark.parametrize("name", [n for n in OWN if _declared(n)])
def test_declared_steps_are_those_that_run(name: str) -> None:
    made = [partial(getattr(F, name), *args, **options) for args, options in SAMPLES.get(name, ())]
    if name in functions.names():
        made += [_random_call(name, i) for i in range(CALLS)]
    elif _index.FUNCTIONS[name].rpartition(".")[2] in functions.SAMPLED:
        made += _of_torch(name)
    forward = name.removesuffix("_backward")
    if forward != name and forward in functions.names() and functions.has_gradient(forward):
        made += [_random_pull(forward, i) for i in range(CALLS)]
    with Probe().installed() as probe:
        ran = set().union(*(_launched(probe, call) for call in made))
    declared = set(_index.STEPS[name])
    assert ran <= declared, "say so in @made_of"
    assert declared <= ran, (
        "nothing runs these: drop them from @made_of, or add a call to the family's facts that needs them"
    )


def test_every_function_answers() -> None:
    """By a row of its own, one that its name says, or those that it declares."""
    for name in dir(F):
        found = bc.capabilities(name, element="f32", device="cpu:v4x")
        assert found, name
        mine = {(c.sku.op, c.sku.direction) for c in found}
        assert mine <= TABLE
        if name not in _index.OPS:
            assert mine == set(_index.STEPS[name]) and {c.step_of for c in found} == {name}
        assert getattr(F, name).__doc__.count("Elements, error bounds") or "Made of" in getattr(F, name).__doc__, name


def test_steps_are_named_in_docstrings() -> None:
    text = F.einsum.__doc__
    assert "Made of `cast`, `copy`, `matmul`, `mul`, `sum`" in text
    assert "    matmul, f16 bf16 f32 f64: " in text and "    mul, " in text
    assert F.clip.__doc__ == F.clamp.__doc__, "one function"


def _printed(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["baracuda", *arguments])
    assert command.main() == 0
    return capsys.readouterr().out


def test_commands_know_functions_of_several_plans(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = _printed(["explain", "kron"], monkeypatch, capsys)
    assert explained.startswith("kron is made of copy, mul:") and "step of kron" in explained
    assert "`mul` forward cpu" in _printed(["capabilities", "kron"], monkeypatch, capsys)
    verified = _printed(["verify", "chain_matmul", "--element", "f32"], monkeypatch, capsys)
    assert "matmul.forward.cpu.f32" in verified and "mul.forward.cpu.f32" in verified
    monkeypatch.setattr(sys, "argv", ["baracuda", "explain", "einsum", "shape=8"])
    assert command.main() == 2 and "Explain one of these" in capsys.readouterr().err
