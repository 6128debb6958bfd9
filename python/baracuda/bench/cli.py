"""The benchmark's command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baracuda.bench.case import Case, Row
    from baracuda.bench.ceilings import Ceilings

# Freed memory stays in the process, so that after the warm-up neither side pays for page faults; NumPy must not ask for
# huge pages, or memory that it has used would be faster than other memory.
_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "NUMPY_MADVISE_HUGEPAGE": "0",
}
_MARK = "BARACUDA_BENCH_ENVIRONMENT"


def parser() -> argparse.ArgumentParser:
    """Of all that the benchmark is told."""
    parser = argparse.ArgumentParser(
        prog="python -m baracuda bench", description="Ours and a peer, side by side in one process."
    )
    words = "only cases whose family, name or element contains TEXT; several: any of them"
    parser.add_argument("--filter", action="append", default=[], metavar="TEXT", help=words)
    parser.add_argument(
        "--quick", action="store_true", help="tiny shapes and short runs: shows that it works, not how fast"
    )
    parser.add_argument(
        "--device", default="cpu", help="cpu, or cuda:0: both sides on that device (needs torch with CUDA)"
    )
    parser.add_argument("--threads", type=int, default=0, help="threads of both sides; 0: all usable CPUs")
    parser.add_argument("--runs", type=int, default=5, help="runs per side (default 5); medians are taken")
    patience = "on a busy machine, make up to so many times as many runs; the least disturbed ones count"
    parser.add_argument("--patience", type=int, default=1, metavar="N", help=patience)
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--json", "--out", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a roofline (PNG, SVG or PDF)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="report on an earlier --json file instead of measuring"
    )
    _sweep_options(parser.add_argument_group("random calls (docs/benchmarks.md)"))
    return parser


def _sweep_options(group: Any) -> None:
    words = "every function with a peer, or those of FAMILY (a function's name, too), on random shapes, layouts and elements"
    group.add_argument("--sweep", nargs="?", const="", metavar="FAMILY", help=words)
    group.add_argument("--gradients", action="store_true", help="calls with their gradients, in the place of calls")
    group.add_argument("--seed", type=int, help="of all that is drawn; the date as a number, if it is not given")
    group.add_argument("--budget", type=float, default=300.0, metavar="S", help="seconds (default 300)")
    group.add_argument("--largest", type=float, metavar="BYTES", help="of one tensor (default 1e8; of --cliffs 4e8)")
    group.add_argument("--peer", choices=("torch", "numpy"), default="torch", help="what it is measured beside")
    compare = "measures the calls of an earlier --json file again and lists what is slower by 10 %%"
    group.add_argument("--compare", type=Path, metavar="FILE", help=compare)
    group.add_argument(
        "--cliffs", action="store_true", help="cost per element at growing sizes, in the place of ratios"
    )


def _missing(args: argparse.Namespace) -> str:
    peerless = args.show or (args.sweep is not None and args.peer == "numpy")
    needed = ["rich"] + ([] if peerless else ["torch"]) + (["matplotlib"] if args.plot else [])
    lacking = [name for name in needed if find_spec(name) is None]
    return (
        f"bench needs {', '.join(lacking)}: pip install {' '.join(lacking)}  (or '.[bench]' in a clone)"
        if lacking
        else ""
    )


def _restart(argv: list[str], threads: int) -> None:
    """Starts this process over with the allocator set, once; does not return if it does."""
    if os.environ.get(_MARK) or not sys.platform.startswith("linux"):
        return
    environment = {**os.environ, **_ENVIRONMENT, _MARK: "1", "OMP_NUM_THREADS": str(threads)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "baracuda", "bench", *argv], environment)


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chosen(cases: list[Case], words: list[str]) -> list[Case]:
    return [c for c in cases if not words or any(w in f"{c.family} {c.key}" for w in words)]


def _measure(cases: list[Case], args: argparse.Namespace, threads: int) -> dict[str, Any]:
    import torch

    import baracuda as bc
    from baracuda.bench import gpu, machine, report
    from baracuda.bench.ceilings import measure_ceilings
    from baracuda.bench.measure import measure

    on_host = args.device == "cpu"

    def ceilings_now() -> Ceilings:
        return measure_ceilings(threads, quick=args.quick) if on_host else gpu.measure_ceilings(quick=args.quick)

    bc.set_num_threads(threads)
    torch.set_num_threads(threads)
    begin = datetime.now().astimezone()
    before = os.getloadavg()
    first = ceilings_now()
    rows: list[Row] = []
    facts = machine.facts(threads, args.device)

    def finish(ceilings: dict[str, float]) -> dict[str, Any]:
        for row in rows:
            if row.ceiling:
                row.ceiling["value"] = ceilings[row.ceiling["name"]]
        made = report.document(rows, ceilings, first.source, args, facts, begin, (before, os.getloadavg()))
        if args.json:
            args.json.write_text(json.dumps(made, indent=1) + "\n")
        return made

    with report.progress(len(cases)) as step:
        for case in cases:
            step(case.key)
            rows.append(measure(case, first, args.runs, 0.005 if args.quick else 0.05, args.patience))
            finish(first.values)  # a run that is cut off leaves what it has measured
    # The machine may have been busy at one end: the better of two measurements is the ceiling.
    last = ceilings_now()
    return finish({k: max(v, last.values.get(k, 0.0)) for k, v in first.values.items()})


def swept(args: argparse.Namespace, threads: int) -> int:
    """The sweep's command; 2 where it is given a name that nothing has."""
    from baracuda.bench.sweep import cli

    try:
        return cli.main(args, threads)
    except LookupError as unknown:
        print(f"bench {unknown}", file=sys.stderr)
        return 2


def main(argv: list[str]) -> int:
    """Runs it; 1 when a row is broken or failed."""
    args = parser().parse_args(argv)
    lacking = _missing(args)
    if lacking:
        print(lacking, file=sys.stderr)
        return 2
    threads = args.threads or _usable_cpus()
    if args.sweep is not None:
        if not args.show:
            _restart(argv, threads)
        return swept(args, threads)
    from baracuda.bench import report

    if args.show:
        document = json.loads(args.show.read_text())
    else:
        if not args.list:
            _restart(argv, threads)
        from baracuda.bench.cases import all_cases

        cases = all_cases(args.quick)
        if args.device != "cpu":
            from baracuda.bench import gpu

            args.device, reason = gpu.use(args.device)
            if reason and not args.list:
                print(f"bench --device {args.device}: {reason}", file=sys.stderr)
                return 2
            cases = gpu.on_device(cases, gpu.cache_bytes(), gpu.EventClock) if not reason else gpu.on_device(cases, 0)
        cases = _chosen(cases, args.filter)
        if args.list or not cases:
            print(
                "\n".join(f"{c.family:<12} {c.key:<45} {c.shape:<24} {c.peer}" for c in cases)
                or "no case matches --filter"
            )
            return 0 if cases else 2
        document = _measure(cases, args, threads)
    report.show(document)
    if args.markdown:
        args.markdown.write_text(report.markdown(document))
    if args.plot:
        from baracuda.bench.plot import draw

        draw(document, args.plot)
    return 1 if any(r["status"] in ("broken", "error") for r in document["rows"]) else 0
