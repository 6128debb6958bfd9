"""Prints a sweep: shares, families, the worst cells, and what became slower."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from baracuda.bench.report import seconds
from baracuda.bench.sweep import document as d


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """Shows which cell runs and how much of the time is gone; on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<40}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda name, share: bar.update(task, description=name, completed=share)


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200, highlight=False)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Any:
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD if sys.stdout.isatty() else box.ASCII2)
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i < left or i == len(columns) - 1 else "right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def shares(figures: dict[str, Any]) -> tuple[str, ...]:
    """Cells, mean, shares and the worst, as text."""
    if not figures["cells"]:
        return ("0", *[""] * 4)
    f = figures
    return (str(f["cells"]), f"{f['mean']:.2f}", f"{f['behind']:.1%}", f"{f['far_behind']:.1%}", f"{f['worst']:.2f}")


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    what = f"{row['name']}{' gradient' * row['gradient']}"
    return (
        what,
        f"{row['ratio']:.2f}",
        seconds(row["ours"]),
        seconds(row["theirs"]),
        f"{row['number']}: {row['call']}{', out=' * row['out']}",
    )


def show(data: dict[str, Any], old: dict[str, Any] | None = None, worst: int = 50) -> None:
    """The whole report."""
    console, options = _console(), data["options"]
    console.print(
        f"sweep of {options['words'] or 'all families'}{', gradients' * options['gradients']} beside {options['peer']}: seed "
        f"{options['seed']}, {data['machine']['threads']} threads, {data['machine']['cpu']['model']}, {data['date']}",
        markup=False,
        soft_wrap=True,
    )
    head = ("cells", "mean", f"< {d.BEHIND:g}", f"< {d.FAR_BEHIND:g}", "worst")
    for what, name in (("families", "family"), ("layouts", "layout"), ("elements", "element")):
        console.print(_table("", (name, *head), [(n, *shares(f)) for n, f in data[what].items()]))
    rows = d.worst(data["rows"], worst)
    console.print(
        _table(f"worst {len(rows)}", ("function", "ratio", "ours", "peer", "number: call"), [*map(_cell, rows)])
    )
    for row in data["rows"]:
        if row["status"] in ("broken", "error"):
            line = f"{row['status']}: {row['name']}{' gradient' * row['gradient']} {row['number']}: {row['call']}: {row['reason']}"
            console.print(line, markup=False, soft_wrap=True)
    if old is not None:
        _compared(console, data, old)
    s = data["summary"]
    counts = {w: sum(r["status"] == w for r in data["rows"]) for w in ("broken", "error", "unsuited")}
    console.print(
        f"{s['cells']} cells measured; geometric mean, below {d.BEHIND:g}, below {d.FAR_BEHIND:g}, worst: "
        f"{', '.join(shares(s)[1:])}; {', '.join(f'{n} {w}' for w, n in counts.items())}; again with --seed {options['seed']}",
        markup=False,
        soft_wrap=True,
    )


def _compared(console: Any, data: dict[str, Any], old: dict[str, Any]) -> None:
    found = d.slower(data, old)
    rows = [
        (f"{r['name']}{' gradient' * r['gradient']}", f"{r['times']:.2f}", seconds(r["before"]["ours"]), *_cell(r)[2:])
        for r in found
    ]
    title = f"slower by 10 % and more than in {old['date']}: {len(rows)} of {d.matched(data, old)} cells that both have"
    console.print(_table(title, ("function", "times", "before", "now", "peer", "number: call"), rows))
