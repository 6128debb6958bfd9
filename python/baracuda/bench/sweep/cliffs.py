"""Cost per element from a thousand elements to a hundred million, and where it jumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda.bench.sweep.cells import draw
from baracuda.bench.sweep.race import race
from baracuda.bench.sweep.run import Options
from baracuda.bench.sweep.sides import Broken, Library, Unsuited, pair_of
from baracuda.prove.draws import BYTES

STEP = 10**0.5  # from one size to the next
JUMP = 1.6  # times the cost per element of the size before
BESIDE = 1.3  # and so many times the peer's: what caches and page tables cost both is no cliff


def sizes(largest: float, element: str) -> list[int]:
    """Numbers of elements, each about three times the one before."""
    found, n = [], 1000.0
    while n * BYTES[element] <= largest * 1.01:
        found.append(round(n))
        n *= STEP
    return found


def curve(name: str, library: Library, options: Options, element: str = "f32") -> list[dict[str, Any]]:
    """One call of a function at each size, contiguous: seconds of both sides, and nanoseconds per element of ours."""
    points: list[dict[str, Any]] = []
    for n in sizes(options.largest, element):
        cell = draw(name, options.seed, 0, element=element, nbytes=float(n * BYTES[element]), layout="contiguous")
        if points and cell.size <= points[-1]["size"]:
            continue  # the rule limits the work
        try:
            times = race(pair_of(cell, library, options.seed), options.seconds, 3)
        except (Unsuited, Broken):
            continue
        ours, theirs = min(times.ours), min(times.theirs)
        size = max(cell.size, 1)
        points.append(
            {
                "size": size,
                "call": cell.text,
                "ours": ours,
                "theirs": theirs,
                "ns": ours / size * 1e9,
                "peer_ns": theirs / size * 1e9,
            }
        )
    return points


def cliffs(points: Sequence[dict[str, Any]]) -> list[int]:
    """Places of a curve where an element costs much more than at the size before, and the peer's does not."""
    found = []
    for i in range(1, len(points)):
        ours, theirs = (points[i][k] / points[i - 1][k] for k in ("ns", "peer_ns"))
        if ours > JUMP and ours > BESIDE * theirs:
            found.append(i)
    return found
