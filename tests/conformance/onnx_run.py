"""Runs ONNX's node tests through bc.functional and counts them."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from onnx_cases import NodeCase, NotRun, load
from onnx_table import ABSENT, CALLS, NO_ELEMENT, SEQUENCE, TEXT

from baracuda import _index
from baracuda import functional as F
from baracuda.choose.sku import make_sku, rows
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

WHY = {op: why for why, ops in ABSENT.items() for op in ops}
NUMPY_ULP = 4  # that NumPy's own functions of f32 may be off


@dataclass
class Outcome:
    """What became of one operator's cases."""

    passed: int = 0
    not_run: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


class Recorder:
    """bc.functional, which notes what is asked for."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(F, name)
        self.used.add(name)
        return found


def _promises(name: str, element: Element) -> list[Any]:
    """What the rows behind a function promise: its own op's, else those of all ops of its module."""
    ops = [name] if name in _index.OPS else [op.name for op in import_module(_index.FUNCTIONS[name]).OPS]
    ops = ops or ["matmul", "sum", "mul"]
    found = []
    for row in rows():
        if (
            row["op"] in ops
            and (row["direction"], row["backend"]) == ("forward", "cpu")
            and int(element) in row["elements"]
        ):
            found.append(make_sku(row, element).precision_guarantee)
    return found


def allowed(used: set[str], inputs: list[Any], want: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How far a result may be from ONNX's: our promise, and as much for NumPy, which computed that in the same element.

    An exact promise allows nothing. sum|terms| is at most the sum of all magnitudes, or the largest of the case times
    the terms' number; the first is taken where it is smaller.
    """
    element = Element.coerce(want.dtype)
    wide = np.abs(np.where(np.isfinite(want.astype("f8")), want, 0).astype("f8"))
    error = np.zeros(want.shape)
    if not element.is_float:
        return error
    numbers = [
        np.abs(np.nan_to_num(x.astype("f8"), posinf=0, neginf=0)) for x in inputs if x.dtype.kind in "fV" and x.size
    ]
    most = max([1.0, wide.max(initial=0), *(x.max() for x in numbers)])
    terms = max([1, *(prod(x.shape) for x in numbers)])
    for name in used:
        promises = _promises(name, element)
        for bound in ("ulp", "sum"):
            largest = max((p.c for p in promises if p.bound == bound), default=0.0)
            if not largest:
                continue
            eps = float(np.finfo(np.float32).eps) if element is not Element.F64 else float(np.finfo(np.float64).eps)
            own = _spacing(wide, element)
            if bound == "ulp":
                error += (largest + NUMPY_ULP) * own
            else:
                error += 2 * largest * eps * terms**0.5 * most + 2 * own
    return error


def _spacing(x: np.ndarray[Any, Any], element: Element) -> np.ndarray[Any, Any]:
    """The distance of neighbours at each magnitude, in the element."""
    import ml_dtypes

    info = ml_dtypes.finfo(element.numpy)
    return np.maximum(x, float(info.smallest_normal)) * float(info.eps)


def difference(got: Any, want: Any, used: set[str], inputs: list[Any]) -> str:
    """What is wrong with a result; empty where nothing is."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"got {got.dtype} {got.shape}, want {want.dtype} {want.shape}"
    if got.dtype.kind in "biu":
        return "" if np.array_equal(got, want) else f"got {got.ravel()[:8]}, want {want.ravel()[:8]}"
    limit = allowed(used, inputs, want)
    a, b = got.astype("f8"), want.astype("f8")
    with np.errstate(invalid="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit)
    if fine.all():
        return ""
    at = int(np.argmin(fine.reshape(-1)))
    return f"got {a.ravel()[at]!r}, want {b.ravel()[at]!r} to {limit.ravel()[at]:.2g} at {at} of {want.shape}"


def _array(x: Any) -> Any:
    import onnx

    if isinstance(x, onnx.TensorProto):
        x = onnx.numpy_helper.to_array(x)
    return np.asarray(x) if isinstance(x, np.generic) else x


def run_case(case: NodeCase) -> str:
    """Runs one case; what is wrong, or empty.

    Raises:
        NotRun: Where it is not to be run; says why.
    """
    if case.op in WHY:
        raise NotRun(WHY[case.op])
    inputs, outputs = [_array(x) for x in case.inputs], [_array(x) for x in case.outputs]
    for x in (*inputs, *outputs):
        if x is None:
            continue
        if not isinstance(x, np.ndarray):
            raise NotRun(SEQUENCE)
        try:
            Element.coerce(x.dtype)
        except InvalidProblemError:
            raise NotRun(TEXT if x.dtype.kind in "OUS" else NO_ELEMENT) from None
    while inputs and inputs[-1] is None:
        inputs.pop()
    functions = Recorder()
    made = CALLS[case.op](functions, case, *inputs)
    results = made if isinstance(made, tuple) else (made,)
    given = [x for x in inputs if x is not None]
    for got, want in zip(results, outputs, strict=False):
        if want is not None and (wrong := difference(got, want, functions.used, given)):
            return wrong
    return ""


def run_operator(cases: list[NodeCase]) -> Outcome:
    """Runs all cases of an operator."""
    outcome = Outcome()
    for case in cases:
        try:
            wrong = run_case(case)
        except NotRun as reason:
            outcome.not_run[str(reason)] += 1
            continue
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"[:300]
        if wrong:
            outcome.failed.append(f"{case.name}: {wrong}")
        else:
            outcome.passed += 1
    return outcome


@cache
def outcomes() -> dict[str, Outcome]:
    """What became of all operators' cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy, for casts of NaN
        return {op: run_operator(cases) for op, cases in load().items()}


def report() -> str:
    """The page of the documentation."""
    import onnx

    found = outcomes()
    reasons: Counter[str] = Counter()
    for o in found.values():
        reasons += o.not_run
    run = sum(o.passed + len(o.failed) for o in found.values())
    lines = [
        "# Conformance",
        "",
        f"The node tests of the package onnx {onnx.__version__}, run through `bc.functional` on the cpu: {run} of",
        f"{run + sum(reasons.values())} cases. Which call an operator is, and why others are not run, is in",
        "`tests/conformance/onnx_table.py`. A result may differ from ONNX's by what the SKUs behind it promise, and as much",
        "for NumPy, which computed ONNX's; where the promise is exact, by nothing. Function bodies (`_expanded`) are the same",
        "data once more and are left out. Written by `python tests/conformance/onnx_run.py`; a test compares it.",
        "",
        "| not run, because it is | cases |",
        "|---|---|",
        *(f"| {why} | {count} |" for why, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))),
        "",
        "| operator | cases | pass | not run |",
        "|---|---|---|---|",
    ]
    for op, o in found.items():
        if op in CALLS:
            left = sum(o.not_run.values())
            lines.append(f"| {op} | {o.passed + len(o.failed) + left} | {o.passed} | {left or ''} |")
    return "\n".join(lines) + "\n"


PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"

if __name__ == "__main__":
    PAGE.write_text(report())
