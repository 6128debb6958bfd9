"""Runs ONNX's node tests through baracuda.onnx and counts them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from onnx_cases import NodeCase, load

from baracuda import _index
from baracuda import functional as F
from baracuda.choose.sku import make_sku, rows
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError

# Operators whose values only NumPy computes, when a network is loaded: they pass, and do not count.
LOADED = {"Constant", "OptionalHasElement", "SequenceLength", "Shape", "Size"}
# Single cases that are not compared.
APART = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": "of results that ONNX wrote down with four digits",
    "test_gridsample_bicubic": "of results that ONNX wrote down with four digits",
}  # fmt: skip
# What plans compute that operators make themselves: the function with their promise.
BY_PLANS = {"Resize": "interpolate", "Upsample": "interpolate", "Col2Im": "fold", "Cast": "cast", "CastLike": "cast"}
REASONS = {
    "operator": "of operators that nothing here computes",
    "element": "of elements that no kernel here takes, or of texts",
    "option": "for an option that the function does not have",
    "random": "for random numbers of another stream",
}  # fmt: skip
# ONNX's other tests of backends: how many pass, of how many (test_onnx_suite.py). The rest is refused: texts, gradients of
# networks, elements that no kernel takes; one case of f16 is compared with NumPy's sums of f16.
SUITES = {
    "whole networks (simple)": (15, 23),
    "layers of PyTorch (pytorch-converted)": (82, 82),
    "functions of PyTorch (pytorch-operator)": (35, 35),
    "function bodies of nodes (node, `_expanded`)": (440, 480),
}  # fmt: skip
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


@contextmanager
def recorded(op: str) -> Iterator[set[str]]:
    """Notes which functions the operators call."""
    from baracuda.onnx import operators

    recorder = Recorder()
    recorder.used |= {BY_PLANS[op]} if op in BY_PLANS else set()
    for module in operators.MODULES:
        if hasattr(module, "F"):
            module.F = recorder
    try:
        yield recorder.used
    finally:
        for module in operators.MODULES:
            if hasattr(module, "F"):
                module.F = F


class NotRun(Exception):
    """A case that is not run; says why."""


def _value(x: Any) -> Any:
    import onnx

    if isinstance(x, onnx.TensorProto):
        x = onnx.numpy_helper.to_array(x)
    elif isinstance(x, onnx.SequenceProto):
        x = onnx.numpy_helper.to_list(x)
    elif isinstance(x, onnx.OptionalProto):
        x = onnx.numpy_helper.to_optional(x)
    return np.asarray(x) if isinstance(x, np.generic) else x


def _flat(values: Any) -> Iterator[np.ndarray[Any, Any]]:
    for x in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(x, (list, tuple)):
            yield from _flat(x)
        elif isinstance(x, np.ndarray):
            yield x


def _reason(error: Exception) -> str:
    code = getattr(error, "code", "")
    if code in REASONS:
        return REASONS[code]
    if isinstance(error, IndexError):
        return "for indices out of range, which are errors here"
    return ""


def run_case(case: NodeCase) -> str:
    """Runs one case; what is wrong, or empty.

    Raises:
        NotRun: Where it is not to be run, or is refused; says why.
    """
    from baracuda.onnx import Backend

    if case.op in LOADED:
        raise NotRun("a value that NumPy computes when the network is loaded")
    if case.name in APART:
        raise NotRun(APART[case.name])
    inputs, outputs = [_value(x) for x in case.inputs], [_value(x) for x in case.outputs]
    with recorded(case.op) as used:
        try:
            made = Backend.run_node(
                case.node, inputs, opset_version=case.opset if case.node.domain else max(case.opset, 7)
            )
        except BaracudaError as error:
            if reason := _reason(error):
                raise NotRun(reason) from None
            raise
    given = list(_flat(inputs))
    for got, want in zip(made, outputs, strict=False):
        pairs = zip(got, want, strict=True) if isinstance(want, list) else [(got, want)]
        for a, b in pairs:
            if b is not None and (wrong := difference(a, b, used, given)):
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
        f"The node tests of the package onnx {onnx.__version__}, run by `baracuda.onnx.Backend` on the cpu: {run} of",
        f"{run + sum(reasons.values())} cases. Which functions an operator is, is in `python/baracuda/onnx/operators`, and what",
        "is lacking in [networks of ONNX](onnx-networks.md). A result may differ from ONNX's by what the SKUs behind it promise, and as",
        "much for NumPy, which computed ONNX's; where the promise is exact, by nothing. Function bodies (`_expanded`) are the",
        "same data once more, and counted below. Written by `python tests/conformance/onnx_run.py`; a test compares it.",
        "",
        "| ONNX's other tests of backends, with its own tolerances | pass | of |",
        "|---|---|---|",
        *(f"| {kind} | {passed} | {of} |" for kind, (passed, of) in SUITES.items()),
        "",
        "| not run, because it is | cases |",
        "|---|---|",
        *(f"| {why} | {count} |" for why, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))),
        "",
        "| operator | cases | pass | not run |",
        "|---|---|---|---|",
    ]
    for op, o in found.items():
        left = sum(o.not_run.values())
        lines.append(f"| {op} | {o.passed + len(o.failed) + left} | {o.passed} | {left or ''} |")
    return "\n".join(lines) + "\n"


PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"

if __name__ == "__main__":
    PAGE.write_text(report())
