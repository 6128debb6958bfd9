"""Prints seconds and bytes per op family from a build folder: python ci/build_report.py [FOLDER]."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW_SECONDS = 40


def log_of(folder: Path) -> Path:
    """The newest ninja log in the folder or one below it."""
    logs = [*folder.glob(".ninja_log"), *folder.glob("*/.ninja_log")]
    if not logs:
        sys.exit(f"no .ninja_log lies in {folder}")
    return max(logs, key=lambda p: p.stat().st_mtime)


def room_of(output: str) -> str:
    family = re.search(r"csrc/ops/(\w+)/", output)
    other = re.search(r"csrc/(core|backends|bindings)/", output)
    return family.group(1) if family else f"({other.group(1)})" if other else "(other)"


def main() -> None:
    log = log_of(Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
    seconds: defaultdict[str, float] = defaultdict(float)
    size: defaultdict[str, int] = defaultdict(int)
    units: dict[str, float] = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, *_ = line.split("\t")
        if output.endswith(".o"):
            units[output] = (int(end) - int(start)) / 1000
    for output, took in units.items():
        path = log.parent / output
        if path.exists():
            seconds[room_of(output)] += took
            size[room_of(output)] += path.stat().st_size
    print(f"{'family':<14}{'seconds':>9}{'KB':>9}   ({log.parent.name}; objects of all CPU levels, before linking)")
    for room in sorted(seconds, key=lambda r: -seconds[r]):
        print(f"{room:<14}{seconds[room]:>9.1f}{size[room] / 1e3:>9.0f}")
    print(f"{'all':<14}{sum(seconds.values()):>9.1f}{sum(size.values()) / 1e3:>9.0f}")
    for output, took in sorted(units.items(), key=lambda t: -t[1])[:3]:
        print(f"slowest: {took:5.1f} s  {output.removeprefix('CMakeFiles/')}")
    slow = [output for output, took in units.items() if took > SLOW_SECONDS]
    if slow:
        print(f"{len(slow)} units took more than {SLOW_SECONDS} s (a busy machine counts too): split them")


if __name__ == "__main__":
    main()
