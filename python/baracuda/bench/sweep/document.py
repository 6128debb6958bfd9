"""What a sweep found, as JSON: rows, shares, and what became slower since another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

SCHEMA = 1
SLOWER = 1.1  # times as slow as before: listed
BEHIND, FAR_BEHIND = 0.95, 0.7
METHOD = (
    "one process, both sides by turns, runs of {ms:g} ms or one call; ratio = the peer's least time / our least time; two pairs of "
    "runs decide ratios outside of 0.8 to 1.1, four those below, up to {most} the rest; results are compared, loosely, before; without "
    "out= both sides make their results, with it neither; gradients: call and gradient together"
)


@dataclass(slots=True)
class Row:
    """A cell's result. Times are seconds per call.

    Attributes:
        status: "measured", "broken" (the two sides differ: not timed), "unsuited" (one side does not take it) or "error".
        reason: Why it is not "measured"; elements that a side did not take.
        ours: The least of the runs.
        theirs: The same of the peer.
        runs: Pairs of runs.
    """

    name: str
    family: str
    number: int
    gradient: bool
    out: bool
    call: str
    element: str
    layout: str
    bytes: int
    size: int
    status: str = "measured"
    reason: str = ""
    ours: float = 0.0
    theirs: float = 0.0
    ratio: float = 0.0
    runs: int = 0


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What rows of two sweeps are matched by: the same call."""
    return (row["name"], row["number"], row["gradient"], row["call"])


def figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count, geometric mean of the ratios, shares that are behind, and the worst."""
    ratios = [r["ratio"] for r in rows if r["status"] == "measured"]
    if not ratios:
        return {"cells": 0, "mean": None, "behind": None, "far_behind": None, "worst": None}
    return {
        "cells": len(ratios),
        "mean": exp(sum(map(log, ratios)) / len(ratios)),
        "behind": sum(r < BEHIND for r in ratios) / len(ratios),
        "far_behind": sum(r < FAR_BEHIND for r in ratios) / len(ratios),
        "worst": min(ratios),
    }


def by(rows: Sequence[dict[str, Any]], what: str) -> dict[str, dict[str, Any]]:
    """Figures of all rows that have the same."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[str(row[what])].append(row)
    return {name: figures(found) for name, found in sorted(groups.items())}


def worst(rows: Sequence[dict[str, Any]], count: int = 50) -> list[dict[str, Any]]:
    """Those that are furthest behind."""
    return sorted((r for r in rows if r["status"] == "measured"), key=lambda r: float(r["ratio"]))[:count]


def document(rows: Sequence[Row], options: dict[str, Any], machine: dict[str, Any], date: str) -> dict[str, Any]:
    """Everything, ready for JSON."""
    plain = [asdict(r) for r in rows]
    return {
        "schema": SCHEMA,
        "kind": "sweep",
        "date": date,
        "options": options,
        "machine": machine,
        "method": METHOD.format(ms=options["milliseconds"], most=options["most"]),
        "summary": figures(plain),
        "families": by(plain, "family"),
        "layouts": by(plain, "layout"),
        "elements": by(plain, "element"),
        "rows": plain,
    }


def slower(new: dict[str, Any], old: dict[str, Any]) -> list[dict[str, Any]]:
    """Cells of both that take 1.1 times as long as before, and as much more beside the peer: a slower machine is none of ours.

    Each has `before`, the old row, and `times`, how often as long it takes.
    """
    before = {key(r): r for r in old["rows"] if r["status"] == "measured"}
    found = []
    for row in new["rows"]:
        was = before.get(key(row))
        if row["status"] != "measured" or was is None:
            continue
        times = min(row["ours"] / was["ours"], was["ratio"] / row["ratio"])
        if times >= SLOWER:
            found.append({**row, "before": was, "times": times})
    return sorted(found, key=lambda r: -float(r["times"]))


def matched(new: dict[str, Any], old: dict[str, Any]) -> int:
    """How many cells are in both."""
    before = {key(r) for r in old["rows"] if r["status"] == "measured"}
    return sum(r["status"] == "measured" and key(r) in before for r in new["rows"])
