"""Times both sides of a case, interleaved: A B A B ..., medians and quartiles of the runs."""

from __future__ import annotations

import gc
import os
import resource
from statistics import quantiles
from timeit import Timer
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.bench.case import Case, Row, Sides, Statement
from baracuda.describe.errors import BaracudaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from baracuda.bench.ceilings import Ceilings
    from baracuda.choose.plan import Plan

MET = 0.95  # of a goal
# The two sides are compared to see that they do the same thing; what a kernel promises is checked by `verify`.
_SAME = {"f64": 1e-6, "f32": 1e-3, "bf16": 3e-2, "f16": 1e-2}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    low, mid, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return {"median": mid, "q1": low, "q3": high, "runs": list(values)}


class _Side:
    """A statement with its repetitions: enough to take `seconds`."""

    def __init__(self, statement: Statement, seconds: float) -> None:
        self.timer = Timer(statement.text, timer=statement.clock, globals=statement.names)
        self.timer.timeit(2)
        count, spent = 1, self.timer.timeit(1)
        while spent < seconds / 5:
            count = max(count + 1, min(count * 10, int(count * seconds / 4 / max(spent, 1e-9))))
            spent = self.timer.timeit(count)
        self.count = max(1, round(count * seconds / spent + 0.5))

    def run(self) -> tuple[float, int, int]:
        """One timed run: seconds per call, page faults, and how often another process took a CPU away."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        spent = self.timer.timeit(self.count) / self.count
        after = resource.getrusage(resource.RUSAGE_SELF)
        return spent, after.ru_minflt - before.ru_minflt, after.ru_nivcsw - before.ru_nivcsw


_QUIET = 2  # involuntary switches in a pair of runs that still count as a quiet machine


def time_sides(row: Row, sides: Sides, runs: int, seconds: float, patience: int = 1) -> None:
    """Fills in the row's times, ratio and the signs of a busy machine.

    Up to `patience` times as many pairs of runs are made until enough of them were quiet. Those in which other
    processes interfered least count: they are chosen by that alone, not by their times.
    """
    ours = _Side(sides.ours, seconds)
    peer = _Side(sides.peer, seconds) if sides.peer else None
    pairs: list[tuple[int, list[tuple[float, int, int]]]] = []
    while len(pairs) < runs * patience and sum(s <= _QUIET for s, _ in pairs) < runs:
        pair = [ours.run()] + ([peer.run()] if peer else [])
        pairs.append((sum(switches for _, _, switches in pair), pair))
    chosen = sorted(pairs, key=lambda p: p[0])[:runs]
    row.pairs, row.switches, row.load = len(pairs), sum(s for s, _ in chosen), os.getloadavg()[0]
    mine = [p[0][0] for _, p in chosen]
    row.ours = _spread(mine) | {"repetitions": ours.count}
    row.faults = (sum(p[0][1] for _, p in chosen), sum(p[1][1] for _, p in chosen) if peer else 0)
    if peer:
        theirs = [p[1][0] for _, p in chosen]
        row.theirs = _spread(theirs) | {"repetitions": peer.count}
        row.ratio = _spread([t / m for m, t in zip(mine, theirs, strict=True)])


_kept: dict[str, str] = {}


def broken_promise(made: Plan) -> str:
    """What is wrong with the plan's SKU on this machine, by its own guarantee; "" when it is kept. Checked once."""
    from baracuda.prove.verify import verify

    sku = made.sku
    if sku.name not in _kept:
        assert sku.element is not None
        report = verify(sku.op, sku.direction, sku.element, sku.variant, layouts=("contiguous",), device=made.device)
        if report.problems:
            _kept[sku.name] = f"{sku.name}: {report.problems[0]}"
        else:
            _kept[sku.name] = "" if report.cases else f"{sku.name}: its reference has no case for this SKU"
    return _kept[sku.name]


def _as_array(value: Any) -> Any:
    array = value.detach().cpu().float().numpy() if type(value).__module__.startswith("torch") else np.asarray(value)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def disagreement(sides: Sides, element: str) -> str:
    """How the two sides' results differ; "" when they are the same but for rounding."""
    if sides.results is None:
        return ""
    for i, (mine, theirs) in enumerate(zip(*sides.results(), strict=True)):
        a, b = _as_array(mine), _as_array(theirs)
        if a.shape != b.shape:
            return f"result {i}: shapes {a.shape} and {b.shape}"
        scale = float(np.abs(b).max(initial=0.0)) or 1.0
        worst = float(np.abs(a - b).max(initial=0.0)) / scale
        if not worst <= _SAME.get(element, 0.0):
            return f"result {i}: the sides differ by {worst:.2g} of the largest value"
    return ""


def _judge(case: Case, row: Row, ceilings: Ceilings) -> None:
    if case.goal_ns is not None:
        row.goal_ns = case.goal_ns() if callable(case.goal_ns) else case.goal_ns
        row.met = row.ours is not None and row.ours["median"] * 1e9 <= row.goal_ns / MET
    if row.ratio is not None:
        row.met = row.ratio["median"] >= MET * case.goal if case.goal is not None else row.met
        row.met_required = row.ratio["median"] >= MET * case.required if case.required is not None else None
    if case.ceiling and case.ceiling in ceilings.values:
        row.ceiling = {"name": case.ceiling, "value": ceilings.values[case.ceiling]}


def measure(case: Case, ceilings: Ceilings, runs: int, seconds: float, patience: int = 1) -> Row:
    """A case's row; never raises for what the case does, so that one bad row does not lose the others."""
    row = Row(case.name, case.family, case.element, case.shape, case.peer, required=case.required, goal=case.goal)
    row.bytes, row.flops, row.tokens = case.bytes, case.flops, case.tokens
    try:
        sides = case.build()
        row.skus = sorted({p.sku.name for p in sides.plans})
        row.reason = next(filter(None, map(broken_promise, sides.plans)), "") or disagreement(sides, case.element)
        if row.reason:
            row.status = "broken"
        time_sides(row, sides, runs, seconds, patience)
        if row.status == "measured":
            _judge(case, row, ceilings)
    except AttributeError as error:
        row.status, row.reason = ("skipped" if error.name and "baracuda" in str(error) else "error"), str(error)
    except (BaracudaError, FileNotFoundError) as error:
        row.status, row.reason = "skipped", str(error).splitlines()[0]
    except Exception as error:
        row.status, row.reason = "error", f"{type(error).__name__}: {error}"
    finally:
        gc.collect()
    return row
