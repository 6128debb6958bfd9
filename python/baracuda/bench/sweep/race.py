"""Times both sides of a cell, interleaved: two runs decide what is clear, more what is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from timeit import Timer

from baracuda.bench.sweep.sides import Pair

_CLEAR = (0.8, 1.1)  # outside of these ratios a cell is clear
_MOST = 7  # pairs of runs of one that is not
_SLOW = 0.25  # seconds of one call, of which no more than two are made


@dataclass(slots=True)
class Times:
    """Seconds per call, of each run."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The peer's time divided by ours: of the least disturbed run of each."""
        return min(self.theirs) / min(self.ours)


class _Side:
    def __init__(self, timer: Timer, seconds: float) -> None:
        self.timer = timer
        timer.timeit(1)
        spent = timer.timeit(1)
        if spent < 2e-5:
            spent = timer.timeit(8) / 8
        self.count = max(1, min(20_000, round(seconds / max(spent, 1e-8))))
        self.slow = spent > _SLOW

    def run(self) -> float:
        return self.timer.timeit(self.count) / self.count


def race(pair: Pair, seconds: float = 1e-3, most: int = _MOST) -> Times:
    """Runs of about so many seconds by turns: A B A B."""
    sides = [_Side(Timer(s.text, globals=s.names), seconds) for s in (pair.ours, pair.theirs)]
    found = Times()
    least = 1 if any(s.slow for s in sides) else 2
    while len(found.ours) < most:
        found.ours.append(sides[0].run())
        found.theirs.append(sides[1].run())
        unclear = _CLEAR[0] < found.ratio < _CLEAR[1]
        # A cell that is behind is run once more: a disturbance of ours alone looks like it.
        wanted = least if least == 1 else most if unclear else 4 if found.ratio < 1 else least
        if len(found.ours) >= wanted:
            break
    return found
