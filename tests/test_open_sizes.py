"""Plans with Dims made in Python: the rule of shapes, the row's own check and the workspace hold for the sizes of a call."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import run_alone

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import BaracudaError
from conftest import FULL, SEED

_HARNESS = Path(__file__).parent / "harness"
_GROUPS = 4


@pytest.mark.parametrize("group", range(_GROUPS))
def test_every_row_at_sizes_from_0_to_the_maxima(group: int) -> None:
    # In CI an eighth of all ops, another one with each seed; 0 of 4 and so on are all of them.
    groups = _GROUPS if FULL else 8 * _GROUPS
    mine = group if FULL else _GROUPS * (SEED % 8) + group
    code = f"import sys\nsys.path.insert(0, {str(_HARNESS)!r})\nimport open_sizes\nopen_sizes.main(*map(int, sys.argv[1:]))"
    run_alone(code, str(SEED), str(mine), str(groups), str(20 if FULL else 1), limit=3000 if FULL else 200)


def _convolution(rng: random.Random) -> tuple[Any, int]:
    axes = rng.choice((1, 2, 2, 3))
    most = rng.choice((16, 33, 64))
    groups = rng.choice((1, 1, 1, 2, 8))
    ins, outs = groups * rng.choice((1, 3, 8, 16)), groups * rng.choice((1, 2, 16, 32))
    size, taps = rng.choice((6, 9, 14, 28)), rng.choice((1, 2, 3, 5))
    fields: dict[str, Any] = {
        "stride": (rng.choice((1, 1, 2)),) * axes,
        "low": (taps // 2,) * axes,
        "high": (taps // 2,) * axes,
        "groups": groups,
        "element": rng.choice(("f32", "f32", "bf16", "f64")),
    }
    kind = rng.choice(
        (bc.ConvDescriptor, bc.ConvBackwardDescriptor, bc.ConvTransposeDescriptor, bc.ConvTransposeBackwardDescriptor)
    )
    weight = (ins, outs // groups) if "Transpose" in kind.__name__ else (outs, ins // groups)
    return kind((bc.Dim("n", max=most), ins, *(size,) * axes), (*weight, *(taps,) * axes), **fields), most


def test_no_convolution_wants_more_for_fewer_images() -> None:
    rng = random.Random(SEED)
    for _ in range(4000 if FULL else 150):
        desc, most = _convolution(rng)
        made = bc.plan(desc)
        wanted = [made.workspace_for(n=n) for n in range(most + 1)]
        assert max(wanted) <= made.workspace_size, f"{desc}: {max(wanted)} at {wanted.index(max(wanted))}"


def test_a_traced_convolution_with_an_open_batch() -> None:
    weight = np.random.default_rng(0).standard_normal((16, 3, 3, 3)).astype(np.float32)
    n = bc.Dim("n", max=64)
    made = bc.trace(lambda x: F.conv2d(x, weight, padding=1), bc.TensorSpec((n, 3, 32, 32), "f32")).compile()
    for size in (5, 1, 15, 16, 64, 0):
        x = np.random.default_rng(size).standard_normal((size, 3, 32, 32)).astype(np.float32)
        assert np.array_equal(made.run(x), F.conv2d(x, weight, padding=1))


def test_a_rule_that_needs_sizes_is_asked_at_each_call() -> None:
    made = bc.plan(bc.TopkDescriptor((bc.Dim("n", max=8), 4), k=2, axis=0))
    good = np.arange(12, dtype=np.float32).reshape(3, 4)

    def call(rows: Any) -> Any:
        return made.run(rows, np.empty((2, 4), np.float32), np.empty((2, 4), np.int64), workspace=_scratch(made))

    for _ in range(2):  # what is known of sizes that go is not known of others
        assert call(good)[0].tolist() == [[8, 9, 10, 11], [4, 5, 6, 7]]
        with pytest.raises(BaracudaError, match="values: got shape"):
            call(good[:1])


def _scratch(made: Any) -> Any:
    return bc.empty(made.workspace_size, "u8") if made.workspace_size else None


def test_a_rows_own_check_is_asked_at_each_call() -> None:
    made = bc.plan(bc.ReduceDescriptor("amax", (bc.Dim("n", max=8), 3), (0,)))
    assert made.run(np.ones((2, 3), np.float32), np.empty(3, np.float32), workspace=_scratch(made)).tolist() == [
        1,
        1,
        1,
    ]
    with pytest.raises(BaracudaError, match="at least one element along the reduced axes"):
        made.run(np.ones((0, 3), np.float32), np.empty(3, np.float32), workspace=_scratch(made))


def test_steps_of_programs_are_asked_when_a_size_changes() -> None:
    n = bc.Dim("n", max=8)
    b = bc.ProgramBuilder()
    x, y = b.input("x", (n, 3)), b.output("y", (3,))
    b.add(bc.ReduceDescriptor("amax", (n, 3), (0,)), x=x, y=y)
    made = b.build()
    for _ in range(2):
        assert made.run(np.ones((2, 3), np.float32), np.empty(3, np.float32)).tolist() == [1, 1, 1]
        kept = np.full(3, 7, np.float32)
        with pytest.raises(BaracudaError, match="at least one element along the reduced axes"):
            made.run(np.ones((0, 3), np.float32), kept)
        assert (kept == 7).all()
