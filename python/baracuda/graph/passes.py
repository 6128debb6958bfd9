"""What `compile` does to a graph's launches before they become a program: each pass can be left out and changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from baracuda.choose.sku import rows
from baracuda.describe.spec import IN, OUT
from baracuda.graph.fusion import fuse_chains
from baracuda.graph.nodes import Launch, Slot, View
from baracuda.graph.patterns import merge_patterns
from baracuda.memory.views import is_contiguous

if TYPE_CHECKING:
    from baracuda.graph.graph import ComputeGraph

Results: TypeAlias = list[Any]
Pass: TypeAlias = Callable[[list[Launch], Results, Any], list[Launch]]


def drop_dead(launches: list[Launch], results: Results, graph: ComputeGraph) -> list[Launch]:
    """Leaves out what nothing reads: neither a result, nor memory of the caller's, nor a later launch."""
    needed = {v.slot for v in results if isinstance(v, View)}
    kept = []
    for launch in reversed(launches):
        if any(v.slot.kind != "temporary" or v.slot in needed for v in launch.writes):
            kept.append(launch)
            needed |= {v.slot for v in launch.reads} | {v.slot for v in launch.writes}
    return kept[::-1]


def drop_copies(launches: list[Launch], results: Results, graph: ComputeGraph) -> list[Launch]:
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
            fixed = writes.get(x.slot, 0) == (x.slot.kind == "temporary")  # by its maker alone
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

    return replace(launch, tensors=tuple(map(seen, launch.tensors)), numbers=tuple(map(seen, launch.numbers)))


def merge_in_place(launches: list[Launch], results: Results, graph: ComputeGraph) -> list[Launch]:
    """Has an output take over the memory of an input of the same kind that nothing reads afterwards, where the row allows it."""
    last: dict[Slot, int] = {}
    for i, launch in enumerate(launches):
        last |= dict.fromkeys((v.slot for v in (*launch.reads, *launch.writes)), i)
    handed_out = {v.slot for v in results if isinstance(v, View)}
    merged: dict[Slot, Slot] = {}
    known: set[Slot] = set()
    kept = []
    for i, launch in enumerate(launches):
        taken = {v.slot for v in launch.tensors}
        now = _renamed(launch, merged)
        for y, x in _in_place_pairs(now):
            fresh = y.slot.kind == "temporary" and y.slot not in known | handed_out and y.slot in taken
            over = x.slot.kind == "temporary" and x.slot not in handed_out and last[x.slot] == i
            if fresh and over and sum(v.slot is x.slot for v in (*now.reads, *now.writes)) == 1:
                merged[y.slot] = x.slot
                last[x.slot] = last[y.slot]
                break
        launch = _renamed(launch, merged)
        known |= {v.slot for v in launch.tensors}
        kept.append(launch)
    return kept


def _in_place_pairs(launch: Launch) -> list[tuple[View, View]]:
    """Outputs and inputs that may be one and the same memory: all of it, of the same sizes and element."""
    row, signature = rows()[launch.plan._row], launch.plan.signature
    if not row["in_place_safe"]:
        return []
    by_name = {p.name: views[0] for p, views in launch.by_param() if views}
    allowed = [p for i, p in enumerate(signature.params) if row["in_place_params"] >> i & 1]
    inputs = [by_name[p.name] for p in allowed if p.present and p.role == IN and not p.variadic]
    outputs = [by_name[p.name] for p in signature.present if p.role == OUT and not p.variadic]
    return [
        (y, x) for y in outputs for x in inputs
        if y.whole and x.whole and (y.shape, y.element) == (x.shape, x.element)
    ]  # fmt: skip


def _renamed(launch: Launch, merged: dict[Slot, Slot]) -> Launch:
    if not any(v.slot in merged for v in (*launch.reads, *launch.writes)):
        return launch

    def seen(v: Any) -> Any:
        if not isinstance(v, View) or v.slot not in merged:
            return v
        return View(merged[v.slot], v.offset, v.shape, v.strides, v.element)

    return replace(launch, tensors=tuple(map(seen, launch.tensors)), numbers=tuple(map(seen, launch.numbers)))


BY_CALLS = ("dead", "patterns", "fuse")  # what is fused is found by what calls were given, so nothing is renamed before
PASSES: dict[str, Pass] = {
    "dead": drop_dead, "patterns": merge_patterns, "fuse": fuse_chains, "copies": drop_copies, "in_place": merge_in_place,
}  # fmt: skip
