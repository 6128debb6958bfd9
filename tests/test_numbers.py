"""Numbers that an element does not hold are refused, wherever a number goes into an integer element: as torch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import call_of, cases_of, directions, elements_of

import baracuda as bc
import baracuda.functional as F
from baracuda.choose.sku import rows
from baracuda.ops.binary.binary import _ANY_NUMBER

# Scalars of integer plans that are no elements: places, counts, seeds, tolerances, and what arange counts modulo 2^n.
NOT_STORED = {"position", "start", "step", "seed", "offset", "low", "high", "p", "rtol", "atol", "equal_nan", "end"}
INTEGER_PLANS = [d for d in directions() if any(e.is_integer for e in elements_of(*d))]


def holders(op: str, direction: str) -> list[Any]:
    """Valid calls of integer elements whose plans take numbers: one for each element and set of numbers."""
    found = {}
    for element in elements_of(op, direction):
        for case in cases_of(op, direction, element, 1 << 8)[:12] if element.is_integer else []:
            scalars = case.descriptor.signature().numbers
            # A row of another element may be all there is for a case of another kind.
            if scalars and type(case.descriptor).plan_class.query(case.descriptor):
                found.setdefault((element, tuple(s.name for s in scalars)), (element, case))
    return list(found.values())


@pytest.mark.parametrize(("op", "direction"), INTEGER_PLANS)
def test_what_an_integer_does_not_hold_is_refused(op: str, direction: str) -> None:
    for element, case in holders(op, direction):
        call = call_of(case)
        for s in call.plan.signature.numbers:
            if s.fits is None:
                assert s.kind == "float" or s.name in NOT_STORED or op in _ANY_NUMBER, (
                    f"{op}: {s.name} wraps in {element}"
                )
                continue
            least, most = s.fits.limits
            below = -most if least == 0 and s.kind == "int" else least  # -1 is the greatest of an unsigned element
            for number in (below - 1, most + 1, 2**70, np.asarray(most + 1, "u8") if most < 2**63 else 2**64):
                before = call.bytes()
                with pytest.raises(bc.InvalidProblemError, match=f"{s.name}: got .*{s.fits} holds") as caught:
                    call.run(**{s.name: number})
                assert str(number) in str(caught.value) or abs(int(number)) >= 2**63, f"{caught.value}"
                assert not call.check(**{s.name: number}) and call.bytes() == before


# name: (function of torch or of bc.functional, a tensor and a number); where torch refuses, so do we, else the results are equal.
WITH_NUMBERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "clamp max": lambda m, x, v: m.clamp(x, max=v),
    "clamp min": lambda m, x, v: m.clamp(x, min=v),
    "full_like": lambda m, x, v: m.full_like(x, v),
    "where": lambda m, x, v: m.where(x > 1, x, v),
    "pad": lambda m, x, v: (F if m is F else m.nn.functional).pad(x, (1, 1), value=v),
    "threshold": lambda m, x, v: m.threshold(x, v, 5),
    "addcmul": lambda m, x, v: m.addcmul(x, x, x, value=v),
    "add": lambda m, x, v: m.add(x, v),
    "alpha": lambda m, x, v: m.add(x, x, alpha=v),
    "mul": lambda m, x, v: m.mul(x, v),
    "pow": lambda m, x, v: m.pow(x, v),
    "scatter": lambda m, x, v: m.scatter(x, 0, (x * 0).long(), v),
    "masked_fill": lambda m, x, v: m.masked_fill(x, x > 1, v),
    "index_fill": lambda m, x, v: m.index_fill(x, 0, (x[:1] * 0).long(), v),
    "addmv": lambda m, x, v: m.addmv(x, x[:, None].expand(3, 3).contiguous(), x, alpha=v),
    "addmm": lambda m, x, v: m.addmm(x[:, None], x[:, None].expand(3, 3).contiguous(), x[:, None], beta=v),
}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers_are_refused_where_torch_refuses_them(name: str) -> None:
    torch = pytest.importorskip("torch")
    call = WITH_NUMBERS[name]
    for dtype, numbers in (
        ("int32", (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)),
        ("int8", (127, 128, -128, -129)),
        ("uint8", (255, 256)),
        ("int16", (2**15, -(2**15) - 1)),
    ):
        for number in numbers:
            if name == "pow" and number < 0:
                continue
            x = torch.tensor([1, 2, 3], dtype=getattr(torch, dtype))
            try:
                want = call(torch, x, number)
            except RuntimeError:
                with pytest.raises(bc.InvalidProblemError, match="holds"):
                    call(F, x, number)
                continue
            assert torch.equal(call(F, x, number), want), f"{dtype}, {number}"


def test_comparisons_are_of_the_number_itself() -> None:
    x = np.asarray([1, 2, 3], np.int32)
    for number in (2**31, 2**32 + 1, -(2**40)):
        assert (F.lt(x, number) == (x.astype(np.int64) < number)).all()
        assert (F.eq(x, number) == (x.astype(np.int64) == number)).all()
        assert (F.remainder(x, number) == (x.astype(np.int64) % number).astype(np.int32)).all()
    with pytest.raises(bc.InvalidProblemError, match=r"maximum.*other: got 2147483648, want a number that i32 holds"):
        F.maximum(x, 2**31)


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), 1e30, 10**400, 10**5000], ids=["nan", "inf", "1e30", "1e400", "1e5000"]
)
def test_what_is_no_integer_at_all(number: Any) -> None:
    x = np.ones(3, np.int32)
    for call in (
        lambda: F.masked_fill(x, x > 0, number),
        lambda: F.full((2,), number, dtype="i32"),
        lambda: F.index_fill(x, 0, np.zeros(1, np.int64), number),
        lambda: F.linspace(0, number, 3, dtype="i32"),
        lambda: F.pad(x, (1, 1), value=number),
    ):
        with pytest.raises(bc.InvalidProblemError):
            call()


def test_sizes_beyond_memory_are_refused() -> None:
    x = np.ones(4, np.float32)
    for call in (
        lambda: F.repeat_interleave(np.asarray([2**62] * 4)),
        lambda: F.repeat_interleave(x, np.asarray([2**62] * 4)),
        lambda: F.repeat_interleave(x, 2**62),
        lambda: F.tile(x, (2**62,)),
        lambda: F.full((2**32, 2**32), 1),
        lambda: F.pad(x, (2**62, 2**62)),
        lambda: F.arange(2**62),
    ):
        with pytest.raises(bc.InvalidProblemError):
            call()


def test_tensordot_keeps_integers_where_a_summed_size_is_1() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.int8, torch.int32, torch.int64):
        for shapes in (((2, 1), (3, 2)), ((2, 3), (1, 2))):
            a, b = (torch.randint(-128, 127, s, generator=torch.Generator().manual_seed(3)).to(dtype) for s in shapes)
            want = torch.tensordot(a, b, ([1], [0]))
            found = F.tensordot(a, b, ([1], [0]))
            assert found.dtype is dtype and torch.equal(found, want)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_thousands_of_columns_are_told_apart(step: int) -> None:
    """Quadratic in the solver this takes minutes: the time limit of every test sees it."""
    memory = [np.zeros((8, 4000), np.float32)[:: 1 if step > 0 else -1] for _ in range(4)]
    lists = [[m[:, i : i + abs(step)] for i in range(0, 4000, abs(step))] for m in memory]
    F.adamw_(*lists, step=1)
    lists[0][-1] = lists[0][7]
    before = memory[0].tobytes()
    with pytest.raises(bc.InvalidProblemError, match="the same memory"):
        F.adamw_(*lists, step=2)
    lists[0][-1] = lists[0][7][1:] if step < 0 else memory[0][:, 6 : 6 + abs(step)]
    with pytest.raises(bc.BaracudaError):
        F.adamw_(*lists, step=2)
    assert memory[0].tobytes() == before


def test_the_table_has_integer_rows_to_ask() -> None:
    assert sum(bool(holders(*d)) for d in INTEGER_PLANS) > 10 and rows()


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: F.bernoulli(np.full(3, 2.0), generator=g),
        lambda g: F.bernoulli(np.ones(3, np.float32), generator=g, out=np.ones(4, np.float32)),
        lambda g: F.bernoulli_(np.ones(3, np.float32), 2.0, generator=g),
        lambda g: F.uniform(2, 1, (3,), generator=g),
        lambda g: F.uniform("x", 1, (3,), generator=g),
        lambda g: F.normal(0, -1, (3,), generator=g),
        lambda g: F.randint(5, 2, (3,), generator=g),
        lambda g: F.randperm(3, generator=g, out=np.zeros(4, np.int64)),
        lambda g: F.multinomial(np.zeros(3), 2, generator=g),
        lambda g: F.dropout(np.ones(3, np.float32), 2.0, generator=g),
        lambda g: bc.vjp(F.dropout, np.ones(3, np.float32), 2.0, generator=g),
    ],
)
def test_a_refused_draw_gives_its_blocks_back(draw: Callable[[bc.Generator], Any]) -> None:
    generator = bc.Generator(5, 3)
    with pytest.raises(bc.BaracudaError):
        draw(generator)
    assert generator.get_state() == (5, 3)
