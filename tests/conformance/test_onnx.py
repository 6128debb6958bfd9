"""ONNX's node tests: every case gives ONNX's result, or is counted with the reason why it is not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

from onnx_cases import NodeCase, load  # noqa: E402
from onnx_run import PAGE, difference, outcomes, report, run_operator  # noqa: E402

from baracuda.onnx.operators import TABLE  # noqa: E402

MOST_TERMS = 1 << 13


def test_every_case_that_is_run_gives_onnxs_result() -> None:
    wrong = [f"{op}: {line}" for op, o in outcomes().items() for line in o.failed]
    assert not wrong, "\n".join(wrong)
    assert sum(o.passed for o in outcomes().values()) >= 1200


def test_operators_of_the_table_are_run() -> None:
    tried = [op for op in TABLE if op in load()]
    idle = [
        op
        for op in tried
        if not outcomes()[op].passed and op not in ("Shape", "Size", "OptionalHasElement", "SequenceLength")
    ]
    assert len(tried) > 170 and not idle, "operators with a rule of which no case is run"


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
    for case in (case for op in TABLE for case in load().get(op, [])):
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
    one, two = onnx.helper.make_node("Exp", ["x"], ["y"]), onnx.helper.make_node("MatMul", ["a", "b"], ["y"])
    cases = [
        NodeCase("wrong", "Exp", one, [x], [x], 13),
        NodeCase("refused", "MatMul", two, [x, x], [x], 13),
        NodeCase("odd", "Exp", one, [np.array(["a"], dtype=object)], [x], 13),
        NodeCase("right", "Neg", onnx.helper.make_node("Neg", ["x"], ["y"]), [x], [-x], 13),
    ]
    outcome = run_operator(cases)
    assert [line.partition(":")[0] for line in outcome.failed] == ["wrong", "refused"]
    assert outcome.passed == 1 and sum(outcome.not_run.values()) == 1
