"""Computing values again instead of keeping them, where memory is limited."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from baracuda.graph.nodes import Launch, Slot, View


@dataclass(frozen=True, slots=True)
class Lives:
    """From which launch to which each temporary is needed, and the bytes that are alive at each."""

    first: dict[Slot, int]
    last: dict[Slot, int]
    bytes: list[int]

    @classmethod
    def of(cls, launches: Iterable[Launch], handed_out: Iterable[Slot]) -> Lives:
        """Of temporaries that are not handed out, and workspaces."""
        not_ours = set(handed_out)
        first: dict[Slot, int] = {}
        last: dict[Slot, int] = {}
        workspaces = []
        for i, launch in enumerate(launches):
            workspaces.append(launch.plan.workspace_size)
            for v in (*launch.reads, *launch.writes):
                if v.slot.kind == "temporary" and v.slot not in not_ours:
                    first.setdefault(v.slot, i)
                    last[v.slot] = i
        change = [0] * (len(workspaces) + 1)
        for slot, at in first.items():
            change[at] += slot.nbytes
            change[last[slot] + 1] -= slot.nbytes
        alive, found = 0, []
        for i, workspace in enumerate(workspaces):
            alive += change[i]
            found.append(alive + workspace)
        return cls(first, last, found)

    @classmethod
    def within(cls, launches: Iterable[Launch], results: Iterable[Any]) -> Lives:
        """Of the launches of a graph with these results."""
        return cls.of(launches, {v.slot for v in results if isinstance(v, View)})

    @property
    def most(self) -> int:
        """The most that is alive at once."""
        return max(self.bytes, default=0)

    @property
    def height(self) -> tuple[int, int]:
        """That, and at how many launches it is."""
        return self.most, self.bytes.count(self.most)


def recompute_one(launches: list[Launch], results: list[Any]) -> list[Launch] | None:
    """Has the largest value that waits through the launch with the most memory be computed again behind it; None for none.

    Such a value comes from one launch, whose own inputs are there later, too: what it gives is the same, bit for bit.
    """
    lives = Lives.within(launches, results)
    peak = lives.bytes.index(lives.most) if lives.bytes else 0
    writers: dict[Slot, list[int]] = {}
    for i, launch in enumerate(launches):
        for v in launch.writes:
            writers.setdefault(v.slot, []).append(i)
    used = {v.slot for v in (*launches[peak].reads, *launches[peak].writes)} if launches else set()
    waiting = [
        s for s, at in lives.first.items() if at < peak < lives.last[s] and s not in used and len(writers[s]) == 1
    ]
    for slot in sorted(waiting, key=lambda s: -s.nbytes):
        made = launches[writers[slot][0]]
        later = [i for i in range(peak + 1, len(launches)) if any(v.slot is slot for v in launches[i].reads)]
        if len({v.slot for v in made.writes}) == 1 and _there(made, later[0], lives, writers):
            return _again(launches, made, slot, later[0])
    return None


def _there(made: Launch, when: int, lives: Lives, writers: dict[Slot, list[int]]) -> bool:
    """Whether all that a launch reads is at hand at another one, as it was."""
    for v in made.reads:
        if v.slot in {w.slot for w in made.writes}:
            return False
        if v.slot.kind == "temporary":
            if len(writers.get(v.slot, ())) != 1 or lives.last.get(v.slot, when) < when:
                return False
        elif v.slot in writers:
            return False
    return True


def _again(launches: list[Launch], made: Launch, slot: Slot, when: int) -> list[Launch]:
    """The launches with one of them again before another, whose result those from there on read."""
    taken = {v.slot.name for launch in launches for v in (*launch.reads, *launch.writes)}
    name = next(n for k in itertools.count(1) if (n := slot.name.rstrip("'") + "'" * k) not in taken)
    other = replace(slot, name=name)

    def renamed(launch: Launch) -> Launch:
        def seen(v: Any) -> Any:
            return replace(v, slot=other) if isinstance(v, View) and v.slot is slot else v

        return replace(launch, tensors=tuple(map(seen, launch.tensors)), numbers=tuple(map(seen, launch.numbers)))

    return [*launches[:when], renamed(made), *map(renamed, launches[when:])]
