"""Runs a sweep: draws cells until the time is over, measures each, keeps what was found."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from baracuda.bench.sweep.cells import Cell, chosen, draw, order
from baracuda.bench.sweep.document import Row
from baracuda.bench.sweep.race import race
from baracuda.bench.sweep.sides import Broken, Library, Unsuited, pair_of

_TRIES = 4  # elements that are tried before a call is given up


@dataclass(frozen=True, slots=True)
class Options:
    """Of a sweep.

    Attributes:
        words: Family or function; "" for all.
        gradients: Calls with their gradients, in the place of calls.
        seed: Of all that is drawn.
        budget: Seconds after which no cell is begun.
        largest: Bytes of the largest tensors.
        seconds: Of one run.
        most: Pairs of runs of a cell that is not clear.
    """

    words: str = ""
    gradients: bool = False
    seed: int = 0
    budget: float = 300.0
    largest: float = 1e8
    seconds: float = 1e-3
    most: int = 7


def measure(cell: Cell, library: Library, options: Options) -> Row:
    """One cell; with the next elements, where one side does not take the first."""
    refused: list[str] = []
    for element in cell.elements[:_TRIES]:
        if element != cell.element:
            cell = draw(
                cell.name,
                options.seed,
                cell.number,
                gradient=cell.gradient,
                largest=options.largest,
                element=element,
            )
        row = _row(cell)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names that the peer gives up
                pair = pair_of(cell, library, options.seed)
                times = race(pair, options.seconds, options.most)
        except Unsuited as no:
            refused.append(f"{element}: {no}")
            continue
        except Broken as no:
            row.status, row.reason = "broken", str(no)
            return row
        row.out = pair.out
        row.ours, row.theirs, row.ratio, row.runs = min(times.ours), min(times.theirs), times.ratio, len(times.ours)
        row.reason = "; ".join(r for r in refused if ": ours: " in r)
        return row
    row.status, row.reason = "unsuited", "; ".join(refused)
    return row


def _row(cell: Cell) -> Row:
    return Row(
        cell.name,
        cell.family,
        cell.number,
        cell.gradient,
        cell.out,
        cell.text,
        cell.element,
        cell.layout,
        cell.nbytes,
        cell.size,
    )


def places(options: Options, old: dict[str, Any] | None) -> Iterator[tuple[str, int, bool]]:
    """(function, number, gradient) of the cells, in the order in which they are measured: those of an old sweep, where one is given."""
    if old is not None:
        yield from ((r["name"], r["number"], r["gradient"]) for r in old["rows"])
        return
    for name, number in order(chosen(options.words, options.gradients), options.seed):
        yield name, number, options.gradients


def run(
    options: Options,
    library: Library,
    old: dict[str, Any] | None = None,
    step: Callable[[str, float], None] = lambda _name, _share: None,
) -> Iterable[Row]:
    """Rows, one after the other, until the time is over or the old sweep's cells are."""
    begin = monotonic()
    for name, number, gradient in places(options, old):
        spent = monotonic() - begin
        if spent > options.budget:
            break
        step(f"{name} {number}", spent / options.budget)
        cell = draw(name, options.seed, number, gradient=gradient, largest=options.largest)
        row = measure(cell, library, options)
        yield row
        if row.bytes > 1e7:
            gc.collect()
