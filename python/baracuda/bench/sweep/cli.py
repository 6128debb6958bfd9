"""`python -m baracuda bench --sweep`: draws, measures, reports, compares."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from baracuda.bench.sweep.document import Row, document
from baracuda.bench.sweep.run import Options, run

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

_KEPT = 100  # rows after which the file is written: a run that is cut off leaves what it has measured
_QUICK: dict[str, Any] = {"largest": 1e5, "seconds": 1e-4, "most": 2}


def today() -> int:
    """The seed of the day: the date as a number."""
    return int(datetime.now().strftime("%Y%m%d"))


def options_of(args: argparse.Namespace, old: dict[str, Any] | None) -> Options:
    """As the command line says; of an old sweep its seed and sizes, so that cells are the same."""
    options = Options(
        args.sweep,
        args.gradients,
        today() if args.seed is None else args.seed,
        args.budget,
        args.largest or (4e8 if args.cliffs else 1e8),
    )
    options = replace(options, **_QUICK) if args.quick else options
    return replace(options, **{k: old["options"][k] for k in ("seed", "largest", "gradients")}) if old else options


def main(args: argparse.Namespace, threads: int) -> int:
    """Runs it; 1 when a cell is broken."""
    from baracuda.bench.sweep import show

    old = json.loads(args.compare.read_text()) if args.compare else None
    if args.show:
        data = json.loads(args.show.read_text())
    else:
        import baracuda as bc
        from baracuda.bench.sweep.libraries import library

        bc.set_num_threads(threads)
        options, peer = options_of(args, old), library(args.peer)
        peer.threads(threads)
        print(f"seed {options.seed}", file=sys.stderr)
        if args.cliffs:
            return _cliffs(options, peer)
        rows: list[Row] = []
        try:
            with show.progress() as step:
                for row in run(options, peer, old, step):
                    rows.append(row)
                    if args.json and len(rows) % _KEPT == 0:
                        _write(args.json, _document(rows, options, args, threads))
        except KeyboardInterrupt:
            print(f"stopped after {len(rows)} cells", file=sys.stderr)
        data = _document(rows, options, args, threads)
    show.show(data, old)
    if args.json:
        _write(args.json, data)
    if args.plot:
        from baracuda.bench.sweep.picture import draw

        draw(data, args.plot)
    return 1 if any(r["status"] == "broken" for r in data["rows"]) else 0


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def _document(rows: list[Row], options: Options, args: argparse.Namespace, threads: int) -> dict[str, Any]:
    from os import getloadavg

    from baracuda.bench import machine

    now = datetime.now().astimezone().isoformat(timespec="seconds")
    said = asdict(options) | {"peer": args.peer, "milliseconds": options.seconds * 1e3, "quick": args.quick}
    return document(rows, said, machine.facts(threads) | {"load": getloadavg()}, now)


def _cliffs(options: Options, peer: Any) -> int:
    """Prints each function's cost per element, with a mark where it jumps."""
    from time import monotonic

    from baracuda.bench.report import seconds
    from baracuda.bench.sweep.cells import chosen
    from baracuda.bench.sweep.cliffs import cliffs, curve

    begin, flagged = monotonic(), 0
    for name in chosen(options.words):
        if monotonic() - begin > options.budget:
            print(f"the time is over before {name}: --budget")
            break
        points = curve(name, peer, options)
        marks = cliffs(points)
        flagged += len(marks)
        costs = "  ".join(f"{p['size']:.0e}:{p['ns']:.3g}{'!' * (i in marks)}" for i, p in enumerate(points))
        print(f"{name:<24} ns per element  {costs}")
        for i in marks:
            p = points[i]
            print(f"{'':<24} cliff: {p['call']}: {seconds(p['ours'])}, the peer {seconds(p['theirs'])}")
    print(f"{flagged} cliffs; again with --seed {options.seed}")
    return 0
