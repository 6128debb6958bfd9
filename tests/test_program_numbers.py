"""Numbers in memory that programs and bound plans read: looked at in each run, because they change between runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
from baracuda.describe.errors import BaracudaError

TOO_LARGE = r"got 300, want a number that i8 holds, -128 <= n <= 127"


def _filling(kind: str = "int") -> bc.Program:
    b = bc.ProgramBuilder()
    y, n = b.output("y", (4,), "i8"), b.scalar("n", kind)
    b.add(bc.FillDescriptor((4,), "i8"), y=y, value=n)
    return b.build()


def _kept() -> Any:
    return np.full(4, 5, np.int8)


def test_a_number_is_looked_at_in_each_run() -> None:
    made, number, y = _filling(), np.asarray(7, np.int64), _kept()
    for _ in range(2):
        number[...] = 7
        assert made.run(y=y, n=number).tolist() == [7] * 4
        number[...], y[...] = 300, 5
        with pytest.raises(BaracudaError, match=TOO_LARGE):
            made.run(y=y, n=number)
        assert (y == 5).all()


def test_a_number_of_a_bound_program_and_of_a_bound_plan() -> None:
    for make in (
        lambda n, y: _filling().bind(y=y, n=n),
        lambda n, y: bc.plan(bc.FillDescriptor((4,), "i8")).bind(y=y, value=n),
    ):
        number, y = np.asarray(7, np.int64), _kept()
        bound = make(number, y)
        for _ in range(2):
            number[...] = 7
            bound()
            assert (y == 7).all()
            number[...], y[...] = -129, 5
            with pytest.raises(BaracudaError, match="got -129, want a number that i8 holds"):
                bound()
            assert (y == 5).all()


def test_memory_of_a_number_is_none_of_an_output_in_any_run() -> None:
    made = _filling()
    memory = np.zeros(16, np.int8)
    apart, within = memory[8:].view(np.int64)[0:1].reshape(()), memory[:8].view(np.int64).reshape(())
    for _ in range(2):
        made.run(y=memory[:4], n=apart)
        with pytest.raises(BaracudaError, match="memory that holds the scalar n"):
            made.run(y=memory[:4], n=within)
    assert (memory == 0).all()


def test_a_number_that_was_used_before_its_memory_is_written() -> None:
    b = bc.ProgramBuilder()
    x, y, n = b.input("x", (4,), "i8"), b.output("y", (4,), "i8"), b.scalar("n", "int")
    between = b.scratch((4,), "i8")
    b.add(bc.FillDescriptor((4,), "i8"), y=between, value=n)
    b.add(bc.BinaryDescriptor("add", (4,), (4,), "i8"), a=between, b=x, y=y, alpha=1)
    memory = np.full(8, 1, np.int8)
    got = b.build().run(np.full(4, 2, np.int8), y=memory[:4], n=memory[:1].reshape(()))
    assert got.tolist() == [3] * 4


def test_a_number_that_a_step_computes() -> None:
    b = bc.ProgramBuilder()
    x, y = b.input("x", (3,), "i64"), b.output("y", (4,), "i8")
    total = b.scratch((), "i64")
    b.add(bc.ReduceDescriptor("sum", (3,), (0,), element="i64"), x=x, y=total)
    b.add(bc.FillDescriptor((4,), "i8"), y=y, value=total)
    made = b.build()
    for _ in range(2):
        assert made.run(np.full(3, 33)).tolist() == [99] * 4
        with pytest.raises(BaracudaError, match=TOO_LARGE):
            made.run(np.full(3, 100))
