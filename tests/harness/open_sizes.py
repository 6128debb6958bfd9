"""Plans with Dims, run at sizes from 0 to the maxima in memory between pages that nobody may touch.

    python tests/harness/open_sizes.py SEED GROUP GROUPS PLANS

What a descriptor of the very sizes refuses, the call refuses; else it gives the bits that a plan of these sizes gives.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from calls import cases_of, directions, elements_of, preference_for
from emptied import _resized, places, with_sizes
from guarded import Guarded, guarded

from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import rows
from baracuda.describe.dims import Dim, size_at
from baracuda.describe.errors import BaracudaError, InvalidProblemError, UnsupportedError
from baracuda.describe.spec import IN, INOUT, Descriptor
from baracuda.prove.narrow import is_records
from baracuda.prove.reference import Case, round_to

Sizes = dict[str, int]
_LARGEST = 4000  # elements of a case
_SIZES = 4  # of one plan
_MOST_TENSORS = 12


def opened(desc: Descriptor, rng: random.Random) -> tuple[Descriptor, dict[Any, str]] | None:
    """The descriptor with Dims in the place of some sizes: all that are equal, or one alone."""
    sizes = {p: n for p, n in places(desc).items() if n > 0}
    if not sizes:
        return None
    chosen = rng.choice(list(dict.fromkeys(sizes.values())))
    some = [p for p, n in sizes.items() if n == chosen]
    if rng.randrange(3) == 0:
        some = [rng.choice(some)]
    if rng.randrange(3) == 0:  # a second symbol
        some += [p for p, n in sizes.items() if n == rng.choice(list(sizes.values())) and p not in some]
    names = {p: f"n{sizes[p]}" for p in some}
    more = rng.choice((0, 0, 1, 7))
    try:
        return replace(desc, **with_sizes(desc, {p: Dim(names[p], max=sizes[p] + more) for p in some})), names
    except BaracudaError:
        return None


def drawn_sizes(made: Plan, rng: random.Random) -> Iterator[Sizes]:
    """Values of a plan's symbols: its ends, and some between."""
    most = {d.name: d.max for p in made.signature.present for s in p.shapes for d in s if isinstance(d, Dim)}
    yield most
    for _ in range(_SIZES):
        yield {
            n: min(rng.choice((0, 1, 2, most[n] // 2, max(most[n] - 1, 0), rng.randint(0, most[n]))), most[n])
            for n in most
        }


def _shape(shape: tuple[Any, ...], sizes: Sizes) -> tuple[int, ...]:
    return tuple(int(size_at(n, sizes)) for n in shape)


def run(case: Case, made: Plan, sizes: Sizes, low: bool) -> dict[str, bytes]:
    """One call, with exactly the workspace that it needs, and what its outputs hold."""
    held: list[Guarded] = []
    call: dict[str, Any] = dict(case.scalars)
    found: dict[str, Any] = {}
    try:
        for p in made.signature.present:
            given = case.tensors.get(p.name)
            parts = []
            for i, wanted in enumerate(p.shapes):
                shape = _shape(wanted, sizes)
                values = None
                if p.role in (IN, INOUT):
                    values = _resized(given[i] if p.variadic else given, shape)
                    values = np.asarray(round_to(values, p.element)).astype(p.element.numpy)
                tensor, memory = guarded(shape, p.element, values, low)
                held.append(memory)
                parts.append(tensor)
            call[p.name] = parts if p.variadic else parts[0]
            found[p.name] = held[-len(parts) :] if parts else []
        room = made.workspace_for(**sizes) if sizes else made.workspace_size
        assert room <= made.workspace_size, f"{made} wants {room} bytes at {sizes}, {made.workspace_size} at its maxima"
        if room:
            scratch = Guarded(room, low, 64)
            scratch.bytes[...] = 0xA5
            held.append(scratch)
            call["workspace"] = scratch.bytes
        made.run(**call)
        return {p.name: b"".join(m.bytes.tobytes() for m in found[p.name]) for p in made.signature.outputs}
    finally:
        call.clear()
        parts = tensor = memory = scratch = None  # what is closed may have no views
        for each in held:
            each.close()


def _error(run_it: Any) -> tuple[Any, BaracudaError | None]:
    try:
        return run_it(), None
    except BaracudaError as error:
        return None, error


def check(case: Case, desc: Descriptor, names: dict[Any, str], variant: str, rng: random.Random) -> int:
    """A row's plan of a descriptor with Dims at some sizes; how many of them ran."""
    made = plan(desc, "cpu", preference_for(variant))
    ran = 0
    for sizes in drawn_sizes(made, rng):
        print(f"at {desc} {variant} {sizes}", flush=True)  # the last line tells where a process ended
        try:
            shapes = [_shape(s, sizes) for p in made.signature.present for s in p.shapes]
        except BaracudaError:
            continue
        if any(n < 0 for s in shapes for n in s):
            continue
        low = rng.randrange(2) == 0
        fixed = with_sizes(desc, {place: sizes[n] for place, n in names.items() if n in sizes})
        exact, wrong = _error(lambda fixed=fixed: plan(replace(desc, **fixed), "cpu", preference_for(variant)))
        got, refused = _error(lambda sizes=sizes, low=low: run(case, made, sizes, low))
        if wrong is not None:
            allowed = refused is not None or empty_result(made, sizes)
            assert allowed or not isinstance(wrong, InvalidProblemError | UnsupportedError), f"runs, although {wrong}"
            continue
        told = [_shape(s, {}) for p in exact.signature.present for s in p.shapes]
        assert told == shapes, f"shapes {shapes}, a plan of these sizes has {told}"
        want, failed = _error(lambda exact=exact, low=low: run(case, exact, {}, low))
        assert (refused is None) == (failed is None), f"{refused!r}; a plan of these sizes: {failed!r}"
        if made.precision_guarantee.deterministic:
            assert got == want, f"other bits than a plan of these sizes has: {desc} at {sizes}"
        ran += got is not None
        if refused is not None and "--errors" in sys.argv:
            print(refused)
    return ran


def empty_result(made: Plan, sizes: Sizes) -> bool:
    """Whether a call makes nothing, which no harm can come of."""
    return all(0 in _shape(s, sizes) for p in made.signature.outputs for s in p.shapes)


def main(seed: int, group: int, groups: int, plans: int) -> None:
    """Checks every `groups`th op and direction: `plans` plans of each row."""
    ran = tried = 0
    wrong: list[str] = []
    for k, (op, direction) in enumerate(directions()):
        if k % groups != group:
            continue
        rng = random.Random(f"{seed} {op} {direction}")
        elements = elements_of(op, direction)
        cases = [
            (e, c) for e in rng.sample(elements, min(2, len(elements))) for c in cases_of(op, direction, e, _LARGEST)
        ]
        variants = sorted(
            {r["variant"] for r in rows() if (r["op"], r["direction"], r["backend"]) == (op, direction, "cpu")}
        )
        for variant in variants:
            done = 0
            for _, case in rng.sample(cases, len(cases)):
                signature = case.descriptor.signature()
                if done >= plans or sum(len(p.shapes) for p in signature.present) > _MOST_TENSORS:
                    break
                if any(is_records(np.asarray(v)) for v in case.tensors.values() if not isinstance(v, list)):
                    continue
                changed = opened(case.descriptor, rng)
                if changed is None or not type(case.descriptor).plan_class.query(
                    changed[0], "cpu", preference_for(variant)
                ):
                    continue
                done, tried = done + 1, tried + 1
                try:
                    ran += check(case, *changed, variant, rng)
                except (AssertionError, BaracudaError) as error:
                    wrong.append(f"{changed[0]} {variant}: {type(error).__name__}: {error}")
    print(f"{tried} plans, {ran} calls")
    sys.exit("\n".join(wrong[:40]) + f"\n{len(wrong)} wrong" if wrong else 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
