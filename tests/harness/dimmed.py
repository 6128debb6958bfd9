"""Plans with Dims in the place of a case's sizes, given no more workspace than these sizes need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from emptied import places, with_sizes

from baracuda import _index
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.dims import Dim, size_at
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.describe.spec import Descriptor
from baracuda.memory.tensor import TensorSpec
from baracuda.prove.reference import Case
from baracuda.prove.verify import execute

FAR = 70_001  # over any size from which work is split
# Whose workspace follows max_q, max_k and the number of sequences; sizes of axes, or of rows of blocks, which are no Dims.
BY_ATTRIBUTES = {("varlen_attn", "backward"), ("quant_matmul_ids", "forward")} | {
    (op, direction) for op in ("resize", "resize_nearest") for direction in ("forward", "backward")
}
Sizes = dict[str, int]


def with_workspace(backend: str) -> list[tuple[str, str, str]]:
    """Op, direction and variant of the rows that may want some."""
    mine = (r for r in rows() if r["backend"] == backend and r["workspace"] and r["op"] in _index.OPS)
    return sorted({(r["op"], r["direction"], r["variant"]) for r in mine})


def dimmed(desc: Descriptor) -> Iterator[tuple[Descriptor, Sizes]]:
    """The descriptor with Dims in the place of equal sizes, of all, and of each, and their values."""
    sizes = places(desc)
    for group in [*({n} for n in dict.fromkeys(sizes.values())), {*sizes.values()}]:
        yield from _named(desc, {p: n for p, n in sizes.items() if n in group})
    for some in sizes:
        yield from _named(desc, {some: sizes[some]})


def _named(desc: Descriptor, sizes: dict[Any, int]) -> Iterator[tuple[Descriptor, Sizes]]:
    for most in (lambda n: n + FAR, lambda n: 3 * n):
        named = {p: Dim(f"n{n}", max=most(n)) for p, n in sizes.items()}
        try:
            yield replace(desc, **with_sizes(desc, named)), {f"n{n}": n for n in sizes.values()}
        except BaracudaError:
            continue


def check(case: Case, made: Plan, sizes: Sizes) -> bool:
    """Runs a plan with exactly the workspace that its sizes want; whether that is less than for the maxima."""
    fixed = plan(case.descriptor, made.device, PlanPreference(sku=made.sku.variant))
    needed = made.workspace_for(**sizes)
    assert needed == fixed.workspace_size <= made.workspace_size, f"{made} wants {needed} bytes at {sizes}"
    if needed >= made.workspace_size:
        return False
    if needed:
        specs = {
            p.name: [TensorSpec(tuple(size_at(n, sizes) for n in s), p.element, None, made.device) for s in p.shapes]
            for p in made.signature.present
        }
        args = {p.name: specs[p.name] if p.variadic else specs[p.name][0] for p in made.signature.present}
        for short in (0, 1):
            scratch = TensorSpec((needed - short,), "u8", None, made.device)
            support = made.can_implement(**args, **case.scalars, workspace=scratch)
            assert [(r.code, r.needed) for r in support.refusals] == [("workspace", needed)] * short, support
    outcome = execute(case, made, fill=0xFF, sizes=sizes)
    assert not any(outcome.stray.values()), f"{made} at {sizes}: wrote outside of {outcome.stray}"
    if made.precision_guarantee.deterministic:
        assert outcome.digest() == execute(case, fixed, fill=0xFF).digest(), f"{made} at {sizes}"
    return True


def check_row(
    cases: Iterator[tuple[Element, Case]], op: str, direction: str, variant: str, device: str, enough: int
) -> None:
    """Checks a row on `enough` plans of each element; that some wanted less is part of it."""
    preference = PlanPreference(sku=variant)
    wanted, tried = set[int](), dict[Element, int]()
    for element, case in cases:
        if tried.setdefault(element, 0) >= enough:
            continue
        for desc, sizes in dimmed(case.descriptor):
            query = type(desc).plan_class.query
            if query(desc, device, preference) and query(case.descriptor, device, preference):
                made = plan(desc, device, preference)
                wanted.add(made.workspace_size)
                tried[element] += check(case, made, sizes)
    constant = len(wanted - {0}) < 2 or (op, direction) in BY_ATTRIBUTES
    assert sum(tried.values()) or constant, "no plan with a Dim needed less than at its maximum"
