"""ONNX's node tests: every case gives ONNX's result, or is counted with the reason why it is not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_cases import NodeCase, load
from onnx_run import PAGE, WHY, difference, outcomes, report, run_operator
from onnx_table import ABSENT, CALLS

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

MOST_TERMS = 1 << 13


def test_every_case_that_is_run_gives_onnxs_result() -> None:
    wrong = [f"{op}: {line}" for op, o in outcomes().items() for line in o.failed]
    assert not wrong, "\n".join(wrong)
    assert sum(o.passed for o in outcomes().values()) > 1150


def test_every_operator_has_a_call_or_a_reason() -> None:
    assert set(load()) - set(CALLS) - set(WHY) == set(), "operators that are neither called nor explained"
    assert set(CALLS) & set(WHY) == set(), "operators that are both"
    assert len(WHY) == sum(map(len, ABSENT.values())), "operators with two reasons"
    idle = [op for op in CALLS if op in load() and not outcomes()[op].passed]
    assert not idle, "operators with a call of which no case is run"


def test_the_page_is_fresh() -> None:
    text = PAGE.read_text()
    if f"onnx {onnx.__version__}," not in text:
        pytest.skip(f"the page counts the cases of another version than onnx {onnx.__version__}")
    assert text == report(), "docs/conformance.md is stale: run python tests/conformance/onnx_run.py"


def _arrays(values: list[Any], kinds: str) -> list[np.ndarray[Any, Any]]:
    return [x for x in values if isinstance(x, np.ndarray) and x.size and x.dtype.kind in kinds]


def test_wrong_results_are_seen() -> None:
    """A thousandth of the largest number, one more, the other truth; another shape, another element."""
    seen = 0
    used = {"matmul", "softmax", "layer_norm"}  # of the widest promises
    for case in (case for op in CALLS for case in load().get(op, [])):
        for want in _arrays(case.outputs[:1], "fib"):
            given = _arrays(case.inputs, "f")
            size = np.abs(np.nan_to_num(want.astype("f8"), posinf=0, neginf=0)).max()
            if want.dtype.kind == "f":
                if want.dtype.itemsize < 4 or size == 0 or any(np.nanmax(np.abs(x)) > 4 * size for x in given):
                    continue
                if any(x.size > MOST_TERMS for x in given):  # sums of all of them may be off by as much
                    continue
                other = want + np.asarray(1e-3 * size, want.dtype)
            else:
                other = ~want if want.dtype.kind == "b" else want + 1
            assert difference(other, want, used, given), case.name
            assert difference(want[None, None], want, used, given), case.name
            assert difference(want.astype("c8"), want, used, given), case.name
            seen += 1
    assert seen > 200


def test_failures_are_reported() -> None:
    x = np.ones((2, 3), np.float32)
    cases = [
        NodeCase("wrong", "Exp", {}, [x], [x], 13),
        NodeCase("refused", "MatMul", {}, [x, x], [x], 13),
        NodeCase("odd", "Exp", {}, [np.array(["a"], dtype=object)], [x], 13),
        NodeCase("right", "Neg", {}, [x], [-x], 13),
    ]
    outcome = run_operator(cases)
    assert [line.partition(":")[0] for line in outcome.failed] == ["wrong", "refused"]
    assert outcome.passed == 1 and sum(outcome.not_run.values()) == 1
