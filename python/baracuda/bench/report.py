"""The table, the JSON document and the Markdown table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from baracuda.bench.case import Row

SCHEMA = 1
_METHOD = (
    "one process; ours and the peer alternate; each run repeats the call for at least {ms:g} ms; ratio = median over "
    "{runs} pairs of runs of peer time / our time; up to {patience} times as many pairs are made on a busy machine, "
    "and those with the fewest involuntary context switches count; freed memory stays in the process, so that neither "
    "side pays for page faults; a row counts if its SKUs keep their guarantees here and both sides agree; met: median "
    ">= 0.95 of the goal"
)
_COLUMNS = ("case", "shape", "ours", "peer", "ratio", "quartiles", "required", "goal", "rate", "of ceiling", "verdict")


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Shows which case runs; on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<45}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total)
        done = -1

        def step(name: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, description=name, completed=done)

        yield step


def document(
    rows: list[Row],
    ceilings: dict[str, float],
    source: str,
    args: argparse.Namespace,
    machine: dict[str, Any],
    begin: datetime,
    load: tuple[tuple[float, ...], tuple[float, ...]],
) -> dict[str, Any]:
    """Everything that was measured, ready for JSON."""
    counted = [r for r in rows if r.status == "measured"]
    return {
        "schema": SCHEMA,
        "date": begin.isoformat(timespec="seconds"),
        "quick": args.quick,
        "method": _METHOD.format(ms=5 if args.quick else 50, runs=args.runs, patience=args.patience),
        "machine": machine,
        "load": {"before": load[0], "after": load[1]},
        "ceilings": {"source": source, "values": ceilings},
        "rows": [asdict(r) for r in rows],
        "summary": {
            "measured": len(counted),
            "goals_met": sum(r.met is True for r in counted),
            "goals": sum(r.met is not None for r in counted),
            "required_met": sum(r.met_required is True for r in counted),
            "required": sum(r.met_required is not None for r in counted),
            "skipped": sum(r.status == "skipped" for r in rows),
            "broken": sum(r.status in ("broken", "error") for r in rows),
        },
    }


def seconds(value: float) -> str:
    """A time, for people."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def rate(row: dict[str, Any], side: str = "ours") -> tuple[float, str]:
    """What a side reaches, in the unit of the row's ceiling: GFLOP/s, GB/s or tokens/s."""
    seconds = row[side]["median"]
    if row["tokens"]:
        return row["tokens"] / seconds, "tok/s"
    if row["ceiling"] and row["ceiling"]["name"] in ("f32", "f64", "bf16"):
        return row["flops"] / seconds / 1e9, "GFLOP/s"
    return row["bytes"] / seconds / 1e9, "GB/s"


def _verdict(row: dict[str, Any]) -> str:
    if row["status"] != "measured":
        return str(row["status"])
    words: dict[bool | None, str] = {True: "met", False: "not met", None: ""}
    if row["met"] is False and row["met_required"]:
        return "required met"
    return words[row["met"]] or words[row["met_required"]]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    name = f"{row['name']} {row['element']}"
    if row["status"] in ("skipped", "error"):
        return (name, row["shape"], *[""] * 8, row["status"])
    ratio, spread = "", ""
    if row["ratio"] and row["status"] == "measured":
        ratio, spread = f"{row['ratio']['median']:.2f}", f"{row['ratio']['q1']:.2f}-{row['ratio']['q3']:.2f}"
    goal = f"{row['goal_ns']:.0f} ns" if row["goal_ns"] else f"{row['goal']:g}" if row["goal"] else ""
    reached, share = "", ""
    if row["bytes"] or row["tokens"]:
        value, unit = rate(row)
        reached = f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
        share = f"{value / row['ceiling']['value']:.0%} {row['ceiling']['name']}" if row["ceiling"] else ""
    peer = seconds(row["theirs"]["median"]) if row["theirs"] else ""
    required = f"{row['required']:g}" if row["required"] else ""
    return (
        name,
        row["shape"],
        seconds(row["ours"]["median"]),
        peer,
        ratio,
        spread,
        required,
        goal,
        reached,
        share,
        _verdict(row),
    )


def _head(data: dict[str, Any]) -> list[str]:
    machine, values = data["machine"], data["ceilings"]["values"]
    cpu = machine["cpu"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    bandwidths = ", ".join(f"{k} {v:.1f}" for k, v in values.items() if k not in ("f32", "f64", "bf16"))
    rates = ", ".join(f"{k} {v:.0f}" for k, v in values.items() if k in ("f32", "f64", "bf16"))
    before, after = data["load"]["before"], data["load"]["after"]
    quick = ["QUICK: tiny shapes, the numbers mean nothing"] if data["quick"] else []
    return [
        *quick,
        f"{cpu['model']}, {machine['threads']} threads, kernels {machine['kernels']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}",
        f"{versions}; {data['date']}; load average {before[0]:.2f} before, {after[0]:.2f} after",
        f"ceilings ({data['ceilings']['source']}), GB/s: {bandwidths}",
        f"ceilings, GFLOP/s: {rates}",
    ]


def _tail(data: dict[str, Any]) -> list[str]:
    s = data["summary"]
    lines = [
        f"goals met: {s['goals_met']} of {s['goals']}; required ratios met: {s['required_met']} of {s['required']}; "
        f"rows measured {s['measured']}, skipped {s['skipped']}, broken {s['broken']}"
    ]
    lines += [f"{r['status']}: {r['name']} {r['element']}: {r['reason']}" for r in data["rows"] if r["reason"]]
    return lines


def show(data: dict[str, Any]) -> None:
    """Prints the table: with colours on a terminal, as plain text elsewhere."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 190, highlight=False)
    for line in _head(data):
        console.print(line, markup=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD if terminal else box.ASCII2)
    for i, name in enumerate(_COLUMNS):
        table.add_column(name, justify="left" if i in (0, 1, 10) else "right", no_wrap=i == 0)
    colours = {"met": "green", "not met": "red", "required met": "yellow", "broken": "red bold", "error": "red bold"}
    for row in data["rows"]:
        table.add_row(*cells(row), style=colours.get(_verdict(row)))
    console.print(table)
    for line in _tail(data):
        console.print(line, markup=False, soft_wrap=True)


def markdown(data: dict[str, Any]) -> str:
    """The same as a Markdown page."""
    aligned = [":--" if i in (0, 1, 10) else "--:" for i in range(len(_COLUMNS))]
    lines = [f"# Benchmark, {data['machine']['cpu']['model']}, {data['date'][:10]}", ""]
    lines += [f"- {line}" for line in [*_head(data), data["method"]]]
    lines += ["", f"| {' | '.join(_COLUMNS)} |", f"|{'|'.join(aligned)}|"]
    lines += [f"| {' | '.join(cells(row))} |" for row in data["rows"]]
    lines += ["", *[f"- {line}" for line in _tail(data)], "", "Peers:", ""]
    peers: dict[str, list[str]] = {}
    for row in data["rows"]:
        names = peers.setdefault(row["peer"], [])
        if row["name"] not in names:
            names.append(row["name"])
    lines += [f"- {', '.join(names)}: {peer}" for peer, names in peers.items()]
    return "\n".join(lines) + "\n"
