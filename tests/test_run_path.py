"""Ways to call a plan; one plan for many sizes and numbers; bind and rebind; serialisation; no allocation while running."""

from __future__ import annotations

import copy
import ctypes
import json
import os
import pickle
import platform
import sys
from typing import Any

import numpy as np
import pytest
import torch
from calls import ValidCall, call_of, directions, valid_call

import baracuda as bc
from baracuda import _core
from baracuda.choose.plan import Plan

OPS = pytest.mark.parametrize(("op", "direction"), directions())


def outputs(call: ValidCall) -> list[bytes]:
    """Bytes of every output."""
    parts = [call.args[p.name] if p.variadic else [call.args[p.name]] for p in call.outputs]
    return [a.tobytes() for part in parts for a in part]


def fresh(call: ValidCall) -> ValidCall:
    return call_of(call.case, call.plan)


@OPS
def test_positional_keyword_and_mixed_calls_agree(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    call.run()
    want = outputs(call)
    names = [n for n in call.plan.arguments if n in call.args]
    ordered = names == list(call.plan.arguments)[: len(names)]
    for split in {0, 1, len(names) // 2, len(names)} if ordered else {0}:
        again = fresh(call)
        head = [again.args[n] for n in names[:split]]
        tail = {n: again.args[n] for n in reversed(names[split:])}
        result = again.plan.run(*head, **tail, workspace=again.workspace)
        assert outputs(again) == want
        made = [again.args[p.name] for p in again.outputs]
        assert result is made[0] if len(made) == 1 else all(a is b for a, b in zip(result, made, strict=True))
    if len(call.outputs) == 1 and "out" not in call.args:
        again = fresh(call)
        name = call.outputs[0].name
        rest = {k: v for k, v in again.args.items() if k != name}
        assert again.plan.run(**rest, out=again.args[name], workspace=again.workspace) is again.args[name]
        assert outputs(again) == want
        assert again.plan.can_implement(**rest, out=again.args[name], workspace=again.workspace)
    # Names that are equal but not the interned objects.
    again = fresh(call)
    again.run(**{"".join(list(k)): v for k, v in again.args.items()})
    assert outputs(again) == want


@OPS
def test_bound_plans(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    call.run()
    want = outputs(call)
    again = fresh(call)
    bound = again.plan.bind(**again.args, workspace=again.workspace)
    assert bound.plan is again.plan
    assert all(
        b == 0xA5
        for p in again.outputs
        if p.role == 2
        for a in ([again.args[p.name]] if not p.variadic else again.args[p.name])
        for b in a.tobytes()
    ), "bind ran"
    result = bound()
    assert outputs(again) == want
    made = [again.args[p.name] for p in again.outputs]
    assert result is made[0] if len(made) == 1 else all(a is b for a, b in zip(result, made, strict=True))
    with pytest.raises(TypeError):
        bound(1)
    with pytest.raises(TypeError):
        bound.rebind(1)
    # An error in rebind changes nothing.
    p = again.tensors[0]
    wrong = [np.zeros((1,) * 9)] * len(p.shapes) if p.variadic else np.zeros((1,) * 9)
    with pytest.raises(bc.InvalidProblemError):
        bound.rebind(**{p.name: wrong})
    with pytest.raises(bc.InvalidProblemError) as caught:
        bound.rebind(nonsense=1)
    assert caught.value.code == "unknown_argument"
    with pytest.raises(bc.InvalidProblemError):
        bound.rebind(stream=0)
    if call.plan.workspace_size:
        with pytest.raises(bc.WorkspaceTooSmallError):
            bound.rebind(workspace=None)
    third = fresh(call)
    assert bound.rebind(**third.args) is bound
    bound()
    assert outputs(third) == want


@OPS
def test_bound_lists_are_snapshots(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    lists = [p.name for p in call.tensors if p.variadic]
    if not lists:
        return
    call.run()
    want = outputs(call)
    again = fresh(call)
    given = {k: list(v) if isinstance(v, list) else v for k, v in again.args.items()}
    bound = again.plan.bind(**given, workspace=again.workspace)
    for name in lists:
        given[name].clear()
    bound()
    assert outputs(again) == want


@OPS
def test_scalars_as_tensors_are_read_when_the_kernel_runs(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    call.run()
    want = outputs(call)
    for s in call.plan.signature.numbers:
        value = call.args.get(s.name, s.default)
        if value is None:
            continue
        dtype = {"float": np.float64, "int": np.int64, "unsigned": np.uint64}[s.kind]
        cell = np.array(value, dtype)
        for holder in (cell, torch.from_numpy(cell) if s.kind != "unsigned" else cell, bc.from_dlpack(cell)):
            again = fresh(call)
            again.run(**{s.name: holder})
            assert outputs(again) == want
        again = fresh(call)
        bound = again.plan.bind(**(again.args | {s.name: cell}), workspace=again.workspace)
        bound()
        assert outputs(again) == want
        # A new value in the same memory: as a run with that value, by the same plan.
        other = value * 0.9999 if s.kind == "float" else value  # near enough to stay in every range
        cell[...] = other
        expected, again = fresh(call), fresh(call)
        expected.run(**{s.name: other})
        bound.rebind(**(again.args | {s.name: cell}))
        bound()
        assert outputs(again) == outputs(expected)


@OPS
def test_plans_and_descriptors_survive_serialisation(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    call.run()
    want, desc = outputs(call), call.case.descriptor
    assert (
        pickle.loads(pickle.dumps(desc))
        == desc
        == copy.deepcopy(desc)
        == type(desc).from_dict(json.loads(json.dumps(desc.to_dict())))
    )
    assert len({desc, pickle.loads(pickle.dumps(desc))}) == 1
    for again in (pickle.loads(pickle.dumps(call.plan)), Plan.from_bytes(call.plan.to_bytes()), copy.copy(call.plan)):
        assert type(again) is type(call.plan) and again.descriptor == desc and again.sku == call.plan.sku
        assert again.workspace_size == call.plan.workspace_size and again.arguments == call.plan.arguments
        other = call_of(call.case, again)
        other.run()
        assert outputs(other) == want
    for row_preference in (
        bc.PlanPreference(threads=1, deterministic=True, max_error=1e6),
        bc.PlanPreference(sku=call.plan.sku.name),
    ):
        made = desc.plan_class.select(desc, preference=row_preference)
        again = pickle.loads(pickle.dumps(made))
        assert again.sku == made.sku and again._origin.preference.threads == row_preference.threads


@OPS
def test_explanations(op: str, direction: str) -> None:
    made = valid_call(op, direction).plan
    explanation = made.explain()
    assert made.sku.name in str(explanation)
    document = json.loads(explanation.to_json())
    assert document["chosen"] == made.sku.name and document["schema"] == _core.schema
    assert {c["sku"] for c in document["candidates"]} >= {made.sku.name}
    assert all(c["verdict"] in ("yes", "depends") or c["refusals"] for c in document["candidates"])
    assert made.sku.name in repr(made) and str(made.signature) in repr(made)


@OPS
def test_descriptors_are_values(op: str, direction: str) -> None:
    desc = valid_call(op, direction).case.descriptor
    same = type(desc)(**{k: getattr(desc, k) for k in desc.to_dict()})
    assert same == desc and hash(same) == hash(desc)
    with pytest.raises((AttributeError, TypeError)):
        desc.anything = 1
    name = next(iter(desc.to_dict()))
    with pytest.raises((AttributeError, TypeError)):
        setattr(desc, name, None)
    with pytest.raises((AttributeError, TypeError)):
        valid_call(op, direction).plan.anything = 1


def test_one_plan_for_many_sizes() -> None:
    n, m = bc.Dim("n", max=64), bc.Dim("m", max=32)
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (n, 2 * m)))
    rng = np.random.default_rng(0)
    for rows, columns in ((64, 32), (1, 1), (17, 5), (0, 3), (3, 0), (64, 1)):
        x = rng.normal(size=(rows, 2 * columns)).astype(np.float32)
        y = np.zeros((rows, columns), np.float32)
        made.run(x, y)
        fixed = bc.plan(bc.GatedActivationDescriptor("swiglu", x.shape))
        assert fixed.run(x, np.zeros_like(y)).tobytes() == y.tobytes()


def test_a_changed_scalar_never_makes_a_new_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    call = valid_call("adamw", "forward") if ("adamw", "forward") in directions() else valid_call(*directions()[0])

    def never(*args: Any) -> None:
        raise AssertionError("a plan was made")

    monkeypatch.setattr(_core, "select", never)
    monkeypatch.setattr(_core, "evaluate", never)
    for s in call.plan.signature.numbers:
        value = call.args.get(s.name, s.default)
        call.run(**{s.name: (value or 0) + 1 if s.kind != "float" else (value or 0) * 1.0001})


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or "BARACUDA_SANITIZER" in os.environ, reason="asks glibc's allocator"
)
@OPS
def test_run_allocates_nothing(op: str, direction: str) -> None:
    """Bytes in use grow neither during a call (Python's own blocks) nor after some hundred (the C heap)."""

    class Mallinfo(ctypes.Structure):
        _fields_ = [
            (n, ctypes.c_size_t)
            for n in [
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            ]
        ]

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("glibc before 2.33")
    libc.mallinfo2.restype = Mallinfo

    def in_use() -> int:
        info = libc.mallinfo2()
        return int(info.uordblks + info.hblkhd)

    call = valid_call(op, direction)
    arguments = {"workspace": call.workspace} | call.args
    bound = call.plan.bind(**arguments)
    run = call.plan.run
    for _ in range(20):
        run(**arguments), bound()
    in_use()
    # The test runner's own threads allocate too, now and then: a leak is there every time.
    for _ in range(3):
        before, blocks = in_use(), sys.getallocatedblocks()
        for _ in range(200):  # the least that malloc gives, twice each time, would be 12,800 bytes
            run(**arguments), bound()
        grown, kept = in_use() - before, sys.getallocatedblocks() - blocks
        if grown < 4096 and kept < 50:
            return
    pytest.fail(f"{grown} bytes and {kept} Python objects stay behind")


def test_large_calls_release_the_interpreter_and_give_the_same() -> None:
    x = np.random.default_rng(0).normal(size=(512, 1024)).astype(np.float32)
    small = bc.plan(bc.GatedActivationDescriptor("swiglu", (1, 1024)))
    large = bc.plan(bc.GatedActivationDescriptor("swiglu", x.shape))
    y = large.run(x, np.zeros((512, 512), np.float32))
    for i in (0, 255, 511):
        assert small.run(x[i : i + 1], np.zeros((1, 512), np.float32)).tobytes() == y[i].tobytes()
