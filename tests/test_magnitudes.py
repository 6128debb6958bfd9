"""Numbers near both ends of their element: the cases that `verify` makes of them reach there, and finite results come out
finite, whatever rows lie beside."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda.functional as F
from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.prove.magnitudes import Stretched, stretched_cases
from baracuda.prove.reference import LARGEST, Expected, epsilon, round_to, worst
from baracuda.prove.verify import Report, compare, execute

ROWS = {
    Element.F32: ([1e27, -3e27, 2e27, 5e26], [1e20, -1e20, 3e19, 0], [1e-25, -1e-25, 3e-25, 0], [2e38, -1e38, 1e38, 0]),
    Element.F64: ([1e200, -3e200, 2e200, 0], [1e-200, -1e-200, 3e-200, 0], [1e308, -1e308, 5e307, 0], [3e-310, 0, 0, 1e-310]),
}  # fmt: skip


def _scaled(row: list[float]) -> tuple[np.ndarray, np.longdouble]:
    x = np.array(row, np.longdouble)
    return x, np.abs(x).max()


@pytest.mark.parametrize("element", list(ROWS), ids=str)
@pytest.mark.parametrize("name", ["std", "norm", "rms_norm", "layer_norm", "cosine_similarity"])
def test_finite_rows_give_finite_results(name: str, element: Element) -> None:
    beside = [1.0, 2.0, -3.0, 0.5]
    for row in ROWS[element]:
        x = np.array([beside, row, beside], element.numpy)
        wide, most = _scaled(row)
        unit = wide / most
        calls = {
            "std": (lambda v: F.std(v, -1), np.std(unit, ddof=1) * most),
            "norm": (lambda v: F.norm(v, dim=-1), np.sqrt(np.sum(unit * unit)) * most),
            "rms_norm": (lambda v: F.rms_norm(v, (4,), None, 0.0), unit / np.sqrt(np.mean(unit * unit))),
            "layer_norm": (lambda v: F.layer_norm(v, (4,), None, None, 0.0), (unit - unit.mean()) / np.std(unit)),
            "cosine_similarity": (lambda v: F.cosine_similarity(v, v, -1, 0.0), 1.0),
        }
        call, want = calls[name]
        got = call(x)
        # Half of the bits are enough here: the bound itself is test_guarantee.py's.
        allowed = np.sqrt(epsilon(element)) * np.max(np.abs(np.asarray(want)))
        assert np.all(np.abs(got[1].astype(np.longdouble) - want) <= allowed), f"{name} {row}: {got[1]}, want {want}"
        assert np.array_equal(call(x[1:2])[0], got[1]), f"{name} {row}: another row alone"
        assert np.array_equal(call(x[:1])[0], got[0]), f"{name}: the row beside changed"


def test_draws_reach_both_ends() -> None:
    for element in (Element.F16, Element.BF16, Element.F32, Element.F64):
        rng = Stretched(np.random.default_rng(1), element)
        values = np.concatenate([rng.normal(0, 1, 50) for _ in range(200)])
        stored = round_to(values, element).astype(np.float64)
        assert np.all(np.isfinite(stored))
        assert np.max(np.abs(stored)) >= LARGEST[element] / 2
        assert np.any((stored != 0) & (np.abs(stored) < LARGEST[element] ** -1)), "subnormal numbers"


def test_a_negative_size_is_a_problem() -> None:
    case = next(stretched_cases("sum", "forward", Element.F32, 0, 2000))
    made, report = plan(case.descriptor), Report("", "")
    outcome = execute(case, made)
    value = np.asarray(outcome.outputs["y"], np.float64)
    assert (
        worst(np.float32(value), Expected(value, np.abs(value)), made.precision_guarantee, Element.F32, Element.F32)[0]
        <= 1
    )
    for field in ("magnitude", "reach", "lost"):
        wrong = Expected(value, **{"magnitude": np.abs(value), field: -1 - np.abs(value)})
        compare(case, outcome, made, report, field, {"y": wrong})
        assert f"negative {field}" in report.problems[-1]
