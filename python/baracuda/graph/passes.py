"""What `compile` does to a graph's launches before they become a program: each pass can be left out and changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from baracuda.graph.nodes import Launch, Slot, View
from baracuda.memory.views import is_contiguous

Results: TypeAlias = list[Any]
Pass: TypeAlias = Callable[[list[Launch], Results], list[Launch]]


def drop_dead(launches: list[Launch], results: Results) -> list[Launch]:
    """Leaves out what nothing reads: neither a result, nor memory of the caller's, nor a later launch."""
    needed = {v.slot for v in results if isinstance(v, View)}
    kept = []
    for launch in reversed(launches):
        if any(v.slot.kind != "temporary" or v.slot in needed for v in launch.writes):
            kept.append(launch)
            needed |= {v.slot for v in launch.reads} | {v.slot for v in launch.writes}
    return kept[::-1]


def drop_copies(launches: list[Launch], results: Results) -> list[Launch]:
    """Has those who read a copy read what was copied, where neither is written again."""
    writes: dict[Slot, int] = {}
    for launch in launches:
        for slot in {v.slot for v in launch.writes}:
            writes[slot] = writes.get(slot, 0) + 1
    kept_slots = {v.slot for v in results if isinstance(v, View)}
    stands_for: dict[Slot, View] = {}
    kept = []
    for launch in launches:
        launch = _seen_through(launch, stands_for)
        if launch.plan.descriptor.op == "copy" and _of_whole(launch):
            x, y = launch.tensors
            fixed = (x.slot.kind != "temporary" and x.slot not in writes) or writes.get(x.slot) == 1
            if fixed and writes[y.slot] == 1 and y.slot not in kept_slots and x.slot is not y.slot:
                stands_for[y.slot] = x
                continue
        kept.append(launch)
    return kept


def _of_whole(launch: Launch) -> bool:
    """Whether a copy fills a temporary with elements that lie as its own do: its readers' views are views of the original."""
    x, y = launch.tensors
    dense = is_contiguous(x.shape, x.strides) and x.element is y.element
    return dense and y.slot.kind == "temporary" and y.whole


def _seen_through(launch: Launch, stands_for: dict[Slot, View]) -> Launch:
    if not any(v.slot in stands_for for v in launch.reads):
        return launch

    def seen(v: Any) -> Any:
        if not isinstance(v, View) or v.slot not in stands_for:
            return v
        x = stands_for[v.slot]
        start = x.offset if x.element is v.element else x.offset * x.element.nbytes // v.element.nbytes
        start = start + v.offset
        return View(x.slot, start, v.shape, v.strides, v.element)

    return Launch(launch.plan, tuple(map(seen, launch.tensors)), tuple(map(seen, launch.numbers)))


PASSES: dict[str, Pass] = {"copies": drop_copies, "dead": drop_dead}
