"""Documents that somebody forged, digest and all: what loads is a problem that a spec has, too, and runs inside its memory."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from calls import cases_of, directions, elements_of
from forged import forged, forged_program, lies, spec_says
from host import HostError, HostPlan, HostProgram, options, scalar, tensor

import baracuda as bc
from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from conftest import FULL

_BEHIND = 256  # bytes on both sides of a tensor that nothing may change
_CASES = 100 if FULL else 3
_MOST_ELEMENTS = 5000


def _cases(op: str, direction: str) -> list[Any]:
    """Plans of some problems, small ones first, of the first elements that have some."""
    found: list[Any] = []
    for element in elements_of(op, direction)[: None if FULL else 2]:
        small = cases_of(op, direction, element, _MOST_ELEMENTS)
        step = max(1, len(small) // _CASES)
        found += small[::step][:_CASES]
    return found


def _guarded(shape: tuple[int, ...], element: Element) -> tuple[Any, Any]:
    """An array of ones in the middle of a buffer, and the buffer."""
    size = int(np.prod(shape, dtype=np.int64)) * element.numpy.itemsize
    whole = np.full(size + 2 * _BEHIND, 0xA5, np.uint8)
    array = whole[_BEHIND : _BEHIND + size].view(element.numpy).reshape(shape)
    array[...] = np.ones(shape).astype(element.numpy)
    return array, whole


def run_loaded(made: HostPlan) -> None:
    """Runs a plan on memory of its signature's sizes: whatever it says is right, and nothing beside it may change."""
    info = made.info()
    held, given = [], []
    for p in info["signature"]["tensors"]:
        for shape in [*([p["shape"]] if "shape" in p else []), *p.get("shapes", [])]:
            if np.prod(shape, dtype=np.float64) > 1e6:
                return
            array, whole = _guarded(tuple(shape), Element[p["element"].upper()])
            held.append(whole)
            given.append(tensor(array, Element[p["element"].upper()]))
    numbers = []
    for s in info["signature"]["scalars"]:
        if "absent" not in s:
            numbers.append(scalar(None if "default" in s else 1.0 if s["kind"] == "float" else 1))
    size = info["workspace_size"]
    if size > 1e8:
        return
    scratch = np.full(size + 2 * _BEHIND + 64, 0xA5, np.uint8)
    start = _BEHIND + -(scratch.ctypes.data + _BEHIND) % 64
    try:
        made.run(given, numbers, options(scratch[start : start + size]))
    except HostError as error:
        assert error.code in ("index_out_of_range", "integer_division", "value_out_of_range", "problem", "scalar"), (
            error
        )
    for whole in held:
        assert (whole[:_BEHIND] == 0xA5).all() and (whole[-_BEHIND:] == 0xA5).all(), "written outside of a tensor"
    assert (scratch[:start] == 0xA5).all() and (scratch[start + size :] == 0xA5).all(), (
        "written outside of the workspace"
    )


@pytest.mark.parametrize(("op", "direction"), directions())
def test_what_a_forged_plan_says_is_a_problem_that_there_is(op: str, direction: str) -> None:
    unsaid = []
    for case in _cases(op, direction):
        try:
            made = plan(case.descriptor)
        except BaracudaError:
            continue
        for what, document in lies(made):
            try:
                loaded = HostPlan(forged(document), 1)
            except HostError as error:
                assert "digest" not in str(error)
                continue
            if not spec_says(case.descriptor, document):
                unsaid.append(f"{case.descriptor}: {what}")
            run_loaded(loaded)
    assert not unsaid, "\n".join(unsaid[:40])


def _of_two_lengths() -> bytes:
    """A softmax whose result has a length of its own, which at the maxima is that of x."""
    n = bc.Dim("n", max=64)
    document = json.loads(plan(bc.SoftmaxDescriptor("softmax", (2, n))).to_bytes())
    document["signature"]["dims"]["m"] = 64
    document["signature"]["tensors"][1]["shape"][1] = {"dim": "m"}
    return forged(document)


def test_sizes_that_go_together_at_the_maxima_alone_are_refused_at_a_call() -> None:
    made = HostPlan(_of_two_lengths())
    x, y, short = (np.ones((2, n), np.float32) for n in (64, 64, 8))
    made.run([tensor(x), tensor(y)])
    with pytest.raises(HostError, match="shape") as caught:
        made.run([tensor(x), tensor(short)])
    assert caught.value.code == "problem" and (short == 1).all()


def test_a_forged_plan_in_a_program_is_refused_when_a_size_changes() -> None:
    n, m = bc.Dim("n", max=64), bc.Dim("m", max=64)
    b = bc.ProgramBuilder()
    x, y, rows = b.input("x", (2, n)), b.output("y", (2, n)), b.input("rows", (2, m))
    b.add(bc.SoftmaxDescriptor("softmax", (2, n)), x=x, y=y)
    b.add(bc.UnaryDescriptor("exp", (2, m)), x=rows)
    document = json.loads(b.build().to_bytes())
    document["plans"][0] = json.loads(_of_two_lengths())
    document["values"][1]["shape"][1] = document["values"][2]["shape"][1]
    document["steps"][0]["tensors"][1]["shape"][1] = document["values"][2]["shape"][1]
    made = HostProgram(forged_program(document))
    long, short = (np.ones((2, n), np.float32) for n in (64, 8))
    made.run([tensor(long), tensor(np.empty_like(long)), tensor(long)])
    target = np.ones_like(short)
    with pytest.raises(HostError, match="shape"):
        made.run([tensor(long), tensor(target), tensor(short)])
    assert (target == 1).all()
