"""Plans whose sizes are Dims: the workspace and the outputs of one call's sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import cases_of, elements_of
from dimmed import check_row, with_workspace

import baracuda as bc

ROWS = with_workspace("cpu")


@pytest.mark.parametrize(("op", "direction", "variant"), ROWS, ids=["-".join(t) for t in ROWS])
def test_a_call_needs_the_workspace_of_its_own_sizes(op: str, direction: str, variant: str) -> None:
    cases = ((e, case) for e in elements_of(op, direction)[:3] for case in cases_of(op, direction, e))
    check_row(cases, op, direction, variant, "cpu", 12)


def test_less_is_refused_before_anything_is_written() -> None:
    made = bc.plan(bc.ReduceDescriptor("sum", (bc.Dim("n", max=300_000),), (0,)))
    needed = made.workspace_for(n=100_000)
    x, y = np.ones(100_000, np.float32), np.full((), 7, np.float32)
    for got in (0, needed - 1):
        with pytest.raises(bc.WorkspaceTooSmallError) as told:
            made.run(x=x, y=y, workspace=bc.empty(got, "u8"))
        assert (told.value.needed, told.value.got) == (needed, got) and y == 7
    assert made.run(x=x, y=y, workspace=bc.empty(needed, "u8")) == 100_000


def test_workspace_and_outputs_at_sizes() -> None:
    kv = bc.Dim("kv", max=8192)
    desc = bc.AttentionBackwardDescriptor((1, 8, kv, 64), (1, 8, kv, 64), (1, 8, kv, 64), causal=True)
    made = bc.plan(desc)
    fixed = bc.plan(bc.AttentionBackwardDescriptor((1, 8, 128, 64), (1, 8, 128, 64), (1, 8, 128, 64), causal=True))
    assert made.workspace_for(kv=8192) == made.workspace_size
    assert made.workspace_for(kv=128) == fixed.workspace_size < made.workspace_size / 10
    assert fixed.workspace_for() == fixed.workspace_size
    shape = (1, 8, 128, 64)
    assert made.output_shapes(kv=128) == {"dq": shape, "dk": shape, "dv": shape} == fixed.output_shapes()


def test_sizes_that_follow_a_dim() -> None:
    n = bc.Dim("n", max=64)
    made = bc.plan(bc.UnaryDescriptor("exp", (3, n // 2)))
    assert made.output_shapes(n=10) == {"y": (3, 5)} and made.workspace_for(n=10) == 0
    for method in (made.workspace_for, made.output_shapes):
        with pytest.raises(bc.InvalidProblemError, match=r"n: got 7, want one for which n//2 is a whole number"):
            method(n=7)


def test_outputs_that_are_lists() -> None:
    n = bc.Dim("n", max=64)
    made = bc.plan(bc.SGDDescriptor(((n, 2), (3,))))
    found = made.output_shapes(n=5)
    assert found["params"] == [(5, 2), (3,)] and list(found) == [p.name for p in made.signature.outputs]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({}, r"n: got nothing, want its size"),
        ({"n": 3, "m": 2}, r"m: got a size of this name, want one of n\."),
        ({"n": 65}, r"n: got 65, want an int, 0 <= n <= 64"),
        ({"n": -1}, r"n: got -1, want an int"),
        ({"n": True}, r"n: got True, want an int"),
        ({"n": 2.0}, r"n: got 2\.0, want an int"),
    ],
)
def test_sizes_that_are_none(sizes: dict[str, Any], told: str) -> None:
    made = bc.plan(bc.ReduceDescriptor("sum", (bc.Dim("n", max=64), 3), (0,)))
    for method in (made.workspace_for, made.output_shapes):
        with pytest.raises(bc.InvalidProblemError, match=told):
            method(**sizes)
    with pytest.raises(bc.InvalidProblemError, match=r"no size of this plan is a bc\.Dim"):
        bc.plan(bc.ReduceDescriptor("sum", (4, 3), (0,))).workspace_for(n=4)


def test_a_smaller_workspace_may_not_overlap_the_tensors() -> None:
    made = bc.plan(bc.RmsNormBackwardDescriptor((bc.Dim("n", max=64), 64), (64,)))
    needed = made.workspace_for(n=8)
    memory = np.zeros(needed + 4096, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :]
    shapes = {"weight": (64,), "rstd": (8, 1), "dweight": (64,)}
    names = [p.name for p in made.signature.present]
    args: dict[str, Any] = {n: np.ones(shapes.get(n, (8, 64)), np.float32) for n in names}
    for start, refused in ((needed - 64, True), (needed, False)):
        x = memory[start : start + 2048].view(np.float32).reshape(8, 64)
        found = made.can_implement(**args | {"x": x}, workspace=memory[:needed])
        assert [(r.code, r.field) for r in found.refusals] == [("overlap", "workspace")] * refused
