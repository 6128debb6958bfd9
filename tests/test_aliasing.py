"""Which tensors of a call may share memory: identical views where the row says so, and disjoint interleaved ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from calls import ValidCall, call_of, directions, valid_call
from hypothesis import given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda import _core
from baracuda.choose.sku import rows

NONE, IDENTICAL, PARTIAL, UNDECIDED = range(4)
OPS = pytest.mark.parametrize(("op", "direction"), directions())


def in_place_allowed(call: ValidCall, source: str) -> bool:
    row = rows()[call.plan._row]
    index = [p.name for p in call.plan.signature.params].index(source)
    return bool(row["in_place_safe"]) and bool(row["in_place_params"] >> index & 1)


def pairs(call: ValidCall):
    """Outputs with inputs of the same shape and element."""
    for out, source in product(call.outputs, call.plan.signature.inputs):
        if not out.variadic and not source.variadic and (out.shape, out.element) == (source.shape, source.element):
            yield out.name, source.name


@OPS
def test_identical_view_only_where_the_row_says_so(op: str, direction: str) -> None:
    expected = valid_call(op, direction)
    expected.run()
    for out, source in pairs(expected):
        call = call_of(expected.case, expected.plan)
        if not in_place_allowed(call, source):
            before = call.bytes()
            with pytest.raises(bc.InvalidProblemError, match=out) as caught:
                call.run(**{out: call.args[source]})
            assert caught.value.code == "overlap"
            assert not call.check(**{out: call.args[source]})
            assert call.bytes() == before
            continue
        if any(p.role == 1 and p.name == out for p in call.tensors):
            continue  # an in-out tensor that is also an input would change the problem
        call.run(**{out: call.args[source]})
        want = expected.args[out]
        assert call.args[source].tobytes() == want.tobytes(), f"{op} {direction}: {out} written over {source} differs"
        for other in call.outputs:
            if other.name != out and not other.variadic:
                assert call.args[other.name].tobytes() == expected.args[other.name].tobytes(), (
                    f"{other.name} differs when {out} is {source}"
                )


@OPS
def test_partial_overlap_is_refused(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    before = call.bytes()
    for out in call.outputs:
        for source in call.tensors:
            if (
                out.name == source.name
                or out.variadic
                or source.variadic
                or out.element.nbytes != source.element.nbytes
            ):
                continue
            n = call.args[out.name].size + call.args[source.name].size
            memory = np.zeros(n, out.element.numpy)
            first = memory[: call.args[out.name].size].reshape(out.shape)
            at = call.args[out.name].size - 1  # shares the output's last element
            second = memory[at : at + call.args[source.name].size].reshape(source.shape).view(source.element.numpy)
            if first.size == second.size == 1:
                continue  # the identical view
            with pytest.raises(bc.InvalidProblemError) as caught:
                call.run(**{out.name: first, source.name: second})
            assert caught.value.code == "overlap"
            assert {caught.value.refusals[0].field} & {out.name, source.name}
            assert not memory.any(), "a refused call wrote"
    assert call.bytes() == before


@OPS
def test_interleaved_views_are_disjoint(op: str, direction: str) -> None:
    expected = valid_call(op, direction)
    expected.run()
    for out in expected.outputs:
        for source in expected.plan.signature.inputs:
            if (
                out.variadic
                or source.variadic
                or out.role == 1
                or out.element != source.element
                or 0 in (len(out.shape), len(source.shape))
            ):
                continue
            call = call_of(expected.case, expected.plan)
            n = max(call.args[out.name].size, call.args[source.name].size)
            memory = np.zeros(2 * n, out.element.numpy)
            steps = []
            for p, start in ((out, 0), (source, 1)):
                view = memory[start::2][: call.args[p.name].size]
                steps.append(
                    np.lib.stride_tricks.as_strided(view, p.shape, tuple(2 * s for s in call.args[p.name].strides))
                )
            steps[1][...] = call.args[source.name]
            call.run(**{out.name: steps[0], source.name: steps[1]})
            assert steps[0].tobytes() == expected.args[out.name].tobytes()
            break


@OPS
def test_outputs_whose_elements_share_memory_are_refused(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    before = call.bytes()
    for out in call.outputs:
        if out.variadic or call.args[out.name].size < 2:
            continue
        axis = max(range(len(out.shape)), key=lambda i: out.shape[i])
        strides = list(call.args[out.name].strides)
        strides[axis] = 0
        memory = np.zeros(call.args[out.name].size, out.element.numpy)
        view = np.lib.stride_tricks.as_strided(memory, out.shape, strides, writeable=True)
        with pytest.raises(bc.InvalidProblemError) as caught:
            call.run(**{out.name: view})
        assert (caught.value.code, caught.value.refusals[0].field) == ("self_overlap", out.name)
        assert not memory.any()
    assert call.bytes() == before


@OPS
def test_outputs_must_not_share_memory(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    plain = [p for p in call.outputs if not p.variadic]
    for first, second in product(plain, plain):
        if first.name < second.name and (first.shape, first.element) == (second.shape, second.element):
            with pytest.raises(bc.InvalidProblemError) as caught:
                call.run(**{first.name: call.args[second.name]})
            assert caught.value.code == "overlap"


@pytest.mark.parametrize("n", [2, 3, 31, 32, 33, 65])
def test_members_of_a_list_of_any_length_must_not_share_memory(n: int) -> None:
    """Few tensors are compared pair by pair, many after sorting."""
    memory = np.ones((n, 4), np.float32)
    for first, second in {(0, n - 1), (n // 2 - 1, n // 2), (n - 2, n - 1)}:
        grads = list(memory)
        grads[second] = memory.reshape(-1)[4 * first + 3 :][:4]
        with pytest.raises(bc.InvalidProblemError) as caught:
            F.clip_grad_value_(grads, 0.5)
        assert caught.value.code == "overlap"
        assert (memory == 1).all()
    F.clip_grad_value_(list(memory), 0.5)
    assert (memory == 0.5).all()


@OPS
def test_workspace_must_be_memory_of_its_own(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    if not call.plan.workspace_size:
        return
    for p in call.tensors:
        if p.variadic:
            continue
        nbytes = call.args[p.name].nbytes
        memory = bc.empty(call.plan.workspace_size + nbytes + 128, "u8").numpy()
        view = memory[:nbytes].view(p.element.numpy).reshape(p.shape)
        view[...] = call.args[p.name]
        with pytest.raises(bc.InvalidProblemError) as caught:
            call.run(**{p.name: view, "workspace": memory[: call.plan.workspace_size]})
        assert (caught.value.code, caught.value.refusals[0].field) == ("overlap", "workspace")


@OPS
def test_scalars_in_device_memory_must_not_be_overwritten(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for s in call.plan.signature.numbers:
        for out in call.outputs:
            if out.variadic or s.kind != "float" or not out.element.is_float:
                continue
            inside = call.args[out.name].reshape(-1)[-1:].reshape(())
            with pytest.raises(bc.InvalidProblemError) as caught:
                call.run(**{s.name: inside})
            assert caught.value.code == "overlap"
            assert s.name in caught.value.refusals[0].got


# --- the solver -------------------------------------------------------------------------------------------------------

MEMORY = np.zeros(4096, np.uint8)
BASE = 2048


def bytes_of(view: np.ndarray) -> set[int]:
    start = view.__array_interface__["data"][0] - MEMORY.__array_interface__["data"][0]
    found = set()
    for index in np.ndindex(view.shape):
        at = start + sum(i * s for i, s in zip(index, view.strides, strict=True))
        found |= set(range(at, at + view.itemsize))
    return found


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.sampled_from([1, 2, 4, 8]))
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 5)) for _ in range(rank))
    strides = tuple(draw(st.integers(-12, 12)) * size for _ in range(rank))
    offset = BASE + draw(st.integers(-20, 20)) * size
    return np.ndarray(shape, f"u{size}", MEMORY, offset, strides)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    steps = [[s for n, s in zip(v.shape, v.strides, strict=True) if n > 1] for v in (a, b)]
    return (a.__array_interface__["data"][0], a.dtype, a.shape, steps[0]) == (
        b.__array_interface__["data"][0],
        b.dtype,
        b.shape,
        steps[1],
    )


@settings(max_examples=1500, deadline=None)
@given(views(), views())
def test_overlap_against_brute_force(a: np.ndarray, b: np.ndarray) -> None:
    shared = bool(bytes_of(a) & bytes_of(b))
    want = (IDENTICAL if same(a, b) else PARTIAL) if shared else NONE
    assert _core.overlap(a, b) == want
    assert _core.overlap(b, a) == want


@settings(max_examples=1500, deadline=None)
@given(views())
def test_self_overlap_against_brute_force(a: np.ndarray) -> None:
    distinct = len(bytes_of(a)) == a.size * a.itemsize
    assert _core.overlap(a, a) == (NONE if distinct else PARTIAL)


def test_undecided_is_refused() -> None:
    """Strides that make the exact answer expensive: the search gives up, and giving up is a refusal."""
    desc = bc.GatedActivationDescriptor("swiglu", (4,) * 8, None)
    made = bc.plan(desc)
    start = np.zeros(1, np.float32)
    address = start.__array_interface__["data"][0]
    steps = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099, 1_000_117, 1_000_121]
    for shift in range(1, 4000, 7):
        x = bc.from_pointer(address, (4,) * 8, "f32", [2 * s for s in steps])
        y = bc.from_pointer(
            address + 4 * (8 * 1_000_003 + 2 * shift + 1), (4,) * 8, "f32", [2 * s for s in reversed(steps)]
        )
        if _core.overlap(x, y) == UNDECIDED:
            answer = made.can_implement(value=x, gate=x, y=y)
            assert any(r.code == "overlap" and r.got == "memory that may overlap value" for r in answer.refusals)
            return
    raise AssertionError("no question here is hard enough to stay undecided: choose other strides")
