"""What captured tensors alone decide is computed once, where they are said to stay as they are."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from baracuda import _core
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.nodes import Draw, Launch, Slot, View


def fold_frozen(launches: list[Launch], results: list[Any], graph: Any) -> list[Launch]:
    """Runs the launches now that read nothing but captured tensors, which nothing writes, and what such launches made.

    Results of the graph are made at each run, as ever: they are the caller's to write to.
    """
    writers: dict[Slot, int] = {}
    for launch in launches:
        for slot in {v.slot for v in launch.writes}:
            writers[slot] = writers.get(slot, 0) + 1
    handed_out = {v.slot for v in results if isinstance(v, View)}
    made: dict[Slot, Slot] = {}
    memory: dict[Slot, Any] = {}
    kept = []
    for launch in launches:
        fixed = all(v.slot in made or (v.slot.kind == "constant" and v.slot not in writers) for v in launch.reads)
        own = {v.slot for v in launch.writes}
        alone = all(s.kind == "temporary" and writers[s] == 1 and s not in handed_out for s in own)
        if fixed and alone and not own & {v.slot for v in launch.reads} and _fixed_size(launch):
            _run(launch, own, memory, made, graph.device)
        else:
            kept.append(_renamed(launch, made))
    return kept


def _fixed_size(launch: Launch) -> bool:
    """Whether it is the same at each run: of one size, without random numbers."""
    views = (*launch.reads, *launch.writes)
    sizes = [n for v in views for n in (*v.shape, *v.strides, v.offset, v.slot.count)]
    return not any(isinstance(n, (SizeExpr, Draw)) for n in (*sizes, *launch.numbers))


def _run(launch: Launch, own: set[Slot], memory: dict[Slot, Any], made: dict[Slot, Slot], device: str) -> None:
    for slot in own:
        held = memory[slot] = _core.empty((slot.count,), slot.element, device=device)
        made[slot] = Slot(
            slot.number, "constant", f"folded{slot.number}", slot.element, (slot.count,), (1,), (held,), held.address
        )

    def seen(v: View) -> Any:
        if v.slot in memory:
            return _core.view_of(memory[v.slot], v.offset, v.shape, v.strides, int(v.element))
        address = v.slot.address + v.offset * v.element.nbytes
        return _core.from_pointer(
            address if prod(v.shape) else 0, v.shape, v.element, v.strides, device, None, v.slot.held
        )

    given = launch.arguments(seen, lambda n: n)
    if launch.plan.workspace_size:
        given["workspace"] = _core.empty((launch.plan.workspace_size,), "u8", device=device)
    launch.plan.run(**given)


def _renamed(launch: Launch, made: dict[Slot, Slot]) -> Launch:
    if not any(v.slot in made for v in launch.reads):
        return launch

    def seen(v: Any) -> Any:
        return replace(v, slot=made[v.slot]) if isinstance(v, View) and v.slot in made else v

    return replace(launch, tensors=tuple(map(seen, launch.tensors)), numbers=tuple(map(seen, launch.numbers)))
